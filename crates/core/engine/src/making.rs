//! Making groups: the members of a new group agree on its context.
//!
//! *Why no two groups of a task have the same context*, whichever are made at the same time, by whichever threads: a task accepts
//! no context twice in an epoch, and none that is in use in the next ([`epoch`](crate::epoch)); and a group is made when all its members
//! have accepted one, in the same epoch.
//!
//! ```text
//! first member                            the others, down a tree and back up
//! Propose(context)  ───────────────────>  accept it, unless they have accepted it before
//!                   <───────────────────  Accepted, or Refused(lowest that will do), or Gone or Full(who)
//!                                         (refused: it proposes another one)
//! Made(context)     ───────────────────>  the group is there
//! or Gone or Full(who)  ───────────────>  it is not, for all
//! ```
//!
//! A member that is gone never comes back: so all that have not agreed end at once, whether or not all others have called, and say so to the
//! first, which may still reach the one that is gone for them. What they are still told is dropped ([`attempts`]).
//!
//! *Why it ends.* Nothing is held while it waits, so groups that are made in different orders by different members do not wait for
//! each other. Groups that are made at the same time are in each other's way only if the same context was proposed for both; after a
//! refusal those that are proposed for different groups lie apart.
//!
//! The messages go in the collectives' context of the group from which the new one is made. They name the call that they belong
//! to ([`Call`]) and the members, so several can be made from one group at the same time; and the attempt of these, so that none is taken for one
//! of an earlier making that has failed.

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

/// Groups of the same members that are being made: mostly one.
struct Making {
    /// Each has a context of its own: that of the making, and those that follow.
    groups: Vec<GroupId>,
    /// None: nobody wants it any more; the others do.
    request: Option<u32>,
    members: Vec<Peer>,
    rank: u32,
    tree: Tree,
    frame: Frame,
    /// The call and the members, as each message has them.
    name: Name,
    /// How many of the same name have failed before, as each message has it.
    attempt: u64,
    /// The first context proposed last, and how often one was refused.
    context: u32,
    refused: u32,
    /// To be proposed, when its epoch is there to be used: the lowest that will do, or by a member what it has heard.
    due: Option<(u32, u64)>,
    /// The answer to it so far, and the children that have not answered.
    answer: Word,
    waiting: Vec<u32>,
    /// Why this task cannot have the group.
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

    /// Returns whether this task has agreed, and has not heard what has come of it: then the others may have the group.
    fn may_be_made(&self) -> bool {
        let has_agreed = self.answer == Word::Accepted && self.waiting.is_empty();
        self.context != 0 && has_agreed && self.tree.parent.is_some()
    }

    /// Returns the next context to be proposed. After a refusal those of different groups lie apart, or they could meet again.
    fn next_context(&self, lowest: u32) -> u32 {
        const APART: u64 = 64;
        let mixed = (self.name[0] ^ self.name[1] ^ u64::from(self.frame.context) << 13)
            .wrapping_add(u64::from(self.refused))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        lowest.saturating_add(2 * ((mixed >> 32) % APART) as u32)
    }
}

/// Returns `count` contexts from this one on.
pub(crate) fn run_of(context: u32, count: usize) -> impl Iterator<Item = u32> {
    (0..count as u32).map(move |at| context.saturating_add(2 * at))
}

/// Returns the error for all members of a group that one of them cannot have.
pub fn no_place(peer: Peer) -> Error {
    Error::Memory(format!(
        "task {peer} had no memory or no place for the new group"
    ))
}

/// Returns a number for a list of members.
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

/// All groups that are being made.
#[derive(Default)]
pub(crate) struct Makings {
    under_way: UnderWay,
    attempts: Attempts,
    /// Those that have been made, until they are taken.
    made: Vec<Made>,
}

impl Makings {
    /// Returns whether none is being made.
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Returns whether [`Makings::run`] may have something to do.
    #[inline(always)]
    pub(crate) fn are_due(&self) -> bool {
        self.under_way.is_any_due()
    }

    /// Takes the groups that have been made.
    pub(crate) fn take_made(&mut self) -> Vec<Made> {
        std::mem::take(&mut self.made)
    }

