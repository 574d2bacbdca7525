//! Groups: ordered sets of tasks, each with a context of its own.
//!
//! A group uses two contexts: `context` for the user's messages and `context + 1` for its
//! collectives, so neither can take the other's.
//!
//! A task's world has context 0, whichever world it is: a message goes from one member of a group to another, so tasks
//! that have no group in common may use the same numbers. *Channels* are groups of everybody, by number, and grow with
//! the job. Nobody makes them: they are numbers themselves, and their contexts are beyond those of all other groups.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::departures::Departures;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::making::{Calls, FreedContexts};
use crate::request::Status;
use crate::transport::{CollectiveBuffers, Peer, Presence, Transport};
use crate::tree::Hosts;

/// A group, as callers hold it. The world is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId(pub i32);

impl GroupId {
    /// The tasks that were started together with this one.
    pub const WORLD: GroupId = GroupId(0);
    /// All tasks of the job, by their numbers: the first channel.
    pub const ALL: GroupId = GroupId(Self::CHANNEL);

    const CHANNEL: i32 = 1 << 30;

    /// The context of a channel; none of other groups.
    #[inline(always)]
    pub fn channel(self) -> Option<u32> {
        (self.0 >= Self::CHANNEL).then(|| CHANNELS | ((self.0 - Self::CHANNEL) as u32) << 1)
    }
}

/// The first context of channels.
const CHANNELS: u32 = 1 << 31;
/// Contexts of groups that their members have agreed on (`making`) lie below, those of survivors (`shrink`) between this and channels.
pub(crate) const CONTEXTS: u32 = 1 << 30;
/// Groups of survivors are told apart by their number and by so much of the context of the group that they have survived: groups that
/// are shrunk at the same time may have the same number.
pub(crate) const CONTEXTS_PER_SURVIVORS: u32 = 1 << 11;

#[derive(Debug)]
enum Members {
    /// The first, and how many.
    World(Peer, u32),
    /// Everybody, now and later.
    All,
    Listed(Vec<Peer>, FxHashMap<Peer, u32>),
    /// Nobody is spoken to in it any more.
    Revoked(Box<Members>),
    /// Calls have ended with the word of other members that these have died. Nothing is sent to these any more; what they have sent is received.
    Reported(Box<Members>, FxHashSet<Peer>),
}

impl Members {
    fn listed(peers: Vec<Peer>) -> Members {
        let ranks = peers.iter().zip(0..).map(|(&peer, rank)| (peer, rank));
        let ranks = ranks.collect();
        Members::Listed(peers, ranks)
    }

    #[inline(always)]
    fn size(&self) -> u32 {
        match self {
            Members::World(_, size) => *size,
            Members::All => 0,
            Members::Listed(peers, _) => peers.len() as u32,
            Members::Revoked(before) | Members::Reported(before, _) => before.peers().len() as u32,
        }
    }

    #[inline(always)]
    fn peer(&self, rank: u32) -> Option<Peer> {
        match self {
            Members::World(first, size) => (rank < *size).then(|| first + rank),
            Members::All => Some(rank),
            Members::Listed(peers, _) => peers.get(rank as usize).copied(),
            Members::Revoked(before) | Members::Reported(before, _) => {
                before.peers().get(rank as usize).copied()
            }
        }
    }

    #[inline(always)]
    fn rank_of(&self, peer: Peer) -> Option<u32> {
        match self {
            Members::World(first, size) => peer.checked_sub(*first).filter(|rank| rank < size),
            Members::All => Some(peer),
            Members::Listed(_, ranks) => ranks.get(&peer).copied(),
            Members::Revoked(before) | Members::Reported(before, _) => {
                let mut peers = before.peers().into_iter().zip(0..);
                peers.find(|&(one, _)| one == peer).map(|(_, rank)| rank)
            }
        }
    }

    fn peers(&self) -> Vec<Peer> {
        match self {
            Members::World(first, size) => (*first..first + size).collect(),
            Members::All => Vec::new(),
            Members::Listed(peers, _) => peers.clone(),
            Members::Revoked(before) | Members::Reported(before, _) => before.peers(),
        }
    }
}

