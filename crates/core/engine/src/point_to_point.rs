//! Messages between two tasks, and the requests of all operations: the lowest layer of the engine, which knows contexts but no groups.
//!
//! | part | file | contains |
//! |---|---|---|
//! | [`Inbox`] | inbox.rs | receives without message and messages without receive; body.rs and matched.rs define what is stored |
//! | [`Outbox`] | outbox.rs | frames for which there was no space yet |
//! | [`Transfers`] | bulk/transfers.rs | large messages in transfer |
//! | [`KnownLosses`] | known_losses.rs | tasks that are gone, or have broken the protocol |
//! | [`Contexts`] | contexts.rs | contexts with special rules: closed, or tolerant of departures |
//! | [`Requests`] | `request.rs` beside this file | operations that are not complete |
//!
//! Each part has its own private fields. The other files contain operations on all parts: send.rs and receive.rs start messages, settle.rs completes
//! them, arrival.rs handles frames, bulk.rs transfers large messages; losses.rs, closing_contexts.rs, stranded.rs and withdraw.rs end operations
//! that will not complete; debts.rs determines what a task that leaves still has to send.
//!
//! *Upward flow.* Nothing here calls a layer above. Messages of members about their groups ([`Word`]) and losses of tasks are kept until
//! [`Engine::progress`](crate::Engine::progress) takes them.

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

/// Limits that the user may set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum number of bytes of unexpected messages that are held here.
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
    /// Maximum length of a message that is sent eagerly to any peer, in bytes. Some peers accept longer ones.
    eager_limit: usize,
    inbox: Inbox,
    outbox: Outbox,
    bulk: Transfers<T>,
    requests: Requests,
    losses: KnownLosses,
    contexts: Contexts,
    stranded: Vec<Stranded>,
    /// Messages about groups that the layers above have not taken yet.
    words: Vec<Word>,
    credits: ReceiptCredits,
    /// Increases whenever a frame is received or a step makes progress.
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

    /// Returns the transport, which sends and receives the frames.
    #[inline(always)]
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the transport, which sends and receives the frames.
    #[inline(always)]
    pub fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Returns the number of this task.
    #[inline(always)]
    pub fn me(&self) -> Peer {
        self.me
    }

    /// Returns a counter that increases whenever progress was made.
    #[inline(always)]
    pub fn moves(&self) -> u64 {
        self.moves
    }

    #[inline(always)]
    pub(crate) fn note_moves(&mut self, moved: bool) {
        self.moves += moved as u64;
    }

    /// Makes progress with messages. Returns whether anything changed.
    fn progress(&mut self) -> bool {
        let moved = self.arrivals();
        // Received revocations must take effect first: progress could complete messages that they end.
        let moved = moved | (!self.has_words() && self.move_on());
        self.note_moves(moved);
        moved
    }

    /// Makes progress with messages that are being sent or received. Returns whether anything changed.
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

    /// Adds a request for a collective. The collective completes it.
    pub(crate) fn add_request(&mut self) -> u32 {
        self.requests
            .add(Stage::Collective, Status::EMPTY, Views::none())
    }

    /// Returns the handle of a request.
    pub(crate) fn handle(&self, request: u32) -> Handle {
        self.requests.handle(request)
    }

    /// Completes the request of a collective or of a stranded send.
    pub(crate) fn complete(&mut self, request: u32, error: Option<Error>) {
        self.requests.complete(request, error);
    }

    /// Returns whether a request is complete. Fails if the handle is stale.
    #[inline(always)]
    pub fn is_done(&self, handle: Handle) -> Result<bool> {
        if handle == Handle::COMPLETE {
            return Ok(true);
        }
        let id = self.find(handle)?;
        Ok(self.requests.is_done(id))
    }

    /// Returns the outcome of a complete request and releases it. Returns `None` while it is not complete.
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

    /// Does the same as [`finish`](Self::finish), without releasing the request.
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

    /// Returns the request of a pending receive with its selection, or the request of a message in transfer (sent or received) with `None`.
    pub(crate) fn find_pending(&self, handle: Handle) -> Option<(u32, Option<Select>)> {
        let id = self.find(handle).ok()?;
        match self.requests.get(id).stage {
            Stage::Posted(number) => Some((id, Some(self.inbox.posted.select(number)?))),
            stage if stage.is_moving() => Some((id, None)),
            _ => None,
        }
    }

    /// Completes a pending receive or a stranded send with this error, if it is still pending.
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

    /// Registers `number` to be returned by [`take_due_callbacks`](Self::take_due_callbacks) when the request completes. The handle becomes invalid.
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

    /// Removes and returns the callbacks that are due.
    pub fn take_due_callbacks(&mut self) -> Vec<(u64, Status, Option<Error>)> {
        self.requests.take_due_callbacks()
    }

    /// Returns whether no message needs later calls to make progress. Pending receives do not count.
    pub(crate) fn is_still(&self) -> bool {
        self.outbox.is_empty() && self.bulk.is_empty()
    }

    /// Returns whether other tasks could wait for this one in vain: its buffer is full, or it has not answered the offer of a large message.
    pub fn may_block_senders(&self) -> bool {
        let is_offered = || self.inbox.all().any(|(_, it)| it.body.offer().is_some());
        self.inbox.is_full() || is_offered()
    }

    /// Returns whether a large message from this peer waits for a receive.
    pub fn is_offered_by(&self, peer: Peer) -> bool {
        let mut messages = self.inbox.all();
        messages.any(|(_, it)| it.source == peer && it.body.offer().is_some())
    }

    /// Returns the number of bytes of unexpected messages that are held here.
    pub fn buffered(&self) -> usize {
        self.inbox.buffered()
    }

    /// Returns the number of unexpected messages, wherever their data is.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.inbox.waiting().len()
    }

    /// Returns whether the buffer is full, so that frames wait in the transport.
    pub fn buffer_is_full(&self) -> bool {
        self.inbox.is_full()
    }

    /// Returns the limits that the user has set.
    pub fn settings(&self) -> Settings {
        Settings {
            buffer: self.inbox.limit(),
        }
    }

    /// Accepts messages from these peers even though the buffer is full. A request to withdraw a message, or the answer to such a request, is queued
    /// behind these messages, and a blocked send waits for it. Replaces the list of an earlier call. A peer is removed from the list once its request has arrived.
    pub fn let_in(&mut self, peers: &[Peer]) {
        self.inbox.let_in(peers);
    }

    /// Returns the credits of received messages.
    #[inline(always)]
    pub fn receipt_credits(&mut self) -> &mut ReceiptCredits {
        &mut self.credits
    }
}
