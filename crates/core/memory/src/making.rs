//! Memory that a task has allocated and not listed yet, found when the task is killed between the two.
//!
//! A task that makes a ring, a pipe or a block takes memory from the end of what was allocated before, and then puts it
//! on the list of its kind. If it dies in between, the memory is on no list. So it first records what it is about to
//! take (in its [`Making`], words of its own that others can read), and clears the record when the memory is on the
//! list.
//!
//! *Was the memory taken?* The word that says up to which offset memory has been allocated ([`Next`]) also identifies
//! the task that moved it last. A task that moves it on first marks the previous task's making as taken, if that making
//! ends where the word stands. So a making whose task is dead was taken if it has the mark, or if the word still stands
//! at its end with the task's number. The word only grows: a making that was not taken never matches it, and one that
//! has been cleared is not marked.
//!
//! No task waits for another here. A task makes one piece at a time, under its engine's lock.

use crate::sync::{AtomicU64, Ordering};

/// In [`Making::end`]: the memory has been taken.
const TAKEN: u64 = 1 << 63;
/// In [`Making::start`]: the position of the kind, in bits.
const KIND: u32 = 56;
/// In [`Next`]: the position of the task that moved it last, plus 1, in bits.
const TASK: u32 = 40;
const PLACE: u64 = (1 << TASK) - 1;

/// The task that takes memory, and the kind of piece that it makes of it (a number chosen by the caller).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker {
    /// The task.
    pub task: u32,
    /// The kind.
    pub kind: u8,
}

/// Memory that a dead task had taken. It may or may not be on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The kind of piece that it was to become.
    pub kind: u8,
    /// Offset of its first byte.
    pub start: u64,
    /// Offset of the first byte after it.
    pub end: u64,
}

/// A task's record of the piece that it makes. Zeros mean none.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Making {
    start: AtomicU64,
    end: AtomicU64,
}

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout =
    crate::layout!("making", Making { start, end } TAKEN KIND);

impl Making {
    /// Records what the maker is about to take.
    pub fn begin(&self, kind: u8, start: u64, end: u64) {
        // The record of a piece that could not be made may still be there.
        self.end();
        self.start
            .store(start | (kind as u64) << KIND, Ordering::Relaxed);
        // Partner: `Next::look`, through the word itself.
        self.end.store(end, Ordering::Release);
    }

    /// Clears the maker's record: the piece is on its list, or could not be made.
    pub fn end(&self) {
        // A read-modify-write, since others mark the record with one: in either order, it is cleared after both.
        self.end.swap(0, Ordering::AcqRel);
    }

    /// Marks the record as taken, if it ends at `end`.
    fn mark(&self, end: u64) {
        // If this fails, the piece has been listed meanwhile.
        let _ = self
            .end
            .compare_exchange(end, end | TAKEN, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Returns the memory that the task had taken and not listed. Only for a task that is dead.
    fn left(&self) -> Option<Left> {
        let end = self.end.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Relaxed);
        (end & TAKEN != 0).then_some(Left {
            kind: (start >> KIND) as u8,
            start: start & PLACE,
            end: end & PLACE,
        })
    }
}

/// The offset up to which memory has been allocated, and the task that moved it last.
///
/// ```text
/// first byte not allocated (40 bits) | the task + 1, or 0 (24)
/// ```
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Next(AtomicU64);

/// For the test that compares it with the version.
pub(crate) const NEXT_LAYOUT: crate::layout::Layout = crate::layout!("next", Next { 0 } TASK);

/// A value that was read from the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(u64);

impl Seen {
    /// Returns the offset of the first byte that is not allocated.
    pub fn place(self) -> u64 {
        self.0 & PLACE
    }
}

impl Next {
    /// Sets the initial offset, before others know of the word.
    pub(crate) fn set(&self, place: u64) {
        self.0.store(place, Ordering::Relaxed);
    }

    /// Returns the offset of the first byte that is not allocated.
    pub(crate) fn place(&self) -> u64 {
        Seen(self.0.load(Ordering::Relaxed)).place()
    }

    /// Reads the word, and marks the piece that was taken last. `making` returns a task's record.
    pub fn look<'a>(&self, making: impl FnOnce(u32) -> Option<&'a Making>) -> Seen {
        let seen = Seen(self.0.load(Ordering::Acquire));
        let last = ((seen.0 >> TASK) as u32).checked_sub(1);
        if let Some(making) = last.and_then(making) {
            making.mark(seen.place());
        }
        seen
    }

    /// Takes the memory from `seen` to `end` for a task, or without recording one. Returns `false` if another task was
    /// faster.
    pub fn take(&self, seen: Seen, end: u64, task: Option<u32>) -> bool {
        let name = task.map_or(0, |task| task as u64 + 1);
        let new = (end & PLACE) | name << TASK;
        self.0
            .compare_exchange(seen.0, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns the memory that a dead task had taken and not listed.
    pub fn left_by<'a>(
        &self,
        task: u32,
        making: impl Fn(u32) -> Option<&'a Making>,
    ) -> Option<Left> {
        self.look(&making);
        making(task)?.left()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_task_had_taken_is_known_also_when_others_have_taken_more_since() {
        for others in 0..3 {
            let (next, makings) = (Next::default(), [Making::default(), Making::default()]);
            let making = |task: u32| makings.get(task as usize);
            let seen = next.look(making);
            makings[0].begin(3, 64, 192);
            assert_eq!(next.left_by(0, making), None, "it was not taken");
            assert!(next.take(seen, 192, Some(0)));
            for _ in 0..others {
                let seen = next.look(making);
                assert!(next.take(seen, seen.place() + 64, None));
            }
            let left = Left {
                kind: 3,
                start: 64,
                end: 192,
            };
            assert_eq!(next.left_by(0, making), Some(left));
            assert_eq!(next.left_by(1, making), None);
            makings[0].end();
            assert_eq!(next.left_by(0, making), None);
        }
    }

    #[test]
    fn what_another_task_was_faster_to_take_is_not_left() {
        let (next, makings) = (Next::default(), [Making::default(), Making::default()]);
        let making = |task: u32| makings.get(task as usize);
        let seen = next.look(making);
        makings[0].begin(1, 0, 64);
        assert!(next.take(seen, 64, Some(1)));
        assert!(!next.take(seen, 64, Some(0)));
        assert_eq!(next.left_by(0, making), None);
    }
}
