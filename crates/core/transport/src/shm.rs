//! The shared-memory transport: rings for frames, pipes for bulk, one segment for all.
//!
//! A ring is opened by the sender the first time it talks to a peer: it allocates the ring in the
//! segment and pushes it onto the receiver's list of opened rings, which the receiver looks at
//! when it looks for messages. Layout of a ring's memory:
//!
//! ```text
//! 0    ends (16) | next opened ring (8) | class (4) | pad | wide payload buffer (8)
//! 64   lines read (4) | pad | bytes freed (8) | of the wide buffer (8)         written by the receiver
//! 128  lines, 64 bytes each (see regatta_memory::ring)
//! ...  payload buffer (see regatta_memory::payload_buffer)
//! ```
//!
//! *Rules of send and accept of a small message:* no lock, no allocation, no system call unless
//! the receiver sleeps, one line written, one line read.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use regatta_engine::{Arrival, Fault, Flow, Part, Peer, Presence, Transport};
use regatta_memory::bell::Fencing;
use regatta_memory::held::Held;
use regatta_memory::losses::Losses;
use regatta_memory::making::Maker;
use regatta_memory::pipe::{Filled, GivenUp, Message, Pipe};
use regatta_memory::ring::{Header, INLINE};
use regatta_memory::ticks::ticks;
use regatta_memory::views::Views;
use regatta_memory::{Corrupt, LINE};
use regatta_wire::{Frame, Kind, Route};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::collective_buffer::CollectiveBuffer;
use crate::footprint::{Footprint, Learner, Policy};
use crate::job::{CLASSES, Job, TaskState};
use crate::left;
use crate::loans::Loans;
use crate::ring_marks::Opened;
use crate::shm_channel::{In, Out};

mod loans;
mod lost_peers;

use loans::around;

/// A narrow footprint of a pipe, in bytes: both ends of a message lie in the second-level caches of both cores.
pub const NARROW_PIPE: u32 = 256 << 10;

/// May this process read a peer's memory directly?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pull {
    Yes,
    No,
}

/// See the module.
#[derive(Debug)]
pub struct Shm {
    job: Arc<Job>,
    me: Peer,
    fencing: Fencing,
    outs: Vec<Option<Out>>,
    ins: Vec<Option<In>>,
    /// Peers whose rings to this task are open.
    open: Opened,
    /// Peers that wrote nonsense: nothing of theirs is read.
    closed: FxHashSet<Peer>,
    pull: FxHashMap<Peer, Pull>,
    /// Peers that are gone and whose frames have not all been read yet.
    leaving: Vec<Peer>,
    /// Where the searches for rings and pipes that nobody uses any more go on.
    ring_cursor: u64,
    pipe_cursor: u64,
    /// Pipes this task has opened and not seen the end of.
    pipes: u32,
    /// How much of its pipes its messages cycle through, and of its rings.
    learner: Learner,
    policy: Policy,
    loans: Loans,
    /// More tasks than cores: a peer that does nothing is probably not running.
    crowded: bool,
    /// The job's count of losses, looked at before every send.
    losses: NonNull<Losses>,
    /// By it others know this process's memory.
    _word: Box<u64>,
}

// SAFETY: all pointers are into the job's segment, which the `Arc` keeps mapped.
unsafe impl Send for Shm {}

/// One side of a pipe.
#[derive(Debug)]
pub struct Bulk {
    pipe: Option<Pipe>,
    /// This task opened it for its own message and counts it.
    counted: bool,
    /// Sender: how much of the pipe its own message cycles through.
    footprint: Footprint,
    /// Receiver: it may read from the sender's memory.
    pulls: bool,
    /// Receiver: looks in vain since the last byte came.
    starved: u32,
}

