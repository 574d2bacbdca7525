//! The collective buffer of a group, or of its members on one host. It is allocated when a collective first needs it. Most groups never need one:
//! groups of one member, groups of libraries, and groups whose collectives are all long or nonblocking. Until then a group uses no shared memory.
//!
//! ```text
//! rank 0, or the first member on the host      the other members, down a tree
//! allocates a buffer
//! name of the buffer, or 0  ────────────────>  attach to it
//! ```
//!
//! *Why all agree.* All members call the collectives of a group in the same order, and choose the same algorithm for each. So all of them reach the
//! first one that uses rounds, and take this step before it: an ordinary schedule, with its own number in the group's sequence. Earlier collectives
//! that use messages do not wait for it; these include nonblocking ones and broadcasts between two members. A member that has the buffer contributes
//! at once: its contribution is in the buffer when the others attach.
//!
//! *If there is no memory*, the first member sends 0. The group then never has a buffer, and its collectives use messages.
//!
//! *If a member fails in this step*, it will not contribute. Members that have the name may wait for it in a round, where they do not check the
//! numbers of collectives. So its failure notice is for all collectives ([`ALL`]): it breaks the group. A member that has died breaks the group
//! everywhere, as usual. When a broken group is freed, the members that have the name give the buffer up, since others may never receive the name. A
//! member that receives it later is refused the buffer, and uses messages until it learns that the group is broken: by a revocation, a notice, or
//! the death of a task of this host.
//!
//! *The name is not trusted*: the transport checks that a buffer of that size exists there. Its contents are checked when they are read.

use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::failed::ALL;
use crate::group::{Group, GroupId};
use crate::request::Handle;
use crate::schedule::{Step, Steps};
use crate::transport::Transport;
use crate::tree::{Hosts, Tree};

/// Size of a collective buffer's name, in bytes.
const NAME_BYTES: usize = 8;

impl<T: Transport> Engine<T> {
    /// Starts to get the collective buffer of a group or, if its members are on several hosts, of the members on this host. Returns the request and
    /// the memory for the buffer's name; once the request is complete, pass the name to [`Engine::enter_room`]. Returns `None` if it is already
    /// known whether there is a buffer.
    pub(crate) fn start_room(&mut self, id: GroupId) -> Result<Option<(Handle, Views)>> {
        // A revocation that has arrived counts before the departures of members that it has ended.
        if self.handle_words() {
            self.run_revocations();
        }
        let hosts = self.hosts(id, 0)?;
        let group = self.group(id)?;
        let (tree, members, known) = match &hosts {
            Some(hosts) => {
                let tree = hosts.within(group.rank);
                (tree, hosts.here().len() as u32, group.here.is_some())
            }
            None => {
                let tree = Tree::flat(group.rank, group.size(), 0);
                (tree, group.size(), group.is_buffer_known)
            }
        };
        if known {
            return Ok(None);
        }
        let mut steps = Steps::default();
        let name = steps.scratch(NAME_BYTES);
        match tree.parent {
            Some(parent) => {
                steps.push(Step::Receive(parent, name.clone()));
                steps.push(Step::Wait);
            }
            None => {
                let made = self.make_buffer(members);
                name.fill(&made.as_ref().map_or(0, |(_, name)| *name).to_le_bytes());
                // Record it at once, so that the group owns the buffer even if this step fails.
                self.set_buffer(id, hosts.as_deref(), made)?;
            }
        }
        let children = tree.children.iter().rev();
        steps.extend(children.map(|&child| Step::Send(child, name.clone())));
        let started = self.start_schedule(id, steps);
        let request = started.inspect_err(|error| self.fail_room(id, error))?;
        Ok(Some((request, name)))
    }

    /// Allocates a collective buffer for this many members. Returns the buffer and its name. Returns `None` if there is no memory for it or only one
    /// member.
    fn make_buffer(&mut self, members: u32) -> Option<(T::CollectiveBuffer, u64)> {
        if members < 2 {
            return None;
        }
        let made = self.transport_mut().new_collective_buffer(members);
        made.ok().flatten()
    }

    /// Attaches this member to the collective buffer with this name, as the other members do.
    pub(crate) fn enter_room(&mut self, id: GroupId, name: &Views) -> Result<()> {
        let hosts = self.hosts(id, 0)?;
        let group = self.group(id)?;
        let (members, known) = match &hosts {
            Some(hosts) => (hosts.here().len() as u32, group.here.is_some()),
            None => (group.size(), group.is_buffer_known),
        };
        if known {
            // This member has allocated the buffer.
            return Ok(());
        }
        let mut bytes = [0; NAME_BYTES];
        bytes.copy_from_slice(&name.to_vec());
        let name = u64::from_le_bytes(bytes);
        let buffer = match name {
            0 => None,
            _ => match self
                .transport_mut()
                .enter_collective_buffer(name, members)?
            {
                Some(buffer) => Some(buffer),
                None => return Err(self.break_given_up(id)?),
            },
        };
        self.set_buffer(id, hosts.as_deref(), buffer.map(|buffer| (buffer, name)))
    }

    /// Breaks a group whose buffer another member has given up, because the group had ended there, and returns the error. The members that have left the
    /// buffer may be further on in their collectives, so this member can make up for none of them by messages.
    fn break_given_up(&mut self, id: GroupId) -> Result<Error> {
        // A revocation may be among the last messages of a member that is gone.
        self.progress();
        if let Some(&peer) = self.dead_members(id)?.first() {
            let error = self.loss(peer);
            self.group_mut(id)?.break_by(&error);
        }
        if self.group(id)?.broken.is_none() {
            self.break_if_lost(id);
        }
        if self.group(id)?.broken.is_none() {
            self.revoke(id)?;
        }
        Ok(self.group(id)?.broken.clone().unwrap_or(Error::Revoked))
    }

    /// Records which collective buffer, if any, the group has, or its members on this host have if they are on several hosts.
    fn set_buffer(
        &mut self,
        id: GroupId,
        hosts: Option<&Hosts>,
        buffer: Option<(T::CollectiveBuffer, u64)>,
    ) -> Result<()> {
        let Some(hosts) = hosts else {
            self.group_mut(id)?.set_buffer(buffer);
            return Ok(());
        };
        let group = self.group(id)?;
        let place = hosts.place(group.rank) as u32;
        let peers = hosts.here().iter();
        let peers = peers.filter_map(|&rank| group.peer(rank)).collect();
        let mut room: Group<T> = Group::listed(group.context, peers, place);
        room.set_buffer(buffer);
        self.group_mut(id)?.here = Some(Box::new(room));
        Ok(())
    }

    /// Notifies the other members that this member failed to get the buffer and will not contribute.
    pub(crate) fn fail_room(&mut self, id: GroupId, error: &Error) {
        self.notify_failed(id, ALL, error);
    }
}
