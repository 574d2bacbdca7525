//! The survivors of a group agree on a new group: who is in it, its context, and its collective buffer.

use crate::agreement::{Agreement, Subject};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::transport::{Peer, Transport};

/// Why an agreement has no result for a task that others do not reach.
pub(crate) const LEFT_OUT: Error = Error::State(c"the others took this task for dead");

/// A new group that is being agreed on, as its caller holds it.
#[derive(Debug)]
pub struct Shrinking(u64);

impl<T: Transport> Engine<T> {
    /// Begin to agree on the survivors of a group. Each of them calls.
    pub fn start_shrink(&mut self, id: GroupId) -> Result<Shrinking> {
        self.closed(id)?;
        self.meet(id);
        let free = self.epochs.next_survivors();
        // Half of the numbers may be used up.
        self.stirred = true;
        self.start_agreement(id, Subject::Survivors(free))
            .map(Shrinking)
    }

    /// The group agreed on; `None` while it is not known. Asked once.
    pub fn shrunk(&mut self, shrinking: &Shrinking) -> Option<Result<GroupId>> {
        let agreement = self.agreement(shrinking.0)?;
        let choice = agreement.outcome()?;
        let ranks = agreement.members.iter().zip(&choice.survives);
        let survivors = ranks.filter(|(_, survives)| **survives);
        let survivors: Vec<Peer> = survivors.map(|(&peer, _)| peer).collect();
        let [context, buffer] = choice.words;
        let epoch = context >> 32;
        if !self.is_epoch_there(epoch) {
            return None;
        }
        let agreement = self.agreement(shrinking.0)?;
        agreement.taken = true;
        if !survivors.contains(&self.me) {
            return Some(Err(LEFT_OUT));
        }
        // The epoch is in the upper half.
        Some(self.add_group(survivors, context as u32, buffer))
    }

    /// The words of a choice: the context of the survivors, and the name of their collective buffer.
    pub(crate) fn new_group(
        &mut self,
        agreement: &Agreement,
        free: u64,
        survives: &[bool],
    ) -> [u64; 2] {
        let both = agreement.members.iter().zip(survives);
        let peers: Vec<Peer> = both
            .filter(|&(_, &survives)| survives)
            .map(|(&peer, _)| peer)
            .collect();
        // Another one may have gone on to the next epoch meanwhile, and this one has.
        let number = self.epochs.survivors_number(free);
        let context = self.epochs.survivors(number, agreement.context);
        // One that makes no sense is another group's: `fill_group` says so.
        let context = context.unwrap_or(0);
        // Without memory for a collective buffer the group's collectives are made of messages.
        let buffer = self.make_collective_buffer(&peers).unwrap_or(0);
        [context, buffer]
    }
}
