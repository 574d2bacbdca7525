//! Groups: ordered sets of tasks, each with its own context.
//!
//! A group uses two contexts: `context` for the user's messages and `context + 1` for its collectives, so that neither matches a message of the
//! other.
//!
//! The world of every task has context 0: messages are exchanged only between members of a group, so tasks that have no group in common may use the
//! same contexts. *Channels* are numbered groups of all tasks, and grow with the job. They are not made: a channel is its number, and the contexts
//! of channels are above those of all other groups.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Result};
use crate::numbers::{FIRST_CHANNEL_CONTEXT, LAST_COLLECTIVE};
use crate::transport::{CollectiveBuffers, Peer};
use crate::tree::Hosts;

/// The caller's id of a group. The world is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId(pub i32);

impl GroupId {
    /// The tasks that were started together with this task.
    pub const WORLD: GroupId = GroupId(0);
    /// All tasks of the job, by their numbers: the first channel.
    pub const ALL: GroupId = GroupId(Self::CHANNEL);

    const CHANNEL: i32 = 1 << 30;

    /// Returns the context of a channel, or `None` for other groups.
    #[inline(always)]
    pub fn channel(self) -> Option<u32> {
        (self.0 >= Self::CHANNEL)
            .then(|| FIRST_CHANNEL_CONTEXT | ((self.0 - Self::CHANNEL) as u32) << 1)
    }
}

#[derive(Debug)]
enum Members {
    /// The first member and the number of members.
    World(Peer, u32),
    /// All present and future tasks.
    All,
    Listed(Vec<Peer>, FxHashMap<Peer, u32>),
    /// A revoked group: no message is sent or received in it any more.
    Revoked(Box<Members>),
    /// Calls have failed because other members report these members dead. Nothing is sent to them any more; messages that they have sent are
    /// received.
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
    /// This task's rank in the group.
    pub rank: u32,
    pub(crate) collective_buffer: Option<B::CollectiveBuffer>,
    /// The collective buffer's name, or 0.
    buffer_name: u64,
    /// It is known whether there is a collective buffer; see `room`.
    pub(crate) is_buffer_known: bool,
    /// The members by host, once they were requested. The inner `None` means that all are on one host.
    pub(crate) hosts: Option<Option<Arc<Hosts>>>,
    /// The members on this host, if there are members on other hosts: see `across`.
    pub(crate) here: Option<Box<Group<B>>>,
    /// Number of rounds in the collective buffer so far.
    pub(crate) round: u32,
    /// The last round to which all members are known to have contributed.
    pub(crate) cleared: u32,
    /// Bit `i` is set if this task has left round `round - i` without reading it ([`Need::Later`](crate::round::Need::Later)).
    pub(crate) later: u32,
    /// Number of the last collective that used a schedule. Serves as its tag.
    pub(crate) sequence: i32,
    /// Number of agreements so far. Serves as their tag.
    agreements: u64,
    /// Groups with the same tie are revoked together. 0 if the group has no tie.
    tie: u64,
    /// A member is gone: collectives fail with this error.
    pub(crate) broken: Option<Error>,
    /// This collective and all later ones fail with this error; see `failed`.
    pub(crate) failed: Option<(i32, Error)>,
    acknowledged: FxHashSet<Peer>,
}

impl<B: CollectiveBuffers> Group<B> {
    fn new(context: u32, members: Members, rank: u32) -> Group<B> {
        Group {
            context,
            members,
            rank,
            collective_buffer: None,
            buffer_name: 0,
            is_buffer_known: false,
            hosts: None,
            here: None,
            round: 0,
            cleared: 0,
            later: 0,
            sequence: 0,
            agreements: 0,
            tie: 0,
            broken: None,
            failed: None,
            acknowledged: FxHashSet::default(),
        }
    }

    /// Creates a group of these members: one that was agreed on, or the members of a group that are on this host.
    pub(crate) fn listed(context: u32, peers: Vec<Peer>, rank: u32) -> Group<B> {
        Group::new(context, Members::listed(peers), rank)
    }

    /// Records that it is known whether there is a collective buffer, and which.
    pub(crate) fn set_buffer(&mut self, buffer: Option<(B::CollectiveBuffer, u64)>) {
        self.is_buffer_known = true;
        if let Some((buffer, name)) = buffer {
            (self.collective_buffer, self.buffer_name) = (Some(buffer), name);
        }
    }

