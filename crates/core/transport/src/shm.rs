//! The shared-memory transport: rings for frames, pipes for bulk, one segment for all. Each trait of the engine's contract has its
//! file in the folder beside this one.

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

/// The transport to tasks of the own host.
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
    pipe_cursors: [u64; PIPE_SIZES],
    /// Pipes this task has opened and not seen the end of.
    pipes: u32,
    /// How many bytes of pipes, by their offsets, are mapped in this process for sure.
    mapped: FxHashMap<u64, u32>,
    /// How much of its pipes its messages cycle through, of all of them together. Each ring has a learner of its own.
    learners: ByLength,
    both_ways: BothWays,
    crossing: Crossing,
    policy: Policy,
    /// Wide areas that this task has made for its contributions to collectives.
    areas: Cell<u32>,
    loans: LoanBlocks,
    /// More tasks than cores: a peer that does nothing is probably not running.
    crowded: bool,
    /// The job's count of losses, looked at before every send.
    losses: NonNull<Losses>,
    /// By it others know this process's memory.
    _word: Box<u64>,
}

// SAFETY: all pointers are into the job's segment, which the `Arc` keeps mapped.
unsafe impl Send for Shm {}

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

    /// Sets how much memory its paths cycle through, before it sends anything. If nothing is said they learn it.
    pub fn choose_footprints(&mut self, policy: Policy) {
        self.policy = policy;
        self.learners = pipe_learners(&self.job, policy);
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
}

/// Number of pipes that a task fills in turn with short messages; long ones are few at a time. All are to be warm when a wide footprint is
/// timed: with fewer, the wide footprint of eager senders was timed on memory that nobody had touched yet.
const PIPES_AT_ONCE: u64 = 8;

/// The choices of footprint of a task's pipes, for messages that fit into a narrow one and for longer ones, whose own memory does not stay in a core's cache.
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

/// The place of a peer in a list that grows as peers talk.
#[cold]
fn place<T>(list: &mut Vec<Option<T>>, peer: Peer) -> &mut Option<T> {
    let at = peer as usize;
    if list.len() <= at {
        list.resize_with(at + 1, || None);
    }
    &mut list[at]
}
