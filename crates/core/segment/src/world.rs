//! Tasks that are added to a job while it runs.
//!
//! The launcher gives numbers to tasks in ascending order, and never twice. On each host a task's table entry is
//! filled before the task's number is announced there, so a task that knows the number finds the host in the table.
//! Tasks that are started together are a *world*: they have consecutive numbers, and share a collective buffer if
//! they are on one host.

use std::sync::atomic::Ordering;

use regatta_memory::Corrupt;
use regatta_wire::world::World;

use crate::job::{Job, JobError, MAX_TASKS};
use crate::table::table_end;

/// The world of a task, as recorded in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Number of the world's first task.
    pub first: u32,
    /// Number of tasks in the world.
    pub count: u32,
    /// The task that started them, or `None` if the launcher did.
    pub parent: Option<u32>,
    /// The name of the collective buffer that they share, or 0.
    pub collective_buffer: u64,
}

impl Job {
    /// Enters these tasks into the table and gives out their numbers. Called by the launcher. On failure the table is
    /// unchanged.
    pub fn add_world(&self, world: &World) -> Result<(), JobError> {
        let count = u32::try_from(world.places.len()).unwrap_or(u32::MAX);
        let end = world.first.saturating_add(count);
        if world.first != self.tasks() || count == 0 || end > self.capacity() {
            return Err(JobError::Tasks(end));
        }
        let from = table_end(world.first) / 4096 * 4096;
        self.segment()
            .back(from as u64, table_end(end) - from)
            .map_err(JobError::Memory)?;
        let here = self.header().here.load(Ordering::Relaxed);
        let together = world.places.iter().all(|(host, _)| *host == here);
        let buffer = match together {
            true => self
                .free_collective_buffers()
                .take(count)
                .map_err(JobError::Memory)?,
            false => 0,
        };
        for (task, &(host, address)) in (world.first..).zip(&world.places) {
            let slot = self.slot(task);
            slot.place.host.store(host, Ordering::Relaxed);
            slot.world.first.store(world.first, Ordering::Relaxed);
            slot.world.count.store(count, Ordering::Relaxed);
            let parent = world.parent.map_or(0, |parent| parent.saturating_add(1));
            slot.world.parent.store(parent, Ordering::Relaxed);
            slot.inlet
                .0
                .collective_buffer
                .store(buffer, Ordering::Relaxed);
            if let Some(address) = address {
                self.set_address(task, address);
            }
        }
        self.header().given.store(end, Ordering::Release);
        let elsewhere = world.places.iter().any(|(host, _)| *host != here);
        if elsewhere && self.header().scattered.swap(1, Ordering::SeqCst) == 0 {
            // A sleeping task waited on its bell alone, as no message could arrive from other hosts. Now one can.
            (0..world.first).for_each(|task| self.bell(task).wake());
        }
        Ok(())
    }

    /// Frees the collective buffer of the world that begins with this task. Called by the launcher when no process of
    /// that world runs on this host any more.
    pub fn end_world(&self, first: u32) {
        let Ok(world) = self.membership(first) else {
            return;
        };
        let buffer = self
            .slot(first)
            .inlet
            .0
            .collective_buffer
            .swap(0, Ordering::Relaxed);
        if buffer != 0 {
            // An invalid name is ignored.
            let _ = self.free_collective_buffers().give(buffer, world.count);
        }
    }

    /// Returns the world of a task.
    pub fn membership(&self, task: u32) -> Result<Membership, Corrupt> {
        if task < self.first() {
            return Ok(Membership {
                first: 0,
                count: self.first(),
                parent: None,
                collective_buffer: 0,
            });
        }
        if task >= self.tasks() {
            return Err(Corrupt {
                what: "a task is named that does not exist",
            });
        }
        let slot = self.slot(task);
        let first = slot.world.first.load(Ordering::Relaxed);
        let count = slot.world.count.load(Ordering::Relaxed);
        let inside = first >= self.first()
            && first <= task
            && first
                .checked_add(count)
                .is_some_and(|end| task < end && end <= self.tasks());
        if !inside {
            return Err(Corrupt {
                what: "a task's world is not valid",
            });
        }
        Ok(Membership {
            first,
            count,
            parent: slot.world.parent.load(Ordering::Relaxed).checked_sub(1),
            collective_buffer: slot.inlet.0.collective_buffer.load(Ordering::Relaxed),
        })
    }

    /// Adds to the number of tasks that run on this host. `more` may be negative. Called by the launcher.
    pub fn count_living(&self, more: i32) {
        let living = &self.header().living;
        living.fetch_add(more as u32, Ordering::Relaxed);
        self.settle_fences();
    }

    /// Returns how many tasks run on this host.
    pub fn living(&self) -> u32 {
        let living = self.header().living.load(Ordering::Relaxed);
        living.min(MAX_TASKS)
    }

    /// Returns whether more tasks use this host's cores than there are cores. Tasks on other hosts of the job that
    /// use the same cores are counted.
    pub fn is_crowded(&self) -> bool {
        self.sharing() > self.cores()
    }

    /// Returns how many tasks use the cores of this host.
    fn sharing(&self) -> u32 {
        let neighbours = self.header().neighbours.load(Ordering::Relaxed);
        self.living().saturating_add(neighbours)
    }

    /// Returns how many tasks there are for each core, rounded up.
    pub fn tasks_per_core(&self) -> u32 {
        self.sharing().div_ceil(self.cores())
    }

    /// Notifies a task that the launcher has a message for it, and wakes it. Called by the launcher.
    pub fn announce_news(&self, task: u32) {
        let slot = self.slot(task);
        slot.inlet.0.news.fetch_add(1, Ordering::SeqCst);
        slot.bell.wake();
    }

