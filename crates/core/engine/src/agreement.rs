//! Agreement of a group's members that tolerates deaths: on who survives, or on a flag (`subject.rs`).
//!
//! The first living member leads. If it dies or leaves, the next one leads. Turns are numbered: a leader's turns are its rank plus multiples of the
//! number of members.
//!
//! ```text
//! leader                              members
//! Ask(turn)       ──────────────────> (answered once they have called, too)
//!                 <────────────────── State(turn, own contribution, choice adopted last, living members)
//! Propose(turn, choice) ────────────> adopt it
//!                 <────────────────── Adopted(turn)
//! Decided(turn, choice) ────────────> done
//!
//! to the leader of an earlier turn    (another leader asked in a later turn)
//!                 <────────────────── Decided(choice), once the choice is known
//!                 <────────────────── Again(turn), once the later leader is gone: ask in a later turn
//!                 <────────────────── Want: send me the decision
//! ```
//!
//! *Why they agree.* At each step a leader waits for every living member, and it decides only what all of them have adopted. So if any member may
//! have decided, the next leader finds that every member has adopted that choice. It takes the choice that was adopted in the latest turn, and
//! proposes it again. A member that has answered a turn ignores proposals of earlier turns, which may still be in its ring. Everything that a call
//! returns is part of the choice, so all members return the same.
//!
//! *Why none hangs.* All members are notified of a leader's death. The caller of a member that has decided has returned, but its engine still
//! answers. It leads when it is its turn, and sends the decision to all. It has nothing to do while the leader that notified it lives and no member
//! asks.
//!
//! *Who lives* is not the same for all: two members that cannot reach each other consider each other dead. Then two members may lead at once.
//! Members that reach both answer the later turn, and send its outcome to the other leader. A member that waits for a leader while it considers
//! earlier leaders dead sends Want to that leader, since that leader may have the decision from one of them. Of two members that have given
//! each other up, one survives: the first in rank that all other survivors reach.
//!
//! A member that has died may have sent its State before, and is not reached by members that know of its death. A leader that does not know of the
//! death cannot distinguish this from two living members that have given each other up. So when it finds two members that do not reach each other,
//! it asks once more in a later turn. A member that has died does not answer, and the leader learns of its death. If both answer, they are
//! separated.
//!
//! *When an agreement is forgotten.* Other members may ask until all living members have decided. In State a member sends the number of the
//! agreement of the group before which it has decided all. The choice contains the lowest of these numbers, the floor: no member asks for agreements
//! before it any more. The floor is 0 while a member that does not survive is reached by any member.
//!
//! When the group is freed, all of its agreements are forgotten (`closing`).
//!
//! Members that left in good order are treated as dead.

use regatta_memory::views::{Scratch, Views};
use regatta_wire::fields;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::groups::Groups;
use crate::matching::{Select, TagSelect};
use crate::numbers;
use crate::request::{Handle, Mode};
use crate::subject::Subject;
use crate::transport::{Peer, Presence, Transport};

/// Agreements that no member needs any more are kept until this many later ones are decided, so that late messages about them still find them.
const KEPT: u64 = 8;

/// The result of an agreement.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Two words whose meaning the subject defines.
    pub(crate) words: [u64; 2],
    /// No member needs agreements of the group with a lower sequence number.
    floor: u64,
    /// Whether each member survives, by rank in the group.
    pub(crate) survives: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ask = 1,
    State,
    Propose,
    Adopted,
    Decided,
    Again,
    Want,
}

/// Turn of a decided choice: later than any other.
const LAST: usize = u32::MAX as usize;

/// State of this task as a leader. The lists say for which ranks it still waits.
#[derive(Debug)]
enum Lead {
    Not,
    Asking(Vec<bool>),
    Proposing(Vec<bool>),
    Told,
}

