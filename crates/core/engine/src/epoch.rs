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
//! *When a part is there to be used.* A task takes contexts of the part, and accepts them, when all those tasks that are there have
//! entered. All that they have sent in it before has come then, because messages between two tasks stay in order; what
//! came of groups that are no more is dropped. Contexts that were still in use, here or there, are barred for this epoch.
//!
//! *Who agrees on a context is in one epoch*: those who propose one say in which. A task that is behind enters, and answers when the part is
//! there to be used. One that is ahead says so, and the other one proposes again when it is there, too. A task may pass over epochs, and
//! never uses their parts then.
//!
//! *An epoch is entered early*, when half of the part before is used up, and any call that makes progress answers. A task that computes for longer
//! than the other half lasts is waited for: its messages could be in the part that comes next. The others are looked at only when one of them
//! has said something, is gone, or is new.

use regatta_wire::fields::{bytes_of_all, whole};
use regatta_wire::{Frame, Kind};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::agreement::{Agreement, Subject};
use crate::arrival::{Body, charge};
use crate::closing;
use crate::engine::Engine;
use crate::error::Error;
use crate::group::{CONTEXTS, CONTEXTS_PER_SURVIVORS, GroupId};
use crate::matching::Waiting;
use crate::transport::{Peer, Presence, Transport};

/// The tag of these words, in the collectives' context of the world: before those of ends of groups.
pub(crate) const TAG: i32 = closing::TAG - 1;
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
            made: CONTEXTS / 2 / PARTS as u32,
            survivors: CONTEXTS / CONTEXTS_PER_SURVIVORS / PARTS as u32,
        }
    }
}

