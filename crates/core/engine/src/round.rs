//! Small blocking collectives: everybody contributes a few bytes to a collective buffer that all can read.
//!
//! A collective buffer has a place for each member, with room for its contributions to
//! [`COLLECTIVE_BUFFER_DEPTH`] rounds (here `D`). In round `r` a member writes its bytes and then `r` into
//! part `r mod D` of its place; the others wait until they see `r` there. Writing in round `r` destroys
//! the contribution to round `r - D`, so it must be known that nobody still reads that: everybody who has
//! contributed to a later round has finished with it. After a round in which this task waited for all
//! contributions it knows; in a run of rounds with one giver it looks, every `D` rounds (`Phase::Clearing`).
//!
//! In an exchange of several rounds members contribute to up to `D / 2 - 1` of them ahead of one that they wait for, and read them all when
//! that is complete (`Need::Later`). So a contribution to one of these rounds, or to the one that is waited for, tells of those before the first
//! of them alone. All members go through the same rounds in the same order, so each knows of which rounds that holds for all.
//!
//! One line transfer per member and round; no messages, no matching, no allocation.

use regatta_memory::views::Views;

use crate::contributions::{COLLECTIVE_BUFFER_DEPTH, Listeners, is_past};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::failed::ALL;
use crate::group::{Group, GroupId};
use crate::groups::Groups;
use crate::transport::{CollectiveBuffers, Fault, Part, Peer, Presence, Transport};

/// Whose contributions a round must wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All members'.
    All,
    /// All members', and every member needs that: a barrier, or an exchange. In a large group one member leads.
    Everyone,
    /// All members', before this task contributes, which leads such a round.
    Lead,
    /// One member's, by rank.
    From(u32),
    /// That of one member which contributes when it has seen all others' contributions.
    Last(u32),
    /// Nobody's: this task only gives.
    Nobody,
    /// Nobody's: this task only gives, and it gives to a later round at once. Nobody waits for this one.
    Later,
}

/// In larger groups a round that every member needs whole has a leader: the member of rank 0 waits for all, and the others
/// wait for its contribution alone. If each looked at each, tasks that arrive one after the other would wake all who had come
/// before: n times n wakes, and as many lines read. In smaller groups the second step costs more than it saves.
pub const LED_FROM: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Until all have contributed to this round, which is later than the one to be overwritten.
    Clearing(u32),
    /// Until the needed contributions are there.
    Waiting,
}

/// A round on its way.
#[derive(Debug)]
pub struct Round {
    pub(crate) group: GroupId,
    /// The number of a collective across hosts, in whose rounds only the members on this one take part.
    pub(crate) crossing: Option<i32>,
    number: u32,
    need: Need,
    /// Every member must contribute to this round, and rank 0 does so last.
    led: bool,
    phase: Phase,
    /// The member looked at next.
    at: u32,
    /// This task's contribution, made at the start; readers make an empty one, at the end.
    pub(crate) gives: Option<Views>,
}

impl Round {
    /// Returns whether it is part of a collective across hosts.
    pub fn crosses(&self) -> bool {
        self.crossing.is_some()
    }

    /// Returns whether it is read with a later one.
    pub(crate) fn is_read_later(&self) -> bool {
        self.need == Need::Later
    }

    /// Begins a round of those in `room`.
    #[inline(always)]
    pub(crate) fn begin<B: CollectiveBuffers>(
        group: GroupId,
        room: &mut Group<B>,
        crossing: Option<i32>,
        need: Need,
        gives: Option<Views>,
    ) -> Round {
        room.round = room.round.wrapping_add(1);
        room.later = room.later << 1 | u32::from(need == Need::Later);
        let led = need == Need::Everyone && room.size() > LED_FROM;
        let need = match need {
            Need::Everyone if !led => Need::All,
            Need::Everyone if room.rank == 0 => Need::Lead,
            Need::Everyone => Need::Last(0),
            need => need,
        };
        let known = room.round.wrapping_sub(room.cleared) < COLLECTIVE_BUFFER_DEPTH;
        Round {
            group,
            crossing,
            number: room.round,
            need,
            led,
            // A leader contributes when all others have, so nobody can still read what that destroys.
            phase: match gives.is_none() || known || need == Need::Lead {
                true => Phase::Waiting,
                // Not the oldest that would do, or every round would have to look again.
                false => Phase::Clearing(room.round.wrapping_sub(COLLECTIVE_BUFFER_DEPTH / 2)),
            },
            at: 0,
            gives,
        }
    }
}