/// One agreement. It is kept after it is decided, since other members may still ask about it.
struct Agreement {
    number: u64,
    /// Sequence number among the agreements of the group.
    sequence: u64,
    /// Members of the group, by rank.
    members: Vec<Peer>,
    rank: usize,
    context: u32,
    tag: i32,
    subject: Subject,
    /// All members known so far have decided the agreements before this sequence number.
    floor: u64,
    /// The turn in which this task leads, or would lead.
    turn: usize,
    /// The latest turn answered, + 1.
    answered: usize,
    /// The choice adopted last, and the turn in which it was adopted.
    adopted: Option<(usize, Choice)>,
    decided: bool,
    /// The outcome was given to the caller.
    taken: bool,
    /// Rank of the leader that sent this task the decision, or this task's own rank.
    told_by: Option<usize>,
    lead: Lead,
    /// For each member that has answered this task, the members that it reaches.
    reached: Vec<Vec<bool>>,
    /// Pairs of members that did not reach each other when all had answered in this task's previous turn.
    apart: Vec<(usize, usize)>,
    /// Leaders whose turn was over when they asked, and members that have sent Want.
    refused: Vec<usize>,
    wanting: Vec<usize>,
    /// A decision sent by another member, and its rank. It is held while the leader of the adopted choice lives.
    held: Option<(Choice, usize)>,
    /// The leader to which this task has sent Want.
    wants: Option<usize>,
    /// Messages to send as soon as there is memory for them.
    out: Vec<(Peer, Vec<u64>)>,
    sending: Vec<Handle>,
    receiving: Vec<(usize, Handle, Views)>,
}

impl Choice {
    /// Encodes the choice as words: those of the subject, the floor, then a bit for each rank.
    fn words(&self) -> Vec<u64> {
        let head = [self.words[0], self.words[1], self.floor];
        head.into_iter().chain(bits(&self.survives)).collect()
    }

    fn from_words(words: &[u64], members: usize) -> Option<Choice> {
        let [one, other, floor, bits @ ..] = words else {
            return None;
        };
        Some(Choice {
            words: [*one, *other],
            floor: *floor,
            survives: from_bits(bits, members)?,
        })
    }
}

/// Encodes one bit for each rank.
fn bits(ranks: &[bool]) -> impl Iterator<Item = u64> {
    let bit = |(at, &is): (usize, &bool)| (is as u64) << at;
    let parts = ranks.chunks(64);
    parts.map(move |part| part.iter().enumerate().map(bit).sum())
}

fn from_bits(bits: &[u64], members: usize) -> Option<Vec<bool>> {
    let is = |rank: usize| Some(bits.get(rank / 64)? >> (rank % 64) & 1 == 1);
    (0..members).map(is).collect()
}

impl Agreement {
    /// Returns whether the choice is known and nothing is left to send.
    fn is_over(&self) -> bool {
        self.decided && self.out.is_empty() && self.sending.is_empty()
    }

    /// Returns the choice, when it is known and nothing is left to send.
    fn outcome(&self) -> Option<&Choice> {
        let (_, choice) = self.adopted.as_ref().filter(|_| self.is_over())?;
        Some(choice)
    }

    /// Returns whether the agreement is decided, and none of its messages is being sent or received.
    fn is_at_rest(&self) -> bool {
        self.is_over() && self.receiving.is_empty()
    }

    /// Returns whether the agreement is at rest and the caller has the outcome.
    fn is_done_with(&self) -> bool {
        self.taken && self.is_at_rest()
    }

    /// Returns the contents of the State message. `there` says which other members live.
    fn state(&self, there: &[bool]) -> Vec<u64> {
        let nobody = vec![false; self.members.len()];
        let (brings, acknowledged) = self.subject.brings();
        let acknowledged = acknowledged.unwrap_or(&nobody);
        let mut state = vec![brings, 0, self.floor];
        state.extend(bits(there).chain(bits(acknowledged)));
        if let Some((turn, choice)) = &self.adopted {
            state[1] = *turn as u64 + 1;
            state.extend(choice.words());
        }
        state
    }

    fn send(&mut self, to: usize, kind: Kind, turn: usize, rest: &[u64]) {
        let head = (turn as u64) << 8 | kind as u64;
        let words = [&[head], rest].concat();
        self.out.push((self.members[to], words));
    }

    fn send_all(&mut self, to: &[bool], kind: Kind, rest: &[u64]) {
        for rank in (0..to.len()).filter(|&rank| to[rank]) {
            self.send(rank, kind, self.turn, rest);
        }
    }

    /// Returns the rank of the leader of the turn that was answered last.
    fn followed(&self) -> Option<usize> {
        Some(self.answered.checked_sub(1)? % self.members.len())
    }

    /// Returns whether the leader of the choice adopted last lives, is not `by`, and may have decided that choice. It would send its decision to
    /// this task.
    fn is_bound(&self, by: usize, there: &[bool]) -> bool {
        let adopted = self.adopted.as_ref();
        let adopted = adopted.is_some_and(|(turn, _)| turn + 1 == self.answered);
        let leader = self.followed().filter(|leader| there[*leader]);
        adopted && leader.is_some_and(|leader| leader != by)
    }

