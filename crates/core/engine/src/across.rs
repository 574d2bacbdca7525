//! Small blocking collectives of a group whose members are on several hosts.
//!
//! The members on a host have a collective buffer of their own (see `round`): all but the first, their leader,
//! contribute, and the leader reads. The leaders exchange what they have with each other, by messages; then each
//! contributes the result. As it does so last, the round is complete for whoever sees that contribution, and one round
//! serves for the way up and the way down.
//!
//! Each host finds its collective buffer when a group first crosses: its leader makes one and tells the others the
//! name. A host that gets none, or has one member only, does its part by messages: its leader says the same to other
//! leaders either way, so no host needs to know how others do theirs.

use regatta_memory::views::Views;

use crate::collective::Reduction;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::{Group, GroupId};
use crate::reduction::leaders_exchange;
use crate::request::Handle;
use crate::round::{Need, Round};
use crate::schedule::{Step, Steps};
use crate::transport::Transport;
use crate::tree::leaders_barrier;

/// The bytes of a collective buffer's name.
const NAME: usize = 8;

impl<T: Transport> Engine<T> {
    /// Do collectives of this group with contributions of `bytes` bytes go this way? All members find the same.
    pub fn crosses(&mut self, id: GroupId, bytes: usize) -> Result<bool> {
        let Some(hosts) = self.hosts(id, 0)? else {
            return Ok(false);
        };
        let size = self.group(id)?.size();
        Ok(hosts.most() > 1 && bytes <= self.transport.contribution_limit(size))
    }

    /// Before a group crosses for the first time: which collective buffer do its members on this host use? To be
    /// followed by [`Engine::enter_room`] with the memory that comes with the handle; nothing if that is known.
    pub fn start_room(&mut self, id: GroupId) -> Result<Option<(Handle, Views)>> {
        let group = self.group(id)?;
        let (rank, known) = (group.rank, group.here.is_some());
        let Some(hosts) = self.hosts(id, 0)?.filter(|_| !known) else {
            return Ok(None);
        };
        let mut steps = Steps::default();
        let name = steps.scratch(NAME);
        match hosts.here() {
            [_] => {}
            [leader, others @ ..] if *leader == rank => {
                // Without memory for a collective buffer the host does its part by messages.
                let made = self
                    .transport
                    .new_collective_buffer(hosts.here().len() as u32);
                let made = made.ok().flatten().map_or(0, |(_, name)| name);
                name.fill(&made.to_le_bytes());
                steps.extend(others.iter().map(|&other| Step::Send(other, name.clone())));
            }
            [leader, ..] => steps.push(Step::Receive(*leader, name.clone())),
            [] => {}
        }
        Ok(Some((self.start_schedule(id, steps)?, name)))
    }

    /// The members on this host use the collective buffer of this name.
    pub fn enter_room(&mut self, id: GroupId, name: &Views) -> Result<()> {
        let Some(hosts) = self.hosts(id, 0)? else {
            return Ok(());
        };
        let here = hosts.here();
        let mut bytes = [0; NAME];
        bytes.copy_from_slice(&name.to_vec());
        let buffer = match u64::from_le_bytes(bytes) {
            0 => None,
            name => match self
                .transport
                .enter_collective_buffer(name, here.len() as u32)
            {
                Ok(buffer) => Some((buffer, name)),
                Err(fault) => {
                    // The others wait for this member's contributions.
                    let (error, tag) = (Error::from(fault), self.group(id)?.sequence);
                    self.notify_failed(id, tag, &error);
                    return Err(error);
                }
            },
        };
        let group = self.group(id)?;
        let (context, place) = (group.context, hosts.place(group.rank));
        let peers = here.iter().filter_map(|&rank| group.peer(rank)).collect();
        let room = Group::of_host(context, peers, place as u32, buffer);
        self.group_mut(id)?.here = Some(Box::new(room));
        Ok(())
    }

    /// Take part in a collective across hosts. `None`: this host has no collective buffer, so by messages.
    pub fn cross(&mut self, id: GroupId, gives: &Views) -> Result<Option<Round>> {
        let room = self.group(id)?.here.as_ref();
        if room.is_none_or(|room| room.collective_buffer.is_none()) {
            return Ok(None);
        }
        let (_, tag) = self.next_collective(id)?;
        let Some(room) = self.group_mut(id)?.here.as_deref_mut() else {
            return Ok(None);
        };
        let (need, gives) = match room.rank {
            0 => (Need::All, None),
            _ => (Need::Last(0), Some(gives.clone())),
        };
        let round = Round::begin(id, room, Some(tag), need, gives);
        self.contribute_at_once(&round);
        Ok(Some(round))
    }

    /// How many members take part on this host, if this is the one that leads them.
    pub fn leads(&self, round: &Round) -> Option<u32> {
        let room = self.room(round)?;
        (room.rank == 0).then(|| room.size())
    }

    /// Leaders: exchange what has been gathered here for what has been elsewhere. Nothing to combine: a barrier.
    pub fn start_exchange(
        &mut self,
        round: &Round,
        combined: &Views,
        what: Option<&Reduction>,
    ) -> Result<Handle> {
        let (id, tag) = (round.group, round.crossing.unwrap_or_default());
        let hosts = self.hosts(id, 0)?.ok_or(Error::Handle("group"))?;
        let mut steps = Steps::default();
        match what {
            Some(what) => leaders_exchange(&mut steps, &hosts, combined, *what),
            None => leaders_barrier(&mut steps, &hosts),
        }
        self.run_schedule(id, tag, steps)
    }

    /// Leaders: the others on this host may have the result.
    pub fn end_crossing(&mut self, round: &mut Round, result: &Views) {
        round.gives = Some(result.clone());
        self.contribute(round);
    }

    /// This member goes no further: the others, on all hosts, must not wait for it.
    pub fn fail_crossing(&mut self, round: &Round, error: &Error) {
        if let Some(tag) = round.crossing {
            self.notify_failed(round.group, tag, error);
        }
    }
}