impl Shm {
    /// The transport of task `me` of a job it has joined.
    pub fn new(job: Arc<Job>, me: Peer) -> Shm {
        let word = Box::new(job.word(me));
        job.set_probe(me, &raw const *word as u64);
        Shm {
            me,
            fencing: job.fencing(),
            outs: Vec::new(),
            ins: Vec::new(),
            open: Opened::default(),
            closed: FxHashSet::default(),
            pull: FxHashMap::default(),
            leaving: Vec::new(),
            ring_cursor: 0,
            pipe_cursor: 0,
            pipes: 0,
            learner: learner(&job, Policy::Learn),
            policy: Policy::Learn,
            loans: Loans::default(),
            crowded: job.is_crowded(),
            losses: NonNull::from(job.losses_seen_by_all()),
            _word: word,
            job,
        }
    }

    /// Sets how much memory its paths cycle through, before it sends anything. Nothing said: they learn it.
    pub fn choose_footprints(&mut self, policy: Policy) {
        self.policy = policy;
        self.learner = learner(&self.job, policy);
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// How fences are paid for here.
    pub fn fencing(&self) -> Fencing {
        self.fencing
    }

    /// Has this task sent to that peer before?
    #[inline(always)]
    pub(crate) fn sends_to(&self, peer: Peer) -> bool {
        matches!(self.outs.get(peer as usize), Some(Some(_)))
    }

    /// Has that peer sent to this task before?
    #[inline(always)]
    pub(crate) fn has_received_from(&self, peer: Peer) -> bool {
        matches!(self.ins.get(peer as usize), Some(Some(_)))
    }

    /// Peers `next_ready` goes through.
    #[inline(always)]
    pub(crate) fn open_rings(&self) -> usize {
        self.open.len()
    }

    /// More tasks than cores?
    pub fn crowded(&self) -> bool {
        self.crowded
    }

    fn fault(&self, peer: Peer) -> impl Fn(Corrupt) -> Fault + use<> {
        move |corrupt| Fault::Corrupt {
            peer,
            what: corrupt.what,
        }
    }

    #[cold]
    fn open_out(&mut self, to: Peer) -> Result<(), Fault> {
        self.let_go_of_read_out();
        let channel = Out::open(&self.job, self.me, to, self.policy, &mut self.ring_cursor)
            .map_err(|error| {
                Fault::Memory(format!("no ring to task {to} could be opened: {error}"))
            })?;
        *place(&mut self.outs, to) = Some(channel);
        Ok(())
    }

    /// Messages to this peer go through pipes that are wide by now: those that a ring can carry are to go through a wide ring.
    fn widen_ring(&mut self, to: Peer) {
        if self.learner.kept() == Footprint::Wide
            && let Some(Some(ring)) = self.outs.get_mut(to as usize)
            && !ring.is_wide()
        {
            ring.widen(true);
        }
    }

    /// Look again whether there are more tasks than cores.
    pub fn look_around(&mut self) {
        self.crowded = self.job.is_crowded();
        if self.crowded {
            self.learner.stay_narrow();
            self.outs.iter_mut().flatten().for_each(Out::stay_narrow);
        }
    }

    /// Has somebody opened a ring to this task that it has not noticed?
    #[inline(always)]
    fn was_opened_to(&self) -> bool {
        let inlet = &self.job.slot(self.me).inlet.0;
        !inlet.opened.is_empty()
    }

    /// The front of a ring that is not known yet. It may have been opened and filled by now, and
    /// its owner may be gone: to say that there is nothing would lose what it sent.
    #[cold]
    fn first_front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault> {
        if !self.was_opened_to() {
            return Ok(None);
        }
        self.notice_opened();
        let fault = self.fault(from);
        match self.ins.get_mut(from as usize) {
            Some(Some(channel)) => channel.front().map_err(fault),
            _ => Ok(None),
        }
    }

    /// Take in the rings others have opened towards this task.
    #[cold]
    fn notice_opened(&mut self) {
        self.let_go_of_read_out();
        for (source, channel) in In::opened(&self.job, self.me) {
            let place = place(&mut self.ins, source);
            if place.is_none() && !self.closed.contains(&source) {
                self.open.add(source, channel.is_marked());
                *place = Some(channel);
            }
        }
    }

    #[inline(always)]
    fn write(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        let fencing = self.fencing;
        match self.outs.get_mut(to as usize) {
            Some(Some(channel)) => write_to(channel, to, fencing, frame, payload),
            _ => self.write_first(to, frame, payload),
        }
    }

    #[cold]
    fn write_first(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        self.open_out(to)?;
        let fencing = self.fencing;
        match self.outs.get_mut(to as usize) {
            Some(Some(channel)) => write_to(channel, to, fencing, frame, payload),
            _ => Ok(false),
        }
    }

    fn any_pipe(&mut self, message: Message) -> Result<Pipe, Fault> {
        // A pool that somebody has written nonsense into is as good as empty.
        if let Ok(Some(pipe)) = self.job.pool().take(message) {
            return Ok(pipe);
        }
        if self.job.losses() > 0 {
            let mut cursor = self.pipe_cursor;
            let gone = |peer| self.job.is_gone(peer);
            let adopted = self.job.pool().adopt(&mut cursor, message, gone);
            self.pipe_cursor = cursor;
            if let Some(pipe) = adopted {
                return Ok(pipe);
            }
        }
        let maker = Maker {
            task: self.me,
            kind: left::PIPE,
        };
        self.job
            .pool()
            .make(maker, message)
            .map_err(|error| Fault::Memory(format!("no pipe for a large message: {error}")))
    }

    /// Bytes of a pipe that a message with this footprint cycles through.
    fn window(&self, footprint: Footprint) -> u32 {
        let whole = self.job.geometry().pipe;
        match footprint {
            Footprint::Narrow => whole.min(NARROW_PIPE),
            Footprint::Wide => whole,
        }
    }

    fn ring_bell(&self, peer: Peer) {
        self.job.slot(peer).bell.ring(self.fencing);
    }

    /// Bytes copied into or out of a pipe at a time: small enough for the other side to start
    /// soon, large enough for the string copy; whole pipes when the other side is not running.
    fn chunk(&self, total: u64) -> usize {
        match total {
            _ if self.crowded => usize::MAX,
            0..0x1_0000 => 8 << 10,
            0x1_0000..0x4_0000 => 16 << 10,
            // Fewer, larger turns: the same where the cores share a cache, 1.2x where they do not.
            _ => 32 << 10,
        }
    }

    /// May this process read from a peer's memory? That is found out once the peer has joined.
    fn pull(&mut self, peer: Peer) -> Option<Pull> {
        if let Some(&found) = self.pull.get(&peer) {
            return Some(found);
        }
        let remote = self.job.remote(peer);
        let found = match remote.check() {
            _ if remote.address == 0 => return None,
            Ok(()) => Pull::Yes,
            Err(_) => Pull::No,
        };
        self.pull.insert(peer, found);
        Some(found)
    }

    /// The sender is away: read the rest of its message without it.
    #[cold]
    fn take_over(
        &mut self,
        from: Peer,
        bulk: &mut Bulk,
        into: &Views,
        total: u64,
    ) -> Result<Flow, Fault> {
        let may = self.pull(from) == Some(Pull::Yes);
        let fault = self.fault(from);
        let Some(pipe) = bulk.pipe.as_mut().filter(|_| may) else {
            bulk.pulls = false;
            return Ok(Flow::Still);
        };
        if !pipe.take_over() {
            return Ok(Flow::Still);
        }
        // It may have put more in since the last look.
        while pipe.drain(into, total, usize::MAX).map_err(&fault)? > 0 {}
        match pipe.pull(into, total, &self.job.remote(from)) {
            Ok(true) => {
                // The sender gives the pipe back.
                pipe.let_go(self.me);
                bulk.pipe = None;
                self.ring_bell(from);
                return Ok(Flow::Finished);
            }
            // The sender has given up, which will be said in a moment.
            Ok(false) => {}
            Err(error) => {
                if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) {
                    self.pull.insert(from, Pull::No);
                }
                // It goes on by itself, or is dying, which will be said in a moment.
                self.ring_bell(from);
            }
        }
        bulk.pulls = false;
        Ok(Flow::Still)
    }