    /// Records the outcome.
    fn decide(&mut self, choice: Choice, told_by: usize) {
        if !self.decided {
            self.adopted = Some((LAST, choice));
            self.decided = true;
        }
        self.told_by = Some(told_by);
    }

    /// Handles a message of the member with rank `from`. `there` says which members this task reaches.
    fn handle(&mut self, from: usize, words: &[u64], there: &[bool]) -> Option<()> {
        let (head, rest) = words.split_first()?;
        let turn = (head >> 8) as usize;
        let size = self.members.len();
        let leads = turn % size == from;
        let is = |kind: Kind| head & 0xff == kind as u64;
        let over = self.decided || self.answered > turn + 1;
        if (is(Kind::Ask) || is(Kind::Propose)) && leads && over {
            self.refused.push(from);
        } else if is(Kind::Ask) && leads {
            self.answered = turn + 1;
            self.send(from, Kind::State, turn, &self.state(there));
        } else if is(Kind::Propose) && leads {
            self.answered = turn + 1;
            self.adopted = Some((turn, Choice::from_words(rest, size)?));
            self.send(from, Kind::Adopted, turn, &[]);
        } else if is(Kind::Decided) {
            let choice = Choice::from_words(rest, size)?;
            match self.is_bound(from, there) {
                true => self.held = Some((choice, from)),
                false => self.decide(choice, from),
            }
        } else if is(Kind::Want) {
            self.wanting.push(from);
        } else if turn == self.turn {
            return self.handle_as_leader(from, head & 0xff, rest);
        } else if is(Kind::Again) && turn > self.turn && !self.decided {
            self.begin_later(turn);
        }
        Some(())
    }

    fn handle_as_leader(&mut self, from: usize, kind: u64, rest: &[u64]) -> Option<()> {
        let size = self.members.len();
        match &mut self.lead {
            Lead::Asking(waiting) if kind == Kind::State as u64 => {
                let (&[brings, adopted, floor], rest) = rest.split_first_chunk()?;
                let (reached, rest) = rest.split_at_checked(size.div_ceil(64))?;
                let (acknowledged, choice) = rest.split_at_checked(size.div_ceil(64))?;
                self.reached[from] = from_bits(reached, size)?;
                waiting[from] = false;
                let acknowledged = from_bits(acknowledged, size)?;
                self.subject.take_in(brings, &acknowledged);
                self.floor = self.floor.min(floor);
                let last = self.adopted.as_ref().map(|(last, _)| *last + 1);
                if adopted as usize > last.unwrap_or(0) {
                    let choice = Choice::from_words(choice, size)?;
                    self.adopted = Some((adopted as usize - 1, choice));
                }
            }
            Lead::Proposing(waiting) if kind == Kind::Adopted as u64 => waiting[from] = false,
            _ => return None,
        }
        Some(())
    }

    /// Lets this task start as a leader again, in a turn after this one.
    fn begin_later(&mut self, turn: usize) {
        let size = self.members.len();
        while self.turn <= turn {
            self.turn += size;
        }
        self.lead = Lead::Not;
        self.reached.iter_mut().for_each(Vec::clear);
    }

    /// Returns whether member `one` has reported that it reaches `other`. For this task itself, `there` says which members it reaches.
    fn reaches(&self, one: usize, other: usize, there: &[bool]) -> bool {
        let reached = if one == self.rank {
            there
        } else {
            &self.reached[one]
        };
        reached.get(other).is_some_and(|&reached| reached)
    }

    /// Returns whether some members do not reach each other that were not found apart in the previous turn. The leader must then ask all members once
    /// more, since one of a pair may have died.
    fn has_new_pairs(&mut self, there: &[bool]) -> bool {
        let ranks = (0..there.len()).filter(|&rank| there[rank] || rank == self.rank);
        let ranks: Vec<usize> = ranks.collect();
        let mut apart = Vec::new();
        for (at, &one) in ranks.iter().enumerate() {
            for &other in &ranks[..at] {
                if !self.reaches(one, other, there) || !self.reaches(other, one, there) {
                    apart.push((one, other));
                }
            }
        }
        let new = apart.iter().any(|pair| !self.apart.contains(pair));
        self.apart = apart;
        new
    }

    /// Sends Want to the leader: it may know a decision from a leader that this task considers dead. Returns whether a message was sent.
    fn want_of(&mut self, leader: usize) -> bool {
        let wants = leader > 0 && !self.decided && self.wants != Some(leader);
        if wants {
            self.wants = Some(leader);
            self.send(leader, Kind::Want, self.turn, &[]);
        }
        wants
    }