    /// Returns the number of members, or 0 for a channel, whose size is not known here.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        self.members.size()
    }

    /// Returns the member with this rank.
    #[inline(always)]
    pub fn peer(&self, rank: u32) -> Option<Peer> {
        self.members.peer(rank)
    }

    /// Returns the member with this rank if messages may be exchanged with it without further checks. Returns `None` for all members if the group is
    /// revoked or any member was reported dead.
    #[inline(always)]
    pub fn open_peer(&self, rank: u32) -> Option<Peer> {
        match &self.members {
            Members::Revoked(_) | Members::Reported(..) => None,
            members => members.peer(rank),
        }
    }

    /// Returns the rank of a member.
    #[inline(always)]
    pub fn rank_of(&self, peer: Peer) -> Option<u32> {
        self.members.rank_of(peer)
    }

    /// Marks the group as revoked.
    pub(crate) fn close(&mut self) {
        let before = std::mem::replace(&mut self.members, Members::All);
        self.members = Members::Revoked(Box::new(before));
        self.broken = Some(Error::Revoked);
    }

    /// Returns whether a call in this group has failed because other members report this member dead.
    pub fn is_reported_dead(&self, peer: Peer) -> bool {
        let members = match &self.members {
            Members::Revoked(before) => &**before,
            members => members,
        };
        matches!(members, Members::Reported(_, dead) if dead.contains(&peer))
    }

    /// Records that a call in this group fails because other members report this member dead.
    pub(crate) fn report_dead(&mut self, peer: Peer) {
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

    /// Fails if the group's collectives cannot complete because a member has died. If a member has left in good order they may: it may have done its
    /// part before.
    pub(crate) fn usable(&self) -> Result<()> {
        match &self.broken {
            Some(error) if !matches!(error, Error::Left(_)) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Returns whether the group is revoked, as far as this task knows.
    #[inline(always)]
    pub fn is_revoked(&self) -> bool {
        matches!(self.broken, Some(Error::Revoked))
    }

    /// Returns whether this task has acknowledged the death of `peer`.
    pub(crate) fn has_acknowledged(&self, peer: Peer) -> bool {
        self.acknowledged.contains(&peer)
    }

    /// Returns all members, in rank order. Empty for a channel.
    pub fn peers(&self) -> Vec<Peer> {
        self.members.peers()
    }

    /// Returns whether the group stands for a channel, whose members change.
    pub(crate) fn is_channel(&self) -> bool {
        matches!(self.members, Members::All)
    }

    /// Acknowledges deaths: receives from any source continue without these members.
    pub(crate) fn acknowledge(&mut self, dead: Vec<Peer>) {
        self.acknowledged.extend(dead);
    }

    /// Marks the group as broken, since a member is gone. A death replaces an earlier departure as the error.
    pub(crate) fn break_by(&mut self, error: &Error) {
        if self.usable().is_ok() {
            self.broken = Some(error.clone());
        }
    }

    /// Returns the number of the next agreement of the group.
    pub(crate) fn next_agreement(&mut self) -> u64 {
        self.agreements += 1;
        self.agreements
    }

    /// Returns the number of the next collective of the group that uses a schedule.
    pub(crate) fn next_sequence(&self) -> i32 {
        (self.sequence + 1) & LAST_COLLECTIVE
    }

    /// Returns the collective buffers of the group and of its members on this host: the members and the name of each.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = (&Group<B>, u64)> {
        let rooms = [Some(self), self.here.as_deref()].into_iter().flatten();
        let buffers = rooms.map(|room| (room, room.buffer_name));
        buffers.filter(|&(_, name)| name != 0)
    }
}

/// All groups of a task, by id and by context.
pub(crate) struct GroupTable<B: CollectiveBuffers> {
    list: Vec<Option<Group<B>>>,
    /// Stands for every channel.
    all: Group<B>,
    generations: Vec<u16>,
    /// All slots before this one are taken.
    first_free: usize,
    by_context: FxHashMap<u32, usize>,
    /// Slots of groups that are being made.
    reserved: FxHashSet<usize>,
    /// Number of the last tie.
    ties: u64,
}

const SLOTS: usize = 1 << 15;
/// Number of different ids that a slot gives one after the other.
const GENERATIONS: u16 = 1 << 15;

impl<B: CollectiveBuffers> GroupTable<B> {
    pub(crate) fn of_world(
        me: Peer,
        (first, size): (Peer, u32),
        buffer: Option<B::CollectiveBuffer>,
    ) -> GroupTable<B> {
        let mut all = Group::new(FIRST_CHANNEL_CONTEXT, Members::All, me);
        all.broken = Some(Error::Argument(
            "a channel (RG_ALL) cannot be used for collectives, because its members change. Select the members you mean (rg_group_select)"
                .into(),
        ));
        let mut world: Group<B> = Group::new(0, Members::World(first, size), me - first);
        // The world is never freed, so its buffer needs no name.
        world.set_buffer(buffer.map(|buffer| (buffer, 0)));
        GroupTable {
            list: vec![Some(world)],
            all,
            generations: vec![0],
            first_free: 1,
            by_context: FxHashMap::from_iter([(0, 0)]),
            reserved: FxHashSet::default(),
            ties: 0,
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

    /// Reserves a slot for a group that is to be made. Returns the id that the group will have, or `None` if all slots are in use.
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

    /// Returns how many more groups the table can hold.
    pub(crate) fn room(&self) -> usize {
        SLOTS - self.by_context.len() - self.reserved.len()
    }

    /// Frees the slot of a group that was not made. The id becomes invalid.
    pub(crate) fn release(&mut self, id: GroupId) {
        if let Some(slot) = self.slot(id) {
            self.reserved.remove(&slot);
            self.vacate(slot);
        }
    }

    /// Adds a group in the slot that was reserved for it.
    pub(crate) fn fill(
        &mut self,
        id: GroupId,
        members: Vec<Peer>,
        context: u32,
        rank: u32,
    ) -> Result<()> {
        let slot = self.slot(id).ok_or(Error::Handle("group"))?;
        self.reserved.remove(&slot);
        self.list[slot] = Some(Group::listed(context, members, rank));
        self.by_context.insert(context, slot);
        Ok(())
    }

    /// Returns whether a new group can have this context.
    pub(crate) fn has_free(&self, context: u32) -> bool {
        context.is_multiple_of(2)
            && context < FIRST_CHANNEL_CONTEXT
            && !self.by_context.contains_key(&context)
    }

    /// Removes and returns a group.
    pub(crate) fn remove(&mut self, id: GroupId) -> Option<Group<B>> {
        let group = self.vacate(self.slot(id)?)?;
        self.by_context.remove(&group.context);
        Some(group)
    }

    fn vacate(&mut self, slot: usize) -> Option<Group<B>> {
        let group = self.list[slot].take();
        self.generations[slot] += 1;
        if self.generations[slot] < GENERATIONS {
            self.first_free = self.first_free.min(slot);
        }
        group
    }

    /// Frees the slots that have used up their ids, once all slots have: an invalid id becomes valid again only after as many groups as there are
    /// ids. Returns whether there are such slots.
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
        if context >= FIRST_CHANNEL_CONTEXT {
            return Some(&self.all);
        }
        self.list[*self.by_context.get(&(context & !1))?].as_ref()
    }

    /// Returns the id of the group with this context.
    pub(crate) fn id_of(&self, context: u32) -> Option<GroupId> {
        let slot = *self.by_context.get(&context)?;
        let id = self.generations[slot] as usize * SLOTS + slot;
        Some(GroupId(id as i32))
    }

    /// Ties two groups, and with them all groups to which either is tied.
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

    /// Returns a group and all groups that are tied to it.
    pub(crate) fn tied(&self, id: GroupId) -> Vec<GroupId> {
        let tie = self.at(id).map_or(0, |group| group.tie);
        if tie == 0 {
            return vec![id];
        }
        let groups = self.list.iter().flatten();
        let tied = groups.filter(|group| group.tie == tie);
        tied.filter_map(|group| self.id_of(group.context)).collect()
    }

    /// Returns the ids of all groups except channels.
    pub(crate) fn ids(&self) -> Vec<GroupId> {
        let contexts = self.by_context.keys();
        contexts.filter_map(|&one| self.id_of(one)).collect()
    }

    /// Returns all groups except channels.
    pub(crate) fn all_listed(&self) -> impl Iterator<Item = &Group<B>> {
        self.list.iter().flatten()
    }

    /// Returns the groups of which a task is a member.
    pub(crate) fn containing(&mut self, peer: Peer) -> impl Iterator<Item = &mut Group<B>> {
        let all = self.list.iter_mut().flatten();
        all.filter(move |group| group.rank_of(peer).is_some())
    }
}