    /// The path messages to a peer take, and why; for people.
    pub fn path(&mut self, peer: Peer) -> String {
        if peer == self.me {
            return "self: one copy inside the task".into();
        }
        let window = self.window(self.learner.kept()) >> 10;
        let chosen = match self.learner.is_fixed() {
            true => "",
            false => " (so far; narrower and wider ones are tried out now and then)",
        };
        let pull = match self.pull(peer) {
            Some(Pull::Yes) => "single copy by the kernel (CMA) when the sender is away",
            Some(Pull::No) => {
                "no single copy: the kernel refuses process_vm_readv between these tasks"
            }
            None => "whether there is a single copy shows when that task has joined",
        };
        format!(
            "shm: up to {INLINE} bytes in one cache line; up to {} bytes through the pair's ring; \
             larger ones through a pipe of {window} KiB{chosen}, both sides copying at once; {pull}",
            self.eager_limit_to(peer),
        )
    }
}

#[inline(always)]
fn write_to(
    channel: &mut Out,
    to: Peer,
    fencing: Fencing,
    frame: Frame,
    payload: &Views,
) -> Result<bool, Fault> {
    let sent = channel
        .send(frame, payload)
        .map_err(|corrupt| Fault::Corrupt {
            peer: to,
            what: corrupt.what,
        })?;
    if sent {
        channel.bell().ring(fencing);
    }
    Ok(sent)
}

