//! Groups on top of point-to-point messages: the rules that depend on a group's members.
//!
//! This layer adds to [`PointToPoint`] what contexts alone do not show: ranks, which members may still send to a receive from any source, and which
//! groups a lost member breaks. The collectives ([`schedule`](crate::schedule), [`failed`](crate::failed)) and agreements of the members are built
//! on this layer.

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

/// The groups of a task, together with its messages.
pub struct Groups<T: Transport> {
    pub(crate) p2p: PointToPoint<T>,
    pub(crate) table: GroupTable<T>,
    pub(crate) epochs: Epochs,
    /// Freed groups with collective buffers that others still use.
    pub(crate) left_groups: Vec<Group<T>>,
    /// Ranks in the world below this value can be sent to without checking the group. 0 once the world is revoked or a member was reported dead.
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
            left_groups: Vec::new(),
            open_world: world.1,
            p2p: PointToPoint::new(transport, settings),
        }
    }

    /// Returns whether `rank` is a valid rank of the world that needs no further check of the group.
    #[inline(always)]
    pub fn is_open_rank(&self, rank: i32) -> bool {
        (rank as u32) < self.open_world
    }

    /// Returns a group, or an error if the id is invalid.
    #[inline(always)]
    pub fn group(&self, id: GroupId) -> Result<&Group<T>> {
        self.live_group(id).ok_or(Error::Handle("group"))
    }

    /// Returns a group, or `None` if the id is invalid: for callers that need no error, since constructing the error costs more than the lookup.
    #[inline(always)]
    pub fn live_group(&self, id: GroupId) -> Option<&Group<T>> {
        self.table.at(id)
    }

    /// Returns a group with a fixed list of members. A channel is an error.
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

    /// Returns this task's rank in a group and the group's size, or `None` if the id is invalid.
    #[inline(always)]
    pub fn place(&self, id: GroupId) -> Option<(u32, u32)> {
        let group = self.table.at(id)?;
        Some((group.rank, group.size()))
    }

    /// Returns whether this task is the only member of a group and the group is not broken. The group's collectives are then local copies.
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

    /// Records that a call in the group of this context failed because other members report this member dead. This task may not know of the death,
    /// or may still reach the member: from now on it sends nothing to the member in this group and in groups that are tied to it.
    pub(crate) fn note_reported_dead(&mut self, context: u32, peer: Peer) {
        let Some(id) = self.table.id_of(context & !1) else {
            return;
        };
        // A loss in `losses` is checked by every send, so nothing more is needed.
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

    /// Marks a group as revoked: every further call in it fails. Returns its context, this task's rank and its members, or `None` if it was revoked
    /// before.
    pub(crate) fn close(&mut self, id: GroupId) -> Option<(u32, usize, Vec<Peer>)> {
        let group = self.table.at_mut(id).filter(|group| !group.is_revoked())?;
        group.close();
        let closed = (group.context, group.rank as usize, group.peers());
        self.note_world_changed(id);
        Some(closed)
    }

    /// Returns this task's rank among the members of a new group. Fails if this task is not a member, or a member is listed twice or does not exist.
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
            return Err(Error::State(
                c"the member list of the new group is not valid",
            ));
        }
        Ok(rank as u32)
    }

    /// Fills a reserved entry with a group. All members must do this with the same member list and the same context, which must be free at each of
    /// them.
    pub(crate) fn fill(&mut self, id: GroupId, members: Vec<Peer>, context: u32) -> Result<()> {
        let rank = self.check_members(&members)?;
        if !self.table.has_free(context) {
            return Err(Error::State(
                c"the context of the new group already belongs to another group",
            ));
        }
        self.epochs.add_group(context, &members);
        self.table.fill(id, members, context, rank)?;
        self.break_if_lost(id);
        Ok(())
    }

    /// Reserves an entry and fills it as [`Groups::fill`] does. Returns the group's id.
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

    pub(crate) fn break_if_lost(&mut self, id: GroupId) {
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

    /// Removes a group. Messages of the group that are still in flight will never be received.
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
        self.leave_buffers(id);
        if let Some(group) = self.table.remove(id) {
            self.keep_left(group);
        }
        self.free_context(freed.context);
        Ok(freed)
    }

    /// Returns how many epochs of contexts have begun up to the one in use, including the first.
    pub fn context_epoch(&self) -> u64 {
        self.epochs.used()
    }

    /// Marks all groups of a member that is gone as broken.
    pub(crate) fn break_by(&mut self, peer: Peer) {
        let error = self.loss(peer);
        for group in self.table.containing(peer) {
            group.break_by(&error);
        }
    }

    /// Returns the members of a group that have died, as far as this task knows: from its transport, or because a call in the group has failed for
    /// that reason.
    pub fn dead_members(&self, id: GroupId) -> Result<Vec<Peer>> {
        let group = self.group(id)?;
        let is_dead =
            |&peer: &Peer| self.presence(peer) == Presence::Dead || group.is_reported_dead(peer);
        Ok(group.peers().into_iter().filter(is_dead).collect())
    }

    /// Lets receives from any source in this group continue without the members that have died. Returns the number of dead members.
    pub fn acknowledge(&mut self, id: GroupId) -> Result<u32> {
        let dead = self.dead_members(id)?;
        let count = dead.len() as u32;
        self.group_mut(id)?.acknowledge(dead);
        Ok(count)
    }

    /// Returns a member that is known to have died and was not acknowledged, if there is one.
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

    /// Fails if a receive cannot stay pending because its sources are gone.
    pub(crate) fn check_pending(&self, select: &Select) -> Result<()> {
        match select.source {
            Some(_) => self.p2p.check_pending(select),
            None => self.check_pending_any(select.context),
        }
    }

    /// Fails if no task can ever satisfy a receive.
    pub(crate) fn check_source(&self, select: &Select) -> Result<()> {
        self.p2p.check_source(select)?;
        match select.source {
            Some(_) => Ok(()),
            None => self.check_any_source(select.context),
        }
    }

    /// Fails if a receive from any source in this context must not wait, because a dead member has not been acknowledged or no other member is left
    /// to send.
    fn check_any_source(&self, context: u32) -> Result<()> {
        let Some(group) = self.table.by_context(context) else {
            return Ok(());
        };
        // In a channel, tasks that have not started yet may still send.
        if self.is_nobody_gone() || group.size() == 1 || group.is_channel() {
            return Ok(());
        }
        let mut last = None;
        let mut living = 0;
        for peer in group.peers() {
            // A peer that is gone may still have unread messages in the transport, or its loss has not been processed yet.
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

    /// Fails if a receive from any source in this context cannot stay pending. In contexts that tolerate departures, only deaths make it fail.
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

    /// Fails pending receives from any source that no task can satisfy any more.
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
    /// Returns the members of a group by host, with `root` as the leader of its host. Returns `None` if all are on one host.
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

    /// Returns this member's position in the tree from `root` to all members of a group.
    pub(crate) fn tree(&mut self, id: GroupId, root: u32) -> Result<Tree> {
        self.tree_for(id, root, usize::MAX)
    }

    /// Does the same as [`Groups::tree`], for a message of this many bytes from the root.
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
