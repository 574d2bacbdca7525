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
//! Made(context, collective buffer)  ───>  the group is there
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

use regatta_memory::views::Views;
use regatta_wire::fields::{all, bytes_of_all};
use regatta_wire::{BODY, Frame, Kind};

use crate::arrival::{Body, charge};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::matching::{Select, TagSelect};
use crate::request::{Handle, Stage, Status};
use crate::transport::{Peer, Presence, Transport};
use crate::tree::Tree;

use attempts::Name;
pub(crate) use attempts::{Calls, FreedContexts};

/// Tags of these messages, on the collectives' context: beyond those of agreements.
pub(crate) const TAGS: i32 = 0x6000_0000;
pub(crate) const COUNT: i32 = 0x0fff_ffff;

/// Numbers in a message: call and members, attempt, word.
const NUMBERS: usize = 6;
const _: () = assert!(NUMBERS * size_of::<u64>() <= BODY);

/// Whether messages with this tag, on the collectives' context, are words of makings.
pub(crate) fn is_word(tag: i32) -> bool {
    (TAGS..=TAGS + COUNT).contains(&tag)
}

/// What a message is about, the attempt, and what it says.
fn read_word(bytes: &[u8]) -> Option<(Name, u64, [u64; 3])> {
    let numbers: [u64; NUMBERS] = all(bytes).ok()?.try_into().ok()?;
    let [call, members, attempt, word @ ..] = numbers;
    Some(([call, members], attempt, word))
}

/// The call of its members that makes a group: calls from one group at the same time differ in it, or in their members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// All members of the old group take part, and this is the number of their call; see [`Engine::next_call`].
    Numbered(u32),
    /// Only the new group's members call.
    Selecting,
    /// Only they call, with this tag.
    Tagged(i32),
}

impl Call {
    fn word(self) -> u64 {
        match self {
            Call::Tagged(tag) => u64::from(tag as u32),
            Call::Numbered(number) => 1 << 32 | u64::from(number),
            Call::Selecting => 2 << 32,
        }
    }

    /// The number in the word of a numbered call.
    fn number(word: u64) -> Option<u32> {
        (word >> 32 == 1).then_some(word as u32)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// In this epoch.
    Propose(u32, u64),
    Accepted,
    /// The lowest that will do, of this epoch.
    Refused(u32, u64),
    Made(u32, u64),
    /// A member is gone: it has left in good order, or died.
    Gone(Peer, bool),
    /// A member has no memory or no place for it.
    Full(Peer),
}

impl Word {
    fn numbers(self) -> [u64; 3] {
        match self {
            Word::Propose(context, epoch) => [1, u64::from(context), epoch],
            Word::Accepted => [2, 0, 0],
            Word::Refused(next, epoch) => [3, u64::from(next), epoch],
            Word::Made(context, buffer) => [4, u64::from(context), buffer],
            Word::Gone(peer, left) => [5, u64::from(peer), u64::from(left)],
            Word::Full(peer) => [6, u64::from(peer), 0],
        }
    }

    fn of([kind, number, buffer]: [u64; 3]) -> Option<Word> {
        let number = u32::try_from(number).ok()?;
        Some(match kind {
            1 => Word::Propose(number, buffer),
            2 => Word::Accepted,
            3 => Word::Refused(number, buffer),
            4 => Word::Made(number, buffer),
            5 => Word::Gone(number, buffer != 0),
            6 => Word::Full(number),
            _ => return None,
        })
    }

    /// The answer of two members together. A death comes before a member that has left: it may be why.
    fn and(self, other: Word) -> Word {
        match (self, other) {
            (Word::Accepted, other) => other,
            (Word::Refused(one, epoch), Word::Refused(next, other)) => {
                let (epoch, next) = (epoch, one).max((other, next));
                Word::Refused(next, epoch)
            }
            (Word::Refused(..), Word::Gone(..) | Word::Full(_))
            | (Word::Gone(_, true), Word::Gone(_, false)) => other,
            _ => self,
        }
    }
}

/// A group that is being made.
pub(crate) struct Making {
    group: GroupId,
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
    /// The context proposed last, and how often one was refused.
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

    /// This task has agreed, and has not heard what has come of it: the others may have the group.
    fn may_be_made(&self) -> bool {
        let has_agreed = self.answer == Word::Accepted && self.waiting.is_empty();
        self.context != 0 && has_agreed && self.tree.parent.is_some()
    }

