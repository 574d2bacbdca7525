//! The survivors of a group agree on who they are, whoever dies meanwhile.
//!
//! The first member that is still there leads; if it goes, the next one does. Its rank is the turn.
//!
//! ```text
//! leader                              members
//! Ask(turn)       ──────────────────> (answered once they have called, too)
//!                 <────────────────── State(turn, lowest free context, what was adopted last)
//! Propose(turn, group) ─────────────> adopt it
//!                 <────────────────── Adopted(turn)
//! Decided(turn, group) ─────────────> done
//! ```
//!
//! *Why they agree.* A leader waits for every member that is there, at each step, and decides only
//! what all of them have adopted. So if anybody may have decided, whoever leads next finds that
//! adopted by everyone, and proposes it again: it takes what was adopted in the latest turn. A
//! member that has answered a turn takes no proposal of an earlier one, which may still lie in its
//! ring.
//!
//! *Why none hangs.* The death of a leader is heard by all. A member that has decided has gone on,
//! but its engine still answers, and leads when it is its turn: it tells everybody what it knows.
//! Nothing is to be done as long as the leader that told it is there.
//!
//! Members that left in good order count as gone.

use regatta_memory::views::{Scratch, Views};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::matching::{Select, TagSelect};
use crate::request::Handle;
use crate::send::Mode;
use crate::transport::{Peer, Presence, Transport};

/// Tags of agreements, on the collectives' context: beyond those of collectives.
const TAGS: i32 = 0x5000_0000;
const COUNT: i32 = 0x0fff_ffff;

/// A new group that is being agreed on, as its caller holds it.
#[derive(Debug)]
pub struct Shrinking(u64);

/// What is agreed on.
#[derive(Clone, Debug)]
struct Choice {
    context: u32,
    hall: u64,
    /// By rank in the old group.
    survives: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ask = 1,
    State,
    Propose,
    Adopted,
    Decided,
}

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
    /// Of the old group, in rank order.
    members: Vec<Peer>,
    rank: usize,
    context: u32,
    tag: i32,
    /// The lowest context that is free in all members heard of.
    free: u32,
    /// The latest turn answered, + 1.
    answered: usize,
    /// The choice adopted last, and in which turn.
    adopted: Option<(usize, Choice)>,
    decided: bool,
    /// The leader that told this task, itself perhaps.
    told_by: Option<usize>,
    lead: Lead,
    /// Messages to send, as soon as there is memory for them.
    out: Vec<(Peer, Vec<u64>)>,
    sending: Vec<Handle>,
    receiving: Vec<(usize, Handle, Views)>,
}

impl Choice {
    /// As words: context, hall, then a bit for each rank.
    fn words(&self) -> Vec<u64> {
        let bit = |(at, &survives): (usize, &bool)| (survives as u64) << at;
        let bits = self.survives.chunks(64);
        let bits = bits.map(|part| part.iter().enumerate().map(bit).sum());
        [self.context as u64, self.hall]
            .into_iter()
            .chain(bits)
            .collect()
    }

    fn from_words(words: &[u64], members: usize) -> Option<Choice> {
        let [context, hall, bits @ ..] = words else {
            return None;
        };
        let survives = |rank: usize| Some(bits.get(rank / 64)? >> (rank % 64) & 1 == 1);
        Some(Choice {
            context: u32::try_from(*context).ok()?,
            hall: *hall,
            survives: (0..members).map(survives).collect::<Option<_>>()?,
        })
    }
}

impl Agreement {
    /// The choice is known and nothing is left to send.
    fn is_over(&self) -> bool {
        self.decided && self.out.is_empty() && self.sending.is_empty()
    }

    fn send(&mut self, to: usize, kind: Kind, turn: usize, rest: &[u64]) {
        let head = (turn as u64) << 8 | kind as u64;
        let words = [&[head], rest].concat();
        self.out.push((self.members[to], words));
    }

    fn send_all(&mut self, to: &[bool], kind: Kind, rest: &[u64]) {
        for rank in (0..to.len()).filter(|&rank| to[rank]) {
            self.send(rank, kind, self.rank, rest);
        }
    }

