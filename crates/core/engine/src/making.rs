//! Creation of groups: the members of a new group agree on its context.
//!
//! *Why no two groups of a task have the same context*, even if several threads make groups at the same time: a task accepts no context twice in an
//! epoch, and none that is still in use from an earlier epoch ([`epoch`](crate::epoch)). A group is made only when all its members have accepted the
//! context in the same epoch.
//!
//! ```text
//! first member                            the other members, down a tree and back up
//! Propose(context)  ───────────────────>  accept it, unless they have accepted it before
//!                   <───────────────────  Accepted, or Refused(lowest acceptable context), or Gone or Full(member)
//!                                         (refused: the first member proposes another context)
//! Made(context)     ───────────────────>  the group exists
//! or Gone or Full(member)  ─────────────>  no member makes the group
//! ```
//!
//! A member that is gone never comes back. So members that have not agreed yet fail at once, even if other members have not called yet. They notify
//! the first member, which may not know of the loss. Messages that they still receive about this group are dropped ([`attempts`]).
//!
//! *Why it ends.* A member holds no resource while it waits, so groups that different members make in different orders do not wait for each other.
//! Groups that are made at the same time conflict only if the same context was proposed for both. After a refusal, the contexts proposed for
//! different groups are spread apart.
//!
//! The messages are sent in the collective context of the group from which the new one is made. They contain the call that they belong to ([`Call`])
//! and a hash of the members, so several groups can be made from one group at the same time. They also contain the number of the attempt, so that a
//! message of an earlier failed attempt is not mistaken for one of the current attempt.

mod attempts;
mod under_way;
mod word;

use regatta_wire::{Frame, Kind};

use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::groups::Groups;
use crate::matching::{Select, TagSelect};
use crate::numbers;
use crate::request::Handle;
use crate::transport::{Peer, Presence, Transport};
use crate::tree::Tree;

use attempts::Attempts;
use under_way::UnderWay;
pub use word::Call;
use word::{Name, Word, read_word};

/// Groups with the same members that are made together: usually one.
struct Making {
    /// The new groups. The first gets `context`, the others the contexts that follow it.
    groups: Vec<GroupId>,
    /// The caller's request. `None` if it was dropped: the other members may still wait for the groups.
    request: Option<u32>,
    members: Vec<Peer>,
    rank: u32,
    tree: Tree,
    frame: Frame,
    /// The call and the hash of the members, as in each message.
    name: Name,
    /// Number of earlier failed attempts with the same name, as in each message.
    attempt: u64,
    /// The first of the contexts proposed last (0: none yet), and the number of refusals.
    context: u32,
    refused: u32,
    /// A proposal to make once its epoch is in use: (context, epoch). For the first member, the lowest acceptable context; for the others, the
    /// context received from the parent.
    due: Option<(u32, u64)>,
    /// The combined answer to the proposal so far, and the children in the tree that have not answered.
    answer: Word,
    waiting: Vec<u32>,
    /// Why this task cannot have the groups, if it cannot.
    obstacle: Option<Error>,
}

impl Making {
    fn peer(&self, rank: u32) -> Peer {
        self.members[rank as usize]
    }

    /// Returns the contexts proposed last, if any were.
    fn proposed(&self) -> impl Iterator<Item = u32> + use<> {
        let count = match self.context {
            0 => 0,
            _ => self.groups.len(),
        };
        run_of(self.context, count)
    }

    /// Returns whether this task has agreed and does not know the outcome yet. Other members may then have the group already.
    fn may_be_made(&self) -> bool {
        let has_agreed = self.answer == Word::Accepted && self.waiting.is_empty();
        self.context != 0 && has_agreed && self.tree.parent.is_some()
    }

    /// Returns the next context to propose, at or above `lowest`. A hash spreads the contexts of different groups apart, so that they do not
    /// conflict again.
    fn next_context(&self, lowest: u32) -> u32 {
        const APART: u64 = 64;
        let mixed = (self.name[0] ^ self.name[1] ^ u64::from(self.frame.context) << 13)
            .wrapping_add(u64::from(self.refused))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        lowest.saturating_add(2 * ((mixed >> 32) % APART) as u32)
    }
}

