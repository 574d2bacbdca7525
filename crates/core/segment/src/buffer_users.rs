//! The state word of a group's collective buffer. It lies in the line before the buffer and counts the members that
//! use it.
//!
//! ```text
//! use (24 bits) | given up (bit 38) | members that have left (19 bits) | members that have entered (19 bits)
//! ```
//!
//! A use begins when a member takes the buffer for its group, and ends when all members have left. If the group has
//! been revoked or a member is gone, some members may never receive the buffer's name and so never leave. A member
//! that has left therefore gives the buffer up, at once or when it learns of that; the use then ends once all members
//! that entered have left.
//! The name that is sent to the members contains the number of the use. A member that receives the name after that
//! use has ended is refused, and its collective fails: the group has ended, and the others may be further on.
//!
//! *Orderings.* Entering and leaving are acquire and release operations, so all accesses of a use happen before those
//! of the next use.

use std::sync::atomic::{AtomicU64, Ordering};

const COUNT_BITS: u32 = 19;
const ENTERED: u64 = 1;
const LEFT: u64 = 1 << COUNT_BITS;
const GIVEN_UP: u64 = 1 << (2 * COUNT_BITS);
/// Lowest bit of the number of the use, in this word and in names. In names the bits below it are the offset of the
/// buffer.
pub(crate) const USE_SHIFT: u32 = 40;

/// The state word of a buffer's users. Zero is a valid initial value: the buffer has no users.
#[repr(transparent)]
pub(crate) struct BufferUsers(AtomicU64);

/// Layout, compared with `layout.txt` by a test.
#[cfg(test)]
pub(crate) const LAYOUT: regatta_memory::layout::Layout = regatta_memory::layout!("users of a collective buffer", BufferUsers { 0 } ENTERED LEFT GIVEN_UP USE_SHIFT);

/// Returns the number of members that `word` counts as entered or left, according to `of`.
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

    /// Counts one more member as entered in use `number`. Returns false if that use has ended.
    pub(crate) fn enter(&self, number: u64) -> bool {
        self.change(number, |word| word.wrapping_add(ENTERED))
            .is_some()
    }

    /// Counts a member as having left use `number` of a group of `members`. Returns true if that ended the use, so
    /// that the buffer is free.
    pub(crate) fn leave(&self, number: u64, members: u32) -> bool {
        self.change_or_end(number, members, |word| word.wrapping_add(LEFT))
    }

    /// Records that some members may never enter use `number` of a group of `members`. Returns true if that ended the
    /// use, so that the buffer is free.
    pub(crate) fn give_up(&self, number: u64, members: u32) -> bool {
        self.change_or_end(number, members, |word| word | GIVEN_UP)
    }

    /// Returns whether use `number` has not ended.
    pub(crate) fn are_of(&self, number: u64) -> bool {
        self.0.load(Ordering::Relaxed) >> USE_SHIFT == number
    }

    /// Applies `to` to the word if it belongs to use `number`, and ends that use if nobody is left in it. Returns
    /// whether this call ended it.
    fn change_or_end(&self, number: u64, members: u32, to: impl Fn(u64) -> u64) -> bool {
        let next = |word: u64| {
            let word = to(word);
            let left = count(word, LEFT);
            let is_given_up = word & GIVEN_UP != 0;
            match left == u64::from(members) || is_given_up && left == count(word, ENTERED) {
                true => number.wrapping_add(1) << USE_SHIFT,
                false => word,
            }
        };
        self.change(number, next)
            .is_some_and(|before| next(before) >> USE_SHIFT != number)
    }

    /// Applies `to` to the word if it belongs to use `number`. Returns the previous word, or `None` if that use has
    /// ended.
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
        assert!(!users.leave(number, 3), "two are still to come");
        assert!(users.enter(number) && !users.leave(number, 3));
        assert!(users.are_of(number));
        assert!(users.enter(number) && users.leave(number, 3));
        assert!(!users.are_of(number));
        assert!(!users.enter(number), "it is over");
        assert_ne!(users.begin(), number);
    }

    #[test]
    fn a_use_that_is_given_up_is_over_when_those_that_entered_have_left() {
        // Two leave; one gives up before, between or after that.
        for when in 0..3 {
            let (users, number) = begun();
            assert!(users.enter(number));
            let step = |at| match at == when {
                true => users.give_up(number, 9),
                false => users.leave(number, 9),
            };
            assert_eq!([0, 1, 2].map(step), [false, false, true]);
            assert!(!users.enter(number), "it comes too late");
            assert!(!users.leave(number, 9), "it was refused");
            assert!(!users.give_up(number, 9), "it is over");
        }
    }

    #[test]
    fn numbers_of_uses_begin_again() {
        let last = (1 << (64 - USE_SHIFT)) - 1;
        let users = BufferUsers(AtomicU64::new(last << USE_SHIFT));
        assert_eq!(users.begin(), last);
        assert!(users.leave(last, 1));
        assert_eq!(users.begin(), 0);
    }
}