    fn notify_all(&mut self, there: &[bool]) {
        self.lead = Lead::Told;
        if let Some((_, choice)) = self.adopted.clone() {
            self.send_all(there, Kind::Decided, &choice.words());
            self.decide(choice, self.rank);
        }
    }

    /// Answers the leaders and members that have asked: with the decision if it is known, or with Again if the leader that this task followed is
    /// gone.
    fn answer_asked(&mut self, follows: bool) -> bool {
        if let Some((choice, from)) = self.held.take_if(|_| !follows) {
            self.decide(choice, from);
        }
        let choice = self.adopted.as_ref().filter(|_| self.decided);
        if let Some(words) = choice.map(|(_, choice)| choice.words()) {
            let asked = std::mem::take(&mut self.refused);
            let asked = [asked, std::mem::take(&mut self.wanting)].concat();
            for &rank in &asked {
                self.send(rank, Kind::Decided, self.turn, &words);
            }
            return !asked.is_empty();
        }
        if follows || self.refused.is_empty() {
            return false;
        }
        for rank in std::mem::take(&mut self.refused) {
            self.send(rank, Kind::Again, self.answered - 1, &[]);
        }
        true
    }
}

/// All agreements of a task.
#[derive(Default)]
pub(crate) struct Agreements {
    list: Vec<Agreement>,
    /// A message of an agreement was received and is not handled yet.
    came: bool,
    /// Number of agreements begun so far.
    begun: u64,
}

impl Agreements {
    /// Starts an agreement. Every living member starts the agreements of a group in the same order. Returns the number of the agreement.
    pub(crate) fn start<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        id: GroupId,
        subject: Subject,
    ) -> Result<u64> {
        groups.closed(id)?;
        let number = self.begun;
        let group = groups.group_mut(id)?;
        let sequence = group.next_agreement();
        let (rank, context, members) = (group.rank as usize, group.context + 1, group.peers());
        let of_group = |one: &&Agreement| one.context == context && !one.decided;
        let undecided = self.list.iter().filter(of_group);
        let floor = undecided.map(|one| one.sequence).min();
        self.list.push(Agreement {
            number,
            sequence,
            reached: vec![Vec::new(); members.len()],
            apart: Vec::new(),
            members,
            rank,
            context,
            tag: numbers::of_agreement(sequence),
            subject,
            floor: floor.unwrap_or(sequence),
            turn: rank,
            answered: 0,
            adopted: None,
            decided: false,
            taken: false,
            told_by: None,
            lead: Lead::Not,
            refused: Vec::new(),
            wanting: Vec::new(),
            held: None,
            wants: None,
            out: Vec::new(),
            sending: Vec::new(),
            receiving: Vec::new(),
        });
        self.begun += 1;
        self.run(groups);
        Ok(number)
    }

    /// Returns the number of agreements that are in progress or kept for other members.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Records that a message of an agreement was received.
    pub(crate) fn note_message(&mut self) {
        self.came = true;
    }

    /// Returns the choice of an agreement and the group's members, or `None` while the choice is not known.
    pub(crate) fn outcome(&self, number: u64) -> Option<(&Choice, &[Peer])> {
        let agreement = self.list.iter().find(|one| one.number == number)?;
        Some((agreement.outcome()?, &agreement.members))
    }

    /// Records that the caller of an agreement has its outcome.
    pub(crate) fn take(&mut self, number: u64) {
        if let Some(agreement) = self.list.iter_mut().find(|one| one.number == number) {
            agreement.taken = true;
        }
    }

    /// Returns whether the group with this collective context has agreements.
    pub(crate) fn has_any_of(&self, context: u32) -> bool {
        self.list.iter().any(|one| one.context == context)
    }

    /// Returns whether all agreements of the group with this collective context are over, and their callers have the outcomes.
    pub(crate) fn is_done_with(&self, context: u32) -> bool {
        let mut of_it = self.list.iter().filter(|one| one.context == context);
        of_it.all(Agreement::is_done_with)
    }

    /// Forgets the agreements of the group with this collective context.
    pub(crate) fn forget(&mut self, context: u32) {
        self.list.retain(|one| one.context != context);
    }

    /// Returns (epoch, context) of groups of survivors that other members may already have and this task does not have yet.
    pub(crate) fn coming(&self) -> impl Iterator<Item = (u64, u32)> {
        let groups = self.list.iter().filter(|one| one.subject.is_group());
        let choices = groups.filter_map(|one| one.adopted.as_ref());
        choices.map(|(_, choice)| (choice.words[0] >> 32, choice.words[0] as u32))
    }

    /// Drops the memory of the flag for which this request waits, since the caller has given the request up. The agreement goes on, since other
    /// members may still wait for it.
    pub(crate) fn drop_vote(&mut self, request: u32) {
        for agreement in &mut self.list {
            agreement.subject.drop_request(request);
        }
    }

    /// Makes progress in every agreement. Returns whether anything changed.
    #[cold]
    pub(crate) fn run<T: Transport>(&mut self, groups: &mut Groups<T>) -> bool {
        let mut moved = false;
        let came = std::mem::take(&mut self.came);
        for agreement in &mut self.list {
            let at_rest = |leader: usize| {
                !came
                    && agreement.is_at_rest()
                    && groups.presence(agreement.members[leader]) == Presence::Here
            };
            if !agreement.told_by.is_some_and(at_rest) {
                while agreement.step(groups) {
                    moved = true;
                }
                agreement.end(groups);
            }
        }
        if moved {
            self.forget_old();
        }
        moved
    }

    /// Returns whether all agreements are over and none of their messages is being sent or received.
    pub(crate) fn are_at_rest(&self) -> bool {
        !self.came && self.list.iter().all(Agreement::is_at_rest)
    }

    /// Forgets agreements that no member needs any more.
    fn forget_old(&mut self) {
        let mut floors = FxHashMap::default();
        for one in &self.list {
            if let Some(choice) = one.outcome() {
                let floor = floors.entry(one.context).or_insert(choice.floor);
                *floor = (*floor).max(choice.floor);
            }
        }
        self.list.retain(|one| {
            let floor = floors.get(&one.context);
            let before = floor.is_some_and(|&floor| one.sequence + KEPT < floor);
            !(before && one.is_done_with())
        });
    }
}