/// The contexts of the epochs, and which other tasks have entered them.
pub(crate) struct Epochs {
    spaces: Spaces,
    /// The last one that this task has entered, the one whose part it uses, and one that is to be entered as soon as nothing is being done.
    entered: u64,
    used: u64,
    wanted: u64,
    /// Epochs that others have entered, and those of this task that they were told.
    heard: FxHashMap<Peer, u64>,
    told: FxHashMap<Peer, u64>,
    /// The tasks with which this one has shared a group, or was about to.
    met: FxHashSet<Peer>,
    /// Something has changed since the last look whether all of them have entered.
    is_look_due: bool,
    /// How many tasks were gone at that look.
    gone: usize,
    /// Words that have come and were not looked at.
    words: Vec<(Peer, u64, u64)>,
    /// Contexts that are barred, by the epoch that was entered last or is used.
    barred: FxHashSet<(u64, u32)>,
    /// Of the part in use, the contexts accepted of the last `MAX_ACCEPT_LAG`, and one above which none was.
    accepted: FxHashSet<u32>,
    next: u32,
    /// No group of survivors of which this task is one has this number in the part, or a higher one.
    next_survivors: u32,
    /// Agreements are being advanced, and are taken out of the engine meanwhile.
    pub(crate) agreements_run: bool,
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
            agreements_run: false,
        }
    }

    fn part(epoch: u64) -> u32 {
        (epoch % PARTS) as u32
    }

    /// The part of a context, and its place there.
    fn place(&self, context: u32) -> (u32, u32) {
        match context.checked_sub(CONTEXTS) {
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

    fn is_of(&self, context: u32, epoch: u64) -> bool {
        context > 1 && context < 2 * CONTEXTS && self.place(context).0 == Self::part(epoch)
    }

    fn first(&self, epoch: u64) -> u32 {
        (2 * Self::part(epoch) * self.spaces.made).max(2)
    }

    fn end(&self) -> u32 {
        2 * (Self::part(self.used) + 1) * self.spaces.made
    }

    /// The epoch in use.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Are contexts of that epoch, or a later one, to be had? Not while the part in use is entered again.
    pub(crate) fn is_there(&self, epoch: u64) -> bool {
        let again = self.entered != self.used && Self::part(self.entered) == Self::part(self.used);
        epoch <= self.used && !again
    }

    /// A context that this task would accept, at this one or above it if that can be.
    pub(crate) fn free(&self, lowest: u32) -> Option<u32> {
        let is_free = |context: &u32| {
            !self.accepted.contains(context) && !self.barred.contains(&(self.used, *context))
        };
        let from = |start: u32| (start..self.end()).step_by(2).find(is_free);
        let within = lowest > self.next && lowest < self.end();
        within
            .then(|| from(lowest))
            .flatten()
            .or_else(|| from(self.next))
    }

    /// A context that this task would accept, and all after it.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Accepts a context for a new group, if it has not been accepted before.
    pub(crate) fn accept(&mut self, context: u32) -> bool {
        let known =
            context.saturating_add(MAX_ACCEPT_LAG) < self.next || self.accepted.contains(&context);
        let barred = self.barred.contains(&(self.used, context));
        let sound = context.is_multiple_of(2) && context < CONTEXTS;
        let accepts = !known && !barred && sound && self.is_of(context, self.used);
        if accepts {
            self.note_accepted(context);
        }
        accepts
    }

    /// A group has this context.
    pub(crate) fn note_accepted(&mut self, context: u32) {
        if !self.is_of(context, self.used) {
            return;
        }
        let (_, place) = self.place(context);
        if context >= CONTEXTS {
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

    /// A number for the survivors of a group, with the epoch before it. Each is given once.
    pub(crate) fn next_survivors(&mut self) -> u64 {
        let number = self.next_survivors;
        self.next_survivors = self.next_survivors.saturating_add(1);
        self.used << 32 | u64::from(number)
    }

    /// The number for survivors whose members would take this one; of the epoch in use, if that is a later one.
    pub(crate) fn survivors_number(&self, free: u64) -> u64 {
        match free >> 32 < self.used {
            true => self.used << 32 | u64::from(self.next_survivors),
            false => free,
        }
    }

    /// The context of the survivors of a group with that number, the epoch before it, if there is one.
    pub(crate) fn survivors(&self, number: u64, old: u32) -> Option<u64> {
        let (epoch, number) = (number >> 32, number as u32);
        if number >= self.spaces.survivors {
            return None;
        }
        let place = Self::part(epoch) * self.spaces.survivors + number;
        // Groups that are shrunk at the same time may have the same number.
        let told_apart = (old % CONTEXTS_PER_SURVIVORS) & !1;
        Some(epoch << 32 | u64::from(CONTEXTS + place * CONTEXTS_PER_SURVIVORS + told_apart))
    }

    /// Is half of the part used up?
    fn is_low(&self) -> bool {
        let (_, place) = self.place(self.next.min(self.end() - 2));
        self.next >= self.end()
            || place > self.spaces.made / 2
            || self.next_survivors > self.spaces.survivors / 2
    }

    /// These tasks share a group with this one, or will. Whether one of them is new, and is to be told of an epoch.
    fn meet(&mut self, members: &[Peer]) -> bool {
        let before = self.met.len();
        self.met.extend(members);
        let is_new = self.met.len() > before;
        self.is_look_due |= is_new;
        is_new && self.entered != self.used
    }
}

impl<T: Transport> Engine<T> {
    /// How many epochs of contexts this task has used, the first one included.
    pub fn context_epoch(&self) -> u64 {
        self.epochs.used
    }

    /// A word of a peer has come. Messages that it sent before in groups that it and this task have freed are dropped, before anything comes of new
    /// ones with their contexts.
    #[cold]
    pub(crate) fn epoch_word_came(&mut self, from: Peer, body: &[u8]) {
        let Ok((epoch, context)) = whole::<(u64, u64)>(body) else {
            return;
        };
        self.epochs.words.push((from, epoch, context));
        self.stirred = true;
        if context == ENTERED {
            self.drop_old_messages(epoch, |source| source == from);
        }
    }

    /// Drops messages of these sources that wait, and are of earlier uses of the part of an epoch.
    fn drop_old_messages(&mut self, epoch: u64, is_source: impl Fn(Peer) -> bool) {
        let waiting = self.unexpected.iter();
        let of_part = waiting.filter(|(_, message)| {
            is_source(message.source) && self.epochs.is_of(message.context & !1, epoch)
        });
        let mut old: Vec<(u32, u32)> = of_part
            .map(|(id, message)| (id, message.context & !1))
            .collect();
        if old.is_empty() {
            return;
        }
        let kept = self.contexts_kept(epoch);
        old.retain(|(_, context)| !kept.contains(context));
        self.drop_all_old(old.into_iter().map(|(id, _)| id));
    }

    /// The contexts of the part of an epoch in which messages may come that are not of an earlier use: groups use them that are here, or about to be, or
    /// somebody has barred them.
    fn contexts_kept(&self, epoch: u64) -> FxHashSet<u32> {
        let in_use = self.contexts_in_use(epoch).into_iter();
        let in_use = in_use.map(|(context, _)| context);
        let barred = self.epochs.barred.iter().filter(|(of, _)| *of == epoch);
        let barred = barred.map(|&(_, context)| context);
        // Word that has come and was not looked at.
        let words = self.epochs.words.iter();
        let words = words.filter(|&&(_, of, context)| of == epoch && context != ENTERED);
        let words = words.filter_map(|&(_, _, context)| u32::try_from(context).ok());
        // Others may have groups of survivors of this epoch already that this task is about to have.
        let coming = |one: &Agreement| match (&one.subject, one.choice()) {
            (Subject::Survivors(_), Some(choice)) if choice.words[0] >> 32 == epoch => {
                Some(choice.words[0] as u32)
            }
            _ => None,
        };
        let coming = self.agreements.iter().filter_map(coming);
        in_use.chain(barred).chain(words).chain(coming).collect()
    }

    fn drop_all_old(&mut self, messages: impl IntoIterator<Item = u32>) {
        for id in messages {
            if let Some(message) = self.unexpected.remove(id) {
                self.drop_old(message);
            }
        }
    }

    /// A group is freed: what has come in it is received by nobody any more. Its collectives may still be under way.
    pub(crate) fn drop_messages_of(&mut self, context: u32) {
        let waiting = self.unexpected.iter();
        let ids = waiting.filter(|(_, message)| {
            let is_held = matches!(message.body, Body::Bytes(_) | Body::Loan { .. });
            message.context == context && is_held
        });
        let ids: Vec<u32> = ids.map(|(id, _)| id).collect();
        self.drop_all_old(ids);
    }

    /// Another one has entered this epoch, or it is time to: this task does so.
    fn enter_epoch(&mut self, epoch: u64) {
        self.epochs.wanted = self.epochs.wanted.max(epoch);
        self.stirred = true;
    }

    /// Half of the contexts, or all of them, are used up: the next epoch is entered, if none is.
    pub(crate) fn enter_next_epoch(&mut self) {
        if self.epochs.entered == self.epochs.used {
            self.enter_epoch(self.epochs.used.saturating_add(1));
        }
    }

    /// Deals with words that have come, and goes on to the epoch that was entered when all have entered it.
    pub(crate) fn run_epochs(&mut self) -> bool {
        let words = std::mem::take(&mut self.epochs.words);
        let mut moved = !words.is_empty();
        self.epochs.is_look_due |= moved || self.epochs.gone != self.gone.len();
        if self.epochs.agreements_run {
            self.epochs.words = words;
            self.stirred = true;
            return false;
        }
        let mut heard = Vec::new();
        for (from, epoch, context) in words {
            self.epochs.met.insert(from);
            if context != ENTERED {
                let context = context as u32;
                // Words are another process's: one that cannot be true is not kept.
                if epoch <= MAX_EPOCH && self.epochs.is_of(context, epoch) {
                    self.epochs.barred.insert((epoch, context));
                }
                continue;
            }
            if epoch > MAX_EPOCH {
                continue;
            }
            self.epochs.heard.insert(from, epoch);
            self.enter_epoch(epoch);
            heard.push(from);
        }
        if self.epochs.is_low() {
            self.enter_next_epoch();
        }
        if self.epochs.wanted > self.epochs.entered {
            self.epochs.entered = self.epochs.wanted;
            self.epochs.is_look_due = true;
            self.begin_epoch();
        }
        for from in heard {
            self.tell_of_epoch(from);
        }
        if self.epochs.entered != self.epochs.used && self.epochs.is_look_due {
            self.epochs.is_look_due = false;
            self.epochs.gone = self.gone.len();
            let met: Vec<Peer> = self.epochs.met.iter().copied().collect();
            met.iter().for_each(|&peer| self.tell_of_epoch(peer));
            let entered = self.epochs.entered;
            let has_entered = |&peer: &Peer| {
                peer == self.me
                    || self.presence(peer) != Presence::Here
                    || self.epochs.heard.get(&peer) == Some(&entered)
            };
            if met.iter().all(has_entered) {
                self.use_epoch();
                moved = true;
            }
        }
        moved
    }

    /// The contexts of the part in which this task may still send or receive.
    fn contexts_in_use(&self, epoch: u64) -> Vec<(u32, Option<Vec<Peer>>)> {
        let groups = self.groups.all_listed();
        let groups = groups.map(|group| (group.context, Some(group.peers())));
        let makings = self.makings.iter();
        let makings = makings.map(|one| (one.proposed(), Some(one.members().to_vec())));
        let closings = self.closings.contexts();
        let closings = closings.map(|(context, members)| (context, Some(members.to_vec())));
        let posted = self.posted.iter();
        let posted = posted.map(|(_, (select, _))| (select.context, None));
        let matched = self.matched.iter();
        let matched = matched.map(|(_, message)| (message.context, None));
        let outgoing = self.outgoing.iter();
        let outgoing = outgoing.map(|out| (out.context(), Some(vec![out.to])));
        let queued = self.queued.iter().flat_map(|(&to, queue)| {
            let frames = queue.iter();
            frames.map(move |queued| (queued.frame.context, Some(vec![to])))
        });
        let all = groups.chain(makings).chain(closings).chain(posted);
        let all = all.chain(matched).chain(outgoing).chain(queued);
        let of_part = |(context, to): (u32, Option<Vec<Peer>>)| {
            let context = context & !1;
            let is_of = self.epochs.is_of(context, epoch);
            is_of.then_some((context, to))
        };
        all.filter_map(of_part).collect()
    }

    fn begin_epoch(&mut self) {
        let epoch = self.epochs.entered;
        // All that are there have heard of those by now: the part was used many epochs ago.
        let groups = &self.groups;
        let epochs = &self.epochs;
        self.revocations
            .forget(|context| epochs.is_of(context, epoch) && groups.id_of(context).is_none());
        self.bar_contexts_in_use(epoch);
    }

    /// This task accepts none of them in that epoch.
    fn bar_contexts_in_use(&mut self, epoch: u64) {
        for (context, _) in self.contexts_in_use(epoch) {
            self.epochs.barred.insert((epoch, context));
        }
    }

    fn tell_of_epoch(&mut self, to: Peer) {
        let epoch = self.epochs.entered;
        let was_told = self.epochs.told.get(&to) == Some(&epoch);
        if was_told || to == self.me || self.presence(to) != Presence::Here {
            return;
        }
        self.epochs.told.insert(to, epoch);
        let may_send = |(context, to_whom): (u32, Option<Vec<Peer>>)| {
            let to_it = to_whom.is_some_and(|peers| peers.contains(&to));
            to_it.then_some(u64::from(context))
        };
        let in_use = self.contexts_in_use(epoch).into_iter();
        let words: Vec<u64> = in_use.filter_map(may_send).chain([ENTERED]).collect();
        let frame = Frame {
            kind: Kind::Eager,
            context: 1,
            tag: TAG,
        };
        for word in words {
            // One that cannot be told any more is gone itself.
            let _ = self.send_or_queue(to, frame, &bytes_of_all(&[epoch, word]));
        }
    }

    /// Nothing of earlier uses of the part is on its way any more.
    fn use_epoch(&mut self) {
        let epoch = self.epochs.entered;
        self.bar_contexts_in_use(epoch);
        self.epochs.used = epoch;
        self.epochs.barred.retain(|&(of, _)| of >= epoch);
        self.epochs.accepted.clear();
        self.epochs.next = self.epochs.first(epoch);
        let survivors = self.epochs.barred.iter();
        let survivors = survivors.filter(|&&(of, context)| of == epoch && context >= CONTEXTS);
        let last = survivors.map(|&(_, context)| self.epochs.place(context).1 + 1);
        self.epochs.next_survivors = last.max().unwrap_or(0);
        let kept = self.contexts_kept(epoch);
        let epochs = &self.epochs;
        let is_old = |context: u32| {
            let context = context & !1;
            epochs.is_of(context, epoch) && !kept.contains(&context)
        };
        self.revocations.forget_early(is_old);
        self.closings.forget_early(is_old);
        self.drop_old_messages(epoch, |_| true);
    }

    /// Drops a message that nobody will receive, since its group is no more.
    fn drop_old(&mut self, message: Waiting<Body>) {
        match message.body {
            Body::Arriving(request, held) => {
                self.buffered -= charge(held.len());
                self.let_pass(request);
                if !self.requests.is_done(request) {
                    self.requests.complete(request, Some(Error::Cancelled));
                }
                self.requests.release(request);
            }
            Body::Offer(offer) => self.drop_offer(message.source, offer),
            body => self.drop_body(body, Error::Cancelled),
        }
    }

    /// The group may be used by this task: its epoch is there.
    pub(crate) fn is_epoch_there(&mut self, epoch: u64) -> bool {
        if epoch > self.epochs.used {
            self.enter_epoch(epoch);
        }
        epoch <= self.epochs.used
    }

    /// Words of epochs go to the members of this group, too.
    pub(crate) fn meet(&mut self, id: GroupId) {
        if let Ok(group) = self.group(id) {
            let peers = group.peers();
            self.meet_members(&peers);
        }
    }

    /// Words of epochs go to these, too.
    pub(crate) fn meet_members(&mut self, members: &[Peer]) {
        self.stirred |= self.epochs.meet(members);
    }
}
