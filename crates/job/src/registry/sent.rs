//! Words that tasks have been told and may not have heard, because their launcher was lost on the way.
//!
//! A word is kept until the agent of the task's host has said that it has come there ([`crate::succession::heritage`]), which
//! it says of several at once. So as much is kept as is on its way, and a few words more.

use std::collections::{HashMap, VecDeque};

use regatta_wire::control::Tell;
use regatta_wire::fields;
use regatta_wire::fields::Message;

use super::Desk;

/// After so many words or bytes it is said that a task has heard them.
pub(crate) const WORDS: usize = 32;
pub(crate) const BYTES: usize = 16 << 10;

/// What one task has been told.
#[derive(Debug, Default)]
struct Told {
    /// How often.
    count: u32,
    /// The last of it: all that it may not have heard.
    last: VecDeque<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(super) struct Memory(HashMap<u32, Told>);

impl Memory {
    pub(super) fn note(&mut self, task: u32, bytes: Vec<u8>) {
        let told = self.0.entry(task).or_default();
        told.count = told.count.wrapping_add(1);
        told.last.push_back(bytes);
    }

    /// A task has heard so many words.
    fn heard(&mut self, task: u32, heard: u32) {
        if let Some(told) = self.0.get_mut(&task) {
            // A copy may know of fewer.
            let missing = (told.count.wrapping_sub(heard) as i32).max(0) as usize;
            let known = told.last.len().saturating_sub(missing);
            told.last.drain(..known);
        }
    }

    pub(super) fn forget(&mut self, task: u32) {
        self.0.remove(&task);
    }

    /// Of what is known, `new` words are still to be said in any case.
    fn untold(&mut self, task: u32, heard: u32, new: usize) -> Vec<Vec<u8>> {
        let told = self.0.entry(task).or_default();
        let said = told.count.wrapping_sub(new as u32);
        // None: it was told more than we know of.
        let missing = (said.wrapping_sub(heard) as i32).max(0) as usize;
        let until = told.last.len().saturating_sub(new);
        let from = until.saturating_sub(missing);
        let again: Vec<Vec<u8>> = told.last.range(from..until).cloned().collect();
        // A copy may know of fewer words than the task has heard.
        told.count = heard.wrapping_add((again.len() + new) as u32);
        again
    }

    /// Whether it is time to hear how much of it a task has heard.
    fn is_much(&self, task: u32) -> bool {
        let Some(Told { last, .. }) = self.0.get(&task) else {
            return false;
        };
        last.len() >= WORDS || last.iter().map(Vec::len).sum::<usize>() >= BYTES
    }

    fn count(&self, task: u32) -> u32 {
        self.0.get(&task).map_or(0, |told| told.count)
    }

    fn set_count(&mut self, task: u32, count: u32) {
        self.0.entry(task).or_default().count = count;
    }

    pub(super) fn to_list(&self) -> Vec<Remembered> {
        let told = |(&task, told): (&u32, &Told)| Remembered {
            task,
            count: told.count,
            last: told.last.iter().cloned().collect(),
        };
        self.0.iter().map(told).collect()
    }

    pub(super) fn from_list(list: Vec<Remembered>) -> Self {
        let told = |remembered: Remembered| {
            let told = Told {
                count: remembered.count,
                last: remembered.last.into(),
            };
            (remembered.task, told)
        };
        Self(list.into_iter().map(told).collect())
    }
}

/// What one task has been told, as it travels.
pub(super) struct Remembered {
    task: u32,
    count: u32,
    last: Vec<Vec<u8>>,
}
fields!(Remembered { task, count, last });

/// Is this said again, should a task not have heard it? What other tasks write may be lost with a launcher.
pub(crate) fn is_kept(tell: &Tell) -> bool {
    !matches!(tell, Tell::Output { .. })
}

impl Desk {
    /// Remember from now on what is said.
    pub(crate) fn remember(&mut self) {
        self.memory.get_or_insert_default();
    }

    /// Events that a task has not heard though it has been told so many times, but for what is to be said to it now anyway. From
    /// here on it has.
    pub(crate) fn untold(&mut self, task: u32, heard: u32) -> Vec<Vec<u8>> {
        let said = self.said.iter();
        let new = said.filter(|(to, tell)| *to == task && is_kept(tell));
        let (new, memory) = (new.count(), self.memory.as_mut());
        memory.map_or_else(Vec::new, |memory| memory.untold(task, heard, new))
    }

    /// Whether so much is kept for a task that somebody should say that it has heard it.
    pub(crate) fn keeps_much(&self, task: u32) -> bool {
        let memory = self.memory.as_ref();
        memory.is_some_and(|memory| memory.is_much(task))
    }

    /// How often a task has been told something.
    pub(crate) fn told_count(&self, task: u32) -> u32 {
        self.memory.as_ref().map_or(0, |memory| memory.count(task))
    }

    /// It has heard so many words, which need not be kept any more.
    pub(super) fn has_heard(&mut self, task: u32, count: u32) {
        if let Some(memory) = &mut self.memory {
            memory.heard(task, count);
        }
    }

    /// It has been told something so often.
    pub(super) fn set_told_count(&mut self, task: u32, count: u32) {
        if let Some(memory) = &mut self.memory {
            memory.set_count(task, count);
        }
    }

    pub(super) fn note_said(&mut self, task: u32, tell: &Tell) {
        if let Some(memory) = self.memory.as_mut().filter(|_| is_kept(tell)) {
            let mut bytes = Vec::new();
            tell.encode(&mut bytes);
            memory.note(task, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_heard_is_said_again_and_the_count_goes_on() {
        let mut memory = Memory::default();
        (0..5_u8).for_each(|word| memory.note(3, vec![word]));
        assert_eq!(memory.untold(3, 3, 0), [vec![3], vec![4]]);
        assert!(memory.untold(3, 5, 0).is_empty());
        // Told by a launcher of which we had not heard everything.
        assert!(memory.untold(3, 7, 0).is_empty());
        memory.note(3, vec![9]);
        assert_eq!(memory.untold(3, 7, 0), [vec![9]]);
        assert!(memory.untold(4, 0, 0).is_empty());
    }

    #[test]
    fn nothing_is_forgotten_that_may_not_have_been_heard() {
        let mut memory = Memory::default();
        (0..1000).for_each(|_| memory.note(1, vec![0; 100]));
        memory.note(1, vec![0; 1 << 20]);
        assert_eq!(memory.untold(1, 0, 0).len(), 1001);
        memory.heard(1, 990);
        assert_eq!(memory.0[&1].last.len(), 11);
        assert_eq!(memory.untold(1, 995, 0).len(), 6);
        memory.heard(1, 900);
        assert_eq!(memory.0[&1].last.len(), 11);
        // Of a copy that is behind.
        memory.heard(1, 1005);
        assert!(memory.0[&1].last.is_empty());
        memory.heard(2, 1);
        assert!(memory.untold(1, 1005, 0).is_empty());
    }
}
