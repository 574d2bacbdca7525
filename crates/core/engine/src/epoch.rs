//! Contexts are used again: the numbers from which they are taken are divided into parts, and the tasks move from one part to the next
//! together.
//!
//! A context of a group that is freed may still be in messages on their way. So a part is used again only when nothing on its way can
//! be of its last use. Each use of a part is an *epoch*: epoch `e` takes the contexts of part `e % PARTS`.
//!
//! ```text
//! a task that enters an epoch                 each task that it ever shared a group with
//! Barred(epoch, context)  ──────────────────> for each context of that part in which it may still send to that task
//! Entered(epoch)          ──────────────────> enters, too, if it has not, and says so
//! ```
//!
//! *When a part can be used.* A task takes and accepts contexts of the part once every living task that it shared a group with has
//! entered the epoch. By then all messages of the part's last use have arrived, since two tasks' messages stay in order; those of
//! groups that are gone are dropped. Contexts that were still in use at either task are barred for this epoch.
//!
//! *All who agree on a context are in the same epoch*; a proposal names it. A task that is behind enters that epoch, and answers when the part
//! can be used. A task that is ahead says so, and the proposer proposes again when it has got there. A task may pass over epochs; it never
//! uses their parts then.
//!
//! *An epoch is entered early*, when half of the previous part is used up. Tasks answer in any call that makes progress. A task that computes for
//! longer than the other half lasts is waited for: its messages could be in the next part. The other tasks are checked only when one of them
//! has sent word, is gone, or is new.

use regatta_wire::fields::{bytes_of_all, whole};
use regatta_wire::{Frame, Kind};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::group::GroupTable;
use crate::making::run_of;
use crate::numbers::{self, CONTEXTS_PER_SURVIVORS, FIRST_SURVIVOR_CONTEXT};
use crate::point_to_point::{PointToPoint, Word};
use crate::transport::{Peer, Presence, Transport};

/// Parts of the contexts.
const PARTS: u64 = 16;
/// The last epoch that is believed: survivors' numbers carry it in 32 bits, and no job comes so far.
pub(crate) const MAX_EPOCH: u64 = u32::MAX as u64 >> 1;
/// In place of a context: the sender has entered.
const ENTERED: u64 = u64::MAX;
/// Contexts so far below the last one count as accepted before.
const MAX_ACCEPT_LAG: u32 = 1 << 12;

/// How many groups can be made in an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Spaces {
    /// By members that agree on a context.
    pub made: u32,
    /// Of survivors.
    pub survivors: u32,
}

impl Default for Spaces {
    fn default() -> Self {
        Spaces {
            made: FIRST_SURVIVOR_CONTEXT / 2 / PARTS as u32,
            survivors: FIRST_SURVIVOR_CONTEXT / CONTEXTS_PER_SURVIVORS / PARTS as u32,
        }
    }
}

/// The contexts of the epochs, and which other tasks have entered them.
pub(crate) struct Epochs {
    spaces: Spaces,
    /// The last epoch that this task has entered.
    entered: u64,
    /// The epoch whose part of the contexts it uses.
    used: u64,
    /// An epoch to be entered as soon as nothing is being done.
    wanted: u64,
    /// The last epoch that each of the others has entered.
    heard: FxHashMap<Peer, u64>,
    /// The last epoch of this task that each of the others was told.
    told: FxHashMap<Peer, u64>,
    /// The tasks with which this one has shared a group, or was about to.
    met: FxHashSet<Peer>,
    /// Something has changed since the last look whether all of them have entered.
    is_look_due: bool,
    /// How many tasks were gone at that look.
    gone: usize,
    /// Words that have come and were not looked at.
    words: Vec<(Peer, u64, u64)>,
    /// Pairs of an epoch, the one in use or the one entered last, and a context that is not accepted in it.
    barred: FxHashSet<(u64, u32)>,
    /// Contexts of the part in use that were accepted, of the last `MAX_ACCEPT_LAG`.
    accepted: FxHashSet<u32>,
    /// From this context on none was accepted.
    next: u32,
    /// Above the numbers of all groups of survivors that this task is in, in this part.
    next_survivors: u32,
}

/// All uses of contexts.
pub(crate) struct ContextUses<'a, T: Transport> {
    pub(crate) p2p: &'a mut PointToPoint<T>,
    pub(crate) table: &'a GroupTable<T>,
    /// Returns the contexts in which this task may still send beside those of groups and messages, with those to whom.
    pub(crate) sending: &'a dyn Fn() -> Vec<(u32, Vec<Peer>)>,
    /// Contexts of groups that others may have already, and this task is about to have, with their epochs.
    pub(crate) coming: Vec<(u64, u32)>,
}

