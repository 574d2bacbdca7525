//! Attempts to make a group ([`making`](super)): which of them have ended here, so that words about them are dropped.
//!
//! A member that knows of a loss ends its attempt and waits for nobody, so words about that attempt can come later. Nobody would read them: they
//! would be charged against the buffer for ever, and the next attempt of the same members could take one for its own. Each word names its
//! attempt, therefore. One whose attempt has ended here is dropped when that ends, or when it comes.
//!
//! *The number of an attempt* counts the attempts of the same call and members that have failed in this context before. Each member counts for itself, and two
//! that exchange words count alike: a member fails alone only before it has heard a proposal, and says so to its children, and to its parent, which cannot
//! get the group without it; any later end is a word of its parent, which it passes on. Two that have lost each other may differ, and hear nothing
//! of each other. Calls that all members of the old group make have numbers of their own, so each has one attempt.
//!
//! *When it is forgotten.* With the group in whose context the words are. That context is remembered until the next epoch, in which another group may get it:
//! words that come in it until then are dropped, too.

use std::collections::VecDeque;

use regatta_memory::held::Held;
use rustc_hash::FxHashMap;

use crate::arrival::{Body, charge};
use crate::engine::Engine;
use crate::error::Result;
use crate::group::{CONTEXTS, GroupId};
use crate::matching::{Select, TagSelect};
use crate::transport::{Peer, Transport};

use super::{Call, is_word, read_word};

/// Contexts of freed groups that are remembered, the latest.
const MAX_FREED: usize = 1 << 12;

/// A call that makes a group, and its members, as each word has them.
pub(super) type Name = [u64; 2];

/// The calls by which a group's members make groups from it.
#[derive(Default)]
pub(crate) struct Calls {
    /// Number of the last one of all members.
    last: u32,
    /// Numbers of those that are not over.
    open: Vec<u32>,
    /// Failed attempts of the other calls. With the context, since all channels are one group here.
    failed: FxHashMap<(u32, Name), u64>,
}

impl Calls {
    fn begin(&mut self) -> Call {
        self.last = self.last.wrapping_add(1);
        self.open.push(self.last);
        Call::Numbered(self.last)
    }

    /// An attempt starts: its number.
    pub(super) fn start(&mut self, context: u32, name: Name) -> u64 {
        if let Some(number) = Call::number(name[0])
            && !self.open.contains(&number)
        {
            self.open.push(number);
        }
        self.failed.get(&(context, name)).copied().unwrap_or(0)
    }

    fn end(&mut self, context: u32, name: Name, attempt: u64, has_failed: bool) {
        match Call::number(name[0]) {
            Some(number) => self.open.retain(|&one| one != number),
            None if has_failed => {
                self.failed.insert((context, name), attempt + 1);
            }
            None => {}
        }
    }

    fn is_over(&self, context: u32, name: Name, attempt: u64) -> bool {
        match Call::number(name[0]) {
            Some(number) => {
                let is_to_come = number.wrapping_sub(self.last) as i32 > 0;
                !is_to_come && !self.open.contains(&number)
            }
            None => {
                let failed = self.failed.get(&(context, name));
                failed.is_some_and(|&failed| attempt < failed)
            }
        }
    }
}

/// Contexts of groups that were freed in an epoch, and from which nothing is made any more.
#[derive(Default)]
pub(crate) struct FreedContexts {
    epoch: u64,
    latest: VecDeque<u32>,
}

impl FreedContexts {
    fn note(&mut self, context: u32, epoch: u64) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.latest.clear();
        }
        if self.latest.len() >= MAX_FREED {
            self.latest.pop_front();
        }
        self.latest.push_back(context);
    }

    fn contains(&self, context: u32, epoch: u64) -> bool {
        self.epoch == epoch && self.latest.contains(&context)
    }
}

impl<T: Transport> Engine<T> {
    /// The number of a call in which all members of a group take part, and by which they make groups from it. They make such calls one after the
    /// other: what the call before has not started by now it never will.
    pub fn next_call(&mut self, id: GroupId) -> Result<Call> {
        self.closed(id)?;
        let group = self.group(id)?;
        let (context, last) = (group.context + 1, group.calls.last);
        if group.calls.open.contains(&last) && !self.is_being_made(context, last) {
            self.group_mut(id)?.calls.open.retain(|&one| one != last);
            let words = self.waiting_words(context);
            let ended = words.filter(|(_, word)| self.is_word_of_ended(context, word));
            let ended: Vec<u32> = ended.map(|(id, _)| id).collect();
            self.drop_words(&ended);
        }
        Ok(self.group_mut(id)?.calls.begin())
    }

    /// Whether nobody here hears this word, which has come in the collectives' context of some group, now or later.
    #[cold]
    pub(crate) fn is_word_of_ended(&self, context: u32, word: &[u8]) -> bool {
        let Some((name, attempt, _)) = read_word(word) else {
            return true;
        };
        if self.is_revoked_context(context) {
            return true;
        }
        match self.groups.by_context(context) {
            Some(group) => group.calls.is_over(context, name, attempt),
            None => self.groups.freed.contains(context & !1, self.epochs.used()),
        }
    }

    /// An attempt has ended here. Its words came from these.
    pub(super) fn end_attempt(
        &mut self,
        (context, tag): (u32, i32),
        (name, attempt): (Name, u64),
        has_failed: bool,
        from: impl Iterator<Item = Peer>,
    ) {
        let Some(group) = self.groups.by_context_mut(context) else {
            return;
        };
        group.calls.end(context, name, attempt, has_failed);
        for source in from {
            let select = Select {
                context,
                source: Some(source),
                tag: TagSelect::Exactly(tag),
            };
            while let Some(ended) = self.ended_word(&select) {
                self.drop_words(&[ended]);
            }
        }
    }

    /// The group with this context is freed, or something that was made from it after that has ended. When nothing is made from it any more
    /// its words are dropped.
    pub(crate) fn end_attempts_of_freed(&mut self, context: u32) {
        let is_freed = self.groups.by_context(context).is_none();
        if !is_freed || self.is_anything_made(context + 1) {
            return;
        }
        // Words can be early in groups of survivors: members may have one of the next epoch before this task has entered that.
        if context < CONTEXTS {
            self.groups.freed.note(context, self.epochs.used());
        }
        let words = self.waiting_words(context + 1);
        let words: Vec<u32> = words.map(|(id, _)| id).collect();
        self.drop_words(&words);
    }

    fn ended_word(&self, select: &Select) -> Option<u32> {
        let is_ended = |body: &Body| matches!(body, Body::Bytes(word) if self.is_word_of_ended(select.context, word));
        self.unexpected.find_where(select, is_ended)
    }

    /// Words of makings that wait in this context.
    fn waiting_words(&self, context: u32) -> impl Iterator<Item = (u32, &Held)> {
        let waiting = self.unexpected.iter();
        waiting.filter_map(move |(id, message)| match &message.body {
            Body::Bytes(word) if message.context == context && is_word(message.tag) => {
                Some((id, word))
            }
            _ => None,
        })
    }

    fn drop_words(&mut self, words: &[u32]) {
        for &id in words {
            if let Some(message) = self.unexpected.remove(id) {
                self.buffered -= charge(message.body.length());
            }
        }
    }
}
