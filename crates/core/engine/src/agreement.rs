//! The members of a group agree, whoever dies meanwhile: on who survives, or on a flag (`subject.rs`).
//!
//! The first member that is still there leads; if it goes, the next one does. Turns are numbered: a leader's are its rank, and
//! that plus multiples of the number of members.
//!
//! ```text
//! leader                              members
//! Ask(turn)       ──────────────────> (answered once they have called, too)
//!                 <────────────────── State(turn, what it brings, what was adopted last, who is there)
//! Propose(turn, choice) ────────────> adopt it
//!                 <────────────────── Adopted(turn)
//! Decided(turn, choice) ────────────> done
//!
//! of a turn that is over              (another leader asked in a later one)
//!                 <────────────────── Decided(choice), when it is known
//!                 <────────────────── Again(turn), when that leader is gone: ask in a later one
//!                 <────────────────── Want: tell me what is decided
//! ```
//!
//! *Why they agree.* A leader waits for every member that is there, at each step, and decides only
//! what all of them have adopted. So if anybody may have decided, whoever leads next finds that
//! adopted by everyone, and proposes it again: it takes what was adopted in the latest turn. A
//! member that has answered a turn takes no proposal of an earlier one, which may still lie in its
//! ring. Everything that a call returns is in the choice, so all return the same.
//!
//! *Why none hangs.* The death of a leader is heard by all. A member that has decided has gone on,
//! but its engine still answers, and leads when it is its turn: it tells everybody what it knows.
//! Nothing is to be done as long as the leader that told it is there, and nobody asks.
//!
//! *Who is there* is not the same for all: two members that cannot reach each other are dead to each
//! other. Then two may lead at once. Members that both reach answer the later turn, and tell the other
//! leader what comes of it. A member that waits for a leader while it takes earlier ones for dead says
//! so to it (Want), since the leader may have been told by one of these. Of two that have given each
//! other up one survives: the first in rank that all others of the survivors reach.
//!
//! A member that has died is not reached by those that have heard of it, and may have answered before: the leader, if it has not heard, cannot
//! tell that from two that have given each other up. So it asks once more, in a later turn, when it finds two that do not reach each other:
//! one that has died does not answer, and the leader hears of the death. Two that both answer are apart.
//!
//! *When one is forgotten.* Others may ask until all that live have decided. A member says with its State before which agreement of the
//! group it has decided all, and the choice has the lowest of these numbers, the floor: nobody asks for those before it any more. There
//! is none (0) while a member that does not survive is there for somebody.
//!
//! When the group is freed all are forgotten (`closing`).
//!
//! Members that left in good order count as gone.

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

/// Agreements that nobody needs any more are kept until so many later ones are decided: what others still say of them finds its place.
const KEPT: u64 = 8;

/// The result of an agreement.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Two words of the subject.
    pub(crate) words: [u64; 2],
    /// No member needs agreements of the group before this one.
    floor: u64,
    /// By rank in the group.
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

/// Stands for the turn of what is decided: later than any other.
const LAST: usize = u32::MAX as usize;

/// Where a leader is. The lists say which ranks it still waits for.
#[derive(Debug)]
enum Lead {
    Not,
    Asking(Vec<bool>),
    Proposing(Vec<bool>),
    Told,
}

