//! Small blocking collectives: every member contributes a few bytes to a collective buffer that all members can read.
//!
//! A collective buffer has a slot for each member, with space for its contributions to [`COLLECTIVE_BUFFER_DEPTH`] rounds (here `D`). In round `r` a
//! member writes its bytes and then `r` into part `r mod D` of its slot; the others wait until they see `r` there. Writing in round `r` overwrites
//! the contribution to round `r - D`, so the member must know that no other member still reads that contribution. A member that has contributed to a
//! later round has finished reading it. After a round in which this task waited for all contributions, it knows that. In a sequence of rounds in
//! which only one member gives, the giver checks every `D` rounds (`Phase::Clearing`).
//!
//! In an exchange of several rounds, members contribute to up to `D / 2 - 1` rounds before one that they wait for, and read all of them when that
//! round is complete (`Need::Later`). So a contribution to one of these rounds, or to the awaited one, only shows that its member has read the
//! rounds before the first of them. All members go through the same rounds in the same order, so each of them knows which rounds these are for all.
//!
//! A round costs one cache line transfer per member, and no messages, matching or allocation.

use regatta_memory::views::Views;

use crate::contributions::{COLLECTIVE_BUFFER_DEPTH, Listeners, is_past};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::failed::ALL;
use crate::group::{Group, GroupId};
use crate::groups::Groups;
use crate::transport::{CollectiveBuffers, Fault, Part, Peer, Presence, Transport};

/// The members whose contributions a task waits for in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All members.
    All,
    /// All members, as for every other member: in a barrier or an exchange. In a large group one member leads such a round.
    Everyone,
    /// All members, before this task contributes. This task leads the round.
    Lead,
    /// One member, by rank.
    From(u32),
    /// One member, by rank, which contributes after it has seen all other contributions.
    Last(u32),
    /// No member: this task only gives.
    Nobody,
    /// No member: this task only gives, and contributes to a later round at once. No member waits for this round.
    Later,
}

/// In groups larger than this, a round for which every member needs all contributions has a leader: the member of rank 0 waits for all members, and
/// the others wait for its contribution only. Without a leader, each of `n` tasks that arrive one after the other would wake all earlier ones:
/// about `n²` wakes, and as many cache lines read. In smaller groups the second step costs more than it saves.
pub const LED_FROM: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits until all members have contributed to this round, which is later than the one that will be overwritten.
    Clearing(u32),
    /// Waits for the needed contributions.
    Waiting,
}

/// A round in progress.
#[derive(Debug)]
pub struct Round {
    pub(crate) group: GroupId,
    /// The sequence number of a collective across hosts. In its rounds only the members on this host take part.
    pub(crate) crossing: Option<i32>,
    number: u32,
    need: Need,
    /// Every member must contribute to this round, and rank 0 contributes last.
    led: bool,
    phase: Phase,
    /// Rank of the member to check next.
    at: u32,
    /// This task's contribution, made at the start. Members that only read contribute an empty one at the end.
    pub(crate) gives: Option<Views>,
}

impl Round {
    /// Returns whether the round is part of a collective across hosts.
    pub fn crosses(&self) -> bool {
        self.crossing.is_some()
    }

    /// Returns whether the round is read together with a later one.
    pub(crate) fn is_read_later(&self) -> bool {
        self.need == Need::Later
    }

    /// Begins a round of the members of `room`.
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
            // A leader contributes when all others have, so the contribution that it overwrites is not being read any more.
            phase: match gives.is_none() || known || need == Need::Lead {
                true => Phase::Waiting,
                // Check a later round than necessary, so that not every following round has to check again.
                false => Phase::Clearing(room.round.wrapping_sub(COLLECTIVE_BUFFER_DEPTH / 2)),
            },
            at: 0,
            gives,
        }
    }
}

impl<B: CollectiveBuffers> Group<B> {
    /// Records that all members have contributed to round `number`, so they have read the rounds before it. This excludes rounds to which they
    /// contributed ahead of it, which they read only once the last of them is complete.
    #[inline(always)]
    fn clear(&mut self, number: u32) {
        let before = self.later >> self.round.wrapping_sub(number).min(30) >> 1;
        self.cleared = number.wrapping_sub(before.trailing_ones());
    }
}

impl<T: Transport> Engine<T> {
    /// Returns whether the group has a collective buffer for contributions of up to `bytes` bytes.
    #[inline(always)]
    pub fn can_hold_round(&self, group: GroupId, bytes: usize) -> bool {
        let group = self.groups.table.at(group);
        group.is_some_and(|group| group.has_room_for(self.transport(), bytes))
    }

    /// Begins a round. `gives` is this task's contribution, or `None` if it only reads.
    #[inline(always)]
    pub fn begin_round(&mut self, id: GroupId, need: Need, gives: Option<Views>) -> Result<Round> {
        let group = self.groups.table.at_mut(id).ok_or(Error::Handle("group"))?;
        group.usable()?;
        let round = Round::begin(id, group, None, need, gives);
        self.contribute_at_once(&round);
        Ok(round)
    }

