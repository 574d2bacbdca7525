//! The engine's state, and how it makes progress.

use regatta_wire::{BODY, Frame};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::agreement::Agreement;
use crate::arrival::Body;
use crate::bulk::{Incoming, Outgoing};
use crate::closing::Closings;
use crate::departures::Stranded;
use crate::epoch::{Epochs, Spaces};
use crate::error::{Error, Result};
use crate::group::Groups;
use crate::making::Making;
use crate::matched::Matched;
use crate::matching::{Posted, Unexpected, Waiting};
use crate::queue::{Content, Queue, Queued};
use crate::request::{Handle, Requests, Status};
use crate::revoke::Revocations;
use crate::schedule::Schedule;
use crate::self_messages::ReceiptCredits;
use crate::transport::{Fault, Peer, Transport};

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

/// A process's engine over one transport.
pub struct Engine<T: Transport> {
    /// The transport, which moves the frames.
    pub transport: T,
    pub(crate) me: Peer,
    pub(crate) eager_limit: usize,
    pub(crate) settings: Settings,
    pub(crate) posted: Posted<u32>,
    pub(crate) unexpected: Unexpected<Body>,
    pub(crate) matched: Matched,
    /// Bytes in `unexpected` and `matched`.
    pub(crate) buffered: usize,
    pub(crate) credits: ReceiptCredits,
    pub(crate) requests: Requests,
    /// Frames that found no room, by destination; a peer is in it only while it has some.
    pub(crate) queued: FxHashMap<Peer, Queue>,
    pub(crate) outgoing: Vec<Outgoing<T>>,
    pub(crate) incoming: Vec<Incoming<T>>,
    pub(crate) next_token: u64,
    pub(crate) groups: Groups<T>,
    pub(crate) schedules: Vec<Schedule>,
    pub(crate) makings: Vec<Making>,
    pub(crate) agreements: Vec<Agreement>,
    /// One of their messages has come and was not looked at.
    pub(crate) agreement_came: bool,
    /// Agreements begun so far.
    pub(crate) agreed: u64,
    pub(crate) revocations: Revocations,
    pub(crate) closings: Closings,
    pub(crate) epochs: Epochs,
    /// There is something to do about agreements or revocations.
    pub(crate) stirred: bool,
    /// See [`Engine::is_whole`].
    pub(crate) is_whole: bool,
    /// Ranks of the world below this one need no look at the group; none if it is revoked.
    pub(crate) open_world: u32,
    pub(crate) losses_seen: u32,
    /// See [`Engine::moves`].
    moves: u64,
    /// Peers that broke the protocol, and how.
    pub(crate) condemned: FxHashMap<Peer, &'static str>,
    /// Peers whose loss has been dealt with.
    pub(crate) gone: FxHashSet<Peer>,
    /// Peers of these whose last frames stay outside while the buffer is full.
    pub(crate) unheard: Vec<Peer>,
    /// See [`Engine::let_in`].
    pub(crate) let_in: Vec<Peer>,
    /// Sends that are stranded; see `departures`.
    pub(crate) stranded: Vec<Stranded>,
}

impl<T: Transport> Engine<T> {
    /// An engine over a transport.
    pub fn new(transport: T, settings: Settings) -> Engine<T> {
        Engine::with_spaces(transport, settings, Spaces::default())
    }

    /// An engine that uses contexts again after so many groups; tests have few.
    pub fn with_spaces(mut transport: T, settings: Settings, spaces: Spaces) -> Engine<T> {
        let (me, world) = (transport.me(), transport.world());
        let buffer = transport.world_collective_buffer();
        Engine {
            me,
            eager_limit: transport.eager_limit(),
            settings,
            posted: Posted::default(),
            unexpected: Unexpected::default(),
            matched: Matched::default(),
            buffered: 0,
            credits: ReceiptCredits::default(),
            requests: Requests::new(),
            queued: FxHashMap::default(),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            next_token: 1,
            groups: Groups::of_world(me, world, buffer),
            schedules: Vec::new(),
            makings: Vec::new(),
            agreements: Vec::new(),
            agreement_came: false,
            agreed: 0,
            revocations: Revocations::default(),
            closings: Closings::default(),
            epochs: Epochs::new(spaces),
            stirred: false,
            is_whole: true,
            open_world: world.1,
            // Not the present count: losses before we came must be noticed too.
            losses_seen: 0,
            moves: 0,
            condemned: FxHashMap::default(),
            gone: FxHashSet::default(),
            unheard: Vec::new(),
            let_in: Vec::new(),
            stranded: Vec::new(),
            transport,
        }
    }

