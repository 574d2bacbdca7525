//! The collective buffer of a group, or of its members on one host: it is made when a collective first needs it. Most groups never do: those of one member, those of
//! libraries, those whose collectives are all long or started. So a group costs no shared memory until then.
//!
//! ```text
//! rank 0, or the first member on the host      the others, down a tree
//! takes memory for a buffer
//! name of the buffer, or 0  ────────────────>  use it, too
//! ```
//!
//! *Why all agree.* All members call the collectives of a group in the same order, and choose the same algorithm for each. So they all come to the first one that takes
//! rounds, and take this step before it: an ordinary schedule, with a number of its own in the group's sequence. Collectives before it that go by messages, started ones included, and
//! broadcasts of a pair, do not wait for it. Who has the buffer contributes at once: what it writes is there when the others come.
//!
//! *If there is no memory* the first member says 0. Then there is no buffer for good, and the group's collectives go by messages.
//!
//! *If a member fails in this step*, it will not contribute, and members that have the name may wait for it in a round, where they read no numbers of collectives. So its notice
//! is for all collectives ([`ALL`]): the group is broken. A member that has died breaks the group everywhere, as ever. Those that have the name give the buffer up when they free such a group,
//! since others may never hear it. One that hears it later is refused, and goes by messages until the group's end, which others have seen, reaches it, too: a revocation,
//! a notice, or the death of a task of this host.
//!
//! *The name is not trusted*: the transport checks that a buffer of that size lies there. Whatever stands in it is checked as it is read.

use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::failed::ALL;
use crate::group::{Group, GroupId};
use crate::request::Handle;
use crate::schedule::{Step, Steps};
use crate::transport::Transport;
use crate::tree::{Hosts, Tree};

/// The bytes of a collective buffer's name.
const NAME_BYTES: usize = 8;

impl<T: Transport> Engine<T> {
    /// Starts to look for the collective buffer of a group or, if its members are on several hosts, of those on this one. Returns the request and the memory for the
    /// buffer's name, which is for [`Engine::enter_room`] when the request is complete; `None` if it is known whether there is a buffer.
    pub(crate) fn start_room(&mut self, id: GroupId) -> Result<Option<(Handle, Views)>> {
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
                // Noted at once: whatever becomes of this step, it is left with the group.
                self.set_buffer(id, hosts.as_deref(), made)?;
            }
        }
        let children = tree.children.iter().rev();
        steps.extend(children.map(|&child| Step::Send(child, name.clone())));
        let started = self.start_schedule(id, steps);
        let request = started.inspect_err(|error| self.fail_room(id, error))?;
        Ok(Some((request, name)))
    }

    /// Makes a collective buffer of this many members. Returns it and its name; `None` without memory for it. One alone needs none.
    fn make_buffer(&mut self, members: u32) -> Option<(T::CollectiveBuffer, u64)> {
        if members < 2 {
            return None;
        }
        let made = self.transport_mut().new_collective_buffer(members);
        made.ok().flatten()
    }

    /// Lets this member use the collective buffer of this name, as the others do.
    pub(crate) fn enter_room(&mut self, id: GroupId, name: &Views) -> Result<()> {
        let hosts = self.hosts(id, 0)?;
        let group = self.group(id)?;
        let (members, known) = match &hosts {
            Some(hosts) => (hosts.here().len() as u32, group.here.is_some()),
            None => (group.size(), group.is_buffer_known),
        };
        if known {
            // This member has made it.
            return Ok(());
        }
        let mut bytes = [0; NAME_BYTES];
        bytes.copy_from_slice(&name.to_vec());
        let name = u64::from_le_bytes(bytes);
        let buffer = match name {
            0 => None,
            _ => self
                .transport_mut()
                .enter_collective_buffer(name, members)?,
        };
        self.set_buffer(id, hosts.as_deref(), buffer.map(|buffer| (buffer, name)))
    }

    /// Notes which collective buffer the group has or, if its members are on several hosts, those on this one.
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

    /// Notes that this member has failed to get the buffer, and goes no further.
    pub(crate) fn fail_room(&mut self, id: GroupId, error: &Error) {
        self.notify_failed(id, ALL, error);
    }
}
