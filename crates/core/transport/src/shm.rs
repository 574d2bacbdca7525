//! The shared-memory transport: rings for frames, pipes for bulk, one segment for all. Each trait of the engine's
//! contract has its own file in the folder beside this one.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

use regatta_engine::{Fault, Peer};
use regatta_memory::Corrupt;
use regatta_memory::bell::Fencing;
use regatta_memory::losses::Losses;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::by_length::ByLength;
use crate::footprint::Policy;
use crate::opened_rings::Opened;
use crate::shm_channel::{In, Out};
use regatta_segment::job::{Job, NARROW_PIPE, PIPE_SIZES};
use regatta_segment::loan_blocks::LoanBlocks;

mod both_ways;
pub(crate) mod collective_buffers;
mod crossing;
mod frames;
mod loans;
mod lost_peers;
mod peers;
mod streams;
mod upkeep;

use both_ways::BothWays;
use crossing::Crossing;
pub use streams::Bulk;
use streams::Pull;

/// The transport to tasks of this host.
#[derive(Debug)]
pub struct Shm {
    job: Arc<Job>,
    me: Peer,
    fencing: Fencing,
    outs: Vec<Option<Out>>,
    ins: Vec<Option<In>>,
    /// The open rings towards this task, by peer.
    open: Opened,
    /// Peers that wrote invalid data: nothing further from them is read.
    closed: FxHashSet<Peer>,
    pull: FxHashMap<Peer, Pull>,
    /// Peers that are gone and whose frames have not all been read.
    leaving: Vec<Peer>,
    /// Positions at which the searches for reusable rings and pipes resume.
    ring_cursor: u64,
    pipe_cursors: [u64; PIPE_SIZES],
    /// Number of pipes that this task has opened and whose end it has not seen.
    pipes: u32,
    /// Number of bytes, by the offset of the pipe, that are known to be mapped in this process.
    mapped: FxHashMap<u64, u32>,
    /// Learners of the footprint of all pipes of this task together. Each ring has its own.
    learners: ByLength,
    both_ways: BothWays,
    crossing: Crossing,
    policy: Policy,
    /// Number of wide areas that this task has made for its contributions to collectives.
    areas: Cell<u32>,
    loans: LoanBlocks,
    /// Whether there are more tasks than cores: a peer that makes no progress is then probably not running.
    crowded: bool,
    /// The job's count of losses, read before every send.
    losses: NonNull<Losses>,
    /// The word by which other tasks verify that they read this process's memory.
    _word: Box<u64>,
}

// SAFETY: all pointers lead into the job's segment, which the `Arc` keeps mapped.
unsafe impl Send for Shm {}

impl Shm {
    /// Returns the transport of task `me` of a job it has joined.
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
            pipe_cursors: [0; PIPE_SIZES],
            pipes: 0,
            mapped: FxHashMap::default(),
            learners: pipe_learners(&job, Policy::Learn),
            both_ways: BothWays::default(),
            crossing: Crossing::default(),
            policy: Policy::Learn,
            areas: Cell::new(0),
            loans: LoanBlocks::default(),
            crowded: job.is_crowded(),
            losses: NonNull::from(job.losses_seen_by_all()),
            _word: word,
            job,
        }
    }

    /// Sets the policy for the footprints of its paths. Call it before anything is sent. By default they are learned.
    pub fn choose_footprints(&mut self, policy: Policy) {
        self.policy = policy;
        self.learners = pipe_learners(&self.job, policy);
    }

    /// Returns the job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Returns how the fences of bells are paid for on this host.
    pub fn fencing(&self) -> Fencing {
        self.fencing
    }

    /// Returns whether this task has sent to that peer.
    #[inline(always)]
    pub(crate) fn sends_to(&self, peer: Peer) -> bool {
        matches!(self.outs.get(peer as usize), Some(Some(_)))
    }

    /// Returns whether this task has noticed a ring from that peer.
    #[inline(always)]
    pub(crate) fn has_received_from(&self, peer: Peer) -> bool {
        matches!(self.ins.get(peer as usize), Some(Some(_)))
    }

    /// Returns the number of peers that `next_ready` goes through.
    #[inline(always)]
    pub(crate) fn open_rings(&self) -> usize {
        self.open.len()
    }

    /// Returns whether there are more tasks than cores.
    pub fn crowded(&self) -> bool {
        self.crowded
    }

    fn fault(&self, peer: Peer) -> impl Fn(Corrupt) -> Fault + use<> {
        move |corrupt| Fault::Corrupt {
            peer,
            what: corrupt.what,
        }
    }
}

/// Number of pipes that a task fills in turn with short messages; of long ones there are few at a time. All of these
/// pipes must be warm when a wide footprint is timed: with a smaller number, the wide footprint of eager senders was
/// timed on memory that had not been touched yet.
const PIPES_AT_ONCE: u64 = 8;

/// Returns the learners for a task's pipes: one for messages that fit into a narrow pipe, and one for longer
/// messages, whose own memory does not stay in a core's cache.
fn pipe_learners(job: &Job, policy: Policy) -> ByLength {
    let pipe = job.geometry().pipe as u64;
    let wide = [PIPES_AT_ONCE * pipe, pipe];
    let mut learners = ByLength::new(NARROW_PIPE as usize, wide, policy);
    learners.long.begin_wide();
    if job.geometry().wide == 0 || job.is_crowded() {
        learners.stay_narrow();
    }
    learners
}

/// Returns the slot of a peer in a list, which grows as needed.
#[cold]
fn place<T>(list: &mut Vec<Option<T>>, peer: Peer) -> &mut Option<T> {
    let at = peer as usize;
    if list.len() <= at {
        list.resize_with(at + 1, || None);
    }
    &mut list[at]
}
