//! Small blocking collectives of a group whose members are on several hosts.
//!
//! The members on a host have a collective buffer of their own (see `round`): all but the first, their leader,
//! contribute, and the leader reads. The leaders exchange what they have with each other, by messages; then each
//! contributes the result. As it does so last, the round is complete for whoever sees that contribution, and one round
//! serves for the way up and the way down.
//!
//! Each host finds its collective buffer when a group first crosses (`room`). A host that gets none, or has one member only,
//! does its part by messages: its leader says the same to other leaders either way, so no host needs to know how others do theirs.

use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::operation::Reduction;
use crate::reduction::leaders_exchange;
use crate::request::Handle;
use crate::round::{Need, Round};
use crate::schedule::Steps;
use crate::steps::leaders_barrier;
use crate::transport::Transport;

impl<T: Transport> Engine<T> {
    /// Takes part in a collective across hosts. `None`: this host has no collective buffer, so it goes by messages.
    pub(crate) fn cross(&mut self, id: GroupId, gives: &Views) -> Result<Option<Round>> {
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

    /// Returns how many members take part on this host, if this is the one that leads them.
    pub(crate) fn leads(&self, round: &Round) -> Option<u32> {
        let room = self.room(round)?;
        (room.rank == 0).then(|| room.size())
    }

    /// Lets a leader exchange what has been gathered here for what has been elsewhere. Nothing to combine: a barrier.
    pub(crate) fn start_exchange(
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

    /// Lets a leader give the result to the others on this host.
    pub(crate) fn end_crossing(&mut self, round: &mut Round, result: &Views) {
        round.gives = Some(result.clone());
        self.contribute(round);
    }

    /// Tells the others, on all hosts, that this member goes no further: they must not wait for it.
    pub(crate) fn fail_crossing(&mut self, round: &Round, error: &Error) {
        if let Some(tag) = round.crossing {
            self.notify_failed(round.group, tag, error);
        }
    }
}