impl<B: CollectiveBuffers> Group<B> {
    /// Notes that all have contributed to round `number`, so they have read those before it; but not yet those to which they contributed ahead of it, which
    /// they read when they have come to the last of them.
    #[inline(always)]
    fn clear(&mut self, number: u32) {
        let before = self.later >> self.round.wrapping_sub(number).min(30) >> 1;
        self.cleared = number.wrapping_sub(before.trailing_ones());
    }
}

impl<T: Transport> Engine<T> {
    /// Returns whether this group can hold a round, with contributions of up to `bytes` bytes.
    #[inline(always)]
    pub fn can_hold_round(&self, group: GroupId, bytes: usize) -> bool {
        let group = self.groups.table.at(group);
        group.is_some_and(|group| group.has_room_for(self.transport(), bytes))
    }

    /// Begins a round. `gives` is this task's contribution; `None` is for those that only read.
    #[inline(always)]
    pub fn begin_round(&mut self, id: GroupId, need: Need, gives: Option<Views>) -> Result<Round> {
        let group = self.groups.table.at_mut(id).ok_or(Error::Handle("group"))?;
        group.usable()?;
        let round = Round::begin(id, group, None, need, gives);
        self.contribute_at_once(&round);
        Ok(round)
    }

    /// Begins a round of a pair, to which each contributes up to `bytes` bytes. `None`: nothing has been begun, since there is more to it than to contribute.
    #[inline(always)]
    pub fn begin_pair_round(&mut self, id: GroupId, bytes: usize, gives: &Views) -> Option<Round> {
        let Groups { p2p, table, .. } = &mut self.groups;
        let group = table.at_mut(id)?;
        let number = group.round.wrapping_add(1);
        let is_simple = group.size() == 2 && group.broken.is_none();
        if !is_simple || !group.has_room_for(p2p.transport(), bytes) {
            return None;
        }
        // As in `Phase::Clearing`, which members that only give come to.
        if number.wrapping_sub(group.cleared) >= COLLECTIVE_BUFFER_DEPTH {
            let earlier = number.wrapping_sub(COLLECTIVE_BUFFER_DEPTH / 2);
            let word = group.contributed_round(p2p.transport(), 1 - group.rank, earlier)?;
            if !is_past(word, earlier) {
                return None;
            }
            group.clear(earlier);
        }
        group.round = number;
        group.later <<= 1;
        group.contribute(p2p.transport(), p2p.me(), number, gives, Listeners::All);
        Some(Round {
            group: id,
            crossing: None,
            number,
            need: Need::All,
            led: false,
            phase: Phase::Waiting,
            at: 0,
            gives: Some(Views::none()),
        })
    }

    /// Looks up to this many times whether the other one of a pair has contributed to a round that was begun so.
    #[inline(always)]
    pub fn look_at_pair_round(&mut self, round: &Round, looks: u32) -> bool {
        let Groups { p2p, table, .. } = &mut self.groups;
        let Some(group) = table.at_mut(round.group) else {
            return false;
        };
        let other = 1 - group.rank;
        let mut left = looks;
        while left > 0 {
            if group.has_contributed(p2p.transport(), other, round.number) {
                group.clear(round.number);
                return true;
            }
            std::hint::spin_loop();
            left -= 1;
        }
        false
    }

    #[inline(always)]
    pub(crate) fn contribute_at_once(&mut self, round: &Round) {
        if round.phase == Phase::Waiting && round.need != Need::Lead {
            self.contribute(round);
        }
    }