    /// Returns the contexts proposed last, with the members to whom they were.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = (u32, &[Peer])> {
        let all = self.under_way.iter();
        all.flat_map(|one| one.proposed().map(|context| (context, &one.members[..])))
    }

    /// Returns the number of a call in which all members of a group take part, and by which they make groups from it. They make such calls one after the
    /// other: what the call before has not started by now it never will.
    pub(crate) fn next_call<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        id: GroupId,
    ) -> Result<Call> {
        let context = groups.closed(id)?.context + 1;
        Ok(self.attempts.begin_call(groups, context))
    }

    /// Starts to make `count` groups of these members, which all make this call of `old`. The groups can be used when the request is complete,
    /// and not at all if that ends with an error.
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

    /// Notes that nobody waits for this request any more. The others may, so it goes on.
    pub(crate) fn drop_request(&mut self, request: u32) {
        let mut all = self.under_way.iter_mut();
        if let Some(making) = all.find(|making| making.request == Some(request)) {
            making.request = None;
        }
    }

    /// Ends those that are made from groups that are revoked. Returns context, members and rank of each that the others may have; `None` if
    /// there are none.
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

    /// Notes that a word about a new group has come with this context and tag. It is dropped if nobody here hears it.
    pub(crate) fn hear<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        (from, context, tag): (Peer, u32, i32),
    ) {
        self.attempts.drop_ended(groups, (context, tag), from);
        self.under_way.note_word(context, tag);
    }

    /// Notes that somebody is gone, or that contexts of another epoch are to be had: all may have something to do.
    pub(crate) fn stir(&mut self) {
        self.under_way.stir();
    }

    /// Notes that the group with this context is freed.
    pub(crate) fn note_freed<T: Transport>(&mut self, groups: &mut Groups<T>, context: u32) {
        let is_freed = groups.table.by_context(context).is_none();
        if is_freed && !self.under_way.is_any_of(context + 1) {
            self.attempts.end_of_freed(groups, context);
        }
    }

    /// Moves those groups that are being made along for which there may be something to do. Returns whether anything moved.
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

/// How far a making has come.
enum Step {
    /// Something has moved.
    Moved,
    /// Nothing can move now.
    Waits,
    /// It is over, with this word to all below.
    Ends(Word),
}

impl Making {
    /// Proposes what is due, if contexts of its epoch are to be had. Returns false if not now.
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
                    // Others may know that as well, and not call.
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

    /// Returns the word about a member that is gone. Then there will be no group of these members, and nobody needs to wait for others, which may know that and not
    /// have called; but the last word is awaited by those that have agreed.
    fn gone_member<T: Transport>(&self, groups: &Groups<T>) -> Option<Word> {
        if groups.is_nobody_gone() {
            return None;
        }
        let is_lost = |&&peer: &&Peer| self.is_lost(groups, peer);
        let lost = self.members.iter().find(is_lost);
        lost.map(|&peer| self.word_of_end(groups, peer))
    }

    /// Returns whether a member is gone, and no word of it can come any more.
    fn is_lost<T: Transport>(&self, groups: &Groups<T>, peer: Peer) -> bool {
        groups.losses().has(peer) && !groups.may_have_unread(peer, self.frame.context)
    }

    /// Returns the word about a group that will not be made since this member is gone. It names one that has died, if there is one: the others leave
    /// because of that.
    fn word_of_end<T: Transport>(&self, groups: &Groups<T>, gone: Peer) -> Word {
        let is_dead =
            |&&peer: &&Peer| groups.losses().has(peer) && groups.presence(peer) == Presence::Dead;
        let dead = self.members.iter().find(is_dead);
        word_of_loss(groups, dead.copied().unwrap_or(gone))
    }

    /// Returns the next word of a member to this task; `Gone` if there will be none.
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
            // One that makes no sense counts as the last of its sender.
            let word = word(&bytes).and_then(Word::of);
            return Some(word.unwrap_or_else(|| word_of_loss(groups, from)));
        }
        let is_lost = self.is_lost(groups, from);
        is_lost.then(|| self.word_of_end(groups, from))
    }

    /// Asks the members below, and answers for this one.
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
        // One that cannot be told any more is gone itself.
        let _ = groups.send_or_queue(to, self.frame, &message);
    }

    /// Goes on when all below have answered.
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

    /// Ends it with the last word, which goes to all below. Returns the groups, if they are made.
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
        // Whoever has lost this task says that it is gone; for this task it is the other one.
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
                c"a member's word about a new group makes no sense",
            )),
        };
        let is_made = made.is_ok();
        if !is_made {
            // Of several some may be there.
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

    /// Frees the places of the groups: they are not made.
    fn release<T: Transport>(&self, groups: &mut Groups<T>) {
        self.groups
            .iter()
            .for_each(|&group| groups.table.release(group));
    }
}

/// Returns the word about a member that is gone: others may not have heard why.
fn word_of_loss<T: Transport>(groups: &Groups<T>, peer: Peer) -> Word {
    Word::Gone(peer, groups.presence(peer) == Presence::Left)
}

/// Returns the error for a member that another one has found gone.
fn said_to_be_gone<T: Transport>(groups: &Groups<T>, peer: Peer, left: bool) -> Error {
    if peer >= groups.transport().peers() || peer == groups.me() {
        return Error::State(c"a member named one as gone that cannot be meant");
    }
    match groups.presence(peer) {
        Presence::Here if left => Error::Left(peer),
        Presence::Here => Error::Dead(peer),
        _ => groups.loss(peer),
    }
}
