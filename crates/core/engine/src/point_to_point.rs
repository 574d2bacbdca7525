//! Messages between two tasks, and the requests of all operations: the lowest layer of the engine, which knows contexts but no groups.
//!
//! | part | file | is |
//! |---|---|---|
//! | [`Inbox`] | inbox.rs | receives without message and messages without receive; body.rs, matched.rs: what these are |
//! | [`Outbox`] | outbox.rs | frames that have found no room |
//! | [`Transfers`] | bulk/transfers.rs | large messages on their way |
//! | [`KnownLosses`] | known_losses.rs | tasks that are gone, or break the protocol |
//! | [`Contexts`] | contexts.rs | contexts with rules of their own: closed, or tolerant of departures |
//! | [`Requests`] | `request.rs` beside this file | operations that are not complete |
//!
//! A part's fields are its own. The other files are operations on all parts: send.rs and receive.rs start messages, settle.rs finishes them,
//! arrival.rs handles frames, bulk.rs moves large messages; losses.rs, closing_contexts.rs, stranded.rs and withdraw.rs end what will not be complete; debts.rs
//! tells what a task that leaves still has to send.
//!
//! *What flows up.* Nothing here calls a layer above. Words of members about their groups ([`Word`]) and the losses of tasks are kept
//! until [`Engine::progress`](crate::Engine::progress) takes them.

mod arrival;
pub(crate) mod body;
mod bulk;
mod closing_contexts;
mod contexts;
pub(crate) mod credits;
mod debts;
mod inbox;
mod known_losses;
mod losses;
pub(crate) mod matched;
mod outbox;
mod receive;
mod send;
mod settle;
mod stranded;
mod withdraw;

pub(crate) use arrival::Word;
pub use bulk::Going;
pub use receive::Attempt;

use regatta_memory::views::Views;

use crate::error::{Error, Result};
use crate::matching::Select;
use crate::request::{Handle, Requests, Stage, Status};
use crate::transport::{Peer, Transport};
use bulk::transfers::Transfers;
use contexts::{Contexts, Stranded};
use credits::ReceiptCredits;
use inbox::Inbox;
use known_losses::KnownLosses;
use outbox::Outbox;

/// Limits that a user may set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Most bytes of messages held for receives that have not been made.
    pub buffer: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { buffer: 256 << 20 }
    }
}

const STALE: Error = Error::Handle("request");

/// The messages of a task over one transport.
pub struct PointToPoint<T: Transport> {
    transport: T,
    me: Peer,
    /// Longest message that is sent eagerly to every peer, in bytes. Some take longer ones.
    eager_limit: usize,
    inbox: Inbox,
    outbox: Outbox,
    bulk: Transfers<T>,
    requests: Requests,
    losses: KnownLosses,
    contexts: Contexts,
    stranded: Vec<Stranded>,
    /// Words about groups that the layers above have not taken.
    words: Vec<Word>,
    credits: ReceiptCredits,
    /// Grows whenever a frame is taken in or a step has moved something.
    moves: u64,
}

impl<T: Transport> PointToPoint<T> {
    pub(crate) fn new(transport: T, settings: Settings) -> PointToPoint<T> {
        PointToPoint {
            me: transport.me(),
            eager_limit: transport.eager_limit(),
            inbox: Inbox::new(settings.buffer),
            outbox: Outbox::default(),
            bulk: Transfers::default(),
            requests: Requests::new(),
            losses: KnownLosses::default(),
            contexts: Contexts::default(),
            stranded: Vec::new(),
            words: Vec::new(),
            credits: ReceiptCredits::default(),
            moves: 0,
            transport,
        }
    }

    /// Returns the transport, which moves the frames.
    #[inline(always)]
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the transport, which moves the frames.
    #[inline(always)]
    pub fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Returns this task.
    #[inline(always)]
    pub fn me(&self) -> Peer {
        self.me
    }

    /// Returns a count of what has been taken in or moved on.
    #[inline(always)]
    pub fn moves(&self) -> u64 {
        self.moves
    }

    #[inline(always)]
    pub(crate) fn note_moves(&mut self, moved: bool) {
        self.moves += moved as u64;
    }

    /// Moves messages as far as they go. Returns whether anything moved.
    fn progress(&mut self) -> bool {
        let moved = self.arrivals();
        // Revocations that have arrived take effect first: moving on could complete messages that they end.
        let moved = moved | (!self.has_words() && self.move_on());
        self.note_moves(moved);
        moved
    }

    /// Moves messages on that are under way. Returns whether anything moved.
    #[inline(always)]
    pub(crate) fn move_on(&mut self) -> bool {
        let mut moved = false;
        if !self.outbox.is_empty() {
            moved |= self.flush();
        }
        if !self.bulk.is_empty() {
            moved |= self.move_streams();
        }
        moved
    }

    /// Makes a request of a collective, which its owner completes.
    pub(crate) fn add_request(&mut self) -> u32 {
        self.requests
            .add(Stage::Collective, Status::EMPTY, Views::none())
    }

    /// Returns the handle of a request.
    pub(crate) fn handle(&self, request: u32) -> Handle {
        self.requests.handle(request)
    }

