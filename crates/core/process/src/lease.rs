//! Shared barriers that the launcher has lent this task's groups: what the task knows of each.

use regatta_engine::Peer;
use regatta_memory::shared_barrier::{Crossing, SharedBarrier};
use regatta_segment::job::Job;
use rustc_hash::FxHashMap;

/// By the names of groups.
pub(crate) type Leases = FxHashMap<String, Lease>;

/// A shared barrier that this task's group has been lent.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) barrier: u64,
    /// The members by their numbers in the group; `None`: nobody has this number.
    pub(crate) members: Vec<Option<u32>>,
    /// The members without gaps.
    pub(crate) peers: Vec<Peer>,
    /// The place of this task in `peers`.
    pub(crate) place: u32,
    /// The round that this task takes part in next.
    pub(crate) round: u32,
    /// The number of the request by which this task asks the launcher, once the barrier is shut.
    pub(crate) question: u32,
    /// A thread of this task waits in it.
    pub(crate) inside: bool,
}

impl Lease {
    /// Returns how many members it is for.
    pub(crate) fn size(&self) -> u32 {
        self.peers.len() as u32
    }

    fn passage(&self, job: &Job, look: impl FnOnce(SharedBarrier) -> Crossing) -> Crossing {
        job.shared_barrier(self.barrier, self.size())
            .map_or(Crossing::Shut, look)
    }

    /// Announces this task in the current round.
    #[inline(always)]
    pub(crate) fn come(&mut self, job: &Job) -> Crossing {
        let (place, round, question) = (self.place, self.round, self.question);
        self.passage(job, |barrier| barrier.come(place, round, question))
    }

    /// Looks whether the round is over.
    #[inline(always)]
    pub(crate) fn look(&self, job: &Job) -> Crossing {
        let round = self.round;
        self.passage(job, |barrier| barrier.look(round))
    }
}