    /// Notifies a task that the launcher has a message for it, without waking it. Called by the launcher.
    pub fn announce_quietly(&self, task: u32) {
        self.slot(task).inlet.0.news.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns a count that changes when the launcher has a message for a task.
    #[inline(always)]
    pub fn news(&self, task: u32) -> u32 {
        self.slot(task).inlet.0.news.load(Ordering::Relaxed)
    }

    /// Sets the version of the members of named groups. Called by the launcher before any task is notified of what
    /// changed them.
    pub fn set_groups(&self, version: u64) {
        let word = &self.header().groups;
        if word.load(Ordering::Relaxed) != version {
            word.store(version, Ordering::Release);
        }
    }

    /// Returns the version of the members of named groups, or 0 if the launcher is on another host; then only the
    /// launcher knows it.
    #[inline(always)]
    pub fn groups(&self) -> u64 {
        self.header().groups.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Cause, TaskState};
    use crate::ring_memory::RingMemory;
    use regatta_memory::ends::End;

    #[test]
    fn nobody_is_in_a_world_who_is_not_in_the_table() {
        let job = Job::create(2).expect("a job");
        assert!(job.membership(1).is_ok());
        assert!(job.membership(2).is_err() && job.membership(u32::MAX).is_err());
    }

    fn world(first: u32, count: usize) -> World {
        World {
            first,
            parent: Some(1),
            request: None,
            places: vec![(0, None); count],
        }
    }

    #[test]
    fn tasks_are_added_in_order_up_to_the_most() {
        let job = Job::create_for(2, 7).unwrap();
        job.add_world(&world(2, 3)).unwrap();
        assert_eq!(job.tasks(), 5);
        assert_eq!(job.state(4), TaskState::Expected);
        let member = job.membership(4).unwrap();
        assert_eq!((member.first, member.count, member.parent), (2, 3, Some(1)));
        assert_eq!(job.membership(1).unwrap().parent, None);
        assert!(job.add_world(&world(4, 1)).is_err());
        assert!(job.add_world(&world(5, 3)).is_err());
        assert!(job.add_world(&world(5, 2)).is_ok());
        assert!(job.add_world(&world(7, 0)).is_err());
    }

    #[test]
    fn collective_buffers_of_worlds_are_used_again() {
        let job = Job::create(1).unwrap();
        for first in 1..200 {
            job.add_world(&world(first, 1)).unwrap();
            job.end_world(first);
        }
        assert!(job.segment().used() < (20 << 20) + (64 << 10));
    }

    /// Adds pairs of tasks that open rings between each other and to task 0, and end. Task 0 stays; `done` ends its
    /// use of the rings that it opened. Checks that the job needs no more memory after the first pairs.
    fn rings_come_back(pairs: [(u32, u32); 3], done: impl Fn(&RingMemory)) {
        let job = Job::create(1).unwrap();
        let mut used = 0;
        for round in 0..50 {
            let first = 1 + 2 * round;
            job.add_world(&world(first, 1)).unwrap();
            job.add_world(&world(first + 1, 1)).unwrap();
            let task = |index| if index == 0 { 0 } else { first + index - 1 };
            for (from, to) in pairs {
                let out = RingMemory::open(&job, task(from), task(to), &mut 0).unwrap();
                if from == 0 {
                    done(&out);
                }
                if to == 0 {
                    RingMemory::opened(&job, 0)
                        .iter()
                        .for_each(|ring| ring.let_go(End::Destination));
                }
            }
            // One task of the pair leaves, the other is killed.
            job.leave(first);
            job.mark_dead(first + 1, Cause::Signalled(9));
            [first, first + 1]
                .into_iter()
                .for_each(|world| job.end_world(world));
            if round == 1 {
                used = job.segment().used();
            }
        }
        assert_eq!(job.segment().used(), used);
    }

    #[test]
    fn rings_between_tasks_that_have_both_gone_are_used_again() {
        rings_come_back([(1, 2), (2, 1), (1, 2)], |_| {});
    }

    #[test]
    fn rings_to_and_from_one_that_stays_are_used_again_when_it_is_done_with_them() {
        rings_come_back([(1, 0), (0, 2), (2, 0)], |ring| {
            ring.let_go(End::Source);
        });
    }

    #[test]
    fn a_ring_that_one_of_two_still_uses_is_left() {
        let job = Job::create(1).unwrap();
        job.add_world(&world(1, 2)).unwrap();
        RingMemory::open(&job, 1, 0, &mut 0).unwrap();
        job.mark_dead(1, Cause::Signalled(9));
        let used = job.segment().used();
        RingMemory::open(&job, 2, 0, &mut 0).unwrap();
        assert!(
            job.segment().used() > used,
            "nobody has read what task 1 sent"
        );
        let rings = RingMemory::opened(&job, 0);
        let sources: Vec<u32> = rings.iter().map(RingMemory::source).collect();
        assert_eq!(sources, [2, 1]);
    }

    #[test]
    fn scribbles_on_a_world_are_noticed() {
        let job = Job::create(2).unwrap();
        job.add_world(&world(2, 2)).unwrap();
        for (first, count) in [(3, 2), (2, 3), (0, 4), (2, u32::MAX), (u32::MAX, 1)] {
            let slot = job.slot(2);
            slot.world.first.store(first, Ordering::Relaxed);
            slot.world.count.store(count, Ordering::Relaxed);
            assert!(job.membership(2).is_err(), "{first} {count}");
        }
    }
}
