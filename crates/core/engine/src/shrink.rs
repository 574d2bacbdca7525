//! Calls by which the members of a group agree, whoever dies meanwhile: on a new group of the survivors, or on a flag.

use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::error::Result;
use crate::group::GroupId;
use crate::request::Handle;
use crate::subject::{LEFT_OUT, Subject};
use crate::transport::{Peer, Transport};

/// A new group that is being agreed on, as its caller holds it.
#[derive(Debug)]
pub struct Shrinking(u64);

impl<T: Transport> Engine<T> {
    /// Begins to agree on the survivors of a group. Each of them calls.
    pub fn start_shrink(&mut self, id: GroupId) -> Result<Shrinking> {
        let members = self.closed(id)?.peers();
        self.groups.epochs.meet(&members);
        let free = self.groups.epochs.next_survivors();
        self.start_agreement(id, Subject::Survivors(free))
            .map(Shrinking)
    }

    /// Returns the group agreed on; `None` while it is not known. Asked once.
    pub fn shrunk(&mut self, shrinking: &Shrinking) -> Option<Result<GroupId>> {
        let (choice, members) = self.agreements.outcome(shrinking.0)?;
        let ranks = members.iter().zip(&choice.survives);
        let survivors = ranks.filter(|(_, survives)| **survives);
        let survivors: Vec<Peer> = survivors.map(|(&peer, _)| peer).collect();
        // The epoch is in the upper half of the first word.
        let [context, _] = choice.words;
        if !self.groups.epochs.reach(context >> 32) {
            return None;
        }
        self.agreements.take(shrinking.0);
        if !survivors.contains(&self.me()) {
            return Some(Err(LEFT_OUT));
        }
        Some(self.add_group(survivors, context as u32))
    }

    /// Begins to agree on a flag. Each member that lives does. The flag agreed on is in `into` when the request is complete, also if
    /// that ends with the error that a member has died.
    pub fn start_agree(&mut self, id: GroupId, flag: i32, into: Views) -> Result<Handle> {
        let group = self.closed(id)?;
        let is_acknowledged = |&peer| group.has_acknowledged(peer);
        let acknowledged = group.peers().iter().map(is_acknowledged).collect();
        let request = self.groups.add_request();
        let handle = self.groups.handle(request);
        let subject = Subject::flag(flag, acknowledged, (request, into));
        self.start_agreement(id, subject)?;
        Ok(handle)
    }

    /// Returns how many agreements are under way, or are kept for others who may ask.
    pub fn agreements(&self) -> usize {
        self.agreements.len()
    }
}
