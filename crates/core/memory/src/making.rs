//! Memory that a task has been handed out and has not listed yet, found when the task is killed between the two.
//!
//! A task that makes a ring, a pipe or a block takes memory from the end of what was handed out before, and then puts it on the
//! list of its kind. If it dies in between, no list has that memory. So it writes down first what it is about to take
//! (its [`Making`], words of its own that others can read), and strikes it out when the memory is on the list.
//!
//! *Was it taken?* The one word that says how far memory has been handed out ([`Next`]) also names the task that moved it last. The task that
//! moves it on marks that task's making as taken before, if it ends where the word stands. So a making whose task is dead
//! was taken if it bears the mark, or if the word still stands at its end with the task's name. The word only grows: a
//! making that was not taken never fits it, and one that has been struck out is not marked.
//!
//! Nobody waits for anybody here. A task makes one piece at a time (its engine's lock sees to that).

use crate::sync::{AtomicU64, Ordering};

/// In [`Making::end`]: the memory has been handed out.
const TAKEN: u64 = 1 << 63;
/// In [`Making::start`]: from this bit on stands the kind.
const KIND: u32 = 56;
/// In [`Next`]: from this bit on stands the task that moved it last, plus 1.
const TASK: u32 = 40;
const PLACE: u64 = (1 << TASK) - 1;

/// The task that takes memory, and the kind of piece it makes of that (a number of the callers').
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker {
    /// The task.
    pub task: u32,
    /// The kind.
    pub kind: u8,
}

/// Memory that a dead task had been handed out. It may have been listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Of which kind it was to be.
    pub kind: u8,
    /// Its first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
}

/// A task's note on the piece it makes. Zeros: none.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Making {
    start: AtomicU64,
    end: AtomicU64,
}

/// For the test that holds it to the version.
pub(crate) const LAYOUT: crate::layout::Layout =
    crate::layout!("making", Making { start, end } TAKEN KIND);

impl Making {
    /// Maker: this is what it is about to take.
    pub fn begin(&self, kind: u8, start: u64, end: u64) {
        // The one before may still stand there, if its piece came to nothing.
        self.end();
        self.start
            .store(start | (kind as u64) << KIND, Ordering::Relaxed);
        // Partner: `Next::look`, through the word itself.
        self.end.store(end, Ordering::Release);
    }

    /// Maker: nothing is being made any more; the piece is on its list, or was not to be had.
    pub fn end(&self) {
        // A read-modify-write, since others mark it with one: whichever comes first, it is struck out after both.
        self.end.swap(0, Ordering::AcqRel);
    }

    /// If it ends there, it was taken.
    fn mark(&self, end: u64) {
        // Where it fails, the piece has been listed meanwhile.
        let _ = self
            .end
            .compare_exchange(end, end | TAKEN, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Memory that the task had taken and has not struck out. Only when the task is dead.
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

/// How far memory has been handed out, and who has moved that last.
///
/// ```text
/// first byte not handed out (40 bits) | the task + 1, or 0 (24)
/// ```
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Next(AtomicU64);

/// For the test that holds it to the version.
pub(crate) const NEXT_LAYOUT: crate::layout::Layout = crate::layout!("next", Next { 0 } TASK);

/// The word as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(u64);

impl Seen {
    /// First byte not handed out yet.
    pub fn place(self) -> u64 {
        self.0 & PLACE
    }
}

impl Next {
    /// Before others know of it.
    pub(crate) fn set(&self, place: u64) {
        self.0.store(place, Ordering::Relaxed);
    }

    /// First byte not handed out yet.
    pub(crate) fn place(&self) -> u64 {
        Seen(self.0.load(Ordering::Relaxed)).place()
    }

    /// Read it, and mark what was taken last. `making` finds a task's note.
    pub fn look<'a>(&self, making: impl FnOnce(u32) -> Option<&'a Making>) -> Seen {
        let seen = Seen(self.0.load(Ordering::Acquire));
        let last = ((seen.0 >> TASK) as u32).checked_sub(1);
        if let Some(making) = last.and_then(making) {
            making.mark(seen.place());
        }
        seen
    }

    /// Take what lies between `seen` and `end`, for that task or for nobody's account. False: somebody else was faster.
    pub fn take(&self, seen: Seen, end: u64, task: Option<u32>) -> bool {
        let name = task.map_or(0, |task| task as u64 + 1);
        let new = (end & PLACE) | name << TASK;
        self.0
            .compare_exchange(seen.0, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Memory that a dead task had taken and not struck out.
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