impl Transport for Shm {
    type Bulk = Bulk;
    type CollectiveBuffer = CollectiveBuffer;

    fn me(&self) -> Peer {
        self.me
    }

    fn peers(&self) -> u32 {
        self.job.tasks()
    }

    fn presence(&self, peer: Peer) -> Presence {
        match self.job.state(peer) {
            TaskState::Expected | TaskState::Joined => Presence::Here,
            TaskState::Left => Presence::Left,
            TaskState::Dead => Presence::Dead,
        }
    }

    #[inline(always)]
    fn losses(&self) -> u32 {
        // SAFETY: a word of the job's header, which `self.job` keeps mapped.
        unsafe { self.losses.as_ref() }.count()
    }

    fn close(&mut self, peer: Peer) {
        if place(&mut self.outs, peer).is_none() && self.presence(peer) == Presence::Here {
            // Without memory for a ring it is not told, and may wait until this task ends.
            let _ = self.open_out(peer);
        }
        if let Some(channel) = place(&mut self.outs, peer) {
            channel.close();
        }
        self.closed.insert(peer);
        *place(&mut self.ins, peer) = None;
        self.open.remove(peer);
    }

    fn eager_limit(&self) -> usize {
        self.job.geometry().payload_buffer as usize / 8
    }

    fn eager_limit_to(&self, peer: Peer) -> usize {
        match self.outs.get(peer as usize) {
            Some(Some(channel)) => channel.longest(),
            _ if peer.max(self.me) < self.job.first() => self.eager_limit(),
            // How large it will be is known when it is there.
            _ => CLASSES[CLASSES.len() - 1].payload_buffer as usize / 8,
        }
    }

    fn shares_memory(&self, peer: Peer) -> bool {
        self.job.is_here(peer)
    }

