//! Groups over point-to-point messages: the rules that depend on who is in a group.
//!
//! This layer adds to [`PointToPoint`] what contexts do not show: ranks, who may still send to a receive from any source, and which groups
//! a lost member breaks. The collectives of the members ([`schedule`](crate::schedule), [`failed`](crate::failed)) and what they agree on
//! are above it.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::epoch::{Epochs, Spaces};
use crate::error::{Error, Result};
use crate::group::{Group, GroupId, GroupTable};
use crate::matching::Select;
use crate::point_to_point::{PointToPoint, Settings};
use crate::request::Status;
use crate::transport::{Peer, Presence, Transport};
use crate::tree::{Between, Hosts, Tree};

/// The groups of a task, over its messages.
pub struct Groups<T: Transport> {
    pub(crate) p2p: PointToPoint<T>,
    pub(crate) table: GroupTable<T>,
    pub(crate) epochs: Epochs,
    /// Ranks of the world below this one need no look at the group; none if it is revoked.
    open_world: u32,
}

impl<T: Transport> std::ops::Deref for Groups<T> {
    type Target = PointToPoint<T>;
    #[inline(always)]
    fn deref(&self) -> &PointToPoint<T> {
        &self.p2p
    }
}

impl<T: Transport> std::ops::DerefMut for Groups<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut PointToPoint<T> {
        &mut self.p2p
    }
}

/// A group that has been freed.
pub(crate) struct Freed {
    pub(crate) context: u32,
    pub(crate) members: Vec<Peer>,
    pub(crate) rank: usize,
}

impl<T: Transport> Groups<T> {
    pub(crate) fn new(mut transport: T, settings: Settings, spaces: Spaces) -> Groups<T> {
        let (me, world) = (transport.me(), transport.world());
        let buffer = transport.world_collective_buffer();
        Groups {
            table: GroupTable::of_world(me, world, buffer),
            epochs: Epochs::new(spaces),
            open_world: world.1,
            p2p: PointToPoint::new(transport, settings),
        }
    }

    /// Returns whether this is a rank of the world for which nothing but its number counts.
    #[inline(always)]
    pub fn is_open_rank(&self, rank: i32) -> bool {
        (rank as u32) < self.open_world
    }

    /// Returns a group, if the id is a live one.
    #[inline(always)]
    pub fn group(&self, id: GroupId) -> Result<&Group<T>> {
        self.live_group(id).ok_or(Error::Handle("group"))
    }

    /// Returns a group, for callers that make no error of it: one costs more than a look.
    #[inline(always)]
    pub fn live_group(&self, id: GroupId) -> Option<&Group<T>> {
        self.table.at(id)
    }

    /// Returns a group whose members are known: no channel.
    pub fn closed(&self, id: GroupId) -> Result<&Group<T>> {
        let group = self.group(id)?;
        match &group.broken {
            Some(error) if group.is_channel() => Err(error.clone()),
            _ => Ok(group),
        }
    }

    #[inline(always)]
    pub(crate) fn group_mut(&mut self, id: GroupId) -> Result<&mut Group<T>> {
        self.table.at_mut(id).ok_or(Error::Handle("group"))
    }

    /// Returns this task's rank in a group, and the group's size.
    #[inline(always)]
    pub fn place(&self, id: GroupId) -> Option<(u32, u32)> {
        let group = self.table.at(id)?;
        Some((group.rank, group.size()))
    }

    /// Returns whether this task is the only member of a group, in which calls still succeed: then its collectives are copies.
    #[inline(always)]
    pub fn is_alone(&self, id: GroupId) -> bool {
        let group = self.table.at(id);
        group.is_some_and(|group| group.size() == 1 && group.broken.is_none())
    }

    /// Returns the source of a message as a rank of the group in which it was received.
    #[inline(always)]
    pub fn rank_in(&self, status: &Status) -> i32 {
        if status.source < 0 {
            return status.source;
        }
        let group = self.table.by_context(status.context);
        let rank = group.and_then(|group| group.rank_of(status.source as Peer));
        rank.map_or(status.source, |rank| rank as i32)
    }

    /// Notes that a call in the group of this context ends because others say that this member has died. This task may not have heard of that, or may
    /// still reach it: from now on nothing is sent to it in this group and in those that are tied to it.
    pub(crate) fn note_reported_dead(&mut self, context: u32, peer: Peer) {
        let Some(id) = self.table.id_of(context & !1) else {
            return;
        };
        // Every send checks who is gone; the shortest sends do not ask the transport.
        if self.losses().has(peer) {
            return;
        }
        for id in self.table.tied(id) {
            if let Some(group) = self.table.at_mut(id)
                && group.rank_of(peer).is_some()
            {
                group.report_dead(peer);
                self.note_world_changed(id);
            }
        }
    }

