//! Messages that have been taken in but not received, in the order of arrival.
//!
//! A receive selects a context, a task or any, and a tag or any. Few messages are searched linearly. With many, each
//! message is in four lists, one for each combination of wildcards, so that the oldest match of any receive is at the
//! front of a list. Finding and removing a message then stays cheap with any number of messages.
//!
//! A program that has been shown an unreceived message (`pvm_probe`, `pvm_recvf`) may change or free it. The labels of
//! such messages are therefore read again before each search.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::c_int;

use crate::rg::ANY;

/// Maximum number of messages that are searched linearly.
const MAX_SCANNED_MESSAGES: usize = 32;

/// The label of a message, or the selection of a receive: context, task (or `ANY`) and tag (or `ANY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    pub context: c_int,
    pub task: c_int,
    pub tag: c_int,
}

impl Label {
    /// Returns whether a receive with this selection matches a message with that label.
    pub fn wants(&self, other: &Label) -> bool {
        self.context == other.context
            && (self.task == ANY || self.task == other.task)
            && (self.tag == ANY || self.tag == other.tag)
    }

    /// Returns the keys of the lists that contain a message: one for each combination of wildcards.
    fn lists(self) -> impl Iterator<Item = Label> {
        let all = [(false, false), (false, true), (true, false), (true, true)];
        // A tag with the sign bit may equal `ANY`.
        let all = all
            .into_iter()
            .filter(move |&(_, any_tag)| any_tag || self.tag != ANY);
        all.map(move |(any_task, any_tag)| Label {
            context: self.context,
            task: if any_task { ANY } else { self.task },
            tag: if any_tag { ANY } else { self.tag },
        })
    }
}

/// Positions of messages, oldest first. It may contain positions of messages that have been removed.
#[derive(Default)]
struct List {
    places: VecDeque<u64>,
    /// Number of positions whose message still exists.
    live: usize,
}

/// The inbox that the module describes.
pub struct Inbox {
    /// Buffers by position, with the labels under which they are listed. Positions only grow.
    all: BTreeMap<u64, (c_int, Label)>,
    lists: BTreeMap<Label, List>,
    /// Whether every message is in its lists.
    listed: bool,
    next: u64,
    /// Positions of messages that the program has been shown.
    shown: BTreeSet<u64>,
    shown_all: bool,
}

impl Inbox {
    pub const fn new() -> Inbox {
        Inbox {
            all: BTreeMap::new(),
            lists: BTreeMap::new(),
            listed: false,
            next: 0,
            shown: BTreeSet::new(),
            shown_all: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the position of the next message.
    pub fn end(&self) -> u64 {
        self.next
    }

    pub fn push(&mut self, buffer: c_int, label: Label) {
        let place = self.next;
        self.next += 1;
        self.all.insert(place, (buffer, label));
        if self.listed {
            self.list(place, label);
        } else if self.all.len() > MAX_SCANNED_MESSAGES {
            self.list_all();
        }
    }

    fn list(&mut self, place: u64, label: Label) {
        for key in label.lists() {
            let list = self.lists.entry(key).or_default();
            list.places.push_back(place);
            list.live += 1;
        }
    }

    fn list_all(&mut self) {
        self.listed = true;
        let all = self.all.iter().map(|(&place, &(_, label))| (place, label));
        for (place, label) in all.collect::<Vec<_>>() {
            self.list(place, label);
        }
    }

    /// Records that the program has been shown the message at this position.
    pub fn show(&mut self, place: u64) {
        self.shown.insert(place);
    }

    /// Records that the program may have been shown any message.
    pub fn show_all(&mut self) {
        self.shown_all = true;
    }

    /// Reads the labels again that the program may have changed. Removes messages without a label: they have been
    /// freed.
    pub fn refresh(&mut self, label_of: impl Fn(c_int) -> Option<Label>) {
        let is_as_listed = |place: &u64| {
            let known = self.all.get(place);
            known.is_none_or(|&(buffer, label)| label_of(buffer) == Some(label))
        };
        if self.shown_all || !self.shown.iter().all(is_as_listed) {
            self.relabel(label_of);
        }
    }

    fn relabel(&mut self, label_of: impl Fn(c_int) -> Option<Label>) {
        self.lists.clear();
        self.listed = false;
        self.all
            .retain(|_, (buffer, label)| match label_of(*buffer) {
                Some(new) => {
                    *label = new;
                    true
                }
                None => false,
            });
        if self.all.len() > MAX_SCANNED_MESSAGES {
            self.list_all();
        }
    }

    /// Returns the position and the buffer of the oldest match.
    pub fn find(&self, wanted: &Label) -> Option<(u64, c_int)> {
        if !self.listed {
            let found = self.all.iter().find(|(_, (_, label))| wanted.wants(label));
            return found.map(|(&place, &(buffer, _))| (place, buffer));
        }
        let &place = self.lists.get(wanted)?.places.front()?;
        Some((place, self.all.get(&place)?.0))
    }

    /// Returns the first message at or after this position.
    pub fn from(&self, place: u64) -> Option<(u64, c_int)> {
        let (&place, &(buffer, _)) = self.all.range(place..).next()?;
        Some((place, buffer))
    }

    pub fn remove(&mut self, place: u64) -> Option<c_int> {
        let (buffer, label) = self.all.remove(&place)?;
        self.shown.remove(&place);
        if self.all.is_empty() {
            self.lists.clear();
            self.listed = false;
            self.shown_all = false;
        }
        if self.listed {
            for key in label.lists() {
                self.unlist(key);
            }
        }
        Some(buffer)
    }

    /// Updates a list after one of its messages was removed. The front of a list is always an existing message, and the
    /// number of removed positions is bounded by the number of existing ones plus a constant.
    fn unlist(&mut self, key: Label) {
        let Some(list) = self.lists.get_mut(&key) else {
            return;
        };
        list.live -= 1;
        if list.live == 0 {
            self.lists.remove(&key);
            return;
        }
        let all = &self.all;
        while list
            .places
            .front()
            .is_some_and(|place| !all.contains_key(place))
        {
            list.places.pop_front();
        }
        if list.places.len() > 2 * list.live + MAX_SCANNED_MESSAGES {
            list.places.retain(|place| all.contains_key(place));
        }
    }

    /// Removes and returns all messages from this position on, in order.
    pub fn take_from(&mut self, place: u64) -> Vec<c_int> {
        let places: Vec<u64> = self.all.range(place..).map(|(&place, _)| place).collect();
        let taken = places.into_iter().filter_map(|place| self.remove(place));
        taken.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(context: c_int, task: c_int, tag: c_int) -> Label {
        Label { context, task, tag }
    }

    /// Returns a generator of pseudo-random numbers below `below`, with a fixed seed.
    fn numbers() -> impl FnMut(u32) -> c_int {
        let mut state = 1_u32;
        move |below| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 16) % below) as c_int
        }
    }

