//! Starting receives, and looking for messages.
//!
//! *Rules of the fast path* (`receive_now` on an eager message at the front of its ring): no
//! lock, no allocation, no system call, no hash table. (docs/hot-paths.md names the test.)

use regatta_memory::views::Views;
use regatta_wire::Kind;

use crate::arrival::{Body, charge};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::matching::{Select, TagSelect, Waiting};
use crate::request::{Handle, Stage, Status};
use crate::transport::{Frames, Peer, Transport};

/// The outcome of an attempt to receive what is at the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// A message from this source with this tag and length, which has been received.
    Received(Peer, i32, usize),
    /// Nothing.
    Nothing,
    /// Something else, or something waits already: a request must be made.
    NeedsRequest,
}

/// Receives a small message if it is the next one of its source. Needs nothing of the engine but that no receive or message waits.
#[inline(always)]
fn receive_front(
    frames: &mut impl Frames,
    source: Peer,
    context: u32,
    tag: Option<i32>,
    into: &Views,
) -> Attempt {
    if let Some(tag) = tag
        && let Some(length) = frames.accept_matching(source, context, tag, into)
    {
        return Attempt::Received(source, tag, length);
    }
    let Ok(front) = frames.front(source) else {
        return Attempt::NeedsRequest;
    };
    let Some(front) = front else {
        return Attempt::Nothing;
    };
    let frame = front.frame;
    let fits = frame.kind == Kind::Eager
        && frame.context == context
        && tag.is_none_or(|tag| tag == frame.tag)
        && front.length <= into.len();
    if !fits {
        return Attempt::NeedsRequest;
    }
    let tag = frame.tag;
    frames.accept(source, into);
    Attempt::Received(source, tag, front.length)
}

/// Is there nothing from this source, not even a fault?
#[inline(always)]
fn is_silent(frames: &mut impl Frames, source: Peer) -> bool {
    matches!(frames.front(source), Ok(None))
}

/// The status of a message, as its receive would tell it.
pub(crate) fn status_of(message: &Waiting<Body>) -> Status {
    Status {
        source: message.source as i32,
        tag: message.tag,
        length: message.body.length(),
        context: message.context,
    }
}

impl<T: Transport> Engine<T> {
    /// Receive a small message from this source with this tag if it is the next one there. `None`:
    /// nothing has happened.
    #[inline(always)]
    pub fn receive_now(
        &mut self,
        source: Peer,
        context: u32,
        tag: i32,
        into: &Views,
    ) -> Option<usize> {
        if !self.unexpected.is_empty() || !self.posted.is_empty() || self.has_due_callbacks() {
            return None;
        }
        self.transport.accept_matching(source, context, tag, into)
    }