    fn note_world_changed(&mut self, id: GroupId) {
        if id == GroupId::WORLD {
            self.open_world = 0;
        }
    }

    /// Marks a group as revoked: nothing is done in it any more. Returns its context, this task's rank, and its members; `None` if it was revoked
    /// before.
    pub(crate) fn close(&mut self, id: GroupId) -> Option<(u32, usize, Vec<Peer>)> {
        let group = self.table.at_mut(id).filter(|group| !group.is_revoked())?;
        group.close();
        let closed = (group.context, group.rank as usize, group.peers());
        self.note_world_changed(id);
        Some(closed)
    }

    /// Returns this task's place among the members of a new group, if these make sense.
    pub(crate) fn check_members(&self, members: &[Peer]) -> Result<u32> {
        let me = self.me();
        let Some(rank) = members.iter().position(|&peer| peer == me) else {
            return Err(Error::Argument(
                "this task is not a member of the new group".into(),
            ));
        };
        let tasks = self.transport().peers();
        let once: FxHashSet<Peer> = members.iter().copied().collect();
        if once.len() != members.len() || members.iter().any(|&peer| peer >= tasks) {
            return Err(Error::State(c"the members of the new group make no sense"));
        }
        Ok(rank as u32)
    }

    /// Adds a group all of whose members add it with the same members and context, which is free
    /// in all of them. Its place is reserved.
    pub(crate) fn fill(&mut self, id: GroupId, members: Vec<Peer>, context: u32) -> Result<()> {
        let rank = self.check_members(&members)?;
        if !self.table.has_free(context) {
            return Err(Error::State(
                c"the context of the new group is another group's already",
            ));
        }
        self.epochs.add_group(context, &members);
        self.table.fill(id, members, context, rank)?;
        self.break_if_lost(id);
        Ok(())
    }

