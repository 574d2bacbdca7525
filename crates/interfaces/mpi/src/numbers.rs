//! Unique numbers for tags, keys and parts of names. They are assigned in ascending order and not reused while they are
//! in use.
//!
//! A mere counter would wrap around: after all numbers have been assigned once, it would reuse those of long-lived
//! objects.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An allocator of the numbers below a limit.
pub struct Numbers {
    limit: u32,
    state: Mutex<State>,
}

struct State {
    next: u32,
    /// The lengths of all runs in use, by their first numbers.
    used: BTreeMap<u32, u32>,
}

impl Numbers {
    /// Returns an allocator of the numbers below `limit`, none of them in use.
    pub const fn below(limit: u32) -> Numbers {
        let state = State {
            next: 0,
            used: BTreeMap::new(),
        };
        Numbers {
            limit,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a number. Returns `None` if all are in use.
    pub fn take(&self) -> Option<u32> {
        self.take_run(1)
    }

    /// Takes `length` consecutive numbers, at least one, and returns the first. Returns `None` if there is no such run.
    pub fn take_run(&self, length: u32) -> Option<u32> {
        let mut state = self.state();
        let mut first = state.next;
        let mut has_wrapped = false;
        loop {
            let end = first.checked_add(length).filter(|&end| end <= self.limit);
            let Some(end) = end else {
                if has_wrapped {
                    return None;
                }
                (first, has_wrapped) = (0, true);
                continue;
            };
            let before = state.used.range(..end).next_back();
            match before.map(|(begin, length)| begin + length) {
                Some(used_to) if used_to > first => first = used_to,
                _ => {
                    state.used.insert(first, length);
                    state.next = end;
                    return Some(first);
                }
            }
        }
    }

    /// Returns the number, or the run of numbers, that begins with `first`.
    pub fn give_back(&self, first: u32) {
        self.state().used.remove(&first);
    }

    /// Returns whether a number or a run in use begins with `first`.
    pub fn is_used(&self, first: u32) -> bool {
        self.state().used.contains_key(&first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_turn_and_pass_over_those_in_use() {
        let numbers = Numbers::below(4);
        let first: Vec<_> = (0..4).map(|_| numbers.take()).collect();
        assert_eq!(first, [0, 1, 2, 3].map(Some));
        assert_eq!(numbers.take(), None);
        numbers.give_back(3);
        numbers.give_back(1);
        assert!(numbers.is_used(0) && !numbers.is_used(1));
        assert_eq!(
            numbers.take(),
            Some(1),
            "after 3 the turn comes to 0, which is in use"
        );
        numbers.give_back(1);
        assert_eq!(numbers.take(), Some(3), "1 was just there");
    }

    #[test]
    fn runs_lie_between_those_in_use_and_do_not_wrap() {
        let numbers = Numbers::below(10);
        assert_eq!(numbers.take_run(4), Some(0));
        assert_eq!(numbers.take_run(4), Some(4));
        assert_eq!(numbers.take_run(3), None);
        numbers.give_back(0);
        assert_eq!(numbers.take_run(3), Some(0));
        assert_eq!(numbers.take_run(2), Some(8));
        assert_eq!(numbers.take_run(2), None);
        assert_eq!(numbers.take_run(11), None);
        assert_eq!(numbers.take_run(u32::MAX), None);
    }
}