    /// Receives a small message as `receive_now` does, with this tag or any, from this source or whoever has it at the front of what it has sent.
    #[inline(always)]
    pub fn receive_any_now(
        &mut self,
        source: Option<Peer>,
        context: u32,
        tag: Option<i32>,
        into: &Views,
    ) -> Attempt {
        if !self.unexpected.is_empty() || !self.posted.is_empty() {
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

    /// Is nobody known to be gone?
    #[inline(always)]
    pub fn is_nobody_gone(&self) -> bool {
        self.gone.is_empty()
    }

    /// Nobody has been lost so far and no group is revoked: a receive from anybody need not ask who is dead.
    #[inline(always)]
    pub fn is_whole(&self) -> bool {
        self.is_whole && self.losses_seen == self.transport.losses()
    }

    /// Is there something from this source that is not what `receive_now` looks for? Then a
    /// request must be made. (Also when other receives or messages wait.)
    #[inline(always)]
    pub fn must_start(&mut self, source: Peer) -> bool {
        !self.unexpected.is_empty()
            || !self.posted.is_empty()
            || source == self.me
            || !is_silent(&mut self.transport, source)
    }

    /// This task waits for a message of that one, and may answer.
    #[inline(always)]
    pub fn prepare(&mut self, peer: Peer) {
        self.transport.prepare(peer);
    }

    /// The one task from which the message of this receive must come, if there is one.
    pub fn source(&self, handle: Handle) -> Option<Peer> {
        let id = self.find(handle).ok()?;
        match self.requests.get(id).stage {
            Stage::Posted(number) => self.posted.select(number)?.source,
            _ => None,
        }
    }

    /// Does a message of this task wait outside, because the buffer is full?
    pub fn holds_up(&mut self, source: Peer) -> bool {
        self.buffer_is_full()
            && source != self.me
            && matches!(self.transport.front(source), Ok(Some(_)))
    }

    /// Does any message wait outside?
    pub fn holds_up_some(&mut self) -> bool {
        self.buffer_is_full() && self.transport.next_ready(&mut 0).is_some()
    }

    /// As `receive_now`, but the outcome is a complete request.
    #[inline(always)]
    pub fn start_receive_now(
        &mut self,
        source: Peer,
        context: u32,
        tag: i32,
        into: &Views,
    ) -> Option<Handle> {
        let length = self.receive_now(source, context, tag, into)?;
        Some(self.requests.add_received(source, context, tag, length))
    }

    /// Post a receive, if everything is as it mostly is: no other receive is posted (or only such of
    /// the same messages), and no message waits. `None`: nothing has happened. A message of the
    /// source may be in its ring already: that is not looked at here, because a send that comes next
    /// would wait for the look. It meets this receive in its turn.
    #[inline(always)]
    pub fn post_now(
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
            || !self.unexpected.is_empty()
            || self.is_gone(source)
            || self.losses_seen != self.transport.losses()
        {
            return None;
        }
        let message = (source, context, tag);
        self.requests
            .add_posted(&mut self.posted, message, (at, len))
    }

    /// Start a receive. The memory belongs to the engine until the request is complete.
    #[inline(always)]
    pub fn start_receive(&mut self, select: Select, into: Views) -> Result<Handle> {
        if let (Some(source), TagSelect::Exactly(tag)) = (select.source, select.tag)
            && let Some(handle) = self.start_receive_now(source, select.context, tag, &into)
        {
            return Ok(handle);
        }
        self.start_receive_slowly(select, into)
    }

    #[inline(never)]
    fn start_receive_slowly(&mut self, select: Select, into: Views) -> Result<Handle> {
        if let Some(found) = self.unexpected.find(&select) {
            return self.receive_waiting(found, into);
        }
        if let Some(handle) = self.receive_from_front(&select, &into) {
            return Ok(handle);
        }
        if let Some(found) = self.unexpected.find(&select) {
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
        let number = self.posted.post(select, id);
        self.requests.get_mut(id).stage = Stage::Posted(number);
        Ok(self.requests.handle(id))
    }

    /// Deal with what the selected source has sent, until something is for this receive: that
    /// goes straight to its memory. Receives posted before it come first.
    fn receive_from_front(&mut self, select: &Select, into: &Views) -> Option<Handle> {
        let source = select.source.filter(|&source| source != self.me)?;
        if self.condemned.contains_key(&source) {
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
                if let Some(older) = self.posted.take(context, source, tag) {
                    self.transport
                        .accept(source, &self.requests.get(older).views);
                    self.requests.received(older, source, tag, front.length);
                    self.unexpected.pass_over();
                    self.note_moves(true);
                    continue;
                }
                if select.takes(context, source, tag) {
                    self.transport.accept(source, into);
                    self.unexpected.pass_over();
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
                // An offer or a loan for this receive now waits: nothing after it may overtake it.
                Ok(true) if self.unexpected.find(select).is_some() => return None,
                Ok(true) => {}
                Ok(false) => return None,
                Err(fault) => {
                    self.condemn(fault);
                    return None;
                }
            }
        }
    }

    /// Deal with what a peer has sent, so far as it has arrived.
    pub(crate) fn drain_peer(&mut self, source: Peer) {
        if source == self.me || self.condemned.contains_key(&source) {
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

    /// A receive that nobody can ever satisfy is an error, not a hang.
    pub(crate) fn check_source(&mut self, select: &Select) -> Result<()> {
        // Word may have come in the same call.
        if self.is_revoked_context(select.context) {
            return Err(Error::Revoked);
        }
        match select.source {
            Some(source) if source == self.me => Ok(()),
            Some(source) if self.may_have_unread(source, select.context) => Ok(()),
            Some(source) => self.check_present(source),
            None => self.check_any_source(select.context),
        }
    }

    /// Take in what those a receive selects have sent.
    pub(crate) fn look(&mut self, select: &Select) {
        match select.source {
            Some(source) => self.drain_peer(source),
            None => {
                self.progress();
            }
        }
    }

    /// A source is gone. Frames that it sent between the last look and its end are there now, and after
    /// that nothing comes.
    #[cold]
    fn find_last(&mut self, select: &Select) -> Option<u32> {
        self.look(select);
        self.unexpected.find(select)
    }

    /// Take a message that came before its receive.
    fn receive_waiting(&mut self, found: u32, into: Views) -> Result<Handle> {
        let Some(message) = self.unexpected.receive(found) else {
            return Err(Error::State(c"a waiting message vanished"));
        };
        self.receive_taken(message, into)
    }

    /// Receive a message that stands in no list any more.
    pub(crate) fn receive_taken(&mut self, message: Waiting<Body>, into: Views) -> Result<Handle> {
        let status = Status {
            source: message.source as i32,
            tag: message.tag,
            length: 0,
            context: message.context,
        };
        let id = self.requests.add(Stage::Moving, status, into);
        let handle = self.requests.handle(id);
        let (source, tag) = (message.source, message.tag);
        match message.body {
            Body::Bytes(bytes) => {
                self.buffered -= charge(bytes.len());
                self.requests.get(id).views.fill(&bytes);
                self.requests.received(id, source, tag, bytes.len());
            }
            Body::Told(bytes, credit) => {
                self.buffered -= charge(bytes.len());
                self.requests.get(id).views.fill(&bytes);
                self.requests.received(id, source, tag, bytes.len());
                self.credits.pay(credit);
            }
            Body::Own(views, sender) => {
                views.copy_to(&self.requests.get(id).views);
                self.requests.received(id, source, tag, views.len());
                self.requests.complete(sender, None);
            }
            Body::Arriving(arriving, held) => self.receive_arriving(id, arriving, &held),
            Body::Loan { place, total } => self.receive_loan(id, source, tag, place, total)?,
            Body::Offer(offer) => self.take_offer(id, source, tag, offer)?,
            Body::Withdrawn(_, why) => {
                (
                    self.requests.get_mut(id).status.source,
                    self.requests.get_mut(id).status.tag,
                ) = (source as i32, tag);
                self.requests.complete(id, Some(why));
            }
        }
        Ok(handle)
    }

    /// Is there a message this would receive? Looks only; the message stays.
    pub fn probe(&mut self, select: &Select) -> Result<Option<Status>> {
        let found = self.look_for_message(select)?;
        let message = found.and_then(|id| self.unexpected.get(id));
        Ok(message.map(status_of))
    }

    /// The oldest message that this would receive, after a look at what has arrived.
    pub(crate) fn look_for_message(&mut self, select: &Select) -> Result<Option<u32>> {
        self.look(select);
        if let Some(id) = self.unexpected.find(select) {
            return Ok(Some(id));
        }
        match self.check_pending(select) {
            Ok(()) => Ok(None),
            Err(error) => self.find_last(select).map(Some).ok_or(error),
        }
    }

    /// The oldest message that this would receive, if it has been passed over: a younger one has been received since it came,
    /// or [`pass_over`](Engine::pass_over) was called. Does not take in anything.
    pub fn probe_passed(&self, select: &Select) -> Option<Status> {
        let id = self.unexpected.find(select)?;
        let message = self.unexpected.get(id)?;
        self.unexpected.is_passed(id).then(|| status_of(message))
    }

    /// Take in what has arrived. The context, among these, of the waiting message that arrived first: its place in the list.
    pub fn first_arrived(&mut self, contexts: &[u32]) -> Option<usize> {
        self.progress();
        self.unexpected.oldest_of(contexts)
    }

    /// Take in what has arrived. All of it that waits for a receive counts as passed over.
    pub fn pass_over(&mut self) {
        self.progress();
        self.unexpected.pass_over();
    }

    /// Take a message that came as a loan, in place: its place and length. `None` if the message
    /// that would be received next did not (or there is none).
    pub fn take_loan(&mut self, select: &Select) -> Result<Option<(Status, u64, Views)>> {
        let Some(status) = self.probe(select)? else {
            return Ok(None);
        };
        let found = self.unexpected.find(select);
        let Some((id, &Body::Loan { place, total })) =
            found.and_then(|id| Some((id, &self.unexpected.get(id)?.body)))
        else {
            return Ok(None);
        };
        self.unexpected.receive(id);
        let source = status.source as Peer;
        let borrowed = self.transport.borrowed(source, place, total);
        let views = borrowed.map_err(|fault| self.judge(fault.into()))?;
        Ok(Some((status, place, views)))
    }
}
