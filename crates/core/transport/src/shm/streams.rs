//! Streams through pipes: memory through which both sides copy at the same time.

use regatta_engine::{Fault, Flow, Peer, Sent, Streams};
use regatta_memory::Corrupt;
use regatta_memory::pipe::{CONTROL, Filled, GivenUp, Message, Pipe};
use regatta_memory::ticks::ticks;
use regatta_memory::views::Views;
use regatta_wire::Route;

use super::{Shm, both_ways};
use crate::footprint::Footprint;
use regatta_segment::job::{NARROW_PIPE, PIPE_SIZES};

/// Whether this process may read a peer's memory directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pull {
    Yes,
    No,
}

/// Number of bytes of a message that are stored in the ordinary way while non-temporal stores are in use, in order to
/// time them.
const ORDINARY_PROBE_BYTES: usize = 4 << 10;

/// Index in a message's route of its pipe's size. The pipe's offset is in bytes 0 to 7, and [`both_ways`] uses the
/// two bytes in between.
const SIZE_AT: usize = 10;

/// One side of a pipe.
#[derive(Debug)]
pub struct Bulk {
    pipe: Option<Pipe>,
    /// Whether this task opened the pipe for its own message, so that it counts in `Shm::pipes`.
    counted: bool,
    /// Sender: the part of the pipe that its message rotates over.
    footprint: Footprint,
    /// Sender: whether it chose that footprint itself, and learns from it.
    learns: bool,
    /// Receiver: whether it may read from the sender's memory.
    pulls: bool,
    /// Receiver: number of polls without progress since the last byte was received.
    starved: u32,
}

impl Bulk {
    fn new(pipe: Pipe, counted: bool) -> Bulk {
        Bulk {
            pipe: Some(pipe),
            counted,
            footprint: Footprint::Narrow,
            learns: false,
            pulls: true,
            starved: 0,
        }
    }
}

impl Streams for Shm {
    type Bulk = Bulk;

    fn open(&mut self, to: Peer, message: &Views) -> Result<Option<(Bulk, Route)>, Fault> {
        if self.pipes >= self.job.geometry().pipes {
            return Ok(None);
        }
        let long = self.learners.is_long(message.len());
        let learner = self.learners.of(message.len());
        let given = match learner.is_fixed() {
            true => None,
            false => self.both_ways.of_next(to, long),
        };
        // A message that fits into a narrow pipe needs no larger one.
        let crosses = long && self.crossing.goes(to);
        let footprint = match crosses {
            true => Footprint::Wide,
            false => given.unwrap_or(learner.choice()),
        };
        let needs = Message {
            tasks: [self.me, to],
            window: self.window(footprint),
            length: message.len() as u64,
            goes_on: footprint != Footprint::Narrow,
        };
        // If there is no memory for a pipe, that is not an error yet: the receiver will look for one.
        let Ok(mut pipe) = self.any_pipe(needs) else {
            return Ok(None);
        };
        self.map_for(&pipe, needs);
        self.both_ways.goes(to, long);
        self.widen_ring(to);
        self.pipes += 1;
        pipe.set_address(address_of(message));
        let mut route = Route::default();
        lead_to(
            &mut route,
            self.job.geometry().pipe_size_for(pipe.size()),
            &pipe,
        );
        if !crosses {
            both_ways::say(&mut route, footprint, long);
        }
        let mut bulk = Bulk::new(pipe, true);
        (bulk.footprint, bulk.learns) = (footprint, given.is_none() && !crosses);
        Ok(Some((bulk, route)))
    }

    fn open_for(&mut self, from: Peer) -> Result<(Bulk, Route), Fault> {
        let needs = Message {
            tasks: [from, self.me],
            window: self.window(self.learners.short.kept()),
            length: 0,
            goes_on: self.learners.short.kept() != Footprint::Narrow,
        };
        let pipe = self.any_pipe(needs)?;
        let mut route = Route::default();
        lead_to(
            &mut route,
            self.job.geometry().pipe_size_for(pipe.size()),
            &pipe,
        );
        Ok((Bulk::new(pipe, false), route))
    }