    /// Returns the members that take part: the whole group, or those on this host.
    #[inline(always)]
    pub(crate) fn room(&self, round: &Round) -> Option<&Group<T>> {
        let group = self.groups.table.at(round.group)?;
        match round.crossing {
            None => Some(group),
            Some(_) => group.here.as_deref(),
        }
    }

    /// Notes that all contributions up to this round have been made.
    #[inline(always)]
    fn clear(&mut self, round: &Round, number: u32) {
        let Some(group) = self.groups.table.at_mut(round.group) else {
            return;
        };
        match (round.crossing, &mut group.here) {
            (None, _) => group.clear(number),
            (Some(_), Some(here)) => here.clear(number),
            (Some(_), None) => {}
        }
    }

    #[inline(always)]
    pub(crate) fn contribute(&mut self, round: &Round) {
        let (Some(group), Some(gives)) = (self.room(round), &round.gives) else {
            return;
        };
        let listeners = match (round.need, round.led) {
            (Need::Later, _) => Listeners::None,
            (_, true) => Listeners::Leader,
            (_, false) => Listeners::All,
        };
        group.contribute(self.transport(), self.me(), round.number, gives, listeners);
    }

    /// Returns whether the round is complete for this task.
    #[inline(always)]
    pub fn round_complete(&mut self, round: &mut Round) -> bool {
        if let Phase::Clearing(number) = round.phase {
            if !self.all_past(round, number) {
                return false;
            }
            self.clear(round, number);
            round.phase = Phase::Waiting;
            round.at = 0;
            self.contribute(round);
        }
        match round.need {
            Need::Nobody | Need::Later => true,
            Need::From(rank) => {
                round.at = rank;
                self.has_contributed(round, rank, round.number)
            }
            Need::Last(rank) => {
                round.at = rank;
                let contributed = self.has_contributed(round, rank, round.number);
                if contributed {
                    self.clear(round, round.number);
                }
                contributed
            }
            Need::All | Need::Everyone | Need::Lead => {
                let all = self.all_contributed(round, round.number);
                if all {
                    self.clear(round, round.number);
                }
                if all && round.need == Need::Lead {
                    self.contribute(round);
                    round.need = Need::Nobody;
                }
                all
            }
        }
    }

    #[inline(always)]
    fn has_contributed(&self, round: &Round, rank: u32, number: u32) -> bool {
        let group = self.room(round);
        group.is_some_and(|group| group.has_contributed(self.transport(), rank, number))
    }

    #[inline(always)]
    fn all_contributed(&self, round: &mut Round, number: u32) -> bool {
        let group = self.room(round);
        group.is_some_and(|group| group.all_contributed(self.transport(), &mut round.at, number))
    }

    /// Returns whether all have contributed to this round. A member that is ahead may have put a later contribution in its place.
    fn all_past(&self, round: &mut Round, number: u32) -> bool {
        let group = self.room(round);
        group.is_some_and(|group| group.all_past(self.transport(), &mut round.at, number))
    }

    /// Fails if a round that is not complete never will be, since a member is gone.
    pub fn check_round(&mut self, round: &mut Round) -> Result<()> {
        // Mostly the task was woken because it is: then nobody's loss matters, and there may be many.
        if self.round_complete(round) {
            return Ok(());
        }
        if !self.has_counted_losses() || self.losses().has_fresh() {
            self.end_losses();
        }
        // Of members on other hosts one that waits here hears only by notices, and of one that has failed to get the collective buffer.
        let failed = self.failed(round.group, round.crossing.unwrap_or(ALL));
        let usable = self.group(round.group)?.usable();
        if (self.is_nobody_gone() && usable.is_ok() && failed.is_none())
            || self.round_complete(round)
        {
            return Ok(());
        }
        usable?;
        if let Some(error) = failed {
            return Err(error);
        }
        let group = self.room(round).ok_or(Error::Handle("group"))?;
        let last = round.number.wrapping_sub(1);
        let owes_to = |rank: u32, number: u32| {
            let word = group.contributed_round(self.transport(), rank, number);
            word.is_some_and(|word| !is_past(word, number))
        };
        let missed = |rank: u32| owes_to(rank, last);
        // Where all must contribute and one has not, the leader goes no further either.
        let owes = |rank: u32| round.led && owes_to(rank, round.number);
        let lost = |peer: &Peer| match self.presence(*peer) {
            Presence::Here => false,
            Presence::Dead => true,
            // It may have left after it contributed: then it is not the one we wait for. But if it
            // missed the round before, a member we wait for may have gone no further for its sake.
            Presence::Left => group
                .rank_of(*peer)
                .is_some_and(|rank| rank == round.at || missed(rank) || owes(rank)),
        };
        // A leader that has gone may have gone because another member had.
        let (peers, leader) = (group.peers(), usize::from(round.led));
        let (first, others) = peers.split_at(leader.min(peers.len()));
        match others.iter().chain(first).copied().find(lost) {
            Some(peer) => Err(self.loss(peer)),
            None => Ok(()),
        }
    }