/// A group's state.
pub struct Group<B: CollectiveBuffers> {
    /// Context of its messages.
    pub context: u32,
    members: Members,
    /// This task's rank in it.
    pub rank: u32,
    pub(crate) collective_buffer: Option<B::CollectiveBuffer>,
    /// The collective buffer's name, or 0.
    buffer_name: u64,
    /// Its members by host, once somebody has asked; inside that, `None`: they are all on one.
    pub(crate) hosts: Option<Option<Arc<Hosts>>>,
    /// The members on this host, if there are members on others: see `across`.
    pub(crate) here: Option<Box<Group<B>>>,
    /// Rounds in the collective buffer so far.
    pub(crate) round: u32,
    /// The last round to which all are known to have contributed.
    pub(crate) cleared: u32,
    /// Bit `i`: this task has gone on from round `round - i` without reading it ([`Need::Later`](crate::round::Need::Later)).
    pub(crate) later: u32,
    /// Collectives by schedule so far: their tag.
    pub(crate) sequence: i32,
    /// Calls by which its members make groups from it.
    pub(crate) calls: Calls,
    /// Agreements so far: their tag.
    pub(crate) agreements: u64,
    /// Groups with the same number are revoked together; 0: none.
    tie: u64,
    /// A member is gone: collectives fail with this.
    pub(crate) broken: Option<Error>,
    /// From this collective on all fail; see `failed`.
    pub(crate) failed: Option<(i32, Error)>,
    acknowledged: FxHashSet<Peer>,
    /// See `departures`.
    pub(crate) departures: Departures,
}

impl<B: CollectiveBuffers> Group<B> {
    fn new(
        context: u32,
        members: Members,
        rank: u32,
        collective_buffer: Option<B::CollectiveBuffer>,
    ) -> Group<B> {
        Group {
            context,
            members,
            rank,
            collective_buffer,
            buffer_name: 0,
            hosts: None,
            here: None,
            round: 0,
            cleared: 0,
            later: 0,
            sequence: 0,
            calls: Calls::default(),
            agreements: 0,
            tie: 0,
            broken: None,
            failed: None,
            acknowledged: FxHashSet::default(),
            departures: Departures::End,
        }
    }

    /// The members of a group that are on this host, with the collective buffer they share, or none.
    pub(crate) fn of_host(
        context: u32,
        peers: Vec<Peer>,
        rank: u32,
        buffer: Option<(B::CollectiveBuffer, u64)>,
    ) -> Group<B> {
        let (buffer, buffer_name) = buffer.map_or((None, 0), |(buffer, name)| (Some(buffer), name));
        Group {
            buffer_name,
            ..Group::new(context, Members::listed(peers), rank, buffer)
        }
    }