/// What has changed with the epochs, for all that remembers contexts.
#[derive(Default)]
pub(crate) struct EpochChanges {
    pub(crate) moved: bool,
    /// The epoch that this task has entered: revocations of contexts in its part can be forgotten, unless a group of this task has one.
    pub(crate) entered: Option<u64>,
    /// The epoch that this task uses now, and the contexts of its part in which messages may come that are not of an earlier use.
    pub(crate) used: Option<(u64, FxHashSet<u32>)>,
}

impl Epochs {
    pub(crate) fn new(spaces: Spaces) -> Epochs {
        Epochs {
            spaces,
            entered: 0,
            used: 0,
            wanted: 0,
            heard: FxHashMap::default(),
            told: FxHashMap::default(),
            met: FxHashSet::default(),
            is_look_due: false,
            gone: 0,
            words: Vec::new(),
            barred: FxHashSet::default(),
            accepted: FxHashSet::default(),
            next: 2,
            next_survivors: 0,
        }
    }

    fn part(epoch: u64) -> u32 {
        (epoch % PARTS) as u32
    }

    /// Returns the part of a context, and its place there.
    fn place(&self, context: u32) -> (u32, u32) {
        match context.checked_sub(FIRST_SURVIVOR_CONTEXT) {
            None => (
                context / 2 / self.spaces.made,
                context / 2 % self.spaces.made,
            ),
            Some(number) => (
                number / CONTEXTS_PER_SURVIVORS / self.spaces.survivors,
                number / CONTEXTS_PER_SURVIVORS % self.spaces.survivors,
            ),
        }
    }

    /// Returns whether a context is of the part of an epoch.
    pub(crate) fn is_of(&self, context: u32, epoch: u64) -> bool {
        context > 1
            && context < 2 * FIRST_SURVIVOR_CONTEXT
            && self.place(context).0 == Self::part(epoch)
    }

    fn first(&self, epoch: u64) -> u32 {
        (2 * Self::part(epoch) * self.spaces.made).max(2)
    }

    fn end(&self) -> u32 {
        2 * (Self::part(self.used) + 1) * self.spaces.made
    }

    /// Returns the epoch in use.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Returns whether contexts of that epoch or a later one can be taken; not while the task has entered a newer epoch of the same part.
    pub(crate) fn is_there(&self, epoch: u64) -> bool {
        let again = self.entered != self.used && Self::part(self.entered) == Self::part(self.used);
        epoch <= self.used && !again
    }

    /// Returns the first of `count` contexts in a row that this task would accept: from `lowest` on if there are any, else from `next` on.
    pub(crate) fn free(&self, lowest: u32, count: usize) -> Option<u32> {
        let is_free = |context: u32| {
            context < self.end()
                && !self.accepted.contains(&context)
                && !self.barred.contains(&(self.used, context))
        };
        let are_free = |&context: &u32| run_of(context, count).all(is_free);
        let from = |start: u32| (start..self.end()).step_by(2).find(are_free);
        let within = lowest > self.next && lowest < self.end();
        within
            .then(|| from(lowest))
            .flatten()
            .or_else(|| from(self.next))
    }

    /// Returns the lowest context from which on this task accepts all that are not barred.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Accepts `count` contexts in a row for new groups, if none of them has been accepted before. Returns whether it does.
    pub(crate) fn accept(&mut self, first: u32, count: usize) -> bool {
        let accepts = run_of(first, count).all(|context| {
            let known = context.saturating_add(MAX_ACCEPT_LAG) < self.next
                || self.accepted.contains(&context);
            let barred = self.barred.contains(&(self.used, context));
            let sound = context.is_multiple_of(2) && context < FIRST_SURVIVOR_CONTEXT;
            !known && !barred && sound && self.is_of(context, self.used)
        });
        if accepts {
            run_of(first, count).for_each(|context| self.note_accepted(context));
        }
        accepts
    }

    /// Notes that a group has this context.
    fn note_accepted(&mut self, context: u32) {
        if !self.is_of(context, self.used) {
            return;
        }
        let (_, place) = self.place(context);
        if context >= FIRST_SURVIVOR_CONTEXT {
            self.next_survivors = self.next_survivors.max(place + 1);
            return;
        }
        self.accepted.insert(context);
        self.next = self.next.max(context + 2);
        if self.accepted.len() > 2 * MAX_ACCEPT_LAG as usize {
            let next = self.next;
            let is_near = |one: &u32| one.saturating_add(MAX_ACCEPT_LAG) >= next;
            self.accepted.retain(is_near);
        }
    }

    /// Returns a number for the survivors of a group, with the epoch in the upper 32 bits. Each is given once.
    pub(crate) fn next_survivors(&mut self) -> u64 {
        let number = self.next_survivors;
        self.next_survivors = self.next_survivors.saturating_add(1);
        self.used << 32 | u64::from(number)
    }