    /// This task.
    pub fn me(&self) -> Peer {
        self.me
    }

    /// Counts what has been taken in or moved on.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Do whatever can be done now; says whether anything was.
    pub fn progress(&mut self) -> bool {
        let mut moved = self.arrivals();
        if !self.queued.is_empty() {
            moved |= self.flush();
        }
        if !self.outgoing.is_empty() || !self.incoming.is_empty() {
            moved |= self.streams();
        }
        if !self.schedules.is_empty() {
            moved |= self.run_schedules();
        }
        if self.transport.losses() != self.losses_seen {
            self.note_losses();
            moved = true;
        }
        if !self.unheard.is_empty() {
            moved |= self.read_out();
        }
        if self.stirred {
            moved |= self.run_stirred();
        }
        if !self.makings.is_empty() {
            moved |= self.run_makings();
        }
        self.note_moves(moved);
        moved
    }

    /// Word about revocations and agreements has come, somebody is gone, or an agreement is not over.
    #[cold]
    pub(crate) fn run_stirred(&mut self) -> bool {
        self.stirred = false;
        let moved = self.run_revocations();
        let agreed = self.run_agreements();
        let closed = self.run_closings();
        moved | agreed | closed | self.run_epochs()
    }

    /// Is this a rank of the world for which nothing but its number counts?
    #[inline(always)]
    pub fn is_open_rank(&self, rank: i32) -> bool {
        (rank as u32) < self.open_world
    }

    #[inline(always)]
    pub(crate) fn note_moves(&mut self, moved: bool) {
        self.moves += moved as u64;
    }

