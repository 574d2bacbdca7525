//! Collective buffers that this task has left, and that other members may never enter.
//!
//! A buffer is reused when all members of its group have left it. A member that never gets the buffer's name never leaves it, so the members that
//! have left it give it up once they know that:
//!
//! - the group is revoked, or a collective in it has failed,
//! - a member has died, or
//! - a member has left the job without ever contributing. One that has left after its contributions fails nobody: the others may still enter, and
//!   complete their collectives.
//!
//! A task may learn of that after it has freed the group, so it keeps the group until all have left the buffer or it is given up.

use crate::group::{Group, GroupId};
use crate::groups::Groups;
use crate::transport::{Peer, Presence, Transport};

impl<T: Transport> Groups<T> {
    /// Leaves the job in good order: leaves all collective buffers, and gives up all large messages.
    pub fn leave(&mut self) {
        for id in self.table.ids() {
            self.leave_buffers(id);
        }
        self.p2p.leave();
    }

    /// Leaves the collective buffers of a group, which this task will not use any more.
    pub(crate) fn leave_buffers(&mut self, id: GroupId) {
        let Some(group) = self.table.at(id) else {
            return;
        };
        let is_failed = group.usable().is_err() || group.failed.is_some();
        let gives_up = is_failed || self.lacks_contributions(group);
        for (room, name) in group.buffers() {
            let transport = self.p2p.transport_mut();
            transport.leave_collective_buffer(name, room.size());
            if gives_up {
                transport.give_up_collective_buffer(name, room.size());
            }
        }
    }

    /// Keeps a freed group while others use its buffers. There are never more such groups than buffers in the segment.
    pub(crate) fn keep_left(&mut self, group: Group<T>) {
        let transport = self.p2p.transport();
        let is_used = |group: &Group<T>| {
            let mut buffers = group.buffers();
            buffers.any(|(_, name)| transport.is_collective_buffer_used(name))
        };
        self.left_groups.retain(is_used);
        if is_used(&group) {
            self.left_groups.push(group);
        }
    }

    /// Returns whether a member of one of the group's buffers has left the job without ever contributing.
    fn lacks_contributions(&self, group: &Group<T>) -> bool {
        group.buffers().any(|(room, _)| {
            let mut members = (0..).zip(room.peers());
            members.any(|(rank, peer)| {
                self.presence(peer) == Presence::Left
                    && !room.has_ever_contributed(self.transport(), rank)
            })
        })
    }

    /// Gives up the buffers of the freed group of this context, of which member `from` has sent a revocation.
    pub(crate) fn give_up_buffers_in(&mut self, context: u32, from: Peer) {
        self.give_up_buffers(|_, group| group.context == context && group.rank_of(from).is_some());
    }

    /// Gives up the buffers of freed groups that a member, which is gone, has never entered.
    pub(crate) fn give_up_buffers_of(&mut self, peer: Peer) {
        self.give_up_buffers(|groups, group| {
            let is_dead = groups.presence(peer) == Presence::Dead;
            group.rank_of(peer).is_some() && (is_dead || groups.lacks_contributions(group))
        });
    }

    fn give_up_buffers(&mut self, are_lost: impl Fn(&Self, &Group<T>) -> bool) {
        let left = std::mem::take(&mut self.left_groups);
        for group in left {
            if !are_lost(self, &group) {
                self.left_groups.push(group);
                continue;
            }
            for (room, name) in group.buffers() {
                let transport = self.p2p.transport_mut();
                transport.give_up_collective_buffer(name, room.size());
            }
        }
    }
}
