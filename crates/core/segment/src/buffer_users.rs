//! Who uses a collective buffer of a group: one word in the line before it.
//!
//! ```text
//! use (24 bits) | given up (bit 38) | members that have left (19 bits) | members that have entered (19 bits)
//! ```
//!
//! A use begins when a member takes the buffer for its group, and is over when all members have left. If the group is of no use any more, since
//! it was revoked or a member is gone, some members may never hear the buffer's name, and will not leave. So a member that leaves such a group gives the buffer up,
//! and then the use is over as soon as all have left that had entered. The name that members tell each other has the number of the use: one that hears it later is
//! refused. It waits by messages then, until the end of the group, which the others have seen, reaches it, too.
//!
//! *Orderings.* Entering and leaving are acquire and release, so all that is done in a use comes before the next one.

use std::sync::atomic::{AtomicU64, Ordering};

const COUNT_BITS: u32 = 19;
const ENTERED: u64 = 1;
const LEFT: u64 = 1 << COUNT_BITS;
const GIVEN_UP: u64 = 1 << (2 * COUNT_BITS);
/// From this bit on stands the number of the use, here and in names, where the place of the buffer comes before it.
pub(crate) const USE_SHIFT: u32 = 40;

/// The word of a buffer's users. Zeros are a valid start: it is nobody's.
#[repr(transparent)]
pub(crate) struct BufferUsers(AtomicU64);

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const LAYOUT: regatta_memory::layout::Layout = regatta_memory::layout!("users of a collective buffer", BufferUsers { 0 } ENTERED LEFT GIVEN_UP USE_SHIFT);

/// Returns how many members a word counts that have entered or left.
fn count(word: u64, of: u64) -> u64 {
    (word / of) & (LEFT - 1)
}

impl BufferUsers {
    /// Begins a use, of which the caller is the first member. Returns its number.
    pub(crate) fn begin(&self) -> u64 {
        let number = self.0.load(Ordering::Relaxed) >> USE_SHIFT;
        self.0
            .store(number << USE_SHIFT | ENTERED, Ordering::Release);
        number
    }

    /// Lets one more member enter use `number`. Returns false if that is over.
    pub(crate) fn enter(&self, number: u64) -> bool {
        self.change(number, |word| word.wrapping_add(ENTERED))
            .is_some()
    }

    /// Lets a member leave use `number` of a group of `members`. Returns whether that is over now, and the buffer nobody's.
    pub(crate) fn leave(&self, number: u64, members: u32, gives_up: bool) -> bool {
        let is_over = |word| {
            let left = count(word, LEFT);
            let is_given_up = word & GIVEN_UP != 0;
            left == u64::from(members) || is_given_up && left == count(word, ENTERED)
        };
        let leave = |word: u64| {
            let left = word.wrapping_add(LEFT) | if gives_up { GIVEN_UP } else { 0 };
            match is_over(left) {
                true => number.wrapping_add(1) << USE_SHIFT,
                false => left,
            }
        };
        self.change(number, leave)
            .is_some_and(|before| leave(before) >> USE_SHIFT != number)
    }

    /// Changes the word while it is one of use `number`. Returns what it was before; `None` if that use is over.
    fn change(&self, number: u64, to: impl Fn(u64) -> u64) -> Option<u64> {
        let change = |word: u64| (word >> USE_SHIFT == number).then(|| to(word));
        let changed = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        changed.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> (BufferUsers, u64) {
        let users = BufferUsers(AtomicU64::new(0));
        let number = users.begin();
        (users, number)
    }

    #[test]
    fn a_use_is_over_when_all_have_left_whoever_came_late() {
        let (users, number) = begun();
        assert!(!users.leave(number, 3, false), "two are still to come");
        assert!(users.enter(number) && !users.leave(number, 3, false));
        assert!(users.enter(number) && users.leave(number, 3, false));
        assert!(!users.enter(number), "it is over");
        assert_ne!(users.begin(), number);
    }

    #[test]
    fn a_use_that_is_given_up_is_over_when_those_that_entered_have_left() {
        for gives_up in [[true, false], [false, true], [true, true]] {
            let (users, number) = begun();
            assert!(users.enter(number));
            assert!(!users.leave(number, 9, gives_up[0]));
            assert!(users.leave(number, 9, gives_up[1]));
            assert!(!users.enter(number), "it comes too late");
            assert!(!users.leave(number, 9, true), "it was refused");
        }
    }

    #[test]
    fn numbers_of_uses_begin_again() {
        let last = (1 << (64 - USE_SHIFT)) - 1;
        let users = BufferUsers(AtomicU64::new(last << USE_SHIFT));
        assert_eq!(users.begin(), last);
        assert!(users.leave(last, 1, false));
        assert_eq!(users.begin(), 0);
    }
}
