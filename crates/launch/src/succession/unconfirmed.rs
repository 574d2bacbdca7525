//! Words for tasks on hosts that have no copy of the registry, until a host that has one knows of what they come.
//!
//! Otherwise a task could hear that it has joined a group, and the next launcher would know nothing of that: the change was
//! sent to the copies before, but another way may be shorter. A host with a copy has each change before its words, since both
//! go one way. The launcher asks the hosts with copies how much they know, and the first answer is enough.

use std::collections::VecDeque;

/// Words that have to be said to tasks, and is not said yet.
#[derive(Debug, Default)]
pub(crate) struct Unconfirmed {
    /// So many changes of the registry are known to a copy, and after so many it was asked last.
    confirmed: u64,
    asked: u64,
    /// After so many changes: to which task, and what.
    waiting: VecDeque<(u64, u32, Vec<u8>)>,
}

impl Unconfirmed {
    /// Whether a word may be said that comes of the registry after so many changes.
    pub(crate) fn is_confirmed(&self, changes: u64) -> bool {
        changes <= self.confirmed
    }

    /// Keeps a word until as many changes are known to a copy.
    pub(crate) fn keep(&mut self, changes: u64, task: u32, bytes: Vec<u8>) {
        self.waiting.push_back((changes, task, bytes));
    }

    /// Whether the hosts with copies are to be asked now: something waits for more than they were asked for.
    pub(crate) fn is_to_be_asked(&mut self) -> bool {
        let Some(&(changes, ..)) = self.waiting.back() else {
            return false;
        };
        let more = changes > self.asked;
        self.asked = self.asked.max(changes);
        more
    }

    /// A copy has seen so many changes. The words that may be said now, in order.
    pub(crate) fn confirm(&mut self, changes: u64) -> Vec<(u32, Vec<u8>)> {
        self.confirmed = self.confirmed.max(changes);
        let said = self.waiting.partition_point(|(at, ..)| *at <= changes);
        let said = self.waiting.drain(..said);
        said.map(|(_, task, bytes)| (task, bytes)).collect()
    }

    /// The hosts with copies are others from now on. Those of the words that need not wait any more.
    pub(crate) fn copies_change(&mut self, may_hear: impl Fn(u32) -> bool) -> Vec<(u32, Vec<u8>)> {
        self.asked = 0;
        let all = std::mem::take(&mut self.waiting);
        let (said, waiting) = all
            .into_iter()
            .partition::<VecDeque<_>, _>(|(_, task, _)| may_hear(*task));
        self.waiting = waiting;
        said.into_iter()
            .map(|(_, task, bytes)| (task, bytes))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wait_in_order_until_a_copy_knows_of_what_they_come() {
        let mut words = Unconfirmed::default();
        assert!(words.is_confirmed(0) && !words.is_confirmed(1) && !words.is_to_be_asked());
        words.keep(2, 7, vec![1]);
        words.keep(2, 8, vec![2]);
        assert!(words.is_to_be_asked() && !words.is_to_be_asked());
        words.keep(5, 7, vec![3]);
        assert!(words.is_to_be_asked());
        assert!(words.confirm(1).is_empty());
        assert_eq!(words.confirm(3), [(7, vec![1]), (8, vec![2])]);
        assert!(words.is_confirmed(3) && !words.is_confirmed(5));
        words.keep(6, 8, vec![4]);
        // The host of task 7 has a copy now; others are asked from the beginning.
        assert_eq!(words.copies_change(|task| task == 7), [(7, vec![3])]);
        assert!(words.is_to_be_asked());
        assert_eq!(words.confirm(6), [(8, vec![4])]);
    }
}
