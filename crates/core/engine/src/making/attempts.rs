//! Attempts to make a group ([`making`](super)): which of them have ended at this task, so that messages about them are dropped.
//!
//! A member that knows of a loss ends its attempt without waiting for the others, so messages about that attempt may arrive later. They would never
//! be read: they would occupy buffer space forever, and the next attempt of the same members could mistake one for its own. Therefore each message
//! contains its attempt. When an attempt ends here, its messages are dropped, both those received already and those received later.
//!
//! *The number of an attempt* is the number of earlier failed attempts with the same call and members in this context. Each member counts for
//! itself, and two members that exchange messages have the same count. A member fails on its own only before it has received a proposal. It then
//! notifies its children and its parent, which cannot make the group without it. Any later failure is a message of its parent, which it forwards.
//! Two members that have lost each other may have different counts, but receive nothing from each other. Calls that all members of the old group
//! make are numbered, so each has a single attempt.
//!
//! *When an attempt is forgotten.* With the group in whose context its messages are. That context is remembered until the next epoch, in which
//! another group may get it: messages received in it until then are dropped, too.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::groups::Groups;
use crate::matching::{Select, TagSelect};
use crate::numbers;
use crate::transport::{Peer, Transport};

use super::word::{Call, Name, read_word};

/// Maximum number of contexts of freed groups that are remembered. The latest are kept.
const MAX_FREED: usize = 1 << 12;

/// The calls by which a group's members make groups from it.
#[derive(Default)]
struct Calls {
    /// Number of the last call of all members.
    last: u32,
    /// Numbers of the calls of all members that are not over, and whether they have started to make a group.
    open: FxHashMap<u32, bool>,
    /// Number of failed attempts of the other calls.
    failed: FxHashMap<Name, u64>,
}

impl Calls {
    fn begin(&mut self) -> Call {
        self.last = self.last.wrapping_add(1);
        self.open.insert(self.last, false);
        Call::Numbered(self.last)
    }

    /// Starts an attempt. Returns its number.
    fn start(&mut self, name: Name) -> u64 {
        if let Some(number) = Call::number(name[0]) {
            self.open.insert(number, true);
        }
        self.failed.get(&name).copied().unwrap_or(0)
    }

    fn end(&mut self, name: Name, attempt: u64, has_failed: bool) {
        match Call::number(name[0]) {
            Some(number) => {
                self.open.remove(&number);
            }
            None if has_failed => {
                self.failed.insert(name, attempt + 1);
            }
            None => {}
        }
    }

    fn is_over(&self, name: Name, attempt: u64) -> bool {
        match Call::number(name[0]) {
            Some(number) => {
                let is_to_come = number.wrapping_sub(self.last) as i32 > 0;
                !is_to_come && !self.open.contains_key(&number)
            }
            None => {
                let failed = self.failed.get(&name);
                failed.is_some_and(|&failed| attempt < failed)
            }
        }
    }
}

/// Contexts of groups that were freed in an epoch, and from which no group is being made any more.
#[derive(Default)]
struct FreedContexts {
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

/// The attempts of a task.
#[derive(Default)]
pub(super) struct Attempts {
    /// By the collective context of the old group.
    calls: FxHashMap<u32, Calls>,
    freed: FreedContexts,
}

impl Attempts {
    /// Starts a call of all members of a group. If the previous call has made no group, that call is over: messages about it are dropped.
    pub(super) fn begin_call<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        context: u32,
    ) -> Call {
        let calls = self.calls.entry(context).or_default();
        if calls.open.get(&calls.last) == Some(&false) {
            calls.open.remove(&calls.last);
            let is_ended = self.is_ended(groups, context);
            groups.drop_held(context, |tag, word| {
                numbers::is_of_making(tag) && is_ended(word)
            });
        }
        self.calls.entry(context).or_default().begin()
    }

    /// Starts an attempt. Returns its number.
    pub(super) fn start(&mut self, context: u32, name: Name) -> u64 {
        let calls = self.calls.get_mut(&context);
        calls.map_or(0, |calls| calls.start(name))
    }

    /// Ends an attempt.
    pub(super) fn end(&mut self, context: u32, name: Name, attempt: u64, has_failed: bool) {
        // Remember only numbered calls and failures: remembering every channel's context would take too much memory.
        if has_failed || self.calls.contains_key(&context) {
            let calls = self.calls.entry(context).or_default();
            calls.end(name, attempt, has_failed);
        }
    }

    /// Returns a predicate for messages about new groups in this collective context: true if no attempt at this task will read the message.
    fn is_ended<T: Transport>(
        &self,
        groups: &Groups<T>,
        context: u32,
    ) -> impl Fn(&[u8]) -> bool + use<'_, T> {
        let nothing_comes = groups.contexts().is_closed(context)
            || (groups.table.by_context(context).is_none()
                && self.freed.contains(context & !1, groups.epochs.used()));
        let may_come = groups.table.by_context(context).is_none();
        let calls = self.calls.get(&context);
        move |word: &[u8]| match read_word(word) {
            _ if nothing_comes => true,
            None => true,
            _ if may_come => false,
            Some((name, attempt, _)) => match calls {
                Some(calls) => calls.is_over(name, attempt),
                None => Calls::default().is_over(name, attempt),
            },
        }
    }

    /// Drops messages of this source that no attempt at this task will read.
    pub(super) fn drop_ended<T: Transport>(
        &self,
        groups: &mut Groups<T>,
        (context, tag): (u32, i32),
        source: Peer,
    ) {
        let select = Select {
            context,
            source: Some(source),
            tag: TagSelect::Exactly(tag),
        };
        let is_ended = self.is_ended(groups, context);
        while groups.take_held_where(&select, &is_ended).is_some() {}
    }

    /// Drops the messages about new groups in the context of a freed group, since no group is made from it any more.
    pub(super) fn end_of_freed<T: Transport>(&mut self, groups: &mut Groups<T>, context: u32) {
        self.calls.remove(&(context + 1));
        // In groups of survivors, messages can be early: members may have one of the next epoch before this task has entered that epoch.
        if context < numbers::FIRST_SURVIVOR_CONTEXT {
            self.freed.note(context, groups.epochs.used());
        }
        groups.drop_held(context + 1, |tag, _| numbers::is_of_making(tag));
    }
}