    /// How many members. Of channels it is not known here.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        self.members.size()
    }

    /// The member with a rank.
    #[inline(always)]
    pub fn peer(&self, rank: u32) -> Option<Peer> {
        self.members.peer(rank)
    }

    /// The member with a rank, to send to it or to receive from it: none in a group that is revoked, or of which members are reported dead.
    #[inline(always)]
    pub fn open_peer(&self, rank: u32) -> Option<Peer> {
        match &self.members {
            Members::Revoked(_) | Members::Reported(..) => None,
            members => members.peer(rank),
        }
    }

    /// The rank of a member.
    #[inline(always)]
    pub fn rank_of(&self, peer: Peer) -> Option<u32> {
        self.members.rank_of(peer)
    }

    /// It is revoked.
    pub(crate) fn close(&mut self) {
        let before = std::mem::replace(&mut self.members, Members::All);
        self.members = Members::Revoked(Box::new(before));
        self.broken = Some(Error::Revoked);
    }

    /// Has a call in this group ended because other members say that this one has died?
    pub fn is_reported_dead(&self, peer: Peer) -> bool {
        let members = match &self.members {
            Members::Revoked(before) => &**before,
            members => members,
        };
        matches!(members, Members::Reported(_, dead) if dead.contains(&peer))
    }

    /// A call in this group ends because others say that this member has died.
    fn report_dead(&mut self, peer: Peer) {
        let members = match &mut self.members {
            Members::Revoked(before) => &mut **before,
            members => members,
        };
        match members {
            Members::Reported(_, dead) => {
                dead.insert(peer);
            }
            members => {
                let before = std::mem::replace(members, Members::All);
                *members = Members::Reported(Box::new(before), FxHashSet::from_iter([peer]));
            }
        }
    }

    /// Can its collectives be complete? Not after a member has died. One that has left in good
    /// order may have done its part before.
    pub(crate) fn usable(&self) -> Result<()> {
        match &self.broken {
            Some(error) if !matches!(error, Error::Left(_)) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Has it been revoked, as far as this task knows?
    #[inline(always)]
    pub fn is_revoked(&self) -> bool {
        matches!(self.broken, Some(Error::Revoked))
    }

    /// Has this task acknowledged the death of that one?
    pub(crate) fn has_acknowledged(&self, peer: Peer) -> bool {
        self.acknowledged.contains(&peer)
    }

    /// All members, in rank order; none of a channel.
    pub fn peers(&self) -> Vec<Peer> {
        self.members.peers()
    }
}

/// All groups of a task.
pub(crate) struct Groups<B: CollectiveBuffers> {
    list: Vec<Option<Group<B>>>,
    /// Stands for every channel.
    all: Group<B>,
    generations: Vec<u16>,
    /// All places before this one are taken.
    first_free: usize,
    by_context: FxHashMap<u32, usize>,
    /// Places of groups that are being made.
    reserved: FxHashSet<usize>,
    /// Numbers of ties so far.
    ties: u64,
    pub(crate) freed: FreedContexts,
}

const SLOTS: usize = 1 << 15;
/// Ids that a place gives in turn.
const GENERATIONS: u16 = 1 << 15;

impl<B: CollectiveBuffers> Groups<B> {
    pub(crate) fn of_world(
        me: Peer,
        (first, size): (Peer, u32),
        buffer: Option<B::CollectiveBuffer>,
    ) -> Groups<B> {
        let mut all = Group::new(CHANNELS, Members::All, me, None);
        all.broken = Some(Error::Argument(
            "a channel (RG_ALL) is no group for collectives: its members come and go. Select the \
             members you mean (rg_group_select)"
                .into(),
        ));
        Groups {
            list: vec![Some(Group::new(
                0,
                Members::World(first, size),
                me - first,
                buffer,
            ))],
            all,
            generations: vec![0],
            first_free: 1,
            by_context: FxHashMap::from_iter([(0, 0)]),
            reserved: FxHashSet::default(),
            ties: 0,
            freed: FreedContexts::default(),
        }
    }

    #[inline(always)]
    pub(crate) fn at(&self, id: GroupId) -> Option<&Group<B>> {
        if id.0 == 0 {
            return self.list[0].as_ref();
        }
        if id.channel().is_some() {
            return Some(&self.all);
        }
        self.list.get(self.slot(id)?)?.as_ref()
    }

    #[inline(always)]
    pub(crate) fn at_mut(&mut self, id: GroupId) -> Option<&mut Group<B>> {
        if id.0 == 0 {
            return self.list[0].as_mut();
        }
        if id.channel().is_some() {
            return Some(&mut self.all);
        }
        let slot = self.slot(id)?;
        self.list.get_mut(slot)?.as_mut()
    }

    /// A place for a group that is to be made, and the id that this will have.
    pub(crate) fn reserve(&mut self) -> Option<GroupId> {
        let is_free = |slot: &usize| {
            let is_worn = self.generations[*slot] == GENERATIONS;
            !is_worn && self.list[*slot].is_none() && !self.reserved.contains(slot)
        };
        let slot = (self.first_free..self.list.len()).find(is_free);
        let slot = slot.unwrap_or(self.list.len());
        self.first_free = slot;
        if slot >= SLOTS {
            return match self.renew() {
                true => self.reserve(),
                false => None,
            };
        }
        if slot == self.list.len() {
            self.list.push(None);
            self.generations.push(0);
        }
        self.reserved.insert(slot);
        self.first_free = slot + 1;
        let id = self.generations[slot] as usize * SLOTS + slot;
        Some(GroupId(id as i32))
    }

    pub(crate) fn full(&self) -> Error {
        Error::Memory(format!("all {SLOTS} groups are in use"))
    }

    /// How many further groups there are places for.
    pub(crate) fn room(&self) -> usize {
        SLOTS - self.by_context.len() - self.reserved.len()
    }

    /// The place of a group that was not made is free, and its id is none.
    pub(crate) fn release(&mut self, id: GroupId) {
        if let Some(slot) = self.slot(id) {
            self.reserved.remove(&slot);
            self.vacate(slot);
        }
    }

    fn vacate(&mut self, slot: usize) {
        self.list[slot] = None;
        self.generations[slot] += 1;
        if self.generations[slot] < GENERATIONS {
            self.first_free = self.first_free.min(slot);
        }
    }

    /// A place that has had a group for each of its ids is used again only when all places have: an id that is no group's any more
    /// becomes another one's after as many groups as there are ids. Whether there are such places.
    fn renew(&mut self) -> bool {
        let worn = |generation: &&mut u16| **generation == GENERATIONS;
        let all = self.generations.iter_mut().filter(worn);
        let renewed = all.map(|generation| *generation = 0).count();
        self.first_free = 1;
        renewed > 0
    }

    fn slot(&self, id: GroupId) -> Option<usize> {
        let slot = (id.0 as usize) % SLOTS;
        let generation = (id.0 as usize) / SLOTS;
        (id.0 >= 0 && *self.generations.get(slot)? as usize == generation).then_some(slot)
    }

    pub(crate) fn by_context(&self, context: u32) -> Option<&Group<B>> {
        if context >= CHANNELS {
            return Some(&self.all);
        }
        self.list[*self.by_context.get(&(context & !1))?].as_ref()
    }

    pub(crate) fn by_context_mut(&mut self, context: u32) -> Option<&mut Group<B>> {
        if context >= CHANNELS {
            return Some(&mut self.all);
        }
        self.list[*self.by_context.get(&(context & !1))?].as_mut()
    }

    /// The group with this context.
    pub(crate) fn id_of(&self, context: u32) -> Option<GroupId> {
        let slot = *self.by_context.get(&context)?;
        let id = self.generations[slot] as usize * SLOTS + slot;
        Some(GroupId(id as i32))
    }

    /// From now on each of two groups is tied to all to which the other one is.
    pub(crate) fn tie(&mut self, one: GroupId, other: GroupId) {
        let tie = |id| self.at(id).map_or(0, |group| group.tie);
        let (kept, gone) = (tie(one), tie(other));
        let kept = match kept {
            0 => {
                self.ties += 1;
                self.ties
            }
            kept => kept,
        };
        if gone != 0 {
            let groups = self.list.iter_mut().flatten();
            let others = groups.filter(|group| group.tie == gone);
            others.for_each(|group| group.tie = kept);
        }
        for id in [one, other] {
            if let Some(group) = self.at_mut(id) {
                group.tie = kept;
            }
        }
    }

    /// A group and all that are tied to it.
    pub(crate) fn tied(&self, id: GroupId) -> Vec<GroupId> {
        let tie = self.at(id).map_or(0, |group| group.tie);
        if tie == 0 {
            return vec![id];
        }
        let groups = self.list.iter().flatten();
        let tied = groups.filter(|group| group.tie == tie);
        tied.filter_map(|group| self.id_of(group.context)).collect()
    }

    /// All groups but channels.
    pub(crate) fn all_listed(&self) -> impl Iterator<Item = &Group<B>> {
        self.list.iter().flatten()
    }

    pub(crate) fn containing(&mut self, peer: Peer) -> impl Iterator<Item = &mut Group<B>> {
        let all = self.list.iter_mut().flatten();
        all.filter(move |group| group.rank_of(peer).is_some())
    }
}

impl<T: Transport> Engine<T> {
    /// A group, if the id is a live one.
    #[inline(always)]
    pub fn group(&self, id: GroupId) -> Result<&Group<T>> {
        self.live_group(id).ok_or(Error::Handle("group"))
    }

    /// A group, for callers that make no error of it: one costs more than a look.
    #[inline(always)]
    pub fn live_group(&self, id: GroupId) -> Option<&Group<T>> {
        self.groups.at(id)
    }

    /// A group whose members are known: no channel.
    pub fn closed(&self, id: GroupId) -> Result<&Group<T>> {
        let group = self.group(id)?;
        match (&group.members, &group.broken) {
            (Members::All, Some(error)) => Err(error.clone()),
            _ => Ok(group),
        }
    }

    #[inline(always)]
    pub(crate) fn group_mut(&mut self, id: GroupId) -> Result<&mut Group<T>> {
        self.groups.at_mut(id).ok_or(Error::Handle("group"))
    }

    /// A call in the group of this context ends because others say that this member has died. This task may not have heard of that, or may still
    /// reach it: from now on nothing is sent to it in this group and in those that are tied to it.
    pub(crate) fn note_reported_dead(&mut self, context: u32, peer: Peer) {
        let Some(id) = self.groups.id_of(context & !1) else {
            return;
        };
        // Every send checks `gone`; the shortest sends do not ask the transport.
        if self.is_gone(peer) {
            return;
        }
        for id in self.groups.tied(id) {
            if let Ok(group) = self.group_mut(id)
                && group.rank_of(peer).is_some()
            {
                group.report_dead(peer);
                if id == GroupId::WORLD {
                    self.open_world = 0;
                }
            }
        }
    }

    /// This task's rank in a group, and the group's size.
    #[inline(always)]
    pub fn place(&self, id: GroupId) -> Option<(u32, u32)> {
        let group = self.groups.at(id)?;
        Some((group.rank, group.size()))
    }

    /// Is this task the only member of a group, in which calls still succeed? Then its collectives are copies.
    #[inline(always)]
    pub fn is_alone(&self, id: GroupId) -> bool {
        let group = self.groups.at(id);
        group.is_some_and(|group| group.size() == 1 && group.broken.is_none())
    }

    /// The source of a message as a rank of the group it was received in.
    #[inline(always)]
    pub fn rank_in(&self, status: &Status) -> i32 {
        if status.source < 0 {
            return status.source;
        }
        let group = self.groups.by_context(status.context);
        let rank = group.and_then(|group| group.rank_of(status.source as Peer));
        rank.map_or(status.source, |rank| rank as i32)
    }

    /// This task's place among the members of a new group, if these make sense.
    pub(crate) fn check_members(&self, members: &[Peer]) -> Result<u32> {
        let me = self.me;
        let Some(rank) = members.iter().position(|&peer| peer == me) else {
            return Err(Error::Argument(
                "this task is not a member of the new group".into(),
            ));
        };
        let tasks = self.transport.peers();
        let once: FxHashSet<Peer> = members.iter().copied().collect();
        if once.len() != members.len() || members.iter().any(|&peer| peer >= tasks) {
            return Err(Error::State(c"the members of the new group make no sense"));
        }
        Ok(rank as u32)
    }

    /// Add a group all of whose members add it with the same members and context, which is free
    /// in all of them. `buffer` is the name of a collective buffer that a member made, if one did.
    pub fn add_group(&mut self, members: Vec<Peer>, context: u32, buffer: u64) -> Result<GroupId> {
        self.check_members(&members)?;
        let Some(id) = self.groups.reserve() else {
            if buffer != 0 {
                let size = members.len() as u32;
                self.transport.leave_collective_buffer(buffer, size);
            }
            return Err(self.groups.full());
        };
        let filled = self.fill_group(id, members, context, buffer);
        if filled.is_err() {
            self.groups.release(id);
        }
        filled.map(|()| id)
    }

    /// Add a group as [`add_group`](Engine::add_group) does, in a place that is reserved for it.
    pub(crate) fn fill_group(
        &mut self,
        id: GroupId,
        members: Vec<Peer>,
        context: u32,
        buffer: u64,
    ) -> Result<()> {
        let rank = self.check_members(&members)?;
        let slot = self.groups.slot(id).ok_or(Error::Handle("group"))?;
        if !context.is_multiple_of(2)
            || context >= CHANNELS
            || self.groups.by_context.contains_key(&context)
        {
            return Err(Error::State(
                c"the context of the new group is another group's already",
            ));
        }
        let buffer_name = buffer;
        let buffer = match buffer {
            0 => None,
            name => Some(
                self.transport
                    .enter_collective_buffer(name, members.len() as u32)?,
            ),
        };
        let group = Group {
            buffer_name,
            ..Group::new(context, Members::listed(members), rank, buffer)
        };
        let groups = &mut self.groups;
        groups.reserved.remove(&slot);
        groups.list[slot] = Some(group);
        groups.by_context.insert(context, slot);
        self.epochs.note_accepted(context);
        self.meet(id);
        self.break_if_lost(id);
        self.stirred |= self.revocations.made(context);
        Ok(())
    }

    fn break_if_lost(&mut self, id: GroupId) {
        let Ok(group) = self.group(id) else { return };
        let peers = group.peers();
        let one = |how| {
            let mut peers = peers.iter().copied();
            peers.find(|&peer| self.presence(peer) == how)
        };
        let lost = one(Presence::Dead).or_else(|| one(Presence::Left));
        if let Some(peer) = lost {
            let error = self.loss(peer);
            if let Ok(group) = self.group_mut(id) {
                group.broken = Some(error);
            }
        }
    }

    /// Make a collective buffer for a group of these tasks; 0 when they have no memory in common.
    pub fn make_collective_buffer(&mut self, members: &[Peer]) -> Result<u64> {
        if !members
            .iter()
            .all(|&peer| self.transport.shares_memory(peer))
        {
            return Ok(0);
        }
        let buffer = self.transport.new_collective_buffer(members.len() as u32)?;
        Ok(buffer.map_or(0, |(_, name)| name))
    }

    /// Forget a group. Messages still on their way in it will never be received.
    pub fn free_group(&mut self, id: GroupId) -> Result<()> {
        if id == GroupId::WORLD || id.channel().is_some() {
            return Err(Error::Argument(
                "neither the world nor a channel can be freed".into(),
            ));
        }
        let group = self.group(id)?;
        let (context, members, rank) = (group.context, group.peers(), group.rank as usize);
        let rooms = [Some(group), group.here.as_deref()].into_iter().flatten();
        let buffers: Vec<_> = rooms.map(|room| (room.buffer_name, room.size())).collect();
        for (buffer, members) in buffers.into_iter().filter(|&(buffer, _)| buffer != 0) {
            self.transport.leave_collective_buffer(buffer, members);
        }
        self.close_agreements(context, members, rank);
        self.groups.vacate(id.0 as usize % SLOTS);
        self.groups.by_context.remove(&context);
        if !self.unexpected.is_empty() {
            self.drop_messages_of(context);
        }
        self.end_attempts_of_freed(context);
        Ok(())
    }

    /// The members of a group that have died, as far as this task knows: by itself, or because a call in the group has ended with that.
    pub fn dead_members(&self, id: GroupId) -> Result<Vec<Peer>> {
        let group = self.group(id)?;
        let is_dead =
            |&peer: &Peer| self.presence(peer) == Presence::Dead || group.is_reported_dead(peer);
        Ok(group.peers().into_iter().filter(is_dead).collect())
    }

    /// Receives from any source in this group go on without its dead members. Returns how many
    /// members are dead.
    pub fn acknowledge(&mut self, id: GroupId) -> Result<u32> {
        let dead = self.dead_members(id)?;
        let count = dead.len() as u32;
        self.group_mut(id)?.acknowledged.extend(dead);
        Ok(count)
    }

    /// A member that has died, as far as is known here, and was not acknowledged.
    pub(crate) fn unacknowledged_death(&self, context: u32) -> Option<Peer> {
        let group = self.groups.by_context(context)?;
        let is_unacknowledged = |&peer: &Peer| {
            self.gone.contains(&peer)
                && !self.may_have_unread(peer, context)
                && self.presence(peer) == Presence::Dead
                && !group.acknowledged.contains(&peer)
        };
        let mut peers = group.peers().into_iter();
        peers.find(is_unacknowledged)
    }

    /// May a receive from any source in this context wait? Not while a dead member has not been
    /// acknowledged, and not when nobody is left to send.
    pub(crate) fn check_any_source(&self, context: u32) -> Result<()> {
        let Some(group) = self.groups.by_context(context) else {
            return Ok(());
        };
        // Of everybody, somebody may still come.
        if self.gone.is_empty() || group.size() == 1 || matches!(group.members, Members::All) {
            return Ok(());
        }
        let mut last = None;
        let mut living = 0;
        for peer in group.peers() {
            // Messages of a peer that is gone may still be outside, or its loss has not been looked at yet.
            if peer != self.me
                && (!self.gone.contains(&peer) || self.may_have_unread(peer, context))
            {
                living += 1;
                continue;
            }
            match self.presence(peer) {
                Presence::Dead if !group.acknowledged.contains(&peer) => {
                    return Err(self.loss(peer));
                }
                Presence::Here => living += (peer != self.me) as usize,
                _ => last = Some(peer),
            }
        }
        match last {
            Some(peer) if living == 0 => Err(self.loss(peer)),
            _ => Ok(()),
        }
    }
}
