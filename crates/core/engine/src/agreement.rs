//! The members of a group agree, whoever dies meanwhile: on who survives (`shrink`), or on a flag (`agree`).
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

use crate::engine::Engine;
use crate::epoch;
use crate::error::Result;
use crate::group::GroupId;
use crate::making;
use crate::matching::{Select, TagSelect};
use crate::request::Handle;
use crate::send::Mode;
use crate::transport::{Peer, Presence, Transport};

/// Tags of agreements, on the collectives' context: beyond those of collectives, of revocations, and of the ends of groups.
pub(crate) const TAGS: i32 = 0x5000_0000;
const COUNT: u64 = 0x0fff_ffff;
const _: () = assert!(TAGS + (COUNT as i32) < making::TAGS);

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

/// The question that an agreement answers, and what is known of that so far.
pub(crate) enum Subject {
    /// The survivors' group. The lowest group number that is free at all members heard from; the epoch is in the upper 32 bits.
    Survivors(u64),
    /// A flag.
    Flag(Vote),
}

/// The part of members in an agreement on a flag: this one's, and of those that it has heard of as a leader.
pub(crate) struct Vote {
    /// The flags, and whom all of these have acknowledged.
    pub(crate) flags: u64,
    pub(crate) acknowledged: Vec<bool>,
    /// Nobody waits for it any more when there is none.
    pub(crate) request: Option<u32>,
    pub(crate) into: Views,
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
pub(crate) struct Agreement {
    number: u64,
    /// Its place among those of the group.
    sequence: u64,
    /// Of the old group, in rank order.
    pub(crate) members: Vec<Peer>,
    pub(crate) rank: usize,
    pub(crate) context: u32,
    tag: i32,
    pub(crate) subject: Subject,
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
    pub(crate) taken: bool,
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

/// A bit for each rank.
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
    /// The choice is known and nothing is left to send.
    fn is_over(&self) -> bool {
        self.decided && self.out.is_empty() && self.sending.is_empty()
    }

    /// The choice, when it is known and nothing is left to send.
    pub(crate) fn outcome(&self) -> Option<&Choice> {
        let (_, choice) = self.adopted.as_ref().filter(|_| self.is_over())?;
        Some(choice)
    }

    /// The choice that was adopted last, or decided.
    pub(crate) fn choice(&self) -> Option<&Choice> {
        self.adopted.as_ref().map(|(_, choice)| choice)
    }

    /// And nothing of it is on its way.
    fn is_at_rest(&self) -> bool {
        self.is_over() && self.receiving.is_empty()
    }

    /// And the caller has the outcome.
    pub(crate) fn is_done_with(&self) -> bool {
        self.taken && self.is_at_rest()
    }

    /// This member's part, for a leader.
    fn state(&self, there: &[bool]) -> Vec<u64> {
        let nobody = vec![false; self.members.len()];
        let (brings, acknowledged) = match &self.subject {
            Subject::Survivors(free) => (*free, &nobody),
            Subject::Flag(vote) => (vote.flags, &vote.acknowledged),
        };
        let mut state = vec![brings, 0, self.floor];
        state.extend(bits(there).chain(bits(acknowledged)));
        if let Some((turn, choice)) = &self.adopted {
            state[1] = *turn as u64 + 1;
            state.extend(choice.words());
        }
        state
    }

