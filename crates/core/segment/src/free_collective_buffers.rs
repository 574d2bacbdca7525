//! The collective buffers of groups: handed out, left, and used again.
//!
//! Before each buffer lies a line that counts the members that have entered and left it ([`BufferUsers`]). The last one to leave
//! puts the buffer on a [`Stack`] that all tasks share, one for each size, and the next group of that size takes it from there. A buffer's *name* is its place
//! and the number of its use, so that a member that hears of it too late is refused.
//!
//! *Why nobody is confused.* A task touches a buffer only through its group, so not after it has
//! left. A buffer is on the stack only after every member has left that has entered, and no other can enter any more; entering and leaving are
//! acquire and release, so all they did there comes before the work of its next users. A task that takes it
//! clears the rounds before it tells its name, so that no contribution of the old group looks like
//! one of the new, and messages carry the name from there to the other members. A member that died in the buffer
//! never leaves, and then the buffer is not used again: the price of a death, not of a group.
//!
//! *How many there are.* Buffers that have been made stay. So groups get new ones of a size only until these have [`budget`] bytes: a program that makes thousands of groups uses no more memory than
//! that, and the collectives of the others go by messages.
//!
//! Sizes are powers of two of members. A buffer a task made up hurts nobody but by what any task may
//! do: everything lies in the segment, and what is read is checked.

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use regatta_memory::Corrupt;
use regatta_memory::segment::Segment;
use regatta_memory::stack::{Link, Stack, UNIT};

use crate::buffer_users::{BufferUsers, USE_SHIFT};
use crate::collective_buffer;

/// Bytes between the start of the line and its buffer.
const FRONT: u64 = UNIT;
/// Stacks: for buffers of 1, 2, 4, ... members.
pub(crate) const SIZES: usize = 17;

/// The line before a buffer.
#[repr(C)]
struct Front {
    users: BufferUsers,
    /// Link of the stack.
    next: Link,
}

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("front of a collective buffer", Front { users, next } FRONT SIZES);

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

/// Returns the place of the buffer with this name.
pub fn place_of(name: u64) -> u64 {
    name & ((1 << USE_SHIFT) - 1)
}

/// Which stack buffers of this many members are on, and for how many those have room.
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
            what: "a collective buffer's name is none",
        })?;
        // SAFETY: atomics only.
        unsafe { self.segment.words(at) }
    }

    /// A buffer for this many members, as good as new, which nobody enters or leaves; its place.
    pub fn take(&self, members: u32) -> io::Result<u64> {
        match self.take_used(members)? {
            Some(place) => Ok(place),
            None => self.make(members),
        }
    }

    /// Takes a buffer for a group on a host with `tasks` tasks, of which the caller is the first member; its name. `None` if the budget is used up.
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

    /// Takes one that was left, and clears it; `None` if there is none.
    fn take_used(&self, members: u32) -> io::Result<Option<u64>> {
        let (size, room) = size(members).ok_or(io::ErrorKind::InvalidInput)?;
        let old = self.buffers.free[size].pop(|place| Ok(&self.front(place)?.next));
        let Some(place) = old.map_err(damaged)? else {
            return Ok(None);
        };
        let rounds = collective_buffer::rounds(room);
        let start = self.segment.at(place, rounds).map_err(damaged)?;
        // SAFETY: inside the segment, and nobody's but ours until its name is told.
        unsafe { start.write_bytes(0, rounds) };
        Ok(Some(place))
    }

    /// Lets one more member enter the buffer of this name. Returns false if its group has given it up, and all have left.
    pub fn enter(&self, name: u64) -> Result<bool, Corrupt> {
        let front = self.front(place_of(name))?;
        Ok(front.users.enter(name >> USE_SHIFT))
    }

    /// One that has entered does not use a buffer any more; `gives_up`: its group is of no use any more, so others may never enter.
    pub fn leave(&self, name: u64, members: u32, gives_up: bool) -> Result<(), Corrupt> {
        let place = place_of(name);
        let users = &self.front(place)?.users;
        match users.leave(name >> USE_SHIFT, members, gives_up) {
            true => self.give(place, members),
            false => Ok(()),
        }
    }

    /// Nobody uses the buffer at this place any more.
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
        buffers.leave(taken[1], 2, false).unwrap();
        assert_eq!(take(), None, "the other member is still to come");
        assert_eq!(buffers.enter(taken[1]), Ok(true));
        buffers.leave(taken[1], 2, false).unwrap();
        let next = take().unwrap();
        assert_eq!(place_of(next), place_of(taken[1]));
        assert_eq!(buffers.enter(taken[1]), Ok(false), "that use is over");
        buffers.leave(taken[1], 2, true).unwrap();
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
            buffers.leave(name, 4, false).unwrap();
            buffers.leave(name, 4, true).unwrap();
            assert_eq!(buffers.enter(name), Ok(false));
        }
    }
}
