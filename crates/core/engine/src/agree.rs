//! The members of a group agree on a flag: all bits that all have set.
//!
//! *What is agreed on* is everything that the call returns: the flag, and the first member, if there is one, that has died and that not
//! all who take part had acknowledged when they called. So all that survive return the same.
//!
//! *Whose flags count.* The flags of all that survive do. One that dies meanwhile may have given its flag before, or not.
//! Members that left in good order have no flag and are no failure.

use regatta_memory::views::Views;

use crate::agreement::{Agreement, Subject, Vote};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::request::{Handle, Stage, Status};
use crate::shrink::LEFT_OUT;
use crate::transport::{Presence, Transport};

impl<T: Transport> Engine<T> {
    /// Begin to agree on a flag. Each member that lives does. The flag agreed on is in `into` when the request is complete, also if
    /// that ends with the error that a member has died.
    pub fn start_agree(&mut self, id: GroupId, flag: i32, into: Views) -> Result<Handle> {
        let group = self.closed(id)?;
        let is_acknowledged = |&peer| group.has_acknowledged(peer);
        let acknowledged = group.peers().iter().map(is_acknowledged).collect();
        let request = self
            .requests
            .add(Stage::Collective, Status::EMPTY, Views::none());
        let handle = self.requests.handle(request);
        let vote = Vote {
            flags: u64::from(flag as u32),
            acknowledged,
            request: Some(request),
            into,
        };
        self.start_agreement(id, Subject::Flag(vote))?;
        Ok(handle)
    }

    /// The words of a choice: the flag, and the rank of a member that has died and is not acknowledged, + 1.
    pub(crate) fn verdict(
        &self,
        agreement: &Agreement,
        vote: &Vote,
        survives: &[bool],
    ) -> [u64; 2] {
        let is_failure = |&rank: &usize| {
            let left = self.presence(agreement.members[rank]) == Presence::Left;
            !survives[rank] && !left && !vote.acknowledged[rank]
        };
        let failed = (0..survives.len()).find(is_failure);
        [vote.flags, failed.map_or(0, |rank| rank as u64 + 1)]
    }

    /// The flag goes to whoever waits for it, if it is known.
    pub(crate) fn end_vote(&mut self, agreement: &mut Agreement) {
        let Some(choice) = agreement.outcome() else {
            return;
        };
        let ([flag, failed], survives) = (choice.words, choice.survives[agreement.rank]);
        let failed = (failed as usize).checked_sub(1);
        let failed = failed.and_then(|rank| agreement.members.get(rank).copied());
        let Subject::Flag(vote) = &mut agreement.subject else {
            return;
        };
        agreement.taken = true;
        let Some(request) = vote.request.take() else {
            return;
        };
        let error = match survives {
            // Not what is known of it here: all return the same.
            true => failed.map(Error::Dead),
            false => Some(LEFT_OUT),
        };
        if let Some(Error::Dead(peer)) = error {
            self.note_reported_dead(agreement.context, peer);
        }
        if survives {
            vote.into.fill(&(flag as u32).to_ne_bytes());
        }
        vote.into = Views::none();
        self.requests.complete(request, error);
    }

    /// Nobody waits for this request any more. The others may, so the agreement goes on.
    pub(crate) fn drop_vote(&mut self, request: u32) {
        for agreement in &mut self.agreements {
            if let Subject::Flag(vote) = &mut agreement.subject
                && vote.request == Some(request)
            {
                vote.request = None;
                vote.into = Views::none();
            }
        }
    }
}
