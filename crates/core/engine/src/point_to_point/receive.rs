//! Starts receives and probes for messages.
//!
//! *Rules of the fast path* (`poll_matching` on an eager message at the front of its ring): no
//! lock, no allocation, no system call, no hash table. (docs/hot-paths.md names the test.)

use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::Kind;

use crate::error::{Error, Result};
use crate::matching::{Select, TagSelect, Waiting};
use crate::point_to_point::PointToPoint;
use crate::point_to_point::body::{Body, status_of};
use crate::point_to_point::matched::Message;
use crate::request::{Handle, Stage, Status};
use crate::transport::{Frames, Peer, Polled, Transport};

/// The outcome of an attempt to receive the next message without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// A message was received: its source, tag and length.
    Received(Peer, i32, usize),
    /// No message has arrived.
    Nothing,
    /// Another frame is next, or receives or messages are waiting: the caller must make a request.
    NeedsRequest,
}

/// Receives a small message with this tag, or with any if `tag` is `None`, if it is the next frame of its source. The caller ensures that no receive
/// is posted and no message waits.
#[inline(always)]
fn receive_front(
    frames: &mut impl Frames,
    source: Peer,
    context: u32,
    tag: Option<i32>,
    into: &Views,
) -> Attempt {
    if let Some(tag) = tag {
        return match frames.poll_matching(source, context, tag, into) {
            Polled::Received(length) => Attempt::Received(source, tag, length),
            Polled::Nothing => Attempt::Nothing,
            Polled::Other => Attempt::NeedsRequest,
        };
    }
    let front = match frames.front(source) {
        Ok(Some(front)) => front,
        Ok(None) => return Attempt::Nothing,
        Err(_) => return Attempt::NeedsRequest,
    };
    let frame = front.frame;
    if frame.kind != Kind::Eager || frame.context != context || front.length > into.len() {
        return Attempt::NeedsRequest;
    }
    frames.accept(source, into);
    Attempt::Received(source, frame.tag, front.length)
}

impl<T: Transport> PointToPoint<T> {
    /// Polls once for a small message of this source with this tag, and receives it if it is the next frame. Returns [`Polled::Other`] if another
    /// frame is next, or receives or messages are waiting: the caller must then make a request.
    #[inline(always)]
    pub fn poll_matching(&mut self, source: Peer, context: u32, tag: i32, into: &Views) -> Polled {
        if !self.inbox.is_empty() || self.has_due_callbacks() || source == self.me {
            return Polled::Other;
        }
        self.transport.poll_matching(source, context, tag, into)
    }

    /// Does the same as `poll_matching`, with any tag if `tag` is `None`. If `source` is `None`, uses the first source that has sent a frame.
    #[inline(always)]
    pub fn poll_any(
        &mut self,
        source: Option<Peer>,
        context: u32,
        tag: Option<i32>,
        into: &Views,
    ) -> Attempt {
        if !self.inbox.is_empty() {
            return Attempt::NeedsRequest;
        }
        match source {
            Some(source) if source == self.me => Attempt::NeedsRequest,
            Some(source) => receive_front(&mut self.transport, source, context, tag, into),
            None => {
                let mut cursor = 0;
                match self.transport.next_ready(&mut cursor) {
                    Some(source) => receive_front(&mut self.transport, source, context, tag, into),
                    None => Attempt::Nothing,
                }
            }
        }
    }

    /// Prepares for an answer to this peer, from which the task is waiting for a message.
    #[inline(always)]
    pub fn prepare(&mut self, peer: Peer) {
        self.transport.prepare(peer);
    }

    /// Returns the task from which the message of this receive must come, if it is a single one.
    pub fn source(&self, handle: Handle) -> Option<Peer> {
        let id = self.find(handle).ok()?;
        match self.requests.get(id).stage {
            Stage::Posted(number) => self.inbox.posted.select(number)?.source,
            _ => None,
        }
    }

