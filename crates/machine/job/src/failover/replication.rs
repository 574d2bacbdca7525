//! Which hosts hold replicas of the registry, and which messages wait until a replica has the changes that they depend
//! on.
//!
//! Otherwise a task could be told that it has joined a group, and the next launcher would not know that: the change was
//! sent to the replicas first, but another channel may be faster. A host with a replica has each change before the
//! messages to its tasks, since both use one channel. The launcher asks the hosts with replicas how many changes they
//! have applied. The first sufficient answer is enough.

use std::collections::{BTreeSet, VecDeque};

/// Maximum number of hosts that hold a replica.
const MAX_REPLICAS: usize = 8;

/// A message that waits.
#[derive(Debug)]
struct Waiting {
    /// The number of changes that a replica must have applied before this message is sent.
    changes: u64,
    task: u32,
    bytes: Vec<u8>,
}

impl Waiting {
    fn message(self) -> (u32, Vec<u8>) {
        (self.task, self.bytes)
    }
}

/// Hosts with replicas, and messages that wait for them. Hosts and tasks are identified by their numbers in the job.
#[derive(Debug, Default)]
pub struct Replication {
    holders: BTreeSet<u32>,
    /// The number of changes that some replica is known to have applied, and the number for which the holders were
    /// asked last.
    confirmed: u64,
    asked: u64,
    /// Ordered by `changes`.
    waiting: VecDeque<Waiting>,
}

impl Replication {
    /// Returns how many of this many hosts hold replicas.
    pub fn count(hosts: usize) -> usize {
        (hosts / 2).clamp(2, MAX_REPLICAS)
    }

    /// Makes these hosts hold replicas. Hosts that hold one already keep it. Returns the hosts that need a snapshot
    /// now.
    pub fn add_holders(&mut self, wanted: impl Iterator<Item = u32>) -> Vec<u32> {
        wanted.filter(|host| self.holders.insert(*host)).collect()
    }

    /// Records that a host is lost. It may have been the only one that had confirmed a change, so the other holders
    /// must confirm it again.
    pub fn host_lost(&mut self, host: u32) {
        if self.holders.remove(&host) {
            self.confirmed = 0;
        }
    }

    /// Returns whether this host holds a replica.
    pub fn holds(&self, host: u32) -> bool {
        self.holders.contains(&host)
    }

    /// Returns whether a message for a task on another host than the launcher's must wait, if it depends on this many
    /// changes.
    pub fn must_wait(&self, host: u32, changes: u64) -> bool {
        changes > self.confirmed && !self.holders.is_empty() && !self.holds(host)
    }

    /// Keeps a message until a replica has applied this many changes.
    pub fn keep(&mut self, changes: u64, task: u32, bytes: Vec<u8>) {
        self.waiting.push_back(Waiting {
            changes,
            task,
            bytes,
        });
    }

    /// Returns whether the holders must be asked now: a message waits for more changes than they were last asked for.
    pub fn is_to_be_asked(&mut self) -> bool {
        let Some(last) = self.waiting.back() else {
            return false;
        };
        let more = last.changes > self.asked;
        self.asked = self.asked.max(last.changes);
        more
    }

    /// Records that a replica has applied this many changes. Returns the messages that may be sent now, in order.
    pub fn confirm(&mut self, changes: u64) -> Vec<(u32, Vec<u8>)> {
        self.confirmed = self.confirmed.max(changes);
        let ready = self
            .waiting
            .partition_point(|waiting| waiting.changes <= changes);
        self.waiting.drain(..ready).map(Waiting::message).collect()
    }

    /// Makes the holders be asked again, because they have changed. Returns the messages that no longer wait. `host_of`
    /// returns the host of a task.
    pub fn holders_changed(&mut self, host_of: impl Fn(u32) -> Option<u32>) -> Vec<(u32, Vec<u8>)> {
        self.asked = 0;
        let holders = &self.holders;
        let is_ready = |waiting: &Waiting| {
            holders.is_empty() || host_of(waiting.task).is_some_and(|host| holders.contains(&host))
        };
        let all = std::mem::take(&mut self.waiting).into_iter();
        let (ready, waiting): (Vec<Waiting>, Vec<Waiting>) = all.partition(is_ready);
        self.waiting = waiting.into();
        ready.into_iter().map(Waiting::message).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_majority_without_the_launcher_has_a_replica() {
        for hosts in 3..=16 {
            let without = hosts - 1 - Replication::count(hosts).min(hosts - 1);
            assert!(without < hosts / 2 + 1, "{hosts} hosts");
        }
    }

    #[test]
    fn messages_wait_in_order_until_a_replica_knows_of_what_they_come() {
        let mut words = Replication::default();
        assert!(!words.must_wait(3, 1), "nobody holds a replica");
        assert_eq!(words.add_holders([1, 2].into_iter()), [1, 2]);
        assert!(!words.must_wait(3, 0) && words.must_wait(3, 1) && !words.must_wait(1, 1));
        assert!(!words.is_to_be_asked());
        words.keep(2, 7, vec![1]);
        words.keep(2, 8, vec![2]);
        assert!(words.is_to_be_asked() && !words.is_to_be_asked());
        words.keep(5, 7, vec![3]);
        assert!(words.is_to_be_asked());
        assert!(words.confirm(1).is_empty());
        assert_eq!(words.confirm(3), [(7, vec![1]), (8, vec![2])]);
        assert!(!words.must_wait(3, 3) && words.must_wait(3, 5));
        words.keep(6, 8, vec![4]);
        // The host of task 7 has a replica now. The holders are asked again.
        assert_eq!(words.add_holders([1, 2, 7].into_iter()), [7]);
        assert_eq!(words.holders_changed(Some), [(7, vec![3])]);
        assert!(words.is_to_be_asked());
        assert_eq!(words.confirm(6), [(8, vec![4])]);
    }

    #[test]
    fn a_confirmation_is_lost_with_the_host_that_gave_it() {
        let mut words = Replication::default();
        words.add_holders([1, 2].into_iter());
        words.confirm(10);
        assert!(!words.must_wait(3, 10));
        words.host_lost(3);
        assert!(!words.must_wait(3, 10), "it had no replica");
        words.host_lost(1);
        assert!(words.must_wait(3, 10), "host 2 has not confirmed it");
        words.keep(10, 7, vec![1]);
        assert!(words.is_to_be_asked());
        assert_eq!(words.confirm(10), [(7, vec![1])]);
        assert!(!words.must_wait(3, 10));
    }

    #[test]
    fn nothing_waits_for_hosts_that_are_lost() {
        let mut words = Replication::default();
        words.add_holders([1].into_iter());
        words.keep(2, 7, vec![1]);
        words.host_lost(1);
        assert!(!words.must_wait(3, 9));
        assert_eq!(words.holders_changed(Some), [(7, vec![1])]);
    }
}