    /// Begins a round of two members, in which each contributes up to `bytes` bytes. Returns `None`, without effect, if the group or its buffer is
    /// not usable for that or the round would have to wait before contributing.
    #[inline(always)]
    pub fn begin_pair_round(&mut self, id: GroupId, bytes: usize, gives: &Views) -> Option<Round> {
        let Groups { p2p, table, .. } = &mut self.groups;
        let group = table.at_mut(id)?;
        let number = group.round.wrapping_add(1);
        let is_simple = group.size() == 2 && group.broken.is_none();
        if !is_simple || !group.has_room_for(p2p.transport(), bytes) {
            return None;
        }
        // Does the check of `Phase::Clearing`, which is otherwise needed for members that only give.
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

    /// Checks up to `looks` times whether the other member has contributed to a round begun by [`Engine::begin_pair_round`]. Returns whether it has.
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

    /// Returns the members that take part in the round: the whole group, or those on this host.
    #[inline(always)]
    pub(crate) fn room(&self, round: &Round) -> Option<&Group<T>> {
        let group = self.groups.table.at(round.group)?;
        match round.crossing {
            None => Some(group),
            Some(_) => group.here.as_deref(),
        }
    }

    /// Records that all members have contributed up to round `number`.
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

    /// Returns whether the round is complete for this task. Contributes first, if the contribution had to be delayed.
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

    /// Returns whether all members have contributed to round `number`. A member that is ahead may have overwritten that contribution with a later
    /// one.
    fn all_past(&self, round: &mut Round, number: u32) -> bool {
        let group = self.room(round);
        group.is_some_and(|group| group.all_past(self.transport(), &mut round.at, number))
    }

    /// Fails if an incomplete round never will be complete because a member is gone.
    pub fn check_round(&mut self, round: &mut Round) -> Result<()> {
        // Usually the task was woken because the round is complete. Then losses do not matter, and there may be many to check.
        if self.round_complete(round) {
            return Ok(());
        }
        if !self.has_counted_losses() || self.losses().has_fresh() {
            self.end_losses();
        }
        // A waiting task learns only by notices of failures of members on other hosts, and of members that failed to get the collective buffer.
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
        // If all members must contribute and one has not, the leader does not contribute either.
        let owes = |rank: u32| round.led && owes_to(rank, round.number);
        let lost = |peer: &Peer| match self.presence(*peer) {
            Presence::Here => false,
            Presence::Dead => true,
            // The peer may have left after it contributed: then this task does not wait for it. But if it missed the previous round, an awaited
            // member may have given up because of that.
            Presence::Left => group
                .rank_of(*peer)
                .is_some_and(|rank| rank == round.at || missed(rank) || owes(rank)),
        };
        // Report other members first: a leader that is gone may have left because another member was gone.
        let (peers, leader) = (group.peers(), usize::from(round.led));
        let (first, others) = peers.split_at(leader.min(peers.len()));
        match others.iter().chain(first).copied().find(lost) {
            Some(peer) => Err(self.loss(peer)),
            None => Ok(()),
        }
    }

    /// Fails if a member's round number in the collective buffer is one that no correct member writes, so that the round never will be complete. For
    /// rounds that have been incomplete for a long time.
    ///
    /// A member that takes part in round `r` knows that all members have contributed to round `r - COLLECTIVE_BUFFER_DEPTH`. So no member is a whole
    /// depth ahead of one that has not contributed. Groups in which a loss made members miss rounds are not checked.
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
        // Check for losses after the round numbers: a member that missed a round knew of a loss before.
        let Some(peer) = culprit.filter(|_| self.has_counted_losses()) else {
            return Ok(());
        };
        self.condemn(Fault::Corrupt {
            peer,
            what: "its round number in a collective buffer is impossible",
        });
        Err(self.loss(peer))
    }

    /// Copies part of a member's contribution.
    #[inline(always)]
    pub fn collect(&self, round: &Round, rank: u32, part: Part, into: &Views) {
        if let Some(group) = self.room(round) {
            group.collect(self.transport(), rank, round.number, part, into);
        }
    }

    /// Returns the memory of a member's contribution of `total` bytes. It is valid until this task contributes to a later round. Returns `None` if
    /// the contribution cannot be read in place and must be copied with [`Engine::collect`].
    #[inline(always)]
    pub fn contribution(&self, round: &Round, rank: u32, total: usize) -> Option<Views> {
        let group = self.room(round)?;
        group.contribution(self.transport(), rank, round.number, total)
    }

    /// Ends a round from which this task has read what it needed.
    #[inline(always)]
    pub fn end_round(&mut self, mut round: Round) {
        if round.gives.is_none() {
            round.gives = Some(Views::none());
            self.contribute(&round);
        }
    }

    /// Asks the awaited member to wake this task, which is about to sleep. If `sleeping` is false, withdraws that request. Returns false if this
    /// task had asked a different member before: then it must check the round again before it sleeps.
    pub fn announce_wait(&self, round: &Round, sleeping: bool) -> bool {
        let target = sleeping.then_some(round.at);
        let group = self.room(round);
        group.is_none_or(|group| group.await_contribution(self.transport(), target))
    }
}