/// Returns `count` consecutive contexts, beginning with this one.
pub(crate) fn run_of(context: u32, count: usize) -> impl Iterator<Item = u32> {
    (0..count as u32).map(move |at| context.saturating_add(2 * at))
}

/// Returns the error that all members of a group get if member `peer` has no memory or no entry for it.
pub fn no_place(peer: Peer) -> Error {
    Error::Memory(format!(
        "task {peer} had no memory or no free entry for the new group"
    ))
}

/// Returns a hash of a list of members.
fn sum(members: &[Peer]) -> u64 {
    let fold = |sum: u64, &peer: &Peer| {
        (sum ^ u64::from(peer))
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23)
    };
    members.iter().fold(0x9e37_79b9, fold)
}

/// A group that has been made.
pub(crate) struct Made {
    pub(crate) group: GroupId,
    pub(crate) context: u32,
    /// Whether a caller waits for it.
    pub(crate) is_wanted: bool,
}

/// All groups that a task is making.
#[derive(Default)]
pub(crate) struct Makings {
    under_way: UnderWay,
    attempts: Attempts,
    /// Groups that were made, until [`Makings::take_made`] returns them.
    made: Vec<Made>,
}

impl Makings {
    /// Returns whether no group is being made.
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Returns whether [`Makings::run`] may have something to do.
    #[inline(always)]
    pub(crate) fn are_due(&self) -> bool {
        self.under_way.is_any_due()
    }

    /// Removes and returns the groups that were made.
    pub(crate) fn take_made(&mut self) -> Vec<Made> {
        std::mem::take(&mut self.made)
    }