    fn adopt(&mut self, turn: usize, choice: Choice) {
        if self.adopted.as_ref().is_none_or(|(last, _)| *last <= turn) {
            self.adopted = Some((turn, choice));
        }
    }

    /// A message of the member with rank `from`.
    fn heard(&mut self, from: usize, words: &[u64]) -> Option<()> {
        let (head, rest) = words.split_first()?;
        let turn = (head >> 8) as usize;
        let size = self.members.len();
        match head & 0xff {
            kind if kind == Kind::Ask as u64 && turn == from && self.answered <= turn + 1 => {
                self.answered = turn + 1;
                let mut state = vec![self.free as u64, 0];
                if let Some((turn, choice)) = &self.adopted {
                    state[1] = *turn as u64 + 1;
                    state.extend(choice.words());
                }
                self.send(from, Kind::State, turn, &state);
            }
            kind if kind == Kind::Propose as u64 && turn == from && self.answered <= turn + 1 => {
                self.answered = turn + 1;
                self.adopt(turn, Choice::from_words(rest, size)?);
                self.send(from, Kind::Adopted, turn, &[]);
            }
            kind if kind == Kind::Decided as u64 && turn == from => {
                self.adopt(turn, Choice::from_words(rest, size)?);
                self.decided = true;
                self.told_by = Some(turn);
            }
            kind if kind == Kind::State as u64 && turn == self.rank => {
                let Lead::Asking(waiting) = &mut self.lead else {
                    return None;
                };
                let [free, adopted, choice @ ..] = rest else {
                    return None;
                };
                waiting[from] = false;
                self.free = self.free.max(u32::try_from(*free).ok()?);
                if *adopted > 0 {
                    self.adopt(*adopted as usize - 1, Choice::from_words(choice, size)?);
                }
            }
            kind if kind == Kind::Adopted as u64 && turn == self.rank => {
                let Lead::Proposing(waiting) = &mut self.lead else {
                    return None;
                };
                waiting[from] = false;
            }
            _ => {}
        }
        Some(())
    }
}

impl<T: Transport> Engine<T> {
    /// Begin to agree on the survivors of a group. Each of them calls.
    pub fn start_shrink(&mut self, id: GroupId) -> Result<Shrinking> {
        let free = self.next_context();
        self.closed(id)?;
        let group = self.group_mut(id)?;
        group.shrinks = (group.shrinks + 1) & COUNT;
        let number = self.agreed;
        let group = self.group(id)?;
        self.agreements.push(Agreement {
            number,
            members: group.peers(),
            rank: group.rank as usize,
            context: group.context + 1,
            tag: TAGS + group.shrinks,
            free,
            answered: 0,
            adopted: None,
            decided: false,
            told_by: None,
            lead: Lead::Not,
            out: Vec::new(),
            sending: Vec::new(),
            receiving: Vec::new(),
        });
        self.agreed += 1;
        self.run_agreements();
        Ok(Shrinking(number))
    }

    /// The group agreed on; `None` while it is not known. Asked once.
    pub fn shrunk(&mut self, shrinking: &Shrinking) -> Option<Result<GroupId>> {
        let same = |one: &&Agreement| one.number == shrinking.0;
        let agreement = self.agreements.iter().find(same)?;
        if !agreement.is_over() {
            return None;
        }
        let (_, choice) = agreement.adopted.as_ref()?;
        let ranks = agreement.members.iter().zip(&choice.survives);
        let survivors = ranks.filter(|(_, survives)| **survives);
        let survivors: Vec<Peer> = survivors.map(|(&peer, _)| peer).collect();
        if !survivors.contains(&self.me) {
            return Some(Err(Error::State("the others took this task for dead")));
        }
        Some(self.add_group(survivors, choice.context, choice.hall))
    }

    /// Is this what members of an agreement tell each other? It is taken in even where the buffer
    /// for messages is full: it is little, and others wait for the answer.
    pub(crate) fn is_agreement(context: u32, tag: i32) -> bool {
        context % 2 == 1 && (TAGS..=TAGS + COUNT).contains(&tag)
    }