    fn attach(&mut self, peer: Peer, route: &Route) -> Result<Bulk, Fault> {
        let mut offset = [0; 8];
        offset.copy_from_slice(&route[..8]);
        let offset = u64::from_le_bytes(offset);
        let sizes = self.job.geometry().pipe_sizes();
        let size = sizes.get(route[SIZE_AT] as usize).ok_or(Corrupt {
            what: "a pipe has an unknown size",
        });
        let pipe = size.and_then(|&size| {
            Pipe::between(self.job.segment(), offset, size as usize, [self.me, peer])
        });
        let pipe = pipe.map_err(self.fault(peer))?;
        self.both_ways.came(self.me, peer, route);
        Ok(Bulk::new(pipe, false))
    }

    fn fill(&mut self, to: Peer, bulk: &mut Bulk, message: &Views) -> Result<Flow, Fault> {
        let learner = self.learners.of(message.len());
        let timed = bulk.learns && learner.is_timing();
        let probes = timed && learner.probes() && bulk.footprint == Footprint::NonTemporal;
        let non_temporal = bulk.footprint == Footprint::NonTemporal && !probes;
        let chunk = match probes {
            true => ORDINARY_PROBE_BYTES,
            false => self.chunk(message.len() as u64),
        };
        let Some(pipe) = bulk.pipe.as_mut() else {
            return Ok(Flow::Finished);
        };
        let before = pipe.moved();
        let start = if timed { ticks() } else { 0 };
        let filled = pipe.fill(message, chunk, non_temporal);
        let filled = filled.map_err(self.fault(to))?;
        let learner = self.learners.of(message.len());
        let copied = (pipe.moved() - before) as usize;
        if let Some(cost) = pipe.drain_cost().filter(|_| timed) {
            learner.read(cost);
        }
        if timed && (probes || bulk.footprint == learner.choice()) {
            learner.timed(copied, ticks().wrapping_sub(start));
        }
        if bulk.learns {
            learner.copied_with(bulk.footprint, copied);
        }
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
                    self.give(pipe);
                }
                Flow::Finished
            }
        };
        self.pipes -= (flow == Flow::Finished && bulk.counted) as u32;
        self.ring_bell(to);
        Ok(flow)
    }

    fn sent(&self, bulk: &Bulk) -> Option<Sent> {
        match &bulk.pipe {
            Some(pipe) => (!pipe.is_taken_over()).then(|| Sent::for_good(pipe.moved())),
            None => Some(Sent::for_good(u64::MAX)),
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
                self.give(pipe);
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
            return self.give(pipe);
        }
        // The other side may still use the pipe. It returns the pipe to the pool, or the pipe is reclaimed when it
        // dies.
        pipe.let_go(self.me);
    }

    fn reclaim(&mut self, bulk: Bulk) {
        if let Some(pipe) = bulk.pipe {
            self.pipes -= bulk.counted as u32;
            self.give(pipe);
        }
    }
}

impl Shm {
    fn any_pipe(&mut self, message: Message) -> Result<Pipe, Fault> {
        // A message uses no more of the pipe than its length. The length is 0 if the receiver opens the pipe.
        let bytes = match message.goes_on || message.length == 0 {
            true => u64::from(message.window),
            false => message.length.min(message.window.into()),
        };
        let size = self.job.geometry().pipe_size_for(bytes);
        if let Some(pipe) = self.free_pipe(size, message) {
            return Ok(pipe);
        }
        self.job.make_pipe(self.me, size, message).or_else(|error| {
            // A free pipe of another size serves as well; the window of the message is then at most as large as that
            // pipe.
            let mut others = (0..PIPE_SIZES).rev().filter(|&other| other != size);
            let free = others.find_map(|other| self.free_pipe(other, message));
            free.ok_or_else(|| {
                Fault::Memory(format!(
                    "no pipe can be allocated for a large message: {error}"
                ))
            })
        })
    }

    /// Returns an unused pipe of one size, or `None` if there is none.
    fn free_pipe(&mut self, size: usize, message: Message) -> Option<Pipe> {
        let pool = self.job.pool(size);
        // A damaged pool counts as empty.
        if let Ok(Some(pipe)) = pool.take(message) {
            return Some(pipe);
        }
        if self.job.losses() == 0 {
            return None;
        }
        let gone = |peer| self.job.is_gone(peer);
        pool.adopt(&mut self.pipe_cursors[size], message, gone)
    }