    /// Adds a group as [`Groups::fill`] does. Returns its id.
    pub(crate) fn add(&mut self, members: Vec<Peer>, context: u32) -> Result<GroupId> {
        self.check_members(&members)?;
        let Some(id) = self.table.reserve() else {
            return Err(self.table.full());
        };
        let filled = self.fill(id, members, context);
        if filled.is_err() {
            self.table.release(id);
        }
        filled.map(|()| id)
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

    /// Removes a group. Messages still on their way in it will never be received.
    pub(crate) fn free(&mut self, id: GroupId) -> Result<Freed> {
        if id == GroupId::WORLD || id.channel().is_some() {
            return Err(Error::Argument(
                "neither the world nor a channel can be freed".into(),
            ));
        }
        let group = self.table.at(id).ok_or(Error::Handle("group"))?;
        let freed = Freed {
            context: group.context,
            members: group.peers(),
            rank: group.rank as usize,
        };
        // Of others some may not have heard the buffer's name, and never will.
        let gives_up = group.usable().is_err();
        for (buffer, members) in group.buffers() {
            let transport = self.p2p.transport_mut();
            transport.leave_collective_buffer(buffer, members, gives_up);
        }
        self.table.remove(id, freed.context);
        self.free_context(freed.context);
        Ok(freed)
    }

    /// Returns how many epochs of contexts this task has used, the first one included.
    pub fn context_epoch(&self) -> u64 {
        self.epochs.used()
    }

    /// Breaks the groups of a member that is gone.
    pub(crate) fn break_by(&mut self, peer: Peer) {
        let error = self.loss(peer);
        for group in self.table.containing(peer) {
            group.break_by(&error);
        }
    }

    /// Returns the members of a group that have died, as far as this task knows: by itself, or because a call in the group has ended with that.
    pub fn dead_members(&self, id: GroupId) -> Result<Vec<Peer>> {
        let group = self.group(id)?;
        let is_dead =
            |&peer: &Peer| self.presence(peer) == Presence::Dead || group.is_reported_dead(peer);
        Ok(group.peers().into_iter().filter(is_dead).collect())
    }

    /// Lets receives from any source in this group go on without its dead members. Returns how many
    /// members are dead.
    pub fn acknowledge(&mut self, id: GroupId) -> Result<u32> {
        let dead = self.dead_members(id)?;
        let count = dead.len() as u32;
        self.group_mut(id)?.acknowledge(dead);
        Ok(count)
    }

    /// Returns a member that has died, as far as is known here, and was not acknowledged.
    fn unacknowledged_death(&self, context: u32) -> Option<Peer> {
        let group = self.table.by_context(context)?;
        let is_unacknowledged = |&peer: &Peer| {
            self.losses().has(peer)
                && !self.may_have_unread(peer, context)
                && self.presence(peer) == Presence::Dead
                && !group.has_acknowledged(peer)
        };
        let mut peers = group.peers().into_iter();
        peers.find(is_unacknowledged)
    }

    /// Fails if a receive cannot be pending, since its sources are gone.
    pub(crate) fn check_pending(&self, select: &Select) -> Result<()> {
        match select.source {
            Some(_) => self.p2p.check_pending(select),
            None => self.check_pending_any(select.context),
        }
    }

    /// Fails if nobody can ever satisfy a receive.
    pub(crate) fn check_source(&self, select: &Select) -> Result<()> {
        self.p2p.check_source(select)?;
        match select.source {
            Some(_) => Ok(()),
            None => self.check_any_source(select.context),
        }
    }

    /// Fails if a receive from any source in this context cannot wait: a dead member has not been
    /// acknowledged, or nobody is left to send.
    fn check_any_source(&self, context: u32) -> Result<()> {
        let Some(group) = self.table.by_context(context) else {
            return Ok(());
        };
        // Of everybody, somebody may still come.
        if self.is_nobody_gone() || group.size() == 1 || group.is_channel() {
            return Ok(());
        }
        let mut last = None;
        let mut living = 0;
        for peer in group.peers() {
            // Messages of a peer that is gone may still be outside, or its loss has not been looked at yet.
            if peer != self.me()
                && (!self.losses().has(peer) || self.may_have_unread(peer, context))
            {
                living += 1;
                continue;
            }
            match self.presence(peer) {
                Presence::Dead if !group.has_acknowledged(peer) => {
                    return Err(self.loss(peer));
                }
                Presence::Here => living += (peer != self.me()) as usize,
                _ => last = Some(peer),
            }
        }
        match last {
            Some(peer) if living == 0 => Err(self.loss(peer)),
            _ => Ok(()),
        }
    }

    /// Fails if a receive from any source in this context cannot be pending. Where departures are tolerated only deaths end it.
    pub(crate) fn check_pending_any(&self, context: u32) -> Result<()> {
        if self.contexts().is_closed(context) {
            return Err(Error::Revoked);
        }
        if !self.contexts().is_tolerant(context) {
            return self.check_any_source(context);
        }
        match self.unacknowledged_death(context) {
            Some(peer) => Err(self.loss(peer)),
            None => Ok(()),
        }
    }

    /// Fails receives from any source to which nobody can send any more.
    pub(crate) fn fail_receives_from_any(&mut self) {
        let posted = self.posted().filter(|(_, select)| select.source.is_none());
        let failed = posted.filter_map(|(number, select)| {
            let error = self.check_pending_any(select.context).err()?;
            Some((number, error))
        });
        let failed: Vec<(u32, Error)> = failed.collect();
        for (number, error) in failed {
            self.fail_receive(number, error);
        }
    }
    /// Returns the members of a group by host, with `root` leading its own. `None`: all are on one.
    pub(crate) fn hosts(&mut self, id: GroupId, root: u32) -> Result<Option<Arc<Hosts>>> {
        let group = self.group(id)?;
        match &group.hosts {
            Some(None) => Ok(None),
            Some(known) if root == 0 => Ok(known.clone()),
            Some(_) => Ok(Some(Arc::new(self.hosts_led_by(group, root)))),
            None => {
                let hosts = self.hosts_led_by(group, 0);
                let several = hosts.count() > 1;
                self.group_mut(id)?.hosts = Some(several.then(|| Arc::new(hosts)));
                self.hosts(id, root)
            }
        }
    }

    fn hosts_led_by(&self, group: &Group<T>, root: u32) -> Hosts {
        let transport = self.transport();
        let host = |rank: u32| group.peer(rank).map(|peer| transport.host(peer));
        Hosts::of(host, group.size(), root, group.rank)
    }

    /// Returns this member's place in the tree from `root` to all members of a group.
    pub(crate) fn tree(&mut self, id: GroupId, root: u32) -> Result<Tree> {
        self.tree_for(id, root, usize::MAX)
    }

    /// As [`Groups::tree`], for a message of this many bytes from the root.
    pub(crate) fn tree_for(&mut self, id: GroupId, root: u32, bytes: usize) -> Result<Tree> {
        let hosts = self.hosts(id, root)?;
        let group = self.group(id)?;
        if let Some(hosts) = hosts {
            let between = Between::for_message(bytes, hosts.count());
            return Ok(hosts.tree(group.rank, between));
        }
        Ok(Tree::flat(group.rank, group.size(), root))
    }
}
