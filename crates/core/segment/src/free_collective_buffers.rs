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
//! Sizes are powers of two of members. A buffer a task made up hurts nobody but by what any task may
//! do: everything lies in the segment, and what is read is checked.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// The stacks, by size.
pub struct FreeCollectiveBuffers<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) stacks: &'a [Stack; SIZES],
}

/// Which stack buffers of so many members are on, and for how many those have room.
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

    /// A buffer for so many members, as good as new; its name.
    pub fn take(&self, members: u32) -> io::Result<u64> {
        let damaged = |corrupt: Corrupt| io::Error::other(corrupt.what);
        let (size, room) = size(members).ok_or(io::ErrorKind::InvalidInput)?;
        let old = self.stacks[size].pop(|name| Ok(&self.front(name)?.next));
        let Some(name) = old.map_err(damaged)? else {
            let bytes = FRONT as usize + collective_buffer::footprint(room);
            return Ok(self.segment.allocate(bytes, FRONT as usize)? + FRONT);
        };
        let rounds = collective_buffer::rounds(room);
        let start = self.segment.at(name, rounds).map_err(damaged)?;
        // SAFETY: inside the segment, and nobody's but ours until its name is told.
        unsafe { start.write_bytes(0, rounds) };
        self.front(name)
            .map_err(damaged)?
            .left
            .store(0, Ordering::Relaxed);
        Ok(name)
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
        self.stacks[size].push(name, &front.next);
        Ok(())
    }
}