    /// The context proposed last.
    pub(crate) fn proposed(&self) -> u32 {
        self.context
    }

    pub(crate) fn members(&self) -> &[Peer] {
        &self.members
    }

    /// The next context to be proposed. After a refusal those of different groups lie apart, or they could meet again.
    fn next_context(&self, lowest: u32) -> u32 {
        const APART: u64 = 64;
        let mixed = (self.name[0] ^ self.name[1] ^ u64::from(self.frame.context) << 13)
            .wrapping_add(u64::from(self.refused))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        lowest.saturating_add(2 * ((mixed >> 32) % APART) as u32)
    }
}

/// The error for all members of a group that one of them cannot have.
pub fn no_place(peer: Peer) -> Error {
    Error::Memory(format!(
        "task {peer} had no memory or no place for the new group"
    ))
}

/// A number for a list of members.
fn sum(members: &[Peer]) -> u64 {
    let fold = |sum: u64, &peer: &Peer| {
        (sum ^ u64::from(peer))
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23)
    };
    members.iter().fold(0x9e37_79b9, fold)
}

impl<T: Transport> Engine<T> {
    /// How many further groups this task has places for.
    pub fn room_for_groups(&self) -> usize {
        self.groups.room()
    }

    /// Start to make a group of these members, which all make this call of `old`. The group can be used when the request is complete,
    /// and not at all if that ends with an error.
    pub fn start_group(
        &mut self,
        old: GroupId,
        members: Vec<Peer>,
        call: Call,
    ) -> Result<(GroupId, Handle)> {
        let rank = self.check_members(&members)?;
        if self.group(old)?.is_revoked() {
            return Err(Error::Revoked);
        }
        let context = old.channel().unwrap_or(self.group(old)?.context) + 1;
        let name = [call.word(), sum(&members)];
        let attempt = self.group_mut(old)?.calls.start(context, name);
        let (group, obstacle) = match self.groups.reserve() {
            Some(group) => (group, None),
            None => (GroupId(-1), Some(self.groups.full())),
        };
        let request = self
            .requests
            .add(Stage::Collective, Status::EMPTY, Views::none());
        let handle = self.requests.handle(request);
        let mut making = Making {
            group,
            request: Some(request),
            tree: Tree::flat(rank, members.len() as u32, 0),
            frame: Frame {
                kind: Kind::Eager,
                context,
                tag: TAGS + (call.word() as i32 & COUNT),
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
        self.meet_members(&making.members);
        if making.tree.parent.is_none() {
            making.due = Some((0, 0));
        }
        self.makings.push(making);
        self.run_makings();
        Ok((group, handle))
    }

    /// Nobody waits for this request any more. The others may, so it goes on.
    pub(crate) fn drop_making(&mut self, request: u32) {
        let mut makings = self.makings.iter_mut();
        if let Some(making) = makings.find(|making| making.request == Some(request)) {
            making.request = None;
        }
    }

    /// The group is revoked from whose context, this one, new ones are being made: they are not.
    pub(crate) fn end_makings_of(&mut self, context: u32) {
        let is_of = |making: &mut Making| making.frame.context == context;
        let ended: Vec<Making> = self.makings.extract_if(.., is_of).collect();
        for making in ended {
            self.groups.release(making.group);
            if let Some(request) = making.request {
                self.requests.complete(request, Some(Error::Revoked));
            }
            if making.may_be_made() {
                let rank = making.rank as usize;
                self.note_revoked(making.context, making.members, rank, false);
            }
        }
    }

    /// Whether a group is being made from the one with this collectives' context.
    fn is_anything_made(&self, context: u32) -> bool {
        let mut makings = self.makings.iter();
        makings.any(|making| making.frame.context == context)
    }

    /// Whether one is being made by the call with this number.
    fn is_being_made(&self, context: u32, number: u32) -> bool {
        let call = Call::Numbered(number).word();
        let mut makings = self.makings.iter();
        makings.any(|making| making.frame.context == context && making.name[0] == call)
    }

    /// Move every group that is being made along.
    #[cold]
    pub(crate) fn run_makings(&mut self) -> bool {
        let mut moved = false;
        let mut ended = Vec::new();
        // Taken out while they run: what they send may find that a peer is gone.
        let mut running = std::mem::take(&mut self.makings);
        running.retain_mut(|making| {
            loop {
                match self.step(making) {
                    Some(true) => moved = true,
                    Some(false) => return true,
                    None => {
                        moved = true;
                        ended.push(making.frame.context);
                        return false;
                    }
                }
            }
        });
        running.append(&mut self.makings);
        self.makings = running;
        for context in ended {
            self.end_attempts_of_freed(context - 1);
        }
        // Word of a revocation that has come while they ran has not met them.
        let contexts = self.makings.iter().map(|making| making.frame.context);
        let revoked: Vec<u32> = contexts
            .filter(|&one| self.is_revoked_context(one))
            .collect();
        for context in revoked {
            self.end_makings_of(context);
            moved = true;
        }
        moved
    }

    /// Proposes what is due, if contexts of its epoch are to be had. False: not now.
    fn propose_due(&mut self, making: &mut Making, (lowest, epoch): (u32, u64)) -> bool {
        if !self.epochs.is_there(epoch) {
            self.is_epoch_there(epoch);
            return false;
        }
        if making.tree.parent.is_some() {
            self.propose(making, lowest, epoch);
            return true;
        }
        let lowest = match making.refused {
            0 => 0,
            _ => making.next_context(lowest.max(self.epochs.next())),
        };
        let Some(context) = self.epochs.free(lowest) else {
            self.enter_next_epoch();
            return false;
        };
        self.propose(making, context, self.epochs.used());
        true
    }

    /// Whether something has moved; `None`: it is over.
    fn step(&mut self, making: &mut Making) -> Option<bool> {
        if let Some(due) = making.due.take() {
            if !self.propose_due(making, due) {
                making.due = Some(due);
                return Some(false);
            }
            if making.waiting.is_empty() {
                return self.answered(making);
            }
            return Some(true);
        }
        for at in (0..making.waiting.len()).rev() {
            let child = making.peer(making.waiting[at]);
            if let Some(word) = self.hear(making, child) {
                making.waiting.swap_remove(at);
                making.answer = making.answer.and(word);
                if matches!(making.answer, Word::Gone(..)) {
                    // Others may know that as well, and not call.
                    making.waiting.clear();
                }
                if making.waiting.is_empty() {
                    return self.answered(making);
                }
                return Some(true);
            }
        }
        if !making.waiting.is_empty() {
            let Some(gone) = self.gone_member(making) else {
                return Some(false);
            };
            making.waiting.clear();
            making.answer = making.answer.and(gone);
            return self.answered(making);
        }
        let Some(parent) = making.tree.parent else {
            return Some(false);
        };
        match self.hear(making, making.peer(parent)) {
            None if making.context == 0 => {
                let Some(gone) = self.gone_member(making) else {
                    return Some(false);
                };
                self.tell(making, making.peer(parent), gone);
                self.end_making(making, gone);
                return None;
            }
            None => return Some(false),
            Some(Word::Propose(context, epoch)) => making.due = Some((context, epoch)),
            Some(last) => {
                self.end_making(making, last);
                return None;
            }
        }
        Some(true)
    }

    /// A member that is gone. Then there will be no group of these members, and nobody needs to wait for others, which may know that and not
    /// have called; but the last word is awaited by those that have agreed.
    fn gone_member(&self, making: &Making) -> Option<Word> {
        let is_lost = |&&peer: &&Peer| {
            self.is_gone(peer) && !self.may_have_unread(peer, making.frame.context)
        };
        let lost = making.members.iter().find(is_lost);
        lost.map(|&peer| self.word_of_end(making, peer))
    }

    /// The word about a group that will not be made since this member is gone. It names one that has died, if there is one: the others leave
    /// because of that.
    fn word_of_end(&self, making: &Making, gone: Peer) -> Word {
        let is_dead = |&&peer: &&Peer| self.is_gone(peer) && self.presence(peer) == Presence::Dead;
        let dead = making.members.iter().find(is_dead);
        self.word_of_loss(dead.copied().unwrap_or(gone))
    }

    /// The word about a member that is gone: others may not have heard why.
    fn word_of_loss(&self, peer: Peer) -> Word {
        Word::Gone(peer, self.presence(peer) == Presence::Left)
    }

    /// The next word of a member to this task; `Gone` if there will be none.
    fn hear(&mut self, making: &Making, from: Peer) -> Option<Word> {
        let select = Select {
            context: making.frame.context,
            source: Some(from),
            tag: TagSelect::Exactly(making.frame.tag),
        };
        let word = |body: &Body| {
            let Body::Bytes(bytes) = body else {
                return None;
            };
            let (name, attempt, word) = read_word(bytes)?;
            (name == making.name && attempt == making.attempt).then_some(word)
        };
        let is_ours = |body: &Body| word(body).is_some();
        let found = self.unexpected.find_where(&select, is_ours);
        if let Some(message) = found.and_then(|id| self.unexpected.remove(id)) {
            self.buffered -= charge(message.body.length());
            // One that makes no sense counts as the last of its sender.
            let word = word(&message.body).and_then(Word::of);
            return Some(word.unwrap_or_else(|| self.word_of_loss(from)));
        }
        let is_gone = self.is_gone(from) && !self.may_have_unread(from, making.frame.context);
        is_gone.then(|| self.word_of_end(making, from))
    }

    /// Asks the members below, and answers for this one.
    fn propose(&mut self, making: &mut Making, context: u32, epoch: u64) {
        making.context = context;
        making.waiting.clone_from(&making.tree.children);
        self.tell_children(making, Word::Propose(context, epoch));
        making.answer = match &making.obstacle {
            Some(_) => Word::Full(self.me),
            None if epoch == self.epochs.used() && self.epochs.accept(context) => Word::Accepted,
            None => Word::Refused(self.epochs.next(), self.epochs.used()),
        };
    }

    fn tell_children(&mut self, making: &Making, word: Word) {
        for &child in &making.tree.children {
            self.tell(making, making.peer(child), word);
        }
    }

    fn tell(&mut self, making: &Making, to: Peer, word: Word) {
        let numbers = [&making.name[..], &[making.attempt], &word.numbers()].concat();
        // One that cannot be told any more is gone itself.
        let _ = self.send_or_queue(to, making.frame, &bytes_of_all(&numbers));
    }

    /// All below have answered. As of `step`.
    fn answered(&mut self, making: &mut Making) -> Option<bool> {
        if let Some(parent) = making.tree.parent {
            self.tell(making, making.peer(parent), making.answer);
            return Some(true);
        }
        let last = match making.answer {
            Word::Refused(next, epoch) => {
                making.refused += 1;
                making.due = Some((next, epoch));
                return Some(true);
            }
            Word::Accepted => match self.make_collective_buffer(&making.members) {
                Ok(buffer) => Word::Made(making.context, buffer),
                Err(error) => {
                    making.obstacle = Some(error);
                    Word::Full(self.me)
                }
            },
            last => last,
        };
        self.end_making(making, last);
        None
    }

    /// The last word, which goes to all below.
    fn end_making(&mut self, making: &mut Making, last: Word) {
        self.tell_children(making, last);
        let neighbours = making.tree.parent.iter().chain(&making.tree.children);
        self.end_attempt(
            (making.frame.context, making.frame.tag),
            (making.name, making.attempt),
            !matches!(last, Word::Made(..)),
            neighbours.map(|&rank| making.peer(rank)),
        );
        // Whoever has lost this task says that it is gone; for this task it is the other one.
        let last = match last {
            Word::Gone(peer, _) if peer == self.me => self.gone_member(making).unwrap_or(last),
            last => last,
        };
        let members = std::mem::take(&mut making.members);
        let made = match last {
            Word::Made(context, buffer) if context == making.context => {
                self.fill_group(making.group, members, context, buffer)
            }
            Word::Full(peer) => Err(making.obstacle.take().unwrap_or_else(|| no_place(peer))),
            Word::Gone(peer, left) => {
                let error = self.said_to_be_gone(peer, left);
                if let (Error::Dead(peer), Some(_)) = (&error, making.request) {
                    self.note_reported_dead(making.frame.context, *peer);
                }
                Err(error)
            }
            _ => Err(Error::State(
                c"a member's word about a new group makes no sense",
            )),
        };
        if made.is_err() {
            self.groups.release(making.group);
        }
        match making.request {
            Some(request) => self.requests.complete(request, made.err()),
            None if made.is_ok() => drop(self.free_group(making.group)),
            None => {}
        }
    }

    /// The error for a member that another one has found gone.
    fn said_to_be_gone(&self, peer: Peer, left: bool) -> Error {
        if peer >= self.transport.peers() || peer == self.me {
            return Error::State(c"a member named one as gone that cannot be meant");
        }
        match self.presence(peer) {
            Presence::Here if left => Error::Left(peer),
            Presence::Here => Error::Dead(peer),
            _ => self.loss(peer),
        }
    }
}
