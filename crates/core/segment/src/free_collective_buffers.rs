//! Collective buffers of groups: their allocation, release and reuse.
//!
//! The line before each buffer counts the members that have entered and left it ([`BufferUsers`]). The last member to
//! leave pushes the buffer onto a [`Stack`] that all tasks share; there is one for each size. The next group of that
//! size pops it. A buffer's *name* is its offset with the number of its use, so that a member that receives the name
//! too late is refused.
//!
//! *Correctness.* A task accesses a buffer only through its group, hence not after it has left. A buffer is pushed
//! only after every member that entered has left, and after that no member can enter. Entering and leaving are
//! acquire and release operations, so all accesses of a use happen before those of the next users. The task that pops
//! a buffer clears the rounds before it sends the name, so no contribution of the old group looks like one of the new
//! group. A member that died in a buffer never leaves it, so that buffer is not reused: one buffer is lost for a
//! death, none for a group.
//!
//! *Number of buffers.* Buffers are never freed. A size gets new buffers only until all of that size together take
//! [`budget`] bytes. The collectives of further groups use messages, so a program that makes thousands of groups
//! needs no more memory than that.
//!
//! Sizes are powers of two of members. A task that forges a name does no more harm than any task of the job can: all
//! memory lies in the segment, and what is read is checked.

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use regatta_memory::Corrupt;
use regatta_memory::segment::Segment;
use regatta_memory::stack::{Link, Stack, UNIT};

use crate::buffer_users::{BufferUsers, USE_SHIFT};
use crate::collective_buffer;

/// Distance in bytes from the line to its buffer.
const FRONT: u64 = UNIT;
/// Number of stacks: for buffers of 1, 2, 4, ... members.
pub(crate) const SIZES: usize = 17;

/// The line before a buffer.
#[repr(C)]
struct Front {
    users: BufferUsers,
    /// The link to the next free buffer on the stack.
    next: Link,
}

/// Layout, compared with `layout.txt` by a test.
#[cfg(test)]
pub(crate) const LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("front of a collective buffer", Front { users, next } FRONT SIZES);

/// The state of the groups' buffers in the segment's header, by size.
#[repr(C)]
pub(crate) struct Buffers {
    free: [Stack; SIZES],
    /// Number of buffers that have been made for groups.
    made: [AtomicU16; SIZES],
}

/// Layout, compared with `layout.txt` by a test.
#[cfg(test)]
pub(crate) const BUFFERS_LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("collective buffers", Buffers { free, made });

/// Returns the maximum number of bytes for groups' buffers of one size, on a host with this many tasks. The caller
/// allows one buffer in any case.
fn budget(tasks: u32) -> usize {
    const FIXED_BYTES: usize = 4 << 20;
    const BYTES_PER_TASK: usize = 512 << 10;
    const MAX_BYTES: usize = 64 << 20;
    (FIXED_BYTES + tasks as usize * BYTES_PER_TASK).min(MAX_BYTES)
}

/// Access to the free buffers of each size.
pub struct FreeCollectiveBuffers<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) buffers: &'a Buffers,
}

/// Returns the offset of the buffer with this name.
pub fn place_of(name: u64) -> u64 {
    name & ((1 << USE_SHIFT) - 1)
}

/// Returns the index of the stack for buffers of this many members, and the number of members for which these buffers
/// have room. Returns `None` if there are too many members.
fn size(members: u32) -> Option<(usize, u32)> {
    let room = members.checked_next_power_of_two()?;
    let size = room.trailing_zeros() as usize;
    (size < SIZES).then_some((size, room))
}

fn damaged(corrupt: Corrupt) -> io::Error {
    io::Error::other(corrupt.what)
}