    /// The part of a member that has answered.
    fn take_in(&mut self, brings: u64, acknowledged: &[bool], floor: u64) -> Option<()> {
        match &mut self.subject {
            // All would enter an epoch in which nobody believes, and wait for each other there.
            Subject::Survivors(_) if brings >> 32 > epoch::MAX_EPOCH => {}
            Subject::Survivors(free) => *free = (*free).max(brings),
            Subject::Flag(vote) => {
                vote.flags &= brings;
                let both = vote.acknowledged.iter_mut().zip(acknowledged);
                both.for_each(|(all, one)| *all &= one);
            }
        }
        self.floor = self.floor.min(floor);
        Some(())
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

    /// The rank of the leader whose turn was answered last.
    fn followed(&self) -> Option<usize> {
        Some(self.answered.checked_sub(1)? % self.members.len())
    }

    /// Whether what this task has adopted may have been decided, by another one than this, who would say so.
    fn is_bound(&self, by: usize, there: &[bool]) -> bool {
        let adopted = self.adopted.as_ref();
        let adopted = adopted.is_some_and(|(turn, _)| turn + 1 == self.answered);
        let leader = self.followed().filter(|leader| there[*leader]);
        adopted && leader.is_some_and(|leader| leader != by)
    }

    /// The outcome is known.
    fn decide(&mut self, choice: Choice, told_by: usize) {
        if !self.decided {
            self.adopted = Some((LAST, choice));
            self.decided = true;
        }
        self.told_by = Some(told_by);
    }

    /// A message of the member with rank `from`. The members that this task reaches are `there`.
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
                self.take_in(brings, &from_bits(acknowledged, size)?, floor)?;
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

    /// This task leads from the beginning, in a turn after this one.
    fn begin_later(&mut self, turn: usize) {
        let size = self.members.len();
        while self.turn <= turn {
            self.turn += size;
        }
        self.lead = Lead::Not;
        self.reached.iter_mut().for_each(Vec::clear);
    }

    /// Whether a member has said that it reaches another one; of this task `there` says so.
    fn reaches(&self, one: usize, other: usize, there: &[bool]) -> bool {
        let reached = if one == self.rank {
            there
        } else {
            &self.reached[one]
        };
        reached.get(other).is_some_and(|&reached| reached)
    }

    /// All have answered. Of two that did not reach each other before one may have died since: then all are to be asked once more.
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

    /// Another one leads, which may follow one that is gone for this task.
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

impl<T: Transport> Engine<T> {
    /// Begin to agree. Each member that lives does, in the same order.
    pub(crate) fn start_agreement(&mut self, id: GroupId, subject: Subject) -> Result<u64> {
        self.closed(id)?;
        let number = self.agreed;
        let group = self.group_mut(id)?;
        group.agreements += 1;
        let (sequence, rank, context) = (group.agreements, group.rank as usize, group.context + 1);
        let members = group.peers();
        let of_group = |one: &&Agreement| one.context == context && !one.decided;
        let undecided = self.agreements.iter().filter(of_group);
        let floor = undecided.map(|one| one.sequence).min();
        self.agreements.push(Agreement {
            number,
            sequence,
            reached: vec![Vec::new(); members.len()],
            apart: Vec::new(),
            members,
            rank,
            context,
            tag: TAGS + (sequence & COUNT) as i32,
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
        self.agreed += 1;
        self.run_agreements();
        Ok(number)
    }

    /// How many agreements are under way, or are kept for others who may ask.
    pub fn agreements(&self) -> usize {
        self.agreements.len()
    }

    /// An agreement that its caller waits for.
    pub(crate) fn agreement(&mut self, number: u64) -> Option<&mut Agreement> {
        let mut all = self.agreements.iter_mut();
        all.find(|one| one.number == number)
    }

    /// Is this what members of an agreement, or of a group that is made, tell each other? It is taken in even where the buffer
    /// for messages is full: it is little, and others wait for the answer.
    pub(crate) fn is_agreement(context: u32, tag: i32) -> bool {
        context % 2 == 1 && (epoch::TAG..=making::TAGS + making::COUNT).contains(&tag)
    }

    /// Which ranks are there, this one aside.
    fn others_there(&self, agreement: &Agreement) -> Vec<bool> {
        let there = |&peer: &Peer| peer != self.me && self.presence(peer) == Presence::Here;
        agreement.members.iter().map(there).collect()
    }

    /// Move every agreement along.
    #[cold]
    pub(crate) fn run_agreements(&mut self) -> bool {
        // None, or they run already, and what comes meanwhile is looked at after that.
        if self.agreements.is_empty() {
            return false;
        }
        let mut moved = false;
        // Taken out while they run: a message may complete at once and touch the engine.
        let mut running = std::mem::take(&mut self.agreements);
        let came = std::mem::take(&mut self.agreement_came);
        self.epochs.agreements_run = true;
        for agreement in &mut running {
            let at_rest = |leader: usize| {
                !came
                    && agreement.is_at_rest()
                    && self.presence(agreement.members[leader]) == Presence::Here
            };
            if !agreement.told_by.is_some_and(at_rest) {
                while self.run_agreement(agreement) {
                    moved = true;
                }
                self.end_vote(agreement);
            }
        }
        self.stirred |= self.agreement_came || !running.iter().all(Agreement::is_at_rest);
        self.epochs.agreements_run = false;
        self.agreements = running;
        if moved {
            self.forget_agreements();
        }
        moved
    }

    /// Forgets agreements that nobody needs any more.
    fn forget_agreements(&mut self) {
        let mut floors = FxHashMap::default();
        for one in &self.agreements {
            if let Some(choice) = one.outcome() {
                let floor = floors.entry(one.context).or_insert(choice.floor);
                *floor = (*floor).max(choice.floor);
            }
        }
        self.agreements.retain(|one| {
            let floor = floors.get(&one.context);
            let before = floor.is_some_and(|&floor| one.sequence + KEPT < floor);
            !(before && one.is_done_with())
        });
    }

    fn run_agreement(&mut self, agreement: &mut Agreement) -> bool {
        let mut moved = self.listen(agreement);
        let follows = agreement.followed().is_some_and(|leader| {
            let leader = agreement.members[leader];
            leader != self.me && self.presence(leader) == Presence::Here
        });
        moved |= agreement.answer_asked(follows);
        moved |= self.lead(agreement, follows);
        moved | self.speak(agreement)
    }

    /// Take in what has come.
    fn listen(&mut self, agreement: &mut Agreement) -> bool {
        let mut moved = false;
        let mut select = Select {
            context: agreement.context,
            source: None,
            tag: TagSelect::Exactly(agreement.tag),
        };
        let longest = 8 * (7 + 3 * agreement.members.len().div_ceil(64));
        while !self.unexpected.is_empty()
            && let Some(message) = self.unexpected.find(&select)
            && let Some(source) = self.unexpected.get(message).map(|found| found.source)
        {
            let Ok(into) = Scratch::new(longest) else {
                break;
            };
            let into = into.part(0, longest);
            select.source = Some(source);
            let from = agreement.members.iter().position(|&peer| peer == source);
            match (self.start_receive(select, into.clone()), from) {
                (Ok(handle), Some(from)) => agreement.receiving.push((from, handle, into)),
                // Of a stranger, or the sender is gone with half of it still to come.
                (Ok(handle), None) => self.forget(handle),
                (Err(_), _) => {}
            }
            select.source = None;
            moved = true;
        }
        let receiving = std::mem::take(&mut agreement.receiving);
        for (from, handle, into) in receiving {
            match self.finish(handle) {
                Ok(None) => agreement.receiving.push((from, handle, into)),
                Ok(Some((status, None))) => {
                    let bytes = into.part(0, status.length).to_vec();
                    // A message that makes no sense counts as not sent.
                    if let Ok(words) = fields::all::<u64>(&bytes) {
                        let there = self.others_there(agreement);
                        let _ = agreement.handle(from, &words, &there);
                    }
                    moved = true;
                }
                // It is gone, and that will be seen.
                Ok(Some(_)) | Err(_) => moved = true,
            }
        }
        moved
    }

    /// The leader's next step, if this task is the leader. Another one may be followed, though.
    fn lead(&mut self, agreement: &mut Agreement, follows: bool) -> bool {
        let there = self.others_there(agreement);
        let (turn, rank) = (agreement.turn, agreement.rank);
        if let Some(leader) = there[..rank].iter().position(|&there| there) {
            return agreement.want_of(leader);
        }
        let begun = matches!(agreement.lead, Lead::Asking(_) | Lead::Proposing(_));
        if agreement.decided && begun {
            // By a later leader. A member that was asked may wait for this one.
            agreement.lead = Lead::Not;
        } else if agreement.answered > turn + 1 && !agreement.decided {
            if !follows {
                agreement.begin_later(agreement.answered - 1);
            }
            return !follows;
        }
        let waits = |waiting: &[bool]| (0..there.len()).any(|rank| waiting[rank] && there[rank]);
        match &agreement.lead {
            Lead::Not if !agreement.decided => {
                agreement.answered = turn + 1;
                agreement.send_all(&there, Kind::Ask, &[]);
                agreement.lead = Lead::Asking(there);
            }
            Lead::Asking(waiting) if !waits(waiting) => {
                if agreement.adopted.is_none() && agreement.has_new_pairs(&there) {
                    agreement.begin_later(turn);
                    return true;
                }
                if agreement.adopted.is_none() && !self.has_survivors(agreement) {
                    return false;
                }
                let choice = match agreement.adopted.take() {
                    Some((_, choice)) => choice,
                    None => self.choose(agreement, &there),
                };
                agreement.send_all(&there, Kind::Propose, &choice.words());
                agreement.adopted = Some((turn, choice));
                agreement.lead = Lead::Proposing(there);
            }
            Lead::Not => agreement.notify_all(&there),
            Lead::Proposing(waiting) if !waits(waiting) => agreement.notify_all(&there),
            _ => return false,
        }
        true
    }

    /// Is there a number for the survivors, if there is to be a group of them? If all of the epoch are used up, in the next one.
    fn has_survivors(&mut self, agreement: &Agreement) -> bool {
        let Subject::Survivors(free) = agreement.subject else {
            return true;
        };
        let number = self.epochs.survivors_number(free);
        let found = self.epochs.survivors(number, agreement.context).is_some();
        if !found {
            self.enter_next_epoch();
        }
        found
    }

    /// The survivors are those that answered, are there and reach each other, the first in rank before others.
    fn choose(&mut self, agreement: &Agreement, there: &[bool]) -> Choice {
        let me = agreement.rank;
        let mut survives = vec![false; there.len()];
        survives[me] = true;
        let reaches = |one: usize, other: usize| agreement.reaches(one, other, there);
        for rank in (0..there.len()).filter(|&rank| there[rank]) {
            let mut others = (0..there.len()).filter(|&other| survives[other]);
            survives[rank] = others.all(|other| reaches(rank, other) && reaches(other, rank));
        }
        let ranks = || 0..there.len();
        let is_apart = |rank: usize| !survives[rank] && ranks().any(|one| reaches(one, rank));
        let words = match &agreement.subject {
            Subject::Survivors(free) => self.new_group(agreement, *free, &survives),
            Subject::Flag(vote) => self.verdict(agreement, vote, &survives),
        };
        Choice {
            words,
            floor: match ranks().any(is_apart) {
                true => 0,
                false => agreement.floor,
            },
            survives,
        }
    }

    /// Send what there is to say.
    fn speak(&mut self, agreement: &mut Agreement) -> bool {
        let mut moved = false;
        let mut kept = Vec::new();
        for (to, words) in agreement.out.drain(..) {
            let length = 8 * words.len();
            let Ok(message) = Scratch::new(length) else {
                kept.push((to, words));
                continue;
            };
            let message = message.part(0, length);
            message.fill(&fields::bytes_of_all(&words));
            let (context, tag) = (agreement.context, agreement.tag);
            match self.start_send(to, context, tag, message, Mode::Standard) {
                Ok(handle) => agreement.sending.push(handle),
                // This host lacks something just now.
                Err(crate::Error::System(_) | crate::Error::Memory(_)) => {
                    kept.push((to, words));
                    continue;
                }
                // One that cannot be told any more is gone itself.
                Err(_) => {}
            }
            moved = true;
        }
        agreement.out = kept;
        let before = agreement.sending.len();
        let open = |handle: &Handle| matches!(self.finish(*handle), Ok(None));
        agreement.sending.retain(open);
        moved | (before != agreement.sending.len())
    }
}
