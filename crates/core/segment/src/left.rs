//! Memory of the segment that a killed task had allocated but not yet put on a list.
//!
//! The process that marks the task dead puts the piece on its list before any task can see the death. From then on it
//! is like every other piece of a task that is gone, and is reused. Only one process marks tasks dead: the one that
//! supervises the tasks of this host.

use std::io;

use regatta_memory::making::Maker;
use regatta_memory::pipe::{CONTROL, Message, Pipe, Pool};

use crate::job::Job;
use crate::{loan_blocks, ring_memory};

/// Kind of a piece in the note that a task writes while it makes one: a ring.
pub(crate) const RING: u8 = 1;
/// Kind of a piece: a pipe.
pub(crate) const PIPE: u8 = 2;
/// Kind of a piece: a block for loans.
pub(crate) const BLOCK: u8 = 3;

impl Job {
    /// Returns the pool of this host's pipes of one size, by its index in `Geometry::pipe_sizes`.
    pub fn pool(&self, size: usize) -> Pool<'_> {
        let bytes = self.geometry().pipe_sizes()[size] as usize;
        let (free, made) = (&self.free_pipes()[size], &self.pipes()[size]);
        Pool::new(self.segment(), free, made, bytes)
    }

    /// Makes a pipe of one size between two tasks for task `me`, which is one of the two.
    pub fn make_pipe(&self, me: u32, size: usize, message: Message) -> io::Result<Pipe> {
        let maker = Maker {
            task: me,
            kind: PIPE,
        };
        self.pool(size).make(maker, message)
    }

    /// Puts the piece that a task was making when its process ended on the list of its kind.
    pub(crate) fn list_what_is_left(&self, task: u32) {
        let Some(left) = self.segment().left_by(task) else {
            return;
        };
        match left.kind {
            RING => ring_memory::list_for_dead(self, left, task),
            PIPE => {
                let bytes = (left.end - left.start).saturating_sub(CONTROL as u64);
                let sizes = self.geometry().pipe_sizes().map(u64::from);
                // The piece is rounded up to whole pages, which is less than the distance to the next size.
                if let Some(size) = sizes.into_iter().filter(|&size| size <= bytes).max() {
                    let size = self.geometry().pipe_size_for(size);
                    self.pool(size).list_for_dead(left.start, task);
                }
            }
            BLOCK => loan_blocks::list_for_dead(self.segment(), self.blocks(), left, task),
            // No task writes another kind.
            _ => {}
        }
        self.segment().listed(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Cause, Geometry, PIPE_SIZES};
    use crate::loan_blocks::{Around, LoanBlocks};
    use crate::ring_memory::RingMemory;

    /// Kills task 1 before, while or after it makes and lists a piece. Then `again` makes a piece of that size as
    /// task 0, and must take no new memory.
    fn comes_back(kind: u8, bytes: usize, make: impl Fn(&Job), again: impl Fn(&Job)) {
        for dies in ["before it has it", "with it", "after listing it"] {
            let job = Job::create(4).unwrap();
            // Dead tasks' pieces are only looked for after a loss.
            job.mark_dead(3, Cause::Signalled(9));
            let maker = Maker { task: 1, kind };
            match dies {
                "before it has it" => {}
                "with it" => {
                    job.segment().allocate_for(maker, bytes, 4096).unwrap();
                    // Another task takes memory meanwhile.
                    job.segment().allocate(64, 64).unwrap();
                }
                _ => make(&job),
            }
            let used = job.segment().used();
            job.mark_dead(1, Cause::Signalled(9));
            // Some processes mark an end twice.
            job.mark_ended(1);
            again(&job);
            let grown = job.segment().used() > used;
            assert_eq!(grown, dies == "before it has it", "killed {dies}");
            again(&job);
            assert!(job.segment().used() > used, "it is had once, killed {dies}");
        }
    }

    #[test]
    fn a_ring_of_a_task_that_is_killed_while_it_makes_it_is_used_again() {
        let open = |job: &Job, from, to| {
            RingMemory::open(job, from, to, &mut 0).unwrap();
        };
        let bytes = RingMemory::footprint(Geometry::for_tasks(1));
        comes_back(RING, bytes, |job| open(job, 1, 3), |job| open(job, 0, 2));
    }

    #[test]
    fn a_pipe_of_a_task_that_is_killed_while_it_makes_it_is_used_again() {
        let maker = |task| Maker { task, kind: PIPE };
        let message = |source, destination| Message {
            tasks: [source, destination],
            window: 1 << 20,
            length: 0,
            goes_on: false,
        };
        const WHOLE: usize = PIPE_SIZES - 1;
        let bytes = CONTROL + (1 << 20);
        comes_back(
            PIPE,
            bytes.next_multiple_of(4096),
            |job| {
                job.pool(WHOLE).make(maker(1), message(1, 3)).unwrap();
            },
            |job| {
                let gone = |peer| job.is_gone(peer);
                let old = job.pool(WHOLE).adopt(&mut 0, message(0, 2), gone);
                let _ =
                    old.unwrap_or_else(|| job.pool(WHOLE).make(maker(0), message(0, 2)).unwrap());
            },
        );
    }

    #[test]
    fn a_block_of_a_task_that_is_killed_while_it_makes_it_is_lent_again() {
        let lend = |job: &Job, me| {
            let gone = |peer| job.is_gone(peer);
            let around = Around {
                segment: job.segment(),
                blocks: job.blocks(),
                me,
                gone: &gone,
            };
            LoanBlocks::default().lend(&around, 100_000).unwrap();
        };
        comes_back(BLOCK, 104 << 10, |job| lend(job, 1), |job| lend(job, 0));
    }
}