    #[inline(always)]
    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        self.write(to, frame, payload)
    }

    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault> {
        // SAFETY: the body is only read, before this call ends.
        let payload = unsafe { Views::block(body.as_ptr().cast_mut(), body.len()) };
        self.write(to, frame, &payload)
    }

    #[inline(always)]
    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault> {
        let Some(Some(channel)) = self.ins.get_mut(from as usize) else {
            return self.first_front(from);
        };
        channel.front().map_err(|corrupt| Fault::Corrupt {
            peer: from,
            what: corrupt.what,
        })
    }

    #[inline(always)]
    fn accept(&mut self, from: Peer, into: &Views) {
        let fencing = self.fencing;
        if let Some(Some(channel)) = self.ins.get_mut(from as usize)
            && channel.accept(into)
        {
            channel.bell().ring(fencing);
        }
    }

    #[inline(always)]
    fn accept_matching(
        &mut self,
        from: Peer,
        context: u32,
        tag: i32,
        into: &Views,
    ) -> Option<usize> {
        let Some(Some(channel)) = self.ins.get_mut(from as usize) else {
            if self.was_opened_to() {
                self.notice_opened();
            }
            return None;
        };
        let (length, room) = channel.accept_matching(context, tag, into)?;
        if room {
            channel.bell().ring(self.fencing);
        }
        Some(length)
    }

    fn accept_bytes(&mut self, from: Peer) -> Held {
        let length = match self.front(from) {
            Ok(Some(front)) => front.length,
            _ => return Held::zeros(0),
        };
        let mut bytes = Held::zeros(length);
        // SAFETY: `bytes` is ours and written before it is used again.
        let into = unsafe { Views::block(bytes.as_mut_ptr(), length) };
        self.accept(from, &into);
        bytes
    }

    #[inline(always)]
    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer> {
        if *cursor == 0 {
            if self.was_opened_to() {
                self.notice_opened();
            }
            self.open.look(&self.job.slot(self.me).inlet.0.marks);
        }
        let ins = &self.ins;
        self.open.next(
            cursor,
            |peer| matches!(ins.get(peer as usize), Some(Some(channel)) if channel.has_line()),
        )
    }

    fn open(&mut self, to: Peer, message: &Views) -> Result<Option<(Bulk, Route)>, Fault> {
        if self.pipes >= self.job.geometry().pipes {
            return Ok(None);
        }
        let footprint = self.learner.choice();
        let needs = Message {
            tasks: [self.me, to],
            window: self.window(footprint),
            length: message.len() as u64,
        };
        // No memory for a pipe is not yet an error: the receiver will look for one.
        let Ok(mut pipe) = self.any_pipe(needs) else {
            return Ok(None);
        };
        self.widen_ring(to);
        self.pipes += 1;
        pipe.set_address(address_of(message));
        let mut route = Route::default();
        route[..8].copy_from_slice(&pipe.offset().to_le_bytes());
        let mut bulk = Bulk::new(pipe, true);
        bulk.footprint = footprint;
        Ok(Some((bulk, route)))
    }

    fn open_for(&mut self, from: Peer) -> Result<(Bulk, Route), Fault> {
        let needs = Message {
            tasks: [from, self.me],
            window: self.window(self.learner.kept()),
            length: 0,
        };
        let pipe = self.any_pipe(needs)?;
        let mut route = Route::default();
        route[..8].copy_from_slice(&pipe.offset().to_le_bytes());
        Ok((Bulk::new(pipe, false), route))
    }

    fn attach(&mut self, peer: Peer, route: &Route) -> Result<Bulk, Fault> {
        let mut offset = [0; 8];
        offset.copy_from_slice(&route[..8]);
        let (offset, size) = (
            u64::from_le_bytes(offset),
            self.job.geometry().pipe as usize,
        );
        let pipe = Pipe::between(self.job.segment(), offset, size, [self.me, peer]);
        Ok(Bulk::new(pipe.map_err(self.fault(peer))?, false))
    }

    fn fill(&mut self, to: Peer, bulk: &mut Bulk, message: &Views) -> Result<Flow, Fault> {
        let chunk = self.chunk(message.len() as u64);
        let Some(pipe) = bulk.pipe.as_mut() else {
            return Ok(Flow::Finished);
        };
        let (before, timed) = (pipe.moved(), bulk.counted && self.learner.is_timing());
        let start = if timed { ticks() } else { 0 };
        let filled = pipe.fill(message, chunk).map_err(self.fault(to))?;
        let copied = (pipe.moved() - before) as usize;
        if timed && bulk.footprint == self.learner.choice() {
            self.learner.timed(copied, ticks().wrapping_sub(start));
        }
        self.learner.copied(copied);
        let flow = match filled {
            Filled::Some(0) | Filled::TakenOver => return Ok(Flow::Still),
            Filled::Some(_) => Flow::Moved,
            Filled::All => {
                pipe.let_go(self.me);
                bulk.pipe = None;
                Flow::Finished
            }
            Filled::Pulled => {
                if let Some(pipe) = bulk.pipe.take() {
                    self.job.pool().give(pipe);
                }
                Flow::Finished
            }
        };
        self.pipes -= (flow == Flow::Finished && bulk.counted) as u32;
        self.ring_bell(to);
        Ok(flow)
    }

    fn sent(&self, bulk: &Bulk) -> Option<u64> {
        match &bulk.pipe {
            Some(pipe) => (!pipe.is_taken_over()).then(|| pipe.moved()),
            None => Some(u64::MAX),
        }
    }

    fn move_to(&mut self, to: Peer, bulk: &mut Bulk, message: &Views) -> Result<bool, Fault> {
        let Some(pipe) = bulk.pipe.as_mut() else {
            return Ok(true);
        };
        let not_now = pipe.move_to(address_of(message)).map_err(self.fault(to))?;
        Ok(not_now != Some(Filled::TakenOver))
    }

    fn drain(
        &mut self,
        from: Peer,
        bulk: &mut Bulk,
        into: &Views,
        total: u64,
    ) -> Result<Flow, Fault> {
        let chunk = self.chunk(total);
        let Some(pipe) = bulk.pipe.as_mut() else {
            return Ok(Flow::Finished);
        };
        let n = pipe.drain(into, total, chunk).map_err(self.fault(from))?;
        if pipe.moved() == total {
            if let Some(pipe) = bulk.pipe.take() {
                self.job.pool().give(pipe);
            }
            return Ok(Flow::Finished);
        }
        if n == 0 {
            bulk.starved += 1;
            let patience = if self.crowded { 2 } else { 4000 };
            if bulk.starved > patience && bulk.pulls && pipe.address() != 0 {
                bulk.starved = 0;
                return self.take_over(from, bulk, into, total);
            }
            return Ok(Flow::Still);
        }
        bulk.starved = 0;
        self.ring_bell(from);
        Ok(Flow::Moved)
    }

    fn abandon(&mut self, bulk: Bulk) {
        let Some(pipe) = bulk.pipe else { return };
        self.pipes -= bulk.counted as u32;
        if bulk.counted && pipe.give_up() == GivenUp::Senders {
            return self.job.pool().give(pipe);
        }
        // The other side may still have the pipe in hand: who does gives it back, or dies with it.
        pipe.let_go(self.me);
    }

    fn reclaim(&mut self, bulk: Bulk) {
        if let Some(pipe) = bulk.pipe {
            self.pipes -= bulk.counted as u32;
            self.job.pool().give(pipe);
        }
    }

    fn lend(&mut self, len: usize) -> Result<(u64, Views), Fault> {
        if !self.leaving.is_empty() {
            self.let_go_of_read_out();
        }
        self.with_loans(|loans, around| loans.lend(around, len))
            .map_err(|error| Fault::Memory(format!("no loan of {len} bytes: {error}")))
    }

    fn loan_came(&mut self, peer: Peer, place: u64) -> Result<(), Fault> {
        let arrived = around(&self.job, self.me, |around| {
            Loans::arrive(around, place, peer)
        });
        arrived.map_err(self.fault(peer))
    }

    fn borrowed(&mut self, peer: Peer, place: u64, len: u64) -> Result<Views, Fault> {
        if peer == self.me {
            // A message to oneself arrives when it is taken. A block that does not go as a message has not been handed over.
            let _ = self.loan_came(peer, place);
        }
        Loans::check(self.job.segment(), place, len).map_err(self.fault(peer))
    }

    fn loan_at(&self, address: usize) -> Option<(u64, usize)> {
        around(&self.job, self.me, |around| Loans::at(around, address))
    }

    fn give_back(&mut self, place: u64) {
        self.with_loans(|loans, around| loans.give_back(around, place));
    }

    fn world(&self) -> (Peer, u32) {
        let member = self.job.membership(self.me);
        member.map_or((self.me, 1), |member| (member.first, member.count))
    }

    fn world_collective_buffer(&mut self) -> Option<CollectiveBuffer> {
        let first = self.job.first();
        if self.me >= first {
            let member = self.job.membership(self.me).ok()?;
            let name = (member.collective_buffer != 0).then_some(member.collective_buffer)?;
            return CollectiveBuffer::at(self.job.segment(), name, member.count).ok();
        }
        if self.job.tasks_here() != first {
            return None;
        }
        let at = crate::job::world_buffer_at(self.job.capacity());
        CollectiveBuffer::at(self.job.segment(), at, first).ok()
    }

    fn new_collective_buffer(
        &mut self,
        members: u32,
    ) -> Result<Option<(CollectiveBuffer, u64)>, Fault> {
        let taken = self.job.collective_buffers().take(members);
        let name = taken
            .map_err(|error| Fault::Memory(format!("no collective buffer for a group: {error}")))?;
        Ok(Some((self.enter_collective_buffer(name, members)?, name)))
    }

    fn leave_collective_buffer(&mut self, name: u64, members: u32) {
        // A name that makes no sense has been refused by `enter_collective_buffer`.
        let _ = self.job.collective_buffers().leave(name, members);
    }

    fn enter_collective_buffer(
        &mut self,
        name: u64,
        members: u32,
    ) -> Result<CollectiveBuffer, Fault> {
        CollectiveBuffer::at(self.job.segment(), name, members).map_err(self.fault(self.me))
    }

    fn collective_buffer_capacity(&self, buffer: &CollectiveBuffer) -> usize {
        buffer.capacity()
    }

    fn contribution_limit(&self, members: u32) -> usize {
        crate::collective_buffer::capacity(members)
    }

    #[inline(always)]
    fn contribute(
        &self,
        buffer: &CollectiveBuffer,
        index: u32,
        round: u32,
        from: &Views,
        listeners: Range<u32>,
        peer_of: &impl Fn(u32) -> Peer,
    ) {
        buffer.contribute(index, round, from);
        self.fencing.before_look();
        for other in listeners {
            if other != index && buffer.awaits(other).names(index) {
                self.job.slot(peer_of(other)).bell.wake();
            }
        }
    }

    #[inline(always)]
    fn contributed(&self, buffer: &CollectiveBuffer, index: u32, round: u32) -> bool {
        buffer.contributed(index, round)
    }

    fn contributed_round(&self, buffer: &CollectiveBuffer, index: u32, round: u32) -> u32 {
        buffer.contributed_round(index, round)
    }

    #[inline(always)]
    fn collect(&self, buffer: &CollectiveBuffer, index: u32, round: u32, part: Part, into: &Views) {
        buffer.collect(index, round, part.offset, part.total, into);
    }

    fn await_contribution(
        &self,
        buffer: &CollectiveBuffer,
        index: u32,
        target: Option<u32>,
    ) -> bool {
        buffer.awaits(index).name(target)
    }
}