/// One agreement. It stays when it is over: others may ask.
struct Agreement {
    number: u64,
    /// Its place among those of the group.
    sequence: u64,
    /// Of the old group, in rank order.
    members: Vec<Peer>,
    rank: usize,
    context: u32,
    tag: i32,
    subject: Subject,
    /// All members heard of have decided those before this one.
    floor: u64,
    /// The turn in which this task leads, or would.
    turn: usize,
    /// The latest turn answered, + 1.
    answered: usize,
    /// The choice adopted last, and in which turn.
    adopted: Option<(usize, Choice)>,
    decided: bool,
    /// The caller has what came of it.
    taken: bool,
    /// The leader that told this task, itself perhaps.
    told_by: Option<usize>,
    lead: Lead,
    /// The peers that each member reaches, of the members that have answered this task.
    reached: Vec<Vec<bool>>,
    /// Pairs that did not reach each other when all had answered this task in its turn before.
    apart: Vec<(usize, usize)>,
    /// Leaders whose turn was over when they asked, and members that want to be told.
    refused: Vec<usize>,
    wanting: Vec<usize>,
    /// The outcome, as another one says it, while a choice is adopted whose leader is there.
    held: Option<(Choice, usize)>,
    /// The leader from which this task wants to be told.
    wants: Option<usize>,
    /// Messages to send, as soon as there is memory for them.
    out: Vec<(Peer, Vec<u64>)>,
    sending: Vec<Handle>,
    receiving: Vec<(usize, Handle, Views)>,
}

impl Choice {
    /// As words: those of the subject, the floor, then a bit for each rank.
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

/// Returns a bit for each rank.
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

    /// Returns whether it is over, and nothing of it is on its way.
    fn is_at_rest(&self) -> bool {
        self.is_over() && self.receiving.is_empty()
    }

    /// Returns whether it is at rest, and the caller has the outcome.
    fn is_done_with(&self) -> bool {
        self.taken && self.is_at_rest()
    }

    /// Returns this member's part, for a leader.
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

    /// Returns the rank of the leader whose turn was answered last.
    fn followed(&self) -> Option<usize> {
        Some(self.answered.checked_sub(1)? % self.members.len())
    }

    /// Returns whether what this task has adopted may have been decided, by another one than this, who would say so.
    fn is_bound(&self, by: usize, there: &[bool]) -> bool {
        let adopted = self.adopted.as_ref();
        let adopted = adopted.is_some_and(|(turn, _)| turn + 1 == self.answered);
        let leader = self.followed().filter(|leader| there[*leader]);
        adopted && leader.is_some_and(|leader| leader != by)
    }

    /// Notes that the outcome is known.
    fn decide(&mut self, choice: Choice, told_by: usize) {
        if !self.decided {
            self.adopted = Some((LAST, choice));
            self.decided = true;
        }
        self.told_by = Some(told_by);
    }

    /// Handles a message of the member with rank `from`. The members that this task reaches are `there`.
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

    /// Lets this task lead from the beginning, in a turn after this one.
    fn begin_later(&mut self, turn: usize) {
        let size = self.members.len();
        while self.turn <= turn {
            self.turn += size;
        }
        self.lead = Lead::Not;
        self.reached.iter_mut().for_each(Vec::clear);
    }

    /// Returns whether a member has said that it reaches another one; of this task `there` says so.
    fn reaches(&self, one: usize, other: usize, there: &[bool]) -> bool {
        let reached = if one == self.rank {
            there
        } else {
            &self.reached[one]
        };
        reached.get(other).is_some_and(|&reached| reached)
    }

    /// Returns whether all that have answered are to be asked once more: of two that did not reach each other before one may have died since.
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

    /// Asks another one, which leads, for the outcome: it may follow one that is gone for this task.
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

    /// Says what is known, or that there is nobody to wait for, to those that have asked.
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
    /// A message of one has come and was not looked at.
    came: bool,
    /// Number of agreements begun so far.
    begun: u64,
}

impl Agreements {
    /// Begins to agree. Each member that lives does, in the same order. Returns the number of the agreement.
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

    /// Returns how many agreements are under way, or are kept for others who may ask.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Notes that a message of an agreement has come.
    pub(crate) fn note_message(&mut self) {
        self.came = true;
    }

    /// Returns the choice of an agreement and its members; `None` while it is not known.
    pub(crate) fn outcome(&self, number: u64) -> Option<(&Choice, &[Peer])> {
        let agreement = self.list.iter().find(|one| one.number == number)?;
        Some((agreement.outcome()?, &agreement.members))
    }