    /// Fails if the word of a member shows that a round, which is not complete for long, never will be:
    /// it is one that no member writes.
    ///
    /// A member that has come to round `r` knows that all have contributed to round `r - COLLECTIVE_BUFFER_DEPTH`,
    /// or nobody could have contributed to those since; and nobody is a whole depth ahead of one that has not
    /// contributed. Members that a loss has made miss rounds are another matter.
    pub fn check_contributions(&mut self, round: &Round) -> Result<()> {
        let whole = self.group(round.group)?.broken.is_none();
        let group = self.room(round).ok_or(Error::Handle("group"))?;
        if !whole || group.collective_buffer.is_none() {
            return Ok(());
        }
        let (number, ahead) = match round.phase {
            Phase::Waiting => (round.number, round.number),
            Phase::Clearing(number) => (number, number.wrapping_add(COLLECTIVE_BUFFER_DEPTH)),
        };
        let senseless = |&rank: &u32| {
            let Some(word) = group.contributed_round(self.transport(), rank, number) else {
                return false;
            };
            let first = number <= COLLECTIVE_BUFFER_DEPTH && word == 0;
            let behind = word == number.wrapping_sub(COLLECTIVE_BUFFER_DEPTH);
            rank != group.rank && word != number && word != ahead && !behind && !first
        };
        let culprit = (0..group.size()).find(senseless);
        let culprit = culprit.and_then(|rank| group.peer(rank));
        // Looked at after the words: a member that missed a round had heard of a loss.
        let Some(peer) = culprit.filter(|_| self.has_counted_losses()) else {
            return Ok(());
        };
        self.condemn(Fault::Corrupt {
            peer,
            what: "its word in a collective buffer is of no round that it could be in",
        });
        Err(self.loss(peer))
    }

    /// Copies bytes from a member's contribution.
    #[inline(always)]
    pub fn collect(&self, round: &Round, rank: u32, part: Part, into: &Views) {
        if let Some(group) = self.room(round) {
            group.collect(self.transport(), rank, round.number, part, into);
        }
    }

    /// Returns the memory of a member's contribution of `total` bytes, to be read where it lies until this task contributes to a later round; `None`: it has to
    /// be collected.
    #[inline(always)]
    pub fn contribution(&self, round: &Round, rank: u32, total: usize) -> Option<Views> {
        let group = self.room(round)?;
        group.contribution(self.transport(), rank, round.number, total)
    }

    /// Ends a round of which this task has read what it needed.
    #[inline(always)]
    pub fn end_round(&mut self, mut round: Round) {
        if round.gives.is_none() {
            round.gives = Some(Views::none());
            self.contribute(&round);
        }
    }

    /// Lets the member waited for ring, as this task is about to sleep (or awake again). Returns false if another one had been asked to ring: then a look
    /// must come before the sleep.
    pub fn announce_wait(&self, round: &Round, sleeping: bool) -> bool {
        let target = sleeping.then_some(round.at);
        let group = self.room(round);
        group.is_none_or(|group| group.await_contribution(self.transport(), target))
    }
}