    /// Returns whether a frame of this task waits in the transport because the buffer is full.
    pub fn holds_up(&mut self, source: Peer) -> bool {
        self.buffer_is_full()
            && source != self.me
            && matches!(self.transport.front(source), Ok(Some(_)))
    }

    /// Returns whether any frame waits in the transport because the buffer is full.
    pub fn holds_up_some(&mut self) -> bool {
        self.buffer_is_full() && self.transport.next_ready(&mut 0).is_some()
    }

    /// Posts a receive on the fast path. Returns `None`, without effect, if another receive is posted that selects other messages, if a message
    /// waits, or if the source is gone. A message of the source may be in its ring already. This call does not check for it, because that would
    /// delay a send that comes next; a later poll finds it.
    #[inline(always)]
    pub fn try_post(
        &mut self,
        source: Peer,
        context: u32,
        tag: i32,
        into: &Views,
    ) -> Option<Handle> {
        let Views::Block(at, len) = *into else {
            return None;
        };
        if source == self.me
            || !self.inbox.waiting().is_empty()
            || self.losses.has(source)
            || !self.has_counted_losses()
        {
            return None;
        }
        let message = (source, context, tag);
        self.requests
            .add_posted(&mut self.inbox.posted, message, (at, len))
    }

    /// Starts a receive. The engine uses the memory until the request is complete. A receive from any source finds only waiting messages, and is
    /// posted even if tasks are gone: [`Engine::start_receive`](crate::Engine::start_receive) checks first.
    #[inline(always)]
    pub(crate) fn start_receive_of(&mut self, select: Select, into: Views) -> Result<Handle> {
        if let (Some(source), TagSelect::Exactly(tag)) = (select.source, select.tag)
            && let Polled::Received(length) = self.poll_matching(source, select.context, tag, &into)
        {
            let context = select.context;
            return Ok(self.requests.add_received(source, context, tag, length));
        }
        self.start_receive_slowly(select, into)
    }

    #[inline(never)]
    fn start_receive_slowly(&mut self, select: Select, into: Views) -> Result<Handle> {
        if let Some(found) = self.inbox.waiting().find(&select) {
            return self.receive_waiting(found, into);
        }
        if let Some(handle) = self.receive_from_front(&select, &into) {
            return Ok(handle);
        }
        if let Some(found) = self.inbox.waiting().find(&select) {
            return self.receive_waiting(found, into);
        }
        if let Err(error) = self.check_pending(&select) {
            let found = self.find_last(&select).ok_or(error)?;
            return self.receive_waiting(found, into);
        }
        let status = Status {
            context: select.context,
            ..Status::EMPTY
        };
        let id = self.requests.add(Stage::Done, status, into);
        let number = self.inbox.posted.post(select, id);
        self.requests.get_mut(id).stage = Stage::Posted(number);
        Ok(self.requests.handle(id))
    }

    /// Handles frames of the selected source until one is for this receive, and receives that one directly into its memory. Receives posted earlier
    /// take precedence.
    fn receive_from_front(&mut self, select: &Select, into: &Views) -> Option<Handle> {
        let source = select.source.filter(|&source| source != self.me)?;
        if self.losses.crime(source).is_some() {
            return None;
        }
        loop {
            let front = match self.transport.front(source) {
                Ok(front) => front?,
                Err(fault) => {
                    self.condemn(fault);
                    return None;
                }
            };
            let (kind, context, tag) = (front.frame.kind, front.frame.context, front.frame.tag);
            if kind == Kind::Eager {
                if let Some(older) = self.inbox.posted.take(context, source, tag) {
                    self.transport
                        .accept(source, &self.requests.get(older).views);
                    self.requests.received(older, source, tag, front.length);
                    self.inbox.pass_over();
                    self.note_moves(true);
                    continue;
                }
                if select.takes(context, source, tag) {
                    self.transport.accept(source, into);
                    self.inbox.pass_over();
                    let status = Status {
                        context,
                        ..Status::EMPTY
                    };
                    let id = self.requests.add(Stage::Done, status, into.clone());
                    self.requests.received(id, source, tag, front.length);
                    return Some(self.requests.handle(id));
                }
            }
            match self.handle_front(source) {
                // An offer or a loan for this receive is waiting now: no later message may overtake it.
                Ok(true) if self.inbox.waiting().find(select).is_some() => return None,
                Ok(true) => {}
                Ok(false) => return None,
                Err(fault) => {
                    self.condemn(fault);
                    return None;
                }
            }
        }
    }

