//! Starts sends.
//!
//! *Rules of the eager path* (`try_send_line` and `try_send`): no lock, no allocation, no system call, no loop.
//! (docs/hot-paths.md names the test.)

use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};

use crate::error::{Error, Result};
use crate::point_to_point::PointToPoint;
use crate::point_to_point::body::Body;
use crate::point_to_point::credits::ReceiptCredit;
use crate::point_to_point::outbox::{Content, Queued};
use crate::request::{Handle, Mode, Stage, Status};
use crate::transport::{Fault, Peer, Presence, SentLine, Transport};

impl<T: Transport> PointToPoint<T> {
    /// Returns whether a message can be sent to this peer at once, as far as this layer knows.
    #[inline(always)]
    fn is_way_clear(&self, to: Peer) -> bool {
        to != self.me
            && self.outbox.is_empty()
            && !self.losses.has(to)
            && self.losses.are_counted(self.transport.losses())
    }

    /// Sends a message at once if possible, as is usual for small messages. `to` must be a peer and `tag` a tag. Returns false, without effect,
    /// otherwise; `start_send` then returns the error, if any.
    #[inline(always)]
    pub fn try_send(&mut self, to: Peer, context: u32, tag: i32, message: &Views) -> bool {
        if message.len() > self.eager_limit || !self.is_way_clear(to) {
            return false;
        }
        let frame = Frame {
            kind: Kind::Eager,
            context,
            tag,
        };
        match self.transport.send(to, frame, message) {
            Ok(sent) => sent,
            Err(fault) => self.refuse(fault),
        }
    }

    /// Does the same as [`try_send`](Self::try_send), for a message that fits into a line of a ring.
    #[inline(always)]
    pub fn try_send_line(&mut self, to: Peer, context: u32, tag: i32, message: &Views) -> SentLine {
        if !self.is_way_clear(to) {
            return SentLine::No;
        }
        self.transport.send_line(to, context, tag, message)
    }

    /// Sends a message at once to several peers with [`Frames::send_to_all`](crate::Frames::send_to_all), unless a frame is queued or the message is
    /// not eager. Returns the result of that call.
    pub(crate) fn try_send_to_all(
        &mut self,
        to: &[Peer],
        context: u32,
        tag: i32,
        message: &Views,
    ) -> u64 {
        if message.len() > self.eager_limit || !to.iter().all(|&peer| self.is_way_clear(peer)) {
            return 0;
        }
        let frame = Frame {
            kind: Kind::Eager,
            context,
            tag,
        };
        self.transport.send_to_all(to, frame, message)
    }

    #[cold]
    fn refuse(&mut self, fault: Fault) -> bool {
        self.condemn(fault);
        false
    }

    /// Starts a send. `to` must be a peer and `tag` a tag. The message's memory must not change until the request is complete.
    #[inline(always)]
    pub fn start_send(
        &mut self,
        to: Peer,
        context: u32,
        tag: i32,
        message: Views,
        mode: Mode,
    ) -> Result<Handle> {
        if mode == Mode::Standard && self.try_send(to, context, tag, &message) {
            return Ok(Handle::COMPLETE);
        }
        self.start_send_slowly(to, context, tag, message, mode)
    }

    #[inline(never)]
    fn start_send_slowly(
        &mut self,
        to: Peer,
        context: u32,
        tag: i32,
        message: Views,
        mode: Mode,
    ) -> Result<Handle> {
        if to == self.me {
            return self.send_to_self(context, tag, message, mode);
        }
        self.check_present(to)?;
        self.contexts.check(context, tag)?;
        let eager = mode == Mode::Standard && message.len() <= self.transport.eager_limit_to(to);
        let frame = Frame {
            kind: Kind::Eager,
            context,
            tag,
        };
        if eager && self.send_if_room(to, frame, &message)? {
            return Ok(Handle::COMPLETE);
        }
        let request = self
            .requests
            .add(Stage::Sending(mode), Status::EMPTY, Views::none());
        if eager {
            let content = Content::Message(message, request);
            self.outbox.push(to, Queued { frame, content });
            // There may be space for it by now.
            self.progress();
        } else if let Err(error) = self.offer(to, context, tag, message, request, mode) {
            self.requests.release(request);
            return Err(error);
        }
        Ok(self.requests.handle(request))
    }

    /// Sends a message eagerly if the ring to its receiver has space for it now. The message may be longer than for `try_send`, whose limit is the
    /// minimum of all rings. Returns false, without effect, otherwise; `start_send` then sends it when possible.
    pub fn send_eagerly(
        &mut self,
        to: Peer,
        context: u32,
        tag: i32,
        message: &Views,
    ) -> Result<bool> {
        if to == self.me || message.len() > self.transport.eager_limit_to(to) {
            return Ok(false);
        }
        self.check_present(to)?;
        let frame = Frame {
            kind: Kind::Eager,
            context,
            tag,
        };
        self.send_if_room(to, frame, message)
    }

    fn send_if_room(&mut self, to: Peer, frame: Frame, message: &Views) -> Result<bool> {
        if self.outbox.has(to) {
            return Ok(false);
        }
        let sent = self.transport.send(to, frame, message);
        sent.map_err(|fault| self.judge(fault.into()))
    }

