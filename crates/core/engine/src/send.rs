//! Starting sends.
//!
//! *Rules of the eager path* (`send_line_now` and `send_now`): no lock, no allocation, no system call, no loop.
//! (docs/hot-paths.md names the test.)

use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};

use crate::arrival::{Body, charge};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::matching::Waiting;
use crate::queue::{Content, Queued};
use crate::request::{Handle, Stage, Status};
use crate::transport::{Peer, Presence, SentLine, Transport};

/// The meaning of a send's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The buffer may be reused.
    Standard,
    /// And the receiver has begun to receive.
    Synchronous,
}

impl<T: Transport> Engine<T> {
    /// Send at once if that is possible; the common case of every small message. `to` must be a
    /// peer and `tag` a tag. False: nothing has happened, `start_send` will say why.
    #[inline(always)]
    pub fn send_now(&mut self, to: Peer, context: u32, tag: i32, message: &Views) -> bool {
        if message.len() > self.eager_limit
            || to == self.me
            || !self.queued.is_empty()
            || self.is_gone(to)
            || self.losses_seen != self.transport.losses()
        {
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

    /// Send at once, as [`send_now`](Engine::send_now) does, a message that fits into a line of a ring.
    #[inline(always)]
    pub fn send_line_now(&mut self, to: Peer, context: u32, tag: i32, message: &Views) -> SentLine {
        if to == self.me
            || !self.queued.is_empty()
            || self.is_gone(to)
            || self.losses_seen != self.transport.losses()
        {
            return SentLine::No;
        }
        self.transport.send_line(to, context, tag, message)
    }

    #[cold]
    fn refuse(&mut self, fault: crate::transport::Fault) -> bool {
        self.condemn(fault);
        false
    }

    /// Start a send. `to` must be a peer and `tag` a tag; the message's memory must stay as it is
    /// until the request is complete.
    #[inline(always)]
    pub fn start_send(
        &mut self,
        to: Peer,
        context: u32,
        tag: i32,
        message: Views,
        mode: Mode,
    ) -> Result<Handle> {
        if mode == Mode::Standard && self.send_now(to, context, tag, &message) {
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
        self.check_open(context, tag)?;
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
            let queue = self.queued.entry(to).or_default();
            queue.push_back(Queued { frame, content });
            // There may be room for it by now.
            self.progress();
        } else if let Err(error) = self.offer(to, context, tag, message, request, mode) {
            self.requests.release(request);
            return Err(error);
        }
        Ok(self.requests.handle(request))
    }

    /// Sends a message that the ring to its receiver may hold, if there is room for it now. It may be longer than those of `send_now`, whose limit is that
    /// of all rings. False: nothing has happened, and `start_send` sends it when it can go.
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
        if self.queued.contains_key(&to) {
            return Ok(false);
        }
        let sent = self.transport.send(to, frame, message);
        sent.map_err(|fault| self.judge(fault.into()))
    }

    /// Fail early on peers that cannot receive any more.
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
        self.check_open(context, tag)?;
        if let Some(receive) = self.posted.take(context, me, tag) {
            message.copy_to(&self.requests.get(receive).views);
            self.requests.received(receive, me, tag, message.len());
            return Ok(Handle::COMPLETE);
        }
        let body = if mode == Mode::Synchronous {
            let request = self
                .requests
                .add(Stage::Moving, Status::EMPTY, Views::none());
            let handle = self.requests.handle(request);
            self.keep(context, tag, Body::Own(message, request));
            return Ok(handle);
        } else {
            if self.buffered.saturating_add(charge(message.len())) > self.settings.buffer {
                return Err(Error::Cycle(vec![me]));
            }
            let bytes = message.to_held()?;
            self.buffered += charge(message.len());
            Body::Bytes(bytes)
        };
        self.keep(context, tag, body);
        Ok(Handle::COMPLETE)
    }

    pub(crate) fn keep(&mut self, context: u32, tag: i32, body: Body) {
        let source = self.me;
        self.unexpected.push(Waiting {
            source,
            context,
            tag,
            body,
        });
    }

    /// Hand a loan over: the message at `place` is not copied. Never waits.
    pub fn send_loan(
        &mut self,
        to: Peer,
        context: u32,
        tag: i32,
        place: u64,
        total: u64,
    ) -> Result<()> {
        if to == self.me {
            // The loan waits with the other messages; a receive finds it there.
            if let Some(receive) = self.posted.take(context, to, tag) {
                return self.receive_loan(receive, to, tag, place, total);
            }
            self.keep(context, tag, Body::Loan { place, total });
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
}