impl Agreement {
    /// Returns for each rank whether it lives and is not this task.
    fn others_there<T: Transport>(&self, groups: &Groups<T>) -> Vec<bool> {
        let is_there =
            |&peer: &Peer| peer != groups.me() && groups.presence(peer) == Presence::Here;
        self.members.iter().map(is_there).collect()
    }

    /// Completes the caller's request with the outcome, once it is known.
    fn end<T: Transport>(&mut self, groups: &mut Groups<T>) {
        let Some((_, choice)) = self.adopted.as_ref().filter(|_| self.is_over()) else {
            return;
        };
        let outcome = (choice.words, choice.survives[self.rank]);
        let group = (&self.members[..], self.context);
        self.taken |= self.subject.end(groups, group, outcome);
    }

    /// Handles received messages and sends the answers. Returns whether anything changed.
    fn step<T: Transport>(&mut self, groups: &mut Groups<T>) -> bool {
        let mut moved = self.listen(groups);
        let follows = self.followed().is_some_and(|leader| {
            let leader = self.members[leader];
            leader != groups.me() && groups.presence(leader) == Presence::Here
        });
        moved |= self.answer_asked(follows);
        moved |= self.lead(groups, follows);
        moved | self.speak(groups)
    }

    /// Receives and handles messages. Returns whether anything changed.
    fn listen<T: Transport>(&mut self, groups: &mut Groups<T>) -> bool {
        let mut moved = false;
        let mut select = Select {
            context: self.context,
            source: None,
            tag: TagSelect::Exactly(self.tag),
        };
        let longest = 8 * (7 + 3 * self.members.len().div_ceil(64));
        while groups.waiting() > 0
            && let Some(source) = groups.peek(&select).map(|found| found.source as Peer)
        {
            let Ok(into) = Scratch::new(longest) else {
                break;
            };
            let into = into.part(0, longest);
            select.source = Some(source);
            let from = self.members.iter().position(|&peer| peer == source);
            match (groups.start_receive_of(select, into.clone()), from) {
                (Ok(handle), Some(from)) => self.receiving.push((from, handle, into)),
                // The sender is not a member, or it is gone and the rest of its message will never arrive.
                (Ok(handle), None) => {
                    groups.withdraw(handle);
                }
                (Err(_), _) => {}
            }
            select.source = None;
            moved = true;
        }
        let receiving = std::mem::take(&mut self.receiving);
        for (from, handle, into) in receiving {
            match groups.finish(handle) {
                Ok(None) => self.receiving.push((from, handle, into)),
                Ok(Some((status, None))) => {
                    let bytes = into.part(0, status.length).to_vec();
                    // Ignore malformed messages.
                    if let Ok(words) = fields::all::<u64>(&bytes) {
                        let there = self.others_there(groups);
                        let _ = self.handle(from, &words, &there);
                    }
                    moved = true;
                }
                // The sender is gone. The next step will see that.
                Ok(Some(_)) | Err(_) => moved = true,
            }
        }
        moved
    }