/// The place of a peer in a list that grows as peers talk.
#[cold]
fn place<T>(list: &mut Vec<Option<T>>, peer: Peer) -> &mut Option<T> {
    let at = peer as usize;
    if list.len() <= at {
        list.resize_with(at + 1, || None);
    }
    &mut list[at]
}

impl Bulk {
    fn new(pipe: Pipe, counted: bool) -> Bulk {
        Bulk {
            pipe: Some(pipe),
            counted,
            footprint: Footprint::Narrow,
            pulls: true,
            starved: 0,
        }
    }
}

/// The choice of footprint of a task's pipes.
fn learner(job: &Job, policy: Policy) -> Learner {
    let mut learner = Learner::new(job.geometry().pipe as u64, policy);
    if job.geometry().wide == 0 || job.is_crowded() {
        learner.stay_narrow();
    }
    learner
}

/// Where a message lies, for others to read it; 0 if it is not one block.
fn address_of(message: &Views) -> u64 {
    match message {
        Views::Strided(..) => 0,
        block => block.contiguous().map_or(0, |at| at as u64),
    }
}

/// Bytes of segment between the start of a ring and its lines.
pub(crate) const RING_CONTROL: usize = 2 * LINE;

/// Reads a line's header.
#[inline(always)]
pub(crate) fn header(kind: Kind, length: usize) -> Header {
    Header {
        kind: kind as u8,
        flags: 0,
        length: length as u32,
    }
}