    /// Handles all frames of a peer that have arrived.
    pub(crate) fn drain_peer(&mut self, source: Peer) {
        if source == self.me || self.losses.crime(source).is_some() {
            return;
        }
        loop {
            match self.handle_front(source) {
                Ok(true) => {}
                Ok(false) => return,
                Err(fault) => return self.condemn(fault),
            }
        }
    }

    /// Fails if no task can ever satisfy a receive. This layer does not know which tasks may send to a receive from any source.
    pub(crate) fn check_source(&self, select: &Select) -> Result<()> {
        // A revocation may have been received during the same call.
        if self.contexts.is_closed(select.context) {
            return Err(Error::Revoked);
        }
        match select.source {
            Some(source) if source != self.me && !self.may_have_unread(source, select.context) => {
                self.check_present(source)
            }
            _ => Ok(()),
        }
    }

    /// Fails if a receive cannot stay pending because its source is gone.
    pub(crate) fn check_pending(&self, select: &Select) -> Result<()> {
        match self.check_source(select) {
            Err(error) if self.outlasts(select.context, &error) => Ok(()),
            checked => checked,
        }
    }

    /// Finds the message of a receive whose source is gone. Frames that the source sent between the last poll and its end have arrived by now, and
    /// there will be no more.
    #[cold]
    fn find_last(&mut self, select: &Select) -> Option<u32> {
        self.drain_peer(select.source?);
        self.inbox.waiting().find(select)
    }

    /// Receives a message that arrived before its receive.
    fn receive_waiting(&mut self, found: u32, into: Views) -> Result<Handle> {
        let Some(message) = self.inbox.receive(found) else {
            return Err(Error::State(c"a waiting message vanished"));
        };
        self.receive_taken(message, into)
    }

    /// Receives a message that was removed from matching.
    fn receive_taken(&mut self, message: Waiting<Body>, into: Views) -> Result<Handle> {
        let status = Status {
            source: message.source as i32,
            tag: message.tag,
            length: 0,
            context: message.context,
        };
        let id = self.requests.add(Stage::Moving, status, into);
        let handle = self.requests.handle(id);
        let (source, tag) = (message.source, message.tag);
        let mut received = Ok(());
        match message.body {
            Body::Bytes(bytes) => {
                self.requests.get(id).views.fill(&bytes);
                self.requests.received(id, source, tag, bytes.len());
            }
            Body::Told(bytes, credit) => {
                self.requests.get(id).views.fill(&bytes);
                self.requests.received(id, source, tag, bytes.len());
                self.credits.pay(credit);
            }
            Body::Own(views, sender) => {
                views.copy_to(&self.requests.get(id).views);
                self.requests.received(id, source, tag, views.len());
                self.requests.complete(sender, None);
                self.note_moves(true);
            }
            Body::Arriving(arriving, held) => self.receive_arriving(id, arriving, &held),
            Body::Loan { place, total } => {
                received = self.receive_loan(id, source, tag, place, total);
            }
            Body::Offer(offer) => received = self.take_offer(id, source, tag, offer),
            Body::Withdrawn(_, why) => {
                (
                    self.requests.get_mut(id).status.source,
                    self.requests.get_mut(id).status.tag,
                ) = (source as i32, tag);
                self.requests.complete(id, Some(why));
            }
        }
        received.map(|()| handle).inspect_err(|_| {
            self.requests.release(id);
        })
    }