    /// Takes the leader's next step if this task is the first living member. This task may still follow a later leader. Returns whether anything
    /// changed.
    fn lead<T: Transport>(&mut self, groups: &mut Groups<T>, follows: bool) -> bool {
        let there = self.others_there(groups);
        let (turn, rank) = (self.turn, self.rank);
        if let Some(leader) = there[..rank].iter().position(|&there| there) {
            return self.want_of(leader);
        }
        let begun = matches!(self.lead, Lead::Asking(_) | Lead::Proposing(_));
        if self.decided && begun {
            // A later leader has decided. A member that was asked in this turn may wait for this task.
            self.lead = Lead::Not;
        } else if self.answered > turn + 1 && !self.decided {
            if !follows {
                self.begin_later(self.answered - 1);
            }
            return !follows;
        }
        let waits = |waiting: &[bool]| (0..there.len()).any(|rank| waiting[rank] && there[rank]);
        match &self.lead {
            Lead::Not if !self.decided => {
                self.answered = turn + 1;
                self.send_all(&there, Kind::Ask, &[]);
                self.lead = Lead::Asking(there);
            }
            Lead::Asking(waiting) if !waits(waiting) => {
                if self.adopted.is_none() && self.has_new_pairs(&there) {
                    self.begin_later(turn);
                    return true;
                }
                if self.adopted.is_none() && !self.subject.has_numbers(groups, self.context) {
                    return false;
                }
                let choice = match self.adopted.take() {
                    Some((_, choice)) => choice,
                    None => self.choose(groups, &there),
                };
                self.send_all(&there, Kind::Propose, &choice.words());
                self.adopted = Some((turn, choice));
                self.lead = Lead::Proposing(there);
            }
            Lead::Not => self.notify_all(&there),
            Lead::Proposing(waiting) if !waits(waiting) => self.notify_all(&there),
            _ => return false,
        }
        true
    }

    /// Chooses the survivors: members that have answered, live and reach each other. Lower ranks take precedence.
    fn choose<T: Transport>(&self, groups: &mut Groups<T>, there: &[bool]) -> Choice {
        let me = self.rank;
        let mut survives = vec![false; there.len()];
        survives[me] = true;
        let reaches = |one: usize, other: usize| self.reaches(one, other, there);
        for rank in (0..there.len()).filter(|&rank| there[rank]) {
            let mut others = (0..there.len()).filter(|&other| survives[other]);
            survives[rank] = others.all(|other| reaches(rank, other) && reaches(other, rank));
        }
        let ranks = || 0..there.len();
        let is_apart = |rank: usize| !survives[rank] && ranks().any(|one| reaches(one, rank));
        let group = (&self.members[..], self.context);
        let words = self.subject.words(groups, group, &survives);
        Choice {
            words,
            floor: match ranks().any(is_apart) {
                true => 0,
                false => self.floor,
            },
            survives,
        }
    }

    /// Sends queued messages. Returns whether anything changed.
    fn speak<T: Transport>(&mut self, groups: &mut Groups<T>) -> bool {
        let mut moved = false;
        let mut kept = Vec::new();
        for (to, words) in self.out.drain(..) {
            let length = 8 * words.len();
            let Ok(message) = Scratch::new(length) else {
                kept.push((to, words));
                continue;
            };
            let message = message.part(0, length);
            message.fill(&fields::bytes_of_all(&words));
            let (context, tag) = (self.context, self.tag);
            match groups.start_send(to, context, tag, message, Mode::Standard) {
                Ok(handle) => self.sending.push(handle),
                // This host temporarily lacks memory or another resource.
                Err(Error::System(_) | Error::Memory(_)) => {
                    kept.push((to, words));
                    continue;
                }
                // Ignore the error: a peer that cannot be reached is gone.
                Err(_) => {}
            }
            moved = true;
        }
        self.out = kept;
        let before = self.sending.len();
        let open = |handle: &Handle| matches!(groups.finish(*handle), Ok(None));
        self.sending.retain(open);
        moved | (before != self.sending.len())
    }
}