    /// Fails if this peer cannot receive messages any more.
    pub(crate) fn check_present(&self, peer: Peer) -> Result<()> {
        match self.presence(peer) {
            Presence::Here => Ok(()),
            _ => Err(self.loss(peer)),
        }
    }

    fn send_to_self(
        &mut self,
        context: u32,
        tag: i32,
        message: Views,
        mode: Mode,
    ) -> Result<Handle> {
        let me = self.me;
        self.contexts.check(context, tag)?;
        // No wake is sent for it: other threads, and a program that waits for the descriptor, detect it by the counter.
        self.note_moves(true);
        if let Some(receive) = self.inbox.posted.take(context, me, tag) {
            message.copy_to(&self.requests.get(receive).views);
            self.requests.received(receive, me, tag, message.len());
            return Ok(Handle::COMPLETE);
        }
        let body = if mode == Mode::Synchronous {
            let request = self
                .requests
                .add(Stage::Moving, Status::EMPTY, Views::none());
            let handle = self.requests.handle(request);
            let own = Body::Own(message, request);
            self.inbox.keep(me, context, tag, own);
            return Ok(handle);
        } else {
            if !self.inbox.has_room_for(message.len()) {
                return Err(Error::Cycle(vec![me]));
            }
            Body::Bytes(message.to_held()?)
        };
        self.inbox.keep(me, context, tag, body);
        Ok(Handle::COMPLETE)
    }

    /// Sends the memory at `place` as a loan, without a copy. Never blocks.
    pub fn send_loan(
        &mut self,
        to: Peer,
        context: u32,
        tag: i32,
        place: u64,
        total: u64,
    ) -> Result<()> {
        if to == self.me {
            self.note_moves(true);
            // The loan waits with the other messages until a receive finds it.
            if let Some(receive) = self.inbox.posted.take(context, to, tag) {
                let received = self.receive_loan(receive, to, tag, place, total);
                return received.inspect_err(|error| {
                    self.requests.complete(receive, Some(error.clone()));
                });
            }
            let loan = Body::Loan { place, total };
            self.inbox.keep(to, context, tag, loan);
            return Ok(());
        }
        self.check_present(to)?;
        let frame = Frame {
            kind: Kind::Loan,
            context,
            tag,
        };
        let body = regatta_wire::Loan { total, place }.encode();
        self.send_or_queue(to, frame, &body)?;
        Ok(())
    }

    /// Sends a notification to this task itself, regardless of the buffer limit.
    pub fn notify_self(&mut self, context: u32, tag: i32, bytes: &[u8], credit: ReceiptCredit) {
        let me = self.me;
        self.note_moves(true);
        if let Some(receive) = self.inbox.posted.take(context, me, tag) {
            self.requests.get(receive).views.fill(bytes);
            self.requests.received(receive, me, tag, bytes.len());
            return self.credits.pay(credit);
        }
        let mut held = Held::zeros(bytes.len());
        held.copy_from_slice(bytes);
        self.inbox.keep(me, context, tag, Body::Told(held, credit));
    }

    /// Sends a body of the engine's own and returns true, or queues it until there is space and returns false. Sends nothing to a peer that is gone:
    /// that would open a ring which is never closed.
    pub(crate) fn send_or_queue(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool> {
        if self.losses.has(to) {
            return Ok(true);
        }
        if !self.outbox.has(to) && self.send_body(to, frame, body)? {
            return Ok(true);
        }
        self.outbox.push(to, Queued::of_body(frame, body));
        Ok(false)
    }

    /// Does the same as `send_or_queue`, but ahead of queued frames: for an answer that is independent of them. Otherwise the receiver would have to
    /// accept all of them first.
    pub(crate) fn send_ahead(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<()> {
        if !self.losses.has(to) && !self.send_body(to, frame, body)? {
            self.outbox.push_front(to, Queued::of_body(frame, body));
        }
        Ok(())
    }

    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool> {
        let sent = self.transport.send_body(to, frame, body);
        sent.map_err(|fault| self.judge(fault.into()))
    }

    /// Sends queued frames, in order. Returns whether any was sent.
    pub(super) fn flush(&mut self) -> bool {
        let mut moved = false;
        for peer in self.outbox.peers() {
            while let Some(front) = self.outbox.front(peer) {
                match front.send(&mut self.transport, peer) {
                    Ok(true) => moved |= self.pop_queued(peer, None),
                    Ok(false) => break,
                    Err(fault @ (Fault::Memory(_) | Fault::System(_))) => {
                        moved |= self.pop_queued(peer, Some(fault.into()));
                    }
                    Err(fault) => {
                        self.condemn(fault);
                        moved = true;
                        break;
                    }
                }
            }
        }
        moved
    }

    fn pop_queued(&mut self, peer: Peer, error: Option<Error>) -> bool {
        match self.outbox.pop(peer) {
            Some(Queued {
                content: Content::Message(_, request),
                ..
            }) => self.requests.complete(request, error),
            Some(queued) => {
                if let Some(offer) = queued.offer() {
                    self.offer_left(peer, offer, error);
                }
            }
            None => {}
        }
        true
    }
}