    #[test]
    fn it_finds_what_a_plain_queue_finds() {
        let mut random = numbers();
        let (mut inbox, mut plain) = (Inbox::new(), Vec::<(c_int, Label)>::new());
        for step in 0..20_000 {
            // Alternately grow above the limit for lists, and shrink.
            let grows = random(100) < if step / 500 % 2 == 0 { 80 } else { 30 };
            let (context, task) = (random(2), random(4));
            if grows {
                let tag = random(6) - 1;
                inbox.push(step, label(context, task, tag));
                plain.push((step, label(context, task, tag)));
                continue;
            }
            let wanted = label(context, task - 1, random(6) - 1);
            let expected = plain.iter().position(|(_, label)| wanted.wants(label));
            let found = inbox.find(&wanted);
            assert_eq!(found.map(|found| found.1), expected.map(|at| plain[at].0));
            if let (Some((place, buffer)), Some(at)) = (found, expected) {
                assert_eq!(inbox.remove(place), Some(buffer));
                plain.remove(at);
            }
            assert_eq!(inbox.is_empty(), plain.is_empty());
        }
    }

    #[test]
    fn places_of_messages_that_were_taken_out_do_not_pile_up() {
        let mut inbox = Inbox::new();
        for buffer in 0..100 {
            inbox.push(buffer, label(0, 1, 1));
        }
        for buffer in 0..100_000 {
            inbox.push(buffer, label(0, 1, 2));
            let (place, _) = inbox.find(&label(0, ANY, 2)).expect("the one just put in");
            inbox.remove(place);
        }
        let most = inbox.lists.values().map(|list| list.places.len()).max();
        assert!(
            most <= Some(2 * 100 + MAX_SCANNED_MESSAGES + 1),
            "{most:?} places"
        );
    }

    #[test]
    fn messages_that_are_gone_or_changed_are_found_by_what_they_are_now() {
        let mut inbox = Inbox::new();
        for buffer in 0..50 {
            inbox.push(buffer, label(0, 1, buffer));
        }
        let now = |buffer| (buffer != 7).then_some(label(0, 1, buffer + 1000));
        inbox.refresh(now);
        assert_eq!(inbox.find(&label(0, 1, 8)), Some((8, 8)), "not shown");
        inbox.show(30);
        inbox.refresh(now);
        assert_eq!(inbox.find(&label(0, 1, 8)), None);
        assert_eq!(inbox.find(&label(0, 1, 1008)), Some((8, 8)));
        assert_eq!(inbox.find(&label(0, 1, 1007)), None);
        assert_eq!(inbox.take_from(40).len(), 10);
    }
}