    /// Returns the contexts proposed last, each with the members of the proposed group.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = (u32, &[Peer])> {
        let all = self.under_way.iter();
        all.flat_map(|one| one.proposed().map(|context| (context, &one.members[..])))
    }

    /// Starts a call in which all members of a group take part and make groups from it. Returns its number. The members make such calls one after
    /// the other, so a previous call that has made no group by now never will.
    pub(crate) fn next_call<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        id: GroupId,
    ) -> Result<Call> {
        let context = groups.closed(id)?.context + 1;
        Ok(self.attempts.begin_call(groups, context))
    }

    /// Starts to make `count` groups of these members, all of which make this call of `old`. Returns the groups and a request. The groups can be
    /// used once the request completes, but not if it completes with an error.
    pub(crate) fn start<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        (old, members): (GroupId, Vec<Peer>),
        call: Call,
        count: usize,
    ) -> Result<(Vec<GroupId>, Handle)> {
        let rank = groups.check_members(&members)?;
        if groups.group(old)?.is_revoked() {
            return Err(Error::Revoked);
        }
        let context = old.channel().unwrap_or(groups.group(old)?.context) + 1;
        let name = [call.word(), sum(&members)];
        let attempt = self.attempts.start(context, name);
        let (mut made, mut obstacle) = (Vec::new(), None);
        for _ in 0..count {
            made.push(groups.table.reserve().unwrap_or_else(|| {
                obstacle = Some(groups.table.full());
                GroupId(-1)
            }));
        }
        let request = groups.add_request();
        let handle = groups.handle(request);
        let mut making = Making {
            groups: made.clone(),
            request: Some(request),
            tree: Tree::flat(rank, members.len() as u32, 0),
            frame: Frame {
                kind: Kind::Eager,
                context,
                tag: numbers::of_making(call.word()),
            },
            name,
            attempt,
            members,
            rank,
            context: 0,
            refused: 0,
            due: None,
            answer: Word::Accepted,
            waiting: Vec::new(),
            obstacle,
        };
        groups.epochs.meet(&making.members);
        if making.tree.parent.is_none() {
            making.due = Some((0, 0));
        }
        self.under_way.add(making);
        Ok((made, handle))
    }

    /// Records that no caller waits for this request any more. The groups are still made, since other members may wait for them.
    pub(crate) fn drop_request(&mut self, request: u32) {
        let mut all = self.under_way.iter_mut();
        if let Some(making) = all.find(|making| making.request == Some(request)) {
            making.request = None;
        }
    }

    /// Fails all groups that are being made from revoked groups. Returns the context, members and own rank of each of these that other members may
    /// have. Returns `None` if there was none to fail.
    pub(crate) fn end_closed<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
    ) -> Option<Vec<(u32, Vec<Peer>, usize)>> {
        let is_closed = |making: &Making| groups.contexts().is_closed(making.frame.context);
        let ended = self.under_way.remove_all(is_closed);
        let mut given_up = Vec::new();
        for making in &ended {
            making.release(groups);
            if let Some(request) = making.request {
                groups.complete(request, Some(Error::Revoked));
            }
            if making.may_be_made() {
                let rank = making.rank as usize;
                let all = making.proposed();
                given_up.extend(all.map(|context| (context, making.members.clone(), rank)));
            }
        }
        (!ended.is_empty()).then_some(given_up)
    }

    /// Records that a message about a new group was received with this context and tag. The message is dropped if its attempt has ended here.
    pub(crate) fn hear<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        (from, context, tag): (Peer, u32, i32),
    ) {
        self.attempts.drop_ended(groups, (context, tag), from);
        self.under_way.note_word(context, tag);
    }

    /// Lets the next [`Makings::run`] look at all groups that are being made, because a task is gone or another epoch is in use.
    pub(crate) fn stir(&mut self) {
        self.under_way.stir();
    }

    /// Records that the group with this context was freed.
    pub(crate) fn note_freed<T: Transport>(&mut self, groups: &mut Groups<T>, context: u32) {
        let is_freed = groups.table.by_context(context).is_none();
        if is_freed && !self.under_way.is_any_of(context + 1) {
            self.attempts.end_of_freed(groups, context);
        }
    }

    /// Makes progress in the groups that may have something to do. Returns whether anything changed.
    #[cold]
    pub(crate) fn run<T: Transport>(&mut self, groups: &mut Groups<T>) -> bool {
        let mut moved = false;
        while let Some((number, making)) = self.under_way.take_due() {
            let last = loop {
                match making.step(groups) {
                    Step::Moved => moved = true,
                    Step::Waits => break None,
                    Step::Ends(last) => break Some(last),
                }
            };
            if let Some(last) = last {
                moved = true;
                let context = making.frame.context - 1;
                let made = making.end(groups, &mut self.attempts, last);
                self.made.extend(made);
                self.under_way.remove(number);
                self.note_freed(groups, context);
            }
        }
        moved
    }
}

/// The result of a step.
enum Step {
    /// Something changed; take another step.
    Moved,
    /// Nothing can change now.
    Waits,
    /// It is over. This message goes to all tasks below in the tree.
    Ends(Word),
}