    /// Which ranks are there, this one aside.
    fn others_there(&self, agreement: &Agreement) -> Vec<bool> {
        let there = |&peer: &Peer| peer != self.me && self.presence(peer) == Presence::Here;
        agreement.members.iter().map(there).collect()
    }

    /// Move every agreement along.
    #[cold]
    pub(crate) fn run_agreements(&mut self) -> bool {
        let mut moved = false;
        // Taken out while they run: a message may complete at once and touch the engine.
        let mut running = std::mem::take(&mut self.agreements);
        for agreement in &mut running {
            let at_rest = |leader: usize| {
                agreement.is_over()
                    && agreement.receiving.is_empty()
                    && self.presence(agreement.members[leader]) == Presence::Here
            };
            if !agreement.told_by.is_some_and(at_rest) {
                while self.run_agreement(agreement) {
                    moved = true;
                }
            }
        }
        self.agreements = running;
        moved
    }

    fn run_agreement(&mut self, agreement: &mut Agreement) -> bool {
        let mut moved = self.listen(agreement);
        moved |= self.lead(agreement);
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
        let longest = 8 * (5 + agreement.members.len().div_ceil(64));
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
                    let mut word = [0; 8];
                    let words = bytes.chunks_exact(8).map(|chunk| {
                        word.copy_from_slice(chunk);
                        u64::from_le_bytes(word)
                    });
                    // What makes no sense is as good as not sent.
                    let _ = agreement.heard(from, &words.collect::<Vec<_>>());
                    moved = true;
                }
                // It is gone, and that will be seen.
                Ok(Some(_)) | Err(_) => moved = true,
            }
        }
        moved
    }

    /// What the leader does next, if this task is the leader.
    fn lead(&mut self, agreement: &mut Agreement) -> bool {
        let there = self.others_there(agreement);
        let turn = agreement.rank;
        if there[..turn].contains(&true) {
            return false;
        }
        let waits = |waiting: &[bool]| (0..there.len()).any(|rank| waiting[rank] && there[rank]);
        match &agreement.lead {
            Lead::Not if !agreement.decided => {
                agreement.answered = turn + 1;
                agreement.send_all(&there, Kind::Ask, &[]);
                agreement.lead = Lead::Asking(there);
            }
            Lead::Asking(waiting) if !waits(waiting) => {
                let choice = match agreement.adopted.take() {
                    Some((_, choice)) => choice,
                    None => self.choose(&agreement.members, agreement.free, &there, turn),
                };
                agreement.send_all(&there, Kind::Propose, &choice.words());
                agreement.adopted = Some((turn, choice));
                agreement.lead = Lead::Proposing(there);
            }
            Lead::Not => self.tell_all(agreement, &there),
            Lead::Proposing(waiting) if !waits(waiting) => self.tell_all(agreement, &there),
            _ => return false,
        }
        true
    }

    /// The survivors are those that answered and are there.
    fn choose(&mut self, members: &[Peer], context: u32, there: &[bool], me: usize) -> Choice {
        let mut survives = there.to_vec();
        survives[me] = true;
        let both = members.iter().zip(&survives);
        let peers: Vec<Peer> = both
            .filter(|&(_, &survives)| survives)
            .map(|(&peer, _)| peer)
            .collect();
        Choice {
            context,
            // Without memory for a hall the group meets by messages.
            hall: self.make_hall(&peers).unwrap_or(0),
            survives,
        }
    }

    fn tell_all(&mut self, agreement: &mut Agreement, there: &[bool]) {
        agreement.lead = Lead::Told;
        agreement.decided = true;
        agreement.told_by = Some(agreement.rank);
        let words = match &mut agreement.adopted {
            Some((turn, choice)) => {
                *turn = agreement.rank;
                choice.words()
            }
            None => return,
        };
        agreement.send_all(there, Kind::Decided, &words);
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
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            message.fill(&bytes);
            let (context, tag) = (agreement.context, agreement.tag);
            // One that cannot be told any more is gone itself.
            if let Ok(handle) = self.start_send(to, context, tag, message, Mode::Standard) {
                agreement.sending.push(handle);
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