    /// Returns `free`, a number for survivors that all members would take, or this task's own next number if `free` is of an epoch before the one in use.
    pub(crate) fn survivors_number(&self, free: u64) -> u64 {
        match free >> 32 < self.used {
            true => self.used << 32 | u64::from(self.next_survivors),
            false => free,
        }
    }

    /// Returns the context of the survivors of a group with that number (the epoch in the upper 32 bits), if there is one.
    pub(crate) fn survivors(&self, number: u64, old: u32) -> Option<u64> {
        let (epoch, number) = (number >> 32, number as u32);
        if number >= self.spaces.survivors {
            return None;
        }
        let place = Self::part(epoch) * self.spaces.survivors + number;
        // Groups that are shrunk at the same time may have the same number.
        let told_apart = (old % CONTEXTS_PER_SURVIVORS) & !1;
        Some(
            epoch << 32
                | u64::from(FIRST_SURVIVOR_CONTEXT + place * CONTEXTS_PER_SURVIVORS + told_apart),
        )
    }

    /// Returns whether half of the part is used up.
    fn is_low(&self) -> bool {
        let (_, place) = self.place(self.next.min(self.end() - 2));
        self.next >= self.end()
            || place > self.spaces.made / 2
            || self.next_survivors > self.spaces.survivors / 2
    }

    /// Notes that these tasks share a group with this one, or will: words of epochs go to them, too.
    pub(crate) fn meet(&mut self, members: &[Peer]) {
        let before = self.met.len();
        self.met.extend(members);
        self.is_look_due |= self.met.len() > before;
    }

    /// Notes that this task has a group with this context and these members.
    pub(crate) fn add_group(&mut self, context: u32, members: &[Peer]) {
        self.note_accepted(context);
        self.meet(members);
    }

    /// Returns whether [`Epochs::run`] has something to do.
    #[inline(always)]
    pub(crate) fn are_due(&self) -> bool {
        self.wanted > self.entered || (self.is_look_due && self.entered != self.used)
    }

    /// Notes a word of a peer. If it has entered an epoch, messages that it sent before in groups that it and this task have freed are dropped,
    /// before anything comes of new ones with their contexts.
    #[cold]
    pub(crate) fn hear<T: Transport>(&mut self, uses: &mut ContextUses<T>, word: &Word) {
        let (from, arrivals) = (word.from, word.arrivals);
        let Ok((epoch, context)) = whole::<(u64, u64)>(&word.bytes) else {
            return;
        };
        self.words.push((from, epoch, context));
        if context == ENTERED && uses.p2p.waiting() > 0 {
            let kept = self.contexts_kept(uses, epoch);
            let is_old = |context: u32| self.is_of(context, epoch) && !kept.contains(&context);
            uses.p2p.drop_old_messages(Some(from), arrivals, is_old);
        }
    }

    /// Returns the contexts of the part in which messages of the current use may come: those of groups that exist or are being made here, and
    /// barred ones.
    fn contexts_kept<T: Transport>(&self, uses: &ContextUses<T>, epoch: u64) -> FxHashSet<u32> {
        let in_use = self.contexts_in_use(uses, epoch).into_iter();
        let in_use = in_use.map(|(context, _)| context);
        let barred = self.barred.iter().filter(|(of, _)| *of == epoch);
        let barred = barred.map(|&(_, context)| context);
        // Word that has come and was not looked at.
        let words = self.words.iter();
        let words = words.filter(|&&(_, of, context)| of == epoch && context != ENTERED);
        let words = words.filter_map(|&(_, _, context)| u32::try_from(context).ok());
        let coming = uses.coming.iter().filter(|(of, _)| *of == epoch);
        let coming = coming.map(|&(_, context)| context);
        in_use.chain(barred).chain(words).chain(coming).collect()
    }

    /// Returns the contexts of the part in which this task may still send or receive, with those to whom it may send.
    fn contexts_in_use<T: Transport>(
        &self,
        uses: &ContextUses<T>,
        epoch: u64,
    ) -> Vec<(u32, Vec<Peer>)> {
        let listed = uses.table.all_listed();
        let listed = listed.map(|group| (group.context, group.peers()));
        let sending = (uses.sending)();
        let messages = uses.p2p.contexts_in_use();
        let messages = messages.map(|(context, to)| (context, to.into_iter().collect()));
        let all = listed.chain(sending).chain(messages);
        let all = all.map(|(context, to)| (context & !1, to));
        all.filter(|&(context, _)| self.is_of(context, epoch))
            .collect()
    }