    fn arrivals(&mut self) -> bool {
        /// So many frames of one peer before the next one's turn.
        const TURN: usize = 32;
        let mut moved = false;
        let mut cursor = 0;
        while let Some(peer) = self.transport.next_ready(&mut cursor) {
            if !self.condemned.is_empty() && self.condemned.contains_key(&peer) {
                // Nothing it sends is read any more, and what it has sent is not news.
                continue;
            }
            for _ in 0..TURN {
                match self.handle_front(peer) {
                    Ok(true) => moved = true,
                    Ok(false) => break,
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

    /// Send what had found no room, in order.
    fn flush(&mut self) -> bool {
        let mut moved = false;
        let peers: Vec<Peer> = self.queued.keys().copied().collect();
        for peer in peers {
            while let Some(front) = self.queued.get(&peer).and_then(|queue| queue.front()) {
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
        if let Some(queue) = self.queued.get_mut(&peer) {
            let gone = queue.pop_front();
            if queue.is_empty() {
                self.queued.remove(&peer);
            }
            match gone {
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
        }
        true
    }

    /// Send a body of our own, now (true) or as soon as there is room. Nothing goes to a peer that is gone: that would open a ring
    /// which nobody closes.
    pub(crate) fn send_or_queue(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool> {
        if self.is_gone(to) {
            return Ok(true);
        }
        let direct = !self.queued.contains_key(&to);
        let sent = direct.then(|| self.transport.send_body(to, frame, body));
        if let Some(sent) = sent
            && sent.map_err(|fault| self.judge(fault.into()))?
        {
            return Ok(true);
        }
        let mut copy = [0; BODY];
        copy[..body.len()].copy_from_slice(body);
        self.queued.entry(to).or_default().push_back(Queued {
            frame,
            content: Content::Body(copy, body.len()),
        });
        Ok(false)
    }

    /// As `send_or_queue`, but it overtakes frames that have found no room: an answer that need not come after these, for
    /// which the other side would have to take them all in.
    pub(crate) fn send_ahead(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<()> {
        if self.is_gone(to) {
            return Ok(());
        }
        let sent = self.transport.send_body(to, frame, body);
        if sent.map_err(|fault| self.judge(fault.into()))? {
            return Ok(());
        }
        let mut copy = [0; BODY];
        copy[..body.len()].copy_from_slice(body);
        self.queued.entry(to).or_default().push_front(Queued {
            frame,
            content: Content::Body(copy, body.len()),
        });
        Ok(())
    }

    /// Is a request complete? Stale handles are errors.
    #[inline(always)]
    pub fn is_done(&self, handle: Handle) -> Result<bool> {
        if handle == Handle::COMPLETE {
            return Ok(true);
        }
        let id = self.find(handle)?;
        Ok(self.requests.is_done(id))
    }

    /// The outcome of a complete request, which is then gone; `None` while it is not complete.
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

    /// As [`finish`](Engine::finish), but the request stays.
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
    pub(crate) fn find(&self, handle: Handle) -> Result<u32> {
        self.requests.find(handle).ok_or(STALE)
    }

    /// Have a callback number handed out by [`Engine::take_due_callbacks`] at completion. The handle is
    /// then used up.
    pub fn on_complete(&mut self, handle: Handle, number: u64) -> Result<()> {
        if handle == Handle::COMPLETE {
            self.requests
                .due_callbacks
                .push((number, Status::EMPTY, None));
            return Ok(());
        }
        let id = self.find(handle)?;
        if self.requests.is_done(id) {
            let (status, error) = self.requests.release(id);
            self.requests.due_callbacks.push((number, status, error));
        } else {
            self.requests.call_back(id, number);
            if let Some(error) = self.take_stranded(id) {
                self.requests.complete(id, Some(error));
            }
        }
        Ok(())
    }

    /// Callbacks that are due.
    #[inline(always)]
    pub fn has_due_callbacks(&self) -> bool {
        !self.requests.due_callbacks.is_empty()
    }

    /// Take the callbacks that are due.
    pub fn take_due_callbacks(&mut self) -> Vec<(u64, Status, Option<Error>)> {
        std::mem::take(&mut self.requests.due_callbacks)
    }

    /// Is anything under way that a later call must push? (Not receives that merely wait.)
    pub fn is_idle(&self) -> bool {
        self.queued.is_empty()
            && self.outgoing.is_empty()
            && self.incoming.is_empty()
            && self.schedules.is_empty()
            && self.makings.is_empty()
    }

    /// Could others wait for this task in vain? It has no room to take in what they send.
    pub fn is_stuck(&self) -> bool {
        let offered = |message: &Waiting<Body>| matches!(message.body, Body::Offer(_));
        self.buffer_is_full()
            || self.unexpected.iter().any(|(_, message)| offered(message))
            || self.matched.iter().any(|(_, message)| offered(message))
    }

    /// Does a large message from this peer wait for a receive?
    pub fn is_offered_by(&self, peer: Peer) -> bool {
        let offers = |message: &Waiting<Body>| {
            message.source == peer && matches!(message.body, Body::Offer(_))
        };
        self.unexpected.iter().any(|(_, message)| offers(message))
    }

    /// Bytes held for receives that have not been made.
    pub fn buffered(&self) -> usize {
        self.buffered
    }

    /// Messages that wait for receives, wherever their bytes are.
    pub fn waiting(&self) -> usize {
        self.unexpected.len()
    }

    /// Is a frame waiting in front of a full buffer?
    pub fn buffer_is_full(&self) -> bool {
        self.buffered >= self.settings.buffer || self.is_crowded()
    }

    /// The limit `buffered` is held against.
    pub fn settings(&self) -> Settings {
        self.settings
    }
}
