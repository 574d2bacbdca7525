//! Small blocking collectives of groups whose members are on several hosts.
//!
//! The members on a host share a collective buffer (see `round`). All but the first, the leader, contribute to it, and the leader reads their
//! contributions. The leaders exchange the combined data by messages; then each leader contributes the result. The leader always contributes last,
//! so a member that sees the leader's contribution knows that the round is complete. One round therefore carries data both to the leader and back.
//!
//! Each host allocates its collective buffer at the group's first collective across hosts (see `room`). A host that has no buffer, or only one
//! member, does its part by messages. Its leader sends the other leaders the same messages in both cases, so no host needs to know how the others do
//! their part.

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
    /// Starts this member's part in a collective across hosts. Returns `None` if this host has no collective buffer; the caller then uses messages.
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

    /// Returns the number of members on this host if this member is their leader, else `None`.
    pub(crate) fn leads(&self, round: &Round) -> Option<u32> {
        let room = self.room(round)?;
        (room.rank == 0).then(|| room.size())
    }

    /// Starts the exchange between leaders: sends this host's combined contribution and receives those of the other hosts. If `what` is `None`, the
    /// exchange is a barrier.
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

    /// Contributes the result, as the leader, for the other members on this host.
    pub(crate) fn end_crossing(&mut self, round: &mut Round, result: &Views) {
        round.gives = Some(result.clone());
        self.contribute(round);
    }

    /// Notifies the members on all hosts that this member has failed and that they must not wait for it.
    pub(crate) fn fail_crossing(&mut self, round: &Round, error: &Error) {
        if let Some(tag) = round.crossing {
            self.notify_failed(round.group, tag, error);
        }
    }
}