impl FreeCollectiveBuffers<'_> {
    fn front(&self, place: u64) -> Result<&Front, Corrupt> {
        let at = place.checked_sub(FRONT).ok_or(Corrupt {
            what: "a collective buffer's name is not valid",
        })?;
        // SAFETY: `Front` consists of atomics only.
        unsafe { self.segment.words(at) }
    }

    /// Takes a cleared buffer for this many members, and returns its offset. The members of this buffer are not
    /// counted.
    pub fn take(&self, members: u32) -> io::Result<u64> {
        match self.take_used(members)? {
            Some(place) => Ok(place),
            None => self.make(members),
        }
    }

    /// Takes a buffer for a group on a host with `tasks` tasks, and counts the caller as its first member. Returns
    /// the buffer's name, or `None` if the budget is used up.
    pub fn take_for_group(&self, members: u32, tasks: u32) -> io::Result<Option<u64>> {
        let place = match self.take_used(members)? {
            Some(place) => Some(place),
            None => self.make_for_group(members, tasks)?,
        };
        let named = place.map(|place| {
            let front = self.front(place).map_err(damaged)?;
            Ok(front.users.begin() << USE_SHIFT | place)
        });
        named.transpose()
    }

    fn make_for_group(&self, members: u32, tasks: u32) -> io::Result<Option<u64>> {
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

    /// Pops a free buffer and clears its rounds. Returns `None` if no buffer is free.
    fn take_used(&self, members: u32) -> io::Result<Option<u64>> {
        let (size, room) = size(members).ok_or(io::ErrorKind::InvalidInput)?;
        let old = self.buffers.free[size].pop(|place| Ok(&self.front(place)?.next));
        let Some(place) = old.map_err(damaged)? else {
            return Ok(None);
        };
        let rounds = collective_buffer::rounds(room);
        let start = self.segment.at(place, rounds).map_err(damaged)?;
        // SAFETY: the range is inside the segment, and only this task uses it until its name is sent.
        unsafe { start.write_bytes(0, rounds) };
        Ok(Some(place))
    }

    /// Counts one more member as entered in the buffer of this name. Returns false if that use has ended: the group
    /// gave the buffer up, and all members that entered have left.
    pub fn enter(&self, name: u64) -> Result<bool, Corrupt> {
        let front = self.front(place_of(name))?;
        Ok(front.users.enter(name >> USE_SHIFT))
    }

    /// Counts a member that had entered as having left. Frees the buffer if the use has ended.
    pub fn leave(&self, name: u64, members: u32) -> Result<(), Corrupt> {
        let front = self.front(place_of(name))?;
        let is_over = front.users.leave(name >> USE_SHIFT, members);
        self.give_if(is_over, name, members)
    }

    /// Records that other members may never enter. The caller had entered. Frees the buffer if the use has ended.
    pub fn give_up(&self, name: u64, members: u32) -> Result<(), Corrupt> {
        let front = self.front(place_of(name))?;
        let is_over = front.users.give_up(name >> USE_SHIFT, members);
        self.give_if(is_over, name, members)
    }

    /// Returns whether the use of the buffer of this name has not ended.
    pub fn is_used(&self, name: u64) -> Result<bool, Corrupt> {
        let front = self.front(place_of(name))?;
        Ok(front.users.are_of(name >> USE_SHIFT))
    }

    fn give_if(&self, is_over: bool, name: u64, members: u32) -> Result<(), Corrupt> {
        match is_over {
            true => self.give(place_of(name), members),
            false => Ok(()),
        }
    }

    /// Pushes the buffer at this offset onto its stack. It must have no users.
    pub(crate) fn give(&self, place: u64, members: u32) -> Result<(), Corrupt> {
        let front = self.front(place)?;
        let Some((size, _)) = size(members) else {
            return Ok(());
        };
        self.buffers.free[size].push(place, &front.next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::place_of;
    use crate::job::Job;

    /// Returns the number of bytes of the segment that this many groups of all tasks take.
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
        assert_eq!(take(), None, "the other member is still to come");
        assert_eq!(buffers.enter(taken[1]), Ok(true));
        buffers.leave(taken[1], 2).unwrap();
        let next = take().unwrap();
        assert_eq!(place_of(next), place_of(taken[1]));
        assert_eq!(buffers.enter(taken[1]), Ok(false), "that use is over");
        buffers.leave(taken[1], 2).unwrap();
        assert_eq!(take(), None);
        assert!(
            buffers.take_for_group(4, 2).unwrap().is_some(),
            "there is room for others of another size"
        );
        assert!(buffers.take(2).is_ok(), "worlds always get one");
    }

    #[test]
    fn buffers_that_some_members_never_enter_are_used_again_when_they_are_given_up() {
        let job = Job::create(4).unwrap();
        let buffers = job.free_collective_buffers();
        for group in 0..1000 {
            let name = buffers.take_for_group(4, 4).unwrap();
            let name = name.unwrap_or_else(|| panic!("{group} groups have lost all"));
            assert_eq!(buffers.enter(name), Ok(true));
            buffers.leave(name, 4).unwrap();
            buffers.leave(name, 4).unwrap();
            assert_eq!(buffers.is_used(name), Ok(true));
            buffers.give_up(name, 4).unwrap();
            assert_eq!(buffers.is_used(name), Ok(false));
            assert_eq!(buffers.enter(name), Ok(false));
        }
    }
}
