//! Reuse of contexts. The numbers that serve as contexts are divided into parts, and all tasks move from one part to the next together.
//!
//! Messages with the context of a freed group may still be in flight. So a part is reused only once no message of its previous use can still be in
//! flight. Each use of a part is an *epoch*: epoch `e` takes its contexts from part `e % PARTS`.
//!
//! ```text
//! a task that enters an epoch                 each task that it ever shared a group with
//! Barred(epoch, context)  ──────────────────> for each context of that part in which it may still send to that task
//! Entered(epoch)          ──────────────────> enters the epoch, too, if it has not yet, and replies Entered
//! ```
//!
//! *When a part can be used.* A task takes and accepts contexts of the part once every living task that it shared a group with has entered the
//! epoch. By then all messages of the part's previous use have been received, since messages between two tasks stay in order. Those of freed groups
//! are dropped. Contexts that were still in use at either task are barred in this epoch.
//!
//! *All members that agree on a context are in the same epoch.* A proposal contains the epoch. A task that is behind enters that epoch, and answers
//! when it can use the part. A task that is ahead refuses and names its own epoch, and the proposer proposes again once it has reached that epoch. A
//! task may skip epochs. It then never takes contexts from the parts of the skipped epochs.
//!
//! *An epoch is entered early*, when half of the previous part is used up. Tasks answer in any call that makes progress. If a task computes for
//! longer than the other half lasts, the other tasks wait for it: its messages could have contexts of the next part. A task checks whether all
//! others have entered only when one of them has sent an epoch message, is gone, or is new.

use regatta_wire::fields::{bytes_of_all, whole};
use regatta_wire::{Frame, Kind};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::group::GroupTable;
use crate::making::run_of;
use crate::numbers::{self, CONTEXTS_PER_SURVIVORS, FIRST_SURVIVOR_CONTEXT};
use crate::point_to_point::{PointToPoint, Word};
use crate::transport::{Peer, Presence, Transport};

/// Number of parts into which the contexts are divided.
const PARTS: u64 = 16;
/// Largest epoch accepted from a peer. Survivors' numbers store the epoch in 32 bits; no real job reaches this value.
pub(crate) const MAX_EPOCH: u64 = u32::MAX as u64 >> 1;
/// Stands for the context in an `Entered` message.
const ENTERED: u64 = u64::MAX;
/// A context more than this far below `next` is treated as accepted before.
const MAX_ACCEPT_LAG: u32 = 1 << 12;

/// The number of groups that can be made in an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Spaces {
    /// Groups whose members agree on a context.
    pub made: u32,
    /// Groups of survivors.
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

/// The contexts of the epochs, and which epochs the other tasks have entered.
pub(crate) struct Epochs {
    spaces: Spaces,
    /// The last epoch that this task has entered.
    entered: u64,
    /// The epoch from whose part this task takes contexts.
    used: u64,
    /// The epoch to enter at the next call of `run`.
    wanted: u64,
    /// The last epoch that each of the other tasks has entered.
    heard: FxHashMap<Peer, u64>,
    /// The last epoch about which this task has sent `Entered` to each of the other tasks.
    told: FxHashMap<Peer, u64>,
    /// The tasks with which this task has shared a group or tried to make one.
    met: FxHashSet<Peer>,
    /// Something has changed since `run` last checked whether all tasks in `met` have entered.
    is_look_due: bool,
    /// Number of tasks that were gone at that check.
    gone: usize,
    /// Epoch messages that were received but not yet handled by `run`: (sender, epoch, context).
    words: Vec<(Peer, u64, u64)>,
    /// (epoch, context) pairs: `context` must not be accepted in `epoch`, which is `used` or `entered`.
    barred: FxHashSet<(u64, u32)>,
    /// Accepted contexts of the part in use. Those more than `MAX_ACCEPT_LAG` below `next` may be missing.
    accepted: FxHashSet<u32>,
    /// Lowest context above all accepted ones.
    next: u32,
    /// One more than the largest number of any group of survivors that this task is in, in this part.
    next_survivors: u32,
}

/// Everything at this task that uses contexts.
pub(crate) struct ContextUses<'a, T: Transport> {
    pub(crate) p2p: &'a mut PointToPoint<T>,
    pub(crate) table: &'a GroupTable<T>,
    /// Returns further contexts in which this task may still send (besides those of its groups and pending messages), each with the possible
    /// receivers.
    pub(crate) sending: &'a dyn Fn() -> Vec<(u32, Vec<Peer>)>,
    /// (epoch, context) of groups that are being made: other members may already have them, this task does not yet.
    pub(crate) coming: Vec<(u64, u32)>,
}

/// Result of [`Epochs::run`], for every component that stores contexts.
#[derive(Default)]
pub(crate) struct EpochChanges {
    pub(crate) moved: bool,
    /// The epoch that this task has entered. Revocations of contexts in its part can be forgotten, except for those of existing groups.
    pub(crate) entered: Option<u64>,
    /// The epoch that this task now uses, and the contexts of its part in which messages of the current use may arrive. Messages in all other
    /// contexts of the part are stale.
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

    /// Returns the part of a context and its index within the part.
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

    /// Returns whether a context belongs to the part of an epoch.
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

