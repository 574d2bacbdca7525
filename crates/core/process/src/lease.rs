//! Shared barriers that the launcher has lent to this task's groups: what the task knows of each.

use regatta_engine::Peer;
use regatta_memory::shared_barrier::{Crossing, SharedBarrier};
use regatta_segment::job::Job;
use rustc_hash::FxHashMap;

/// Leases by the names of groups.
pub(crate) type Leases = FxHashMap<String, Lease>;

/// A shared barrier that the launcher has lent to a group of this task.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) barrier: u64,
    /// The members by their numbers in the group. `None` where a number is free.
    pub(crate) members: Vec<Option<u32>>,
    /// The members without the free numbers.
    pub(crate) peers: Vec<Peer>,
    /// Index of this task in `peers`.
    pub(crate) place: u32,
    /// The next round of this task.
    pub(crate) round: u32,
    /// The number of the request that this task sends to the launcher once the barrier is shut.
    pub(crate) question: u32,
    /// A thread of this task waits in the barrier.
    pub(crate) inside: bool,
}

impl Lease {
    /// Returns the number of members.
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

    /// Checks whether the round is complete.
    #[inline(always)]
    pub(crate) fn look(&self, job: &Job) -> Crossing {
        let round = self.round;
        self.passage(job, |barrier| barrier.look(round))
    }
}
