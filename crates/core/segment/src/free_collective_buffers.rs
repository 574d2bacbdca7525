//! The collective buffers of groups: handed out, left, and used again.
//!
//! Before each buffer lies a line that counts the members that have left it: those that have freed
//! the group. The last one to leave puts the buffer on a [`Stack`] that all tasks share, one for each
//! size, and the next group of that size takes it from there.
//!
//! *Why nobody is confused.* A task touches a buffer only through its group, so not after it has
//! left. A buffer is on the stack only after every member has left, whoever was late; counting is
//! acquire and release, so all they did there comes before the work of its next users. A task that takes it
//! clears the rounds before it tells its name, so that no contribution of the old group looks like
//! one of the new, and messages carry the name from there to the other members. A member that died
//! never leaves, and then the buffer is not used again: the price of a death, not of a group.
//!
//! *How many there are.* Buffers that have been made stay. So groups get new ones of a size only until these have [`budget`] bytes: a program that makes thousands of groups uses no more memory than
//! that, and the collectives of the others go by messages.
//!
//! Sizes are powers of two of members. A buffer a task made up hurts nobody but by what any task may
//! do: everything lies in the segment, and what is read is checked.

use std::io;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use regatta_memory::Corrupt;
use regatta_memory::segment::Segment;
use regatta_memory::stack::{Link, Stack, UNIT};

use crate::collective_buffer;

/// Bytes between the start of the line and its buffer.
const FRONT: u64 = UNIT;
/// Stacks: for buffers of 1, 2, 4, ... members.
pub(crate) const SIZES: usize = 17;

/// The line before a buffer.
#[repr(C)]
struct Front {
    left: AtomicU32,
    /// Link of the stack.
    next: Link,
}

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("front of a collective buffer", Front { left, next } FRONT SIZES);

/// What the header has of them, by size.
#[repr(C)]
pub(crate) struct Buffers {
    free: [Stack; SIZES],
    /// How many have been made for groups.
    made: [AtomicU16; SIZES],
}

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const BUFFERS_LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("collective buffers", Buffers { free, made });

/// Returns the bytes of memory for groups' buffers of one size, on a host with this many tasks. There is always room for one buffer.
fn budget(tasks: u32) -> usize {
    const FIXED_BYTES: usize = 4 << 20;
    const BYTES_PER_TASK: usize = 512 << 10;
    const MAX_BYTES: usize = 64 << 20;
    (FIXED_BYTES + tasks as usize * BYTES_PER_TASK).min(MAX_BYTES)
}

/// The stacks, by size.
pub struct FreeCollectiveBuffers<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) buffers: &'a Buffers,
}

/// Which stack buffers of this many members are on, and for how many those have room.
fn size(members: u32) -> Option<(usize, u32)> {
    let room = members.checked_next_power_of_two()?;
    let size = room.trailing_zeros() as usize;
    (size < SIZES).then_some((size, room))
}

impl FreeCollectiveBuffers<'_> {
    fn front(&self, name: u64) -> Result<&Front, Corrupt> {
        let at = name.checked_sub(FRONT).ok_or(Corrupt {
            what: "a collective buffer's name is none",
        })?;
        // SAFETY: atomics only.
        unsafe { self.segment.words(at) }
    }

    /// A buffer for this many members, as good as new; its name.
    pub fn take(&self, members: u32) -> io::Result<u64> {
        match self.take_used(members)? {
            Some(name) => Ok(name),
            None => self.make(members),
        }
    }

    /// Takes a buffer for a group on a host with `tasks` tasks, as [`take`](Self::take) does; `None` if the budget is used up.
    pub fn take_for_group(&self, members: u32, tasks: u32) -> io::Result<Option<u64>> {
        if let Some(name) = self.take_used(members)? {
            return Ok(Some(name));
        }
        let (size, room) = size(members).ok_or(io::ErrorKind::InvalidInput)?;
        let limit = (budget(tasks) / collective_buffer::footprint(room)).max(1);
        let all = &self.buffers.made[size];
        let one_more = |made: u16| (usize::from(made) < limit).then(|| made.saturating_add(1));
        let counted = all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        if counted.is_err() {
            return Ok(None);
        }
        let made = self.make(members);
        if made.is_err() {
            all.fetch_sub(1, Ordering::Relaxed);
        }
        made.map(Some)
    }

    fn make(&self, members: u32) -> io::Result<u64> {
        let (_, room) = size(members).ok_or(io::ErrorKind::InvalidInput)?;
        let bytes = FRONT as usize + collective_buffer::footprint(room);
        Ok(self.segment.allocate(bytes, FRONT as usize)? + FRONT)
    }

    /// Takes one that was left, and clears it; `None` if there is none.
    fn take_used(&self, members: u32) -> io::Result<Option<u64>> {
        let damaged = |corrupt: Corrupt| io::Error::other(corrupt.what);
        let (size, room) = size(members).ok_or(io::ErrorKind::InvalidInput)?;
        let old = self.buffers.free[size].pop(|name| Ok(&self.front(name)?.next));
        let Some(name) = old.map_err(damaged)? else {
            return Ok(None);
        };
        let rounds = collective_buffer::rounds(room);
        let start = self.segment.at(name, rounds).map_err(damaged)?;
        // SAFETY: inside the segment, and nobody's but ours until its name is told.
        unsafe { start.write_bytes(0, rounds) };
        self.front(name)
            .map_err(damaged)?
            .left
            .store(0, Ordering::Relaxed);
        Ok(Some(name))
    }

    /// One of its members does not use a buffer any more.
    pub fn leave(&self, name: u64, members: u32) -> Result<(), Corrupt> {
        let front = self.front(name)?;
        let last = front.left.fetch_add(1, Ordering::AcqRel).wrapping_add(1) == members;
        match last {
            true => self.give(name, members),
            false => Ok(()),
        }
    }

    /// No member of a buffer uses it any more.
    pub(crate) fn give(&self, name: u64, members: u32) -> Result<(), Corrupt> {
        let front = self.front(name)?;
        let Some((size, _)) = size(members) else {
            return Ok(());
        };
        self.buffers.free[size].push(name, &front.next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::job::Job;

    /// Bytes of the segment that so many groups of all tasks take.
    fn bytes_of_groups(tasks: u32, groups: usize) -> u64 {
        let job = Job::create(tasks).unwrap();
        let before = job.segment().used();
        for _ in 0..groups {
            let taken = job.free_collective_buffers().take_for_group(tasks, tasks);
            taken.unwrap();
        }
        job.segment().used() - before
    }

    #[test]
    fn thousands_of_groups_take_little_memory() {
        assert!(bytes_of_groups(4, 10_000) < 16 << 20);
        assert!(bytes_of_groups(64, 1000) < 64 << 20);
    }

    #[test]
    fn a_group_gets_a_buffer_that_another_one_has_left() {
        let job = Job::create(2).unwrap();
        let buffers = job.free_collective_buffers();
        let take = || buffers.take_for_group(2, 2).unwrap();
        let taken: Vec<u64> = std::iter::from_fn(take).collect();
        assert!(taken.len() > 1);
        buffers.leave(taken[1], 2).unwrap();
        assert_eq!(take(), None, "one member still uses it");
        buffers.leave(taken[1], 2).unwrap();
        assert_eq!(take(), Some(taken[1]));
        assert_eq!(take(), None);
        assert!(
            buffers.take_for_group(4, 2).unwrap().is_some(),
            "there is room for others of another size"
        );
        assert!(buffers.take(2).is_ok(), "worlds always get one");
    }
}