    /// Returns whether this task uses `epoch` or a later one. Returns false while this task has entered, but does not use yet, a later epoch with
    /// the same part.
    pub(crate) fn is_there(&self, epoch: u64) -> bool {
        let again = self.entered != self.used && Self::part(self.entered) == Self::part(self.used);
        epoch <= self.used && !again
    }

    /// Returns the first of `count` consecutive contexts that this task would accept, at or above `lowest` if possible, else at or above `next`.
    /// Returns `None` if the part has none.
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

    /// Returns the lowest context above all accepted ones.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Accepts `count` consecutive contexts for new groups, unless one of them was accepted before, is barred or does not belong to the epoch in
    /// use. Returns whether they are accepted.
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

    /// Records that a group has this context.
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

    /// Returns a number for a group of survivors, with the epoch in the upper 32 bits. Each call returns a new one.
    pub(crate) fn next_survivors(&mut self) -> u64 {
        let number = self.next_survivors;
        self.next_survivors = self.next_survivors.saturating_add(1);
        self.used << 32 | u64::from(number)
    }

    /// Returns `free`, a number that is free at all survivors, or this task's own next number if `free` belongs to an epoch before the one in use.
    pub(crate) fn survivors_number(&self, free: u64) -> u64 {
        match free >> 32 < self.used {
            true => self.used << 32 | u64::from(self.next_survivors),
            false => free,
        }
    }

    /// Returns the context of the survivors of the group with context `old`, with the epoch in the upper 32 bits. `number` is as
    /// `next_survivors` returns it. Returns `None` if the part has no such number.
    pub(crate) fn survivors(&self, number: u64, old: u32) -> Option<u64> {
        let (epoch, number) = (number >> 32, number as u32);
        if number >= self.spaces.survivors {
            return None;
        }
        let place = Self::part(epoch) * self.spaces.survivors + number;
        // Groups that are shrunk at the same time may have the same number, so the old context is part of the new one.
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

    /// Records that these tasks share a group with this one, or will: epoch messages go to them, too.
    pub(crate) fn meet(&mut self, members: &[Peer]) {
        let before = self.met.len();
        self.met.extend(members);
        self.is_look_due |= self.met.len() > before;
    }

    /// Records that this task has a group with this context and these members.
    pub(crate) fn add_group(&mut self, context: u32, members: &[Peer]) {
        self.note_accepted(context);
        self.meet(members);
    }

    /// Returns whether [`Epochs::run`] has something to do.
    #[inline(always)]
    pub(crate) fn are_due(&self) -> bool {
        self.wanted > self.entered || (self.is_look_due && self.entered != self.used)
    }

    /// Records an epoch message of a peer. If the peer has entered an epoch, this drops unreceived messages that the peer sent earlier in groups
    /// which both tasks have freed. That has to happen before messages of new groups with the same contexts arrive.
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

    /// Returns the contexts of the part in which messages of the current use may arrive: those of groups that exist or are being made here, and
    /// barred ones.
    fn contexts_kept<T: Transport>(&self, uses: &ContextUses<T>, epoch: u64) -> FxHashSet<u32> {
        let in_use = self.contexts_in_use(uses, epoch).into_iter();
        let in_use = in_use.map(|(context, _)| context);
        let barred = self.barred.iter().filter(|(of, _)| *of == epoch);
        let barred = barred.map(|&(_, context)| context);
        // Epoch messages that are not handled yet.
        let words = self.words.iter();
        let words = words.filter(|&&(_, of, context)| of == epoch && context != ENTERED);
        let words = words.filter_map(|&(_, _, context)| u32::try_from(context).ok());
        let coming = uses.coming.iter().filter(|(of, _)| *of == epoch);
        let coming = coming.map(|&(_, context)| context);
        in_use.chain(barred).chain(words).chain(coming).collect()
    }

    /// Returns the contexts of the part in which this task may still send or receive, each with the tasks to which it may send.
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

    /// Requests that `run` enters this epoch, because another task has entered it or contexts run out.
    fn want(&mut self, epoch: u64) {
        self.wanted = self.wanted.max(epoch);
    }

    /// Requests that `run` enters the next epoch, unless one is being entered already. Called when half of the contexts, or all of them, are used
    /// up.
    pub(crate) fn enter_next(&mut self) {
        if self.entered == self.used {
            self.want(self.used.saturating_add(1));
        }
    }

    /// Returns whether this task may use a group of this epoch. If not, requests that `run` enters the epoch.
    pub(crate) fn reach(&mut self, epoch: u64) -> bool {
        if epoch > self.used {
            self.want(epoch);
        }
        epoch <= self.used
    }

    /// Handles received epoch messages, enters the requested epoch, and begins to use the entered epoch once all other tasks have entered it.
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
                // These messages come from another process and are not trusted: ignore impossible values.
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

    /// Bars the contexts in use: this task will accept none of them in the entered epoch.
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
            // Ignore the error: a peer that cannot be reached is gone.
            let _ = uses
                .p2p
                .send_or_queue(to, frame, &bytes_of_all(&[epoch, word]));
        }
    }

    /// Begins to use the entered epoch: no message of an earlier use of its part is in flight any more. Returns the epoch and the contexts whose
    /// messages are kept.
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