    /// Notes that this epoch is to be entered, since another task has entered it or contexts run out. `run` does it.
    fn want(&mut self, epoch: u64) {
        self.wanted = self.wanted.max(epoch);
    }

    /// Notes that the next epoch is to be entered, if none is being entered: half of the contexts, or all of them, are used up.
    pub(crate) fn enter_next(&mut self) {
        if self.entered == self.used {
            self.want(self.used.saturating_add(1));
        }
    }

    /// Returns whether a group of this epoch may be used by this task; if not, notes that the epoch is to be entered.
    pub(crate) fn reach(&mut self, epoch: u64) -> bool {
        if epoch > self.used {
            self.want(epoch);
        }
        epoch <= self.used
    }

    /// Handles words that have come, and goes on to the epoch that was entered when all have entered it.
    pub(crate) fn run<T: Transport>(&mut self, uses: &mut ContextUses<T>) -> EpochChanges {
        let words = std::mem::take(&mut self.words);
        let mut changes = EpochChanges {
            moved: !words.is_empty(),
            ..EpochChanges::default()
        };
        self.is_look_due |= changes.moved || self.gone != uses.p2p.losses().len();
        let mut heard = Vec::new();
        for (from, epoch, context) in words {
            self.met.insert(from);
            if context != ENTERED {
                let context = context as u32;
                // Words are another process's: one that cannot be true is not kept.
                if epoch <= MAX_EPOCH && self.is_of(context, epoch) {
                    self.barred.insert((epoch, context));
                }
                continue;
            }
            if epoch > MAX_EPOCH {
                continue;
            }
            self.heard.insert(from, epoch);
            self.want(epoch);
            heard.push(from);
        }
        if self.is_low() {
            self.enter_next();
        }
        if self.wanted > self.entered {
            self.entered = self.wanted;
            self.is_look_due = true;
            changes.entered = Some(self.entered);
            self.bar_contexts_in_use(uses);
        }
        for from in heard {
            self.tell(uses, from);
        }
        if self.entered != self.used && self.is_look_due {
            self.is_look_due = false;
            self.gone = uses.p2p.losses().len();
            let met: Vec<Peer> = self.met.iter().copied().collect();
            met.iter().for_each(|&peer| self.tell(uses, peer));
            let has_entered = |&peer: &Peer| {
                peer == uses.p2p.me()
                    || uses.p2p.presence(peer) != Presence::Here
                    || self.heard.get(&peer) == Some(&self.entered)
            };
            if met.iter().all(has_entered) {
                changes.used = Some(self.use_entered(uses));
                changes.moved = true;
            }
        }
        changes
    }

    /// Bars the contexts in use: this task accepts none of them in the epoch entered.
    fn bar_contexts_in_use<T: Transport>(&mut self, uses: &ContextUses<T>) {
        let epoch = self.entered;
        for (context, _) in self.contexts_in_use(uses, epoch) {
            self.barred.insert((epoch, context));
        }
    }

    fn tell<T: Transport>(&mut self, uses: &mut ContextUses<T>, to: Peer) {
        let epoch = self.entered;
        let was_told = self.told.get(&to) == Some(&epoch);
        if was_told || to == uses.p2p.me() || uses.p2p.presence(to) != Presence::Here {
            return;
        }
        self.told.insert(to, epoch);
        let in_use = self.contexts_in_use(uses, epoch).into_iter();
        let may_send = in_use.filter(|(_, to_whom)| to_whom.contains(&to));
        let words = may_send.map(|(context, _)| u64::from(context));
        let words: Vec<u64> = words.chain([ENTERED]).collect();
        let frame = Frame {
            kind: Kind::Eager,
            context: 1,
            tag: numbers::EPOCH_TAG,
        };
        for word in words {
            // One that cannot be told any more is gone itself.
            let _ = uses
                .p2p
                .send_or_queue(to, frame, &bytes_of_all(&[epoch, word]));
        }
    }

    /// Uses the epoch entered: nothing of earlier uses of the part is on its way any more. Returns it, with the contexts that are kept.
    fn use_entered<T: Transport>(&mut self, uses: &mut ContextUses<T>) -> (u64, FxHashSet<u32>) {
        self.bar_contexts_in_use(uses);
        let epoch = self.entered;
        self.used = epoch;
        self.barred.retain(|&(of, _)| of >= epoch);
        self.accepted.clear();
        self.next = self.first(epoch);
        let survivors = self.barred.iter();
        let survivors =
            survivors.filter(|&&(of, context)| of == epoch && context >= FIRST_SURVIVOR_CONTEXT);
        let last = survivors.map(|&(_, context)| self.place(context).1 + 1);
        self.next_survivors = last.max().unwrap_or(0);
        (epoch, self.contexts_kept(uses, epoch))
    }
}