impl Making {
    /// Sends the due proposal if this task uses its epoch. Otherwise returns false and requests a later epoch.
    fn propose_due<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        (lowest, epoch): (u32, u64),
    ) -> bool {
        if !groups.epochs.is_there(epoch) {
            groups.epochs.reach(epoch);
            return false;
        }
        if self.tree.parent.is_some() {
            self.propose(groups, lowest, epoch);
            return true;
        }
        let lowest = match self.refused {
            0 => 0,
            _ => self.next_context(lowest.max(groups.epochs.next())),
        };
        let Some(context) = groups.epochs.free(lowest, self.groups.len()) else {
            groups.epochs.enter_next();
            return false;
        };
        self.propose(groups, context, groups.epochs.used());
        true
    }

    /// Takes the next step.
    fn step<T: Transport>(&mut self, groups: &mut Groups<T>) -> Step {
        if let Some(due) = self.due.take() {
            if !self.propose_due(groups, due) {
                self.due = Some(due);
                return Step::Waits;
            }
            if self.waiting.is_empty() {
                return self.answered(groups);
            }
            return Step::Moved;
        }
        for at in (0..self.waiting.len()).rev() {
            let child = self.peer(self.waiting[at]);
            if let Some(word) = self.hear(groups, child) {
                self.waiting.swap_remove(at);
                self.answer = self.answer.and(word);
                if matches!(self.answer, Word::Gone(..)) {
                    // Members that know of the loss may not have called, so do not wait for their answers.
                    self.waiting.clear();
                }
                if self.waiting.is_empty() {
                    return self.answered(groups);
                }
                return Step::Moved;
            }
        }
        if !self.waiting.is_empty() {
            let Some(gone) = self.gone_member(groups) else {
                return Step::Waits;
            };
            self.waiting.clear();
            self.answer = self.answer.and(gone);
            return self.answered(groups);
        }
        let Some(parent) = self.tree.parent else {
            return Step::Waits;
        };
        match self.hear(groups, self.peer(parent)) {
            None if self.context == 0 => {
                let Some(gone) = self.gone_member(groups) else {
                    return Step::Waits;
                };
                self.tell(groups, self.peer(parent), gone);
                return Step::Ends(gone);
            }
            None => return Step::Waits,
            Some(Word::Propose(context, epoch)) => self.due = Some((context, epoch)),
            Some(last) => return Step::Ends(last),
        }
        Step::Moved
    }

    /// Returns the message about a member that is gone, if one is. These members will then never have a group, and a member need not wait for
    /// others, which may know of the loss and not call. Members that have agreed still wait for the final message.
    fn gone_member<T: Transport>(&self, groups: &Groups<T>) -> Option<Word> {
        if groups.is_nobody_gone() {
            return None;
        }
        let is_lost = |&&peer: &&Peer| self.is_lost(groups, peer);
        let lost = self.members.iter().find(is_lost);
        lost.map(|&peer| self.word_of_end(groups, peer))
    }

    /// Returns whether a member is gone and no message of it can be received any more.
    fn is_lost<T: Transport>(&self, groups: &Groups<T>, peer: Peer) -> bool {
        groups.losses().has(peer) && !groups.may_have_unread(peer, self.frame.context)
    }

    /// Returns the message that no group will be made because `gone` is gone. It names a member that has died instead, if there is one: the others
    /// may have left because of that death.
    fn word_of_end<T: Transport>(&self, groups: &Groups<T>, gone: Peer) -> Word {
        let is_dead =
            |&&peer: &&Peer| groups.losses().has(peer) && groups.presence(peer) == Presence::Dead;
        let dead = self.members.iter().find(is_dead);
        word_of_loss(groups, dead.copied().unwrap_or(gone))
    }

    /// Returns the next message of a member. Returns `Gone` if there will be none, and `None` if there is none yet.
    fn hear<T: Transport>(&self, groups: &mut Groups<T>, from: Peer) -> Option<Word> {
        let select = Select {
            context: self.frame.context,
            source: Some(from),
            tag: TagSelect::Exactly(self.frame.tag),
        };
        let word = |bytes: &[u8]| {
            let (name, attempt, word) = read_word(bytes)?;
            (name == self.name && attempt == self.attempt).then_some(word)
        };
        let heard = groups.take_held_where(&select, |bytes| word(bytes).is_some());
        if let Some(bytes) = heard {
            // A malformed message counts as the last of its sender.
            let word = word(&bytes).and_then(Word::of);
            return Some(word.unwrap_or_else(|| word_of_loss(groups, from)));
        }
        let is_lost = self.is_lost(groups, from);
        is_lost.then(|| self.word_of_end(groups, from))
    }

    /// Sends the proposal to the children in the tree and determines this task's own answer.
    fn propose<T: Transport>(&mut self, groups: &mut Groups<T>, context: u32, epoch: u64) {
        self.context = context;
        self.waiting.clone_from(&self.tree.children);
        self.tell_children(groups, Word::Propose(context, epoch));
        self.answer = match &self.obstacle {
            Some(_) => Word::Full(groups.me()),
            None if epoch == groups.epochs.used()
                && groups.epochs.accept(context, self.groups.len()) =>
            {
                Word::Accepted
            }
            None => Word::Refused(groups.epochs.next(), groups.epochs.used()),
        };
    }

    fn tell_children<T: Transport>(&self, groups: &mut Groups<T>, word: Word) {
        for &child in &self.tree.children {
            self.tell(groups, self.peer(child), word);
        }
    }

    fn tell<T: Transport>(&self, groups: &mut Groups<T>, to: Peer, word: Word) {
        let message = word.message(self.name, self.attempt);
        // Ignore the error: a peer that cannot be reached is gone.
        let _ = groups.send_or_queue(to, self.frame, &message);
    }

    /// Handles the combined answer of the tasks below and this one: sends it to the parent or, as the first member, decides on it.
    fn answered<T: Transport>(&mut self, groups: &mut Groups<T>) -> Step {
        if let Some(parent) = self.tree.parent {
            self.tell(groups, self.peer(parent), self.answer);
            return Step::Moved;
        }
        let last = match self.answer {
            Word::Refused(next, epoch) => {
                self.refused += 1;
                self.due = Some((next, epoch));
                return Step::Moved;
            }
            Word::Accepted => Word::Made(self.context),
            last => last,
        };
        Step::Ends(last)
    }

    /// Ends it with the final message, which is sent to the children. Completes the request. Returns the groups if they are made.
    fn end<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        attempts: &mut Attempts,
        last: Word,
    ) -> Vec<Made> {
        self.tell_children(groups, last);
        let has_failed = !matches!(last, Word::Made(..));
        let words = (self.frame.context, self.frame.tag);
        attempts.end(words.0, self.name, self.attempt, has_failed);
        for &rank in self.tree.parent.iter().chain(&self.tree.children) {
            attempts.drop_ended(groups, words, self.peer(rank));
        }
        // A member that has lost this task reports this task as gone. For this task, that member is the one that is gone.
        let last = match last {
            Word::Gone(peer, _) if peer == groups.me() => self.gone_member(groups).unwrap_or(last),
            last => last,
        };
        let members = std::mem::take(&mut self.members);
        let made = match last {
            Word::Made(context) if context == self.context => {
                let mut both = self.groups.iter().zip(self.proposed());
                both.try_for_each(|(&group, context)| groups.fill(group, members.clone(), context))
            }
            Word::Full(peer) => Err(self.obstacle.take().unwrap_or_else(|| no_place(peer))),
            Word::Gone(peer, left) => {
                let error = said_to_be_gone(groups, peer, left);
                if let (Error::Dead(peer), Some(_)) = (&error, self.request) {
                    groups.note_reported_dead(self.frame.context, *peer);
                }
                Err(error)
            }
            _ => Err(Error::State(
                c"a member's message about a new group is not valid",
            )),
        };
        let is_made = made.is_ok();
        if !is_made {
            // Some of the groups may have been created before one failed.
            for &group in &self.groups {
                drop(groups.free(group));
            }
            self.release(groups);
        }
        if let Some(request) = self.request {
            groups.complete(request, made.err());
        }
        let is_wanted = self.request.is_some();
        let both = self.groups.iter().zip(self.proposed());
        let made = both.map(|(&group, context)| Made {
            group,
            context,
            is_wanted,
        });
        made.filter(|_| is_made).collect()
    }

    /// Releases the entries reserved for the groups, which are not made.
    fn release<T: Transport>(&self, groups: &mut Groups<T>) {
        self.groups
            .iter()
            .for_each(|&group| groups.table.release(group));
    }
}

/// Returns the message that a member is gone, and whether it has left in good order: the receivers may not know.
fn word_of_loss<T: Transport>(groups: &Groups<T>, peer: Peer) -> Word {
    Word::Gone(peer, groups.presence(peer) == Presence::Left)
}

/// Returns the error for a member that another member has reported as gone.
fn said_to_be_gone<T: Transport>(groups: &Groups<T>, peer: Peer, left: bool) -> Error {
    if peer >= groups.transport().peers() || peer == groups.me() {
        return Error::State(
            c"a member reported the loss of a task that does not exist or is this one",
        );
    }
    match groups.presence(peer) {
        Presence::Here if left => Error::Left(peer),
        Presence::Here => Error::Dead(peer),
        _ => groups.loss(peer),
    }
}