    /// Notes that the caller of an agreement has what came of it.
    pub(crate) fn take(&mut self, number: u64) {
        if let Some(agreement) = self.list.iter_mut().find(|one| one.number == number) {
            agreement.taken = true;
        }
    }

    /// Returns whether the group with this collectives' context has agreements.
    pub(crate) fn has_any_of(&self, context: u32) -> bool {
        self.list.iter().any(|one| one.context == context)
    }

    /// Returns whether its agreements are all over, and their callers have what came of them.
    pub(crate) fn is_done_with(&self, context: u32) -> bool {
        let mut of_it = self.list.iter().filter(|one| one.context == context);
        of_it.all(Agreement::is_done_with)
    }

    /// Forgets its agreements.
    pub(crate) fn forget(&mut self, context: u32) {
        self.list.retain(|one| one.context != context);
    }

    /// Returns the contexts of groups of survivors that this task is about to have, and others may have already, with their epochs.
    pub(crate) fn coming(&self) -> impl Iterator<Item = (u64, u32)> {
        let groups = self.list.iter().filter(|one| one.subject.is_group());
        let choices = groups.filter_map(|one| one.adopted.as_ref());
        choices.map(|(_, choice)| (choice.words[0] >> 32, choice.words[0] as u32))
    }

    /// Drops the memory of the flag for which this request waits: nobody does any more. The others may, so the agreement goes on.
    pub(crate) fn drop_vote(&mut self, request: u32) {
        for agreement in &mut self.list {
            agreement.subject.drop_request(request);
        }
    }

    /// Moves every agreement along. Returns whether anything moved.
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

    /// Returns whether all agreements are over, with nothing on its way.
    pub(crate) fn are_at_rest(&self) -> bool {
        !self.came && self.list.iter().all(Agreement::is_at_rest)
    }

    /// Forgets agreements that nobody needs any more.
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
    /// Returns which ranks are there, this one aside.
    fn others_there<T: Transport>(&self, groups: &Groups<T>) -> Vec<bool> {
        let is_there =
            |&peer: &Peer| peer != groups.me() && groups.presence(peer) == Presence::Here;
        self.members.iter().map(is_there).collect()
    }

    /// Gives its caller what came of it, if that is known and the caller waits for a request.
    fn end<T: Transport>(&mut self, groups: &mut Groups<T>) {
        let Some((_, choice)) = self.adopted.as_ref().filter(|_| self.is_over()) else {
            return;
        };
        let outcome = (choice.words, choice.survives[self.rank]);
        let group = (&self.members[..], self.context);
        self.taken |= self.subject.end(groups, group, outcome);
    }

    /// Takes in what has come, and says what there is to say. Returns whether anything moved.
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

    /// Takes in what has come.
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
                // Of a stranger, or the sender is gone with half of it still to come.
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
                    // A message that makes no sense counts as not sent.
                    if let Ok(words) = fields::all::<u64>(&bytes) {
                        let there = self.others_there(groups);
                        let _ = self.handle(from, &words, &there);
                    }
                    moved = true;
                }
                // It is gone, and that will be seen.
                Ok(Some(_)) | Err(_) => moved = true,
            }
        }
        moved
    }

    /// Takes the leader's next step, if this task is the leader. Another one may be followed, though.
    fn lead<T: Transport>(&mut self, groups: &mut Groups<T>, follows: bool) -> bool {
        let there = self.others_there(groups);
        let (turn, rank) = (self.turn, self.rank);
        if let Some(leader) = there[..rank].iter().position(|&there| there) {
            return self.want_of(leader);
        }
        let begun = matches!(self.lead, Lead::Asking(_) | Lead::Proposing(_));
        if self.decided && begun {
            // By a later leader. A member that was asked may wait for this one.
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

    /// Chooses the survivors: those that answered, are there and reach each other, the first in rank before others.
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

    /// Sends what there is to say.
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
                // This host lacks something just now.
                Err(Error::System(_) | Error::Memory(_)) => {
                    kept.push((to, words));
                    continue;
                }
                // One that cannot be told any more is gone itself.
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