    /// Returns an unused pipe to its pool.
    fn give(&self, pipe: Pipe) {
        let size = self.job.geometry().pipe_size_for(pipe.size());
        self.job.pool(size).give(pipe);
    }

    /// Maps the part of a pipe that a message of this task uses at once; otherwise it would be mapped page by page.
    fn map_for(&mut self, pipe: &Pipe, message: Message) {
        let window = u64::from(message.window);
        // A message that starts where the last one ended may lie anywhere in the window.
        let bytes = match message.goes_on {
            true => window,
            false => message.length.min(window),
        };
        let needed = bytes.min(pipe.size()) as u32 + CONTROL as u32;
        let mapped = self.mapped.entry(pipe.offset()).or_default();
        if *mapped >= needed {
            return;
        }
        *mapped = needed;
        self.job
            .segment()
            .map_at_once(pipe.offset(), needed as usize);
    }

    /// Returns how many bytes of a pipe a message with this footprint rotates over.
    pub(super) fn window(&self, footprint: Footprint) -> u32 {
        let whole = self.job.geometry().pipe;
        match footprint {
            Footprint::Narrow => whole.min(NARROW_PIPE),
            Footprint::Wide | Footprint::NonTemporal => whole,
        }
    }

    /// Makes the ring to this peer wide, if wide pipes have proved best for messages of this task.
    fn widen_ring(&mut self, to: Peer) {
        if self.learners.short.kept() == Footprint::Wide
            && let Some(Some(ring)) = self.outs.get_mut(to as usize)
            && !ring.is_wide()
        {
            ring.widen(true);
        }
    }

    fn ring_bell(&self, peer: Peer) {
        self.job.bell(peer).ring(self.fencing);
    }

    /// Returns the number of bytes to copy into or out of a pipe at a time: few enough for the other side to start
    /// soon, and enough for the string copy. On a crowded host, where the other side is probably not running, it is
    /// the whole pipe.
    fn chunk(&self, total: u64) -> usize {
        match total {
            _ if self.crowded => usize::MAX,
            0..0x1_0000 => 8 << 10,
            0x1_0000..0x4_0000 => 16 << 10,
            // Fewer and larger turns: equally fast where the cores share a cache, 1.2 times as fast where they do
            // not.
            _ => 32 << 10,
        }
    }

    /// Returns whether this process may read from a peer's memory, or `None` until the peer has joined.
    pub(super) fn pull(&mut self, peer: Peer) -> Option<Pull> {
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

    /// Reads the rest of a message directly from its sender's memory, because the sender makes no progress.
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
        // The sender may have put more in since the last poll.
        while pipe.drain(into, total, usize::MAX).map_err(&fault)? > 0 {}
        match pipe.pull(into, total, &self.job.remote(from)) {
            Ok(true) => {
                // The sender returns the pipe to its pool.
                pipe.let_go(self.me);
                bulk.pipe = None;
                self.ring_bell(from);
                return Ok(Flow::Finished);
            }
            // The sender has given the message up; its frame about that will arrive shortly.
            Ok(false) => {}
            Err(error) => {
                if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) {
                    self.pull.insert(from, Pull::No);
                }
                // The sender continues by itself, or is dying; in that case a notification will arrive shortly.
                self.ring_bell(from);
            }
        }
        bulk.pulls = false;
        Ok(Flow::Still)
    }
}

/// Writes the offset and the size of a message's pipe into its route.
fn lead_to(route: &mut Route, size: usize, pipe: &Pipe) {
    route[..8].copy_from_slice(&pipe.offset().to_le_bytes());
    route[SIZE_AT] = size as u8;
}

/// Returns the address at which other tasks can read a message, or 0 if it is not contiguous.
fn address_of(message: &Views) -> u64 {
    match message {
        Views::Strided(..) => 0,
        block => block.contiguous().map_or(0, |at| at as u64),
    }
}
