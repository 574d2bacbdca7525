//! The groups that are being made, and which of them may have something to do: those that have just started or for which a message was received.
//! When a task is gone or another epoch is in use, all of them may. So the cost of making many groups at the same time is that of making them one
//! after the other.

use std::collections::{BTreeMap, BTreeSet};

use super::Making;

/// All groups that a task is making.
#[derive(Default)]
pub(super) struct UnderWay {
    /// By number, in the order in which they were started.
    list: BTreeMap<u64, Making>,
    /// Number of the group started last.
    last: u64,
    /// Context and tag of their messages, with their numbers.
    by_words: BTreeSet<(u32, i32, u64)>,
    /// Numbers of the groups that may have something to do.
    due: BTreeSet<u64>,
}

impl UnderWay {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether any group may have something to do.
    #[inline(always)]
    pub(super) fn is_any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns whether any group uses this context for its messages.
    pub(super) fn is_any_of(&self, context: u32) -> bool {
        let all = (context, i32::MIN, 0)..=(context, i32::MAX, u64::MAX);
        self.by_words.range(all).next().is_some()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Making> {
        self.list.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Making> {
        self.list.values_mut()
    }

    /// Adds a group that is started.
    pub(super) fn add(&mut self, making: Making) {
        self.last += 1;
        let (context, tag) = (making.frame.context, making.frame.tag);
        self.by_words.insert((context, tag, self.last));
        self.list.insert(self.last, making);
        self.due.insert(self.last);
    }

    /// Records that a message was received with this context and tag.
    pub(super) fn note_word(&mut self, context: u32, tag: i32) {
        let all = (context, tag, 0)..=(context, tag, u64::MAX);
        let numbers = self.by_words.range(all).map(|&(.., number)| number);
        self.due.extend(numbers);
    }

    /// Records that all groups may have something to do.
    pub(super) fn stir(&mut self) {
        self.due.extend(self.list.keys());
    }

    /// Returns the oldest group that may have something to do, with its number, and clears its mark.
    pub(super) fn take_due(&mut self) -> Option<(u64, &mut Making)> {
        let number = self.due.pop_first()?;
        let making = self.list.get_mut(&number)?;
        Some((number, making))
    }

    /// Removes a group that is over.
    pub(super) fn remove(&mut self, number: u64) -> Option<Making> {
        let making = self.list.remove(&number)?;
        let (context, tag) = (making.frame.context, making.frame.tag);
        self.by_words.remove(&(context, tag, number));
        self.due.remove(&number);
        Some(making)
    }

    /// Removes and returns the groups for which `is` returns true.
    pub(super) fn remove_all(&mut self, is: impl Fn(&Making) -> bool) -> Vec<Making> {
        let some = self.list.iter().filter(|(_, making)| is(making));
        let numbers: Vec<u64> = some.map(|(&number, _)| number).collect();
        let removed = numbers.into_iter();
        removed.filter_map(|number| self.remove(number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupId;
    use crate::making::word::{Call, Word};
    use crate::numbers;
    use crate::tree::Tree;
    use regatta_wire::{Frame, Kind};

    const CONTEXT: u32 = 3;

    fn tag(call: u32) -> i32 {
        numbers::of_making(Call::Numbered(call).word())
    }

    fn making(call: u32) -> Making {
        Making {
            groups: vec![GroupId(0)],
            request: None,
            members: vec![0, 1],
            rank: 0,
            tree: Tree::flat(0, 2, 0),
            frame: Frame {
                kind: Kind::Eager,
                context: CONTEXT,
                tag: tag(call),
            },
            name: [Call::Numbered(call).word(), 0],
            attempt: 0,
            context: 0,
            refused: 0,
            due: None,
            answer: Word::Accepted,
            waiting: Vec::new(),
            obstacle: None,
        }
    }

    fn take_all_due(all: &mut UnderWay) -> Vec<u64> {
        let taken = std::iter::from_fn(|| all.take_due().map(|(number, _)| number));
        taken.collect()
    }

    #[test]
    fn of_many_those_are_due_of_which_a_word_has_come() {
        let mut all = UnderWay::default();
        (1..=100).for_each(|call| all.add(making(call)));
        let numbers: Vec<u64> = (1..=100).collect();
        assert_eq!(take_all_due(&mut all), numbers, "they have started");
        assert!(!all.is_any_due());
        for call in [70, 7, 7] {
            all.note_word(CONTEXT, tag(call));
        }
        all.note_word(CONTEXT + 2, tag(8));
        all.note_word(CONTEXT, tag(101));
        assert_eq!(take_all_due(&mut all), [7, 70]);
        assert!(!all.is_any_due());
        all.stir();
        assert_eq!(take_all_due(&mut all), numbers);
    }

    #[test]
    fn what_is_over_is_never_due() {
        let mut all = UnderWay::default();
        (1..=3).for_each(|call| all.add(making(call)));
        all.remove(1);
        all.note_word(CONTEXT, tag(1));
        assert_eq!(take_all_due(&mut all), [2, 3]);
        all.stir();
        assert!(all.is_any_of(CONTEXT) && !all.is_any_of(CONTEXT + 2));
        assert_eq!(all.remove_all(|_| true).len(), 2);
        assert!(all.is_empty() && !all.is_any_due() && !all.is_any_of(CONTEXT));
    }
}