    /// Returns the status of the oldest waiting message that such a receive would take, without removing it.
    pub(crate) fn peek(&self, select: &Select) -> Option<Status> {
        let message = self.inbox.waiting().get(self.inbox.waiting().find(select)?);
        message.map(status_of)
    }

    /// Takes the oldest waiting message that such a receive would take out of matching.
    pub(crate) fn set_aside(&mut self, select: &Select) -> Option<(Status, Message)> {
        let status = self.peek(select)?;
        let message = self.inbox.set_aside(self.inbox.waiting().find(select)?)?;
        Some((status, message))
    }

    /// Removes and returns the oldest waiting message that such a receive would take. The data is `None` if it is not held here.
    pub(crate) fn take_held(&mut self, select: &Select) -> Option<(Peer, Option<Held>)> {
        let message = self.inbox.remove(self.inbox.waiting().find(select)?)?;
        let bytes = match message.body {
            Body::Bytes(bytes) => Some(bytes),
            _ => None,
        };
        Some((message.source, bytes))
    }

    /// Removes and returns the oldest waiting message of one source and one tag for whose data `is` returns true.
    pub(crate) fn take_held_where(
        &mut self,
        select: &Select,
        is: impl Fn(&[u8]) -> bool,
    ) -> Option<Held> {
        let is_it = |body: &Body| matches!(body, Body::Bytes(bytes) if is(bytes));
        let message = self
            .inbox
            .remove(self.inbox.waiting().find_where(select, is_it)?)?;
        match message.body {
            Body::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Starts to receive a message that was taken out of matching. Its number becomes invalid. The engine uses the memory until the request is
    /// complete.
    pub fn start_matched_receive(&mut self, message: Message, into: Views) -> Result<Handle> {
        if message == Message::OF_NOBODY {
            return Ok(Handle::COMPLETE);
        }
        let taken = self.inbox.take_matched(message);
        let taken = taken.ok_or(Error::Handle("message"))?;
        if self.contexts.is_closed(taken.context) {
            return Err(Error::Revoked);
        }
        self.receive_taken(taken, into)
    }

    /// Returns the status of the oldest message that such a receive would take, if it was passed over: a later one was received since it arrived, or
    /// [`pass_over`](crate::Engine::pass_over) was called. Receives no frames.
    pub fn probe_passed(&self, select: &Select) -> Option<Status> {
        let id = self.inbox.waiting().find(select)?;
        let message = self.inbox.waiting().get(id)?;
        self.inbox
            .waiting()
            .is_passed(id)
            .then(|| status_of(message))
    }

    /// Returns the index in `contexts` of the context whose waiting message arrived first.
    pub(crate) fn oldest_of(&self, contexts: &[u32]) -> Option<usize> {
        self.inbox.waiting().oldest_of(contexts)
    }

    /// Marks all waiting messages as passed over.
    pub(crate) fn pass_over_waiting(&mut self) {
        self.inbox.pass_over();
    }

    /// Removes the oldest message that such a receive would take, if it is a loan, and returns its status, its address and its memory. Returns
    /// `None` otherwise.
    pub(crate) fn take_waiting_loan(
        &mut self,
        select: &Select,
    ) -> Result<Option<(Status, u64, Views)>> {
        let found = self.inbox.waiting().find(select);
        let message = found.and_then(|id| Some((id, self.inbox.waiting().get(id)?)));
        let Some((id, message)) = message else {
            return Ok(None);
        };
        let Body::Loan { place, total } = message.body else {
            return Ok(None);
        };
        let status = status_of(message);
        self.inbox.receive(id);
        let source = status.source as Peer;
        let borrowed = self.transport.borrowed(source, place, total);
        let views = borrowed.map_err(|fault| self.judge(fault.into()))?;
        Ok(Some((status, place, views)))
    }
}