    /// Completes a request: a collective's, or that of a stranded send.
    pub(crate) fn complete(&mut self, request: u32, error: Option<Error>) {
        self.requests.complete(request, error);
    }

    /// Returns whether a request is complete. Stale handles are errors.
    #[inline(always)]
    pub fn is_done(&self, handle: Handle) -> Result<bool> {
        if handle == Handle::COMPLETE {
            return Ok(true);
        }
        let id = self.find(handle)?;
        Ok(self.requests.is_done(id))
    }

    /// Returns the outcome of a complete request, which is then gone; `None` while it is not complete.
    #[inline(always)]
    pub fn finish(&mut self, handle: Handle) -> Result<Option<(Status, Option<Error>)>> {
        if handle == Handle::COMPLETE {
            return Ok(Some((Status::EMPTY, None)));
        }
        let id = self.find(handle)?;
        if !self.requests.is_done(id) {
            return Ok(None);
        }
        Ok(Some(self.requests.release(id)))
    }

    /// As [`finish`](Self::finish), but the request stays.
    pub fn look_at_request(&self, handle: Handle) -> Result<Option<(Status, Option<Error>)>> {
        if !self.is_done(handle)? {
            return Ok(None);
        }
        if handle == Handle::COMPLETE {
            return Ok(Some((Status::EMPTY, None)));
        }
        let request = self.requests.get(self.find(handle)?);
        Ok(Some((request.status.clone(), request.error.clone())))
    }

    #[inline(always)]
    fn find(&self, handle: Handle) -> Result<u32> {
        self.requests.find(handle).ok_or(STALE)
    }

    /// Returns the request of a pending receive with what it selects, or of a message under way, either way, with `None`.
    pub(crate) fn find_pending(&self, handle: Handle) -> Option<(u32, Option<Select>)> {
        let id = self.find(handle).ok()?;
        match self.requests.get(id).stage {
            Stage::Posted(number) => Some((id, Some(self.inbox.posted.select(number)?))),
            stage if stage.is_moving() => Some((id, None)),
            _ => None,
        }
    }

    /// Ends a pending receive or a stranded send with this error, if it is still pending.
    pub(crate) fn fail_pending(&mut self, request: u32, error: Error) {
        match self.requests.get(request).stage {
            Stage::Posted(number) => self.fail_receive(number, error),
            _ => {
                if self.take_stranded(request).is_some() {
                    self.complete(request, Some(error));
                }
            }
        }
    }

    /// Has a callback number handed out by [`take_due_callbacks`](Self::take_due_callbacks) at completion. The handle is
    /// then used up.
    pub fn on_complete(&mut self, handle: Handle, number: u64) -> Result<()> {
        if handle == Handle::COMPLETE {
            self.requests.call_at_once(number, Status::EMPTY, None);
            return Ok(());
        }
        let id = self.find(handle)?;
        if self.requests.is_done(id) {
            let (status, error) = self.requests.release(id);
            self.requests.call_at_once(number, status, error);
        } else {
            self.requests.call_back(id, number);
            if let Some(error) = self.take_stranded(id) {
                self.requests.complete(id, Some(error));
            }
        }
        Ok(())
    }

    /// Returns whether callbacks are due.
    #[inline(always)]
    pub fn has_due_callbacks(&self) -> bool {
        self.requests.has_due_callbacks()
    }

    /// Takes the callbacks that are due.
    pub fn take_due_callbacks(&mut self) -> Vec<(u64, Status, Option<Error>)> {
        self.requests.take_due_callbacks()
    }

    /// Returns whether no message is under way that a later call must push. (Receives that merely wait do not count.)
    pub(crate) fn is_still(&self) -> bool {
        self.outbox.is_empty() && self.bulk.is_empty()
    }

    /// Returns whether others could wait for this task in vain: it has no room for what they send, or has not answered an offer of a large message.
    pub fn may_block_senders(&self) -> bool {
        let is_offered = || self.inbox.all().any(|(_, it)| it.body.offer().is_some());
        self.inbox.is_full() || is_offered()
    }

    /// Returns whether a large message from this peer waits for a receive.
    pub fn is_offered_by(&self, peer: Peer) -> bool {
        let mut messages = self.inbox.all();
        messages.any(|(_, it)| it.source == peer && it.body.offer().is_some())
    }

    /// Returns the bytes held for receives that have not been made.
    pub fn buffered(&self) -> usize {
        self.inbox.buffered()
    }

    /// Returns how many messages wait for receives, wherever their bytes are.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.inbox.waiting().len()
    }

    /// Returns whether the buffer is full, so that frames wait in front of it.
    pub fn buffer_is_full(&self) -> bool {
        self.inbox.is_full()
    }

    /// Returns the limits that the user has set.
    pub fn settings(&self) -> Settings {
        Settings {
            buffer: self.inbox.limit(),
        }
    }

    /// Lets in what these peers send from now on although the buffer is full: behind it is the question or the answer that
    /// ends a blocked send. Replaces the list of an earlier call; a peer is taken off it once its question has arrived.
    pub fn let_in(&mut self, peers: &[Peer]) {
        self.inbox.let_in(peers);
    }

    /// Returns the credits of messages that have been received.
    #[inline(always)]
    pub fn receipt_credits(&mut self) -> &mut ReceiptCredits {
        &mut self.credits
    }
}
