//! Calls by which the members of a group agree, even if members die meanwhile: on a new group of the survivors, or on a flag.

use regatta_memory::views::Views;

use crate::engine::Engine;
use crate::error::Result;
use crate::group::GroupId;
use crate::request::Handle;
use crate::subject::{LEFT_OUT, Subject};
use crate::transport::{Peer, Transport};

/// The caller's handle of a new group that is being agreed on.
#[derive(Debug)]
pub struct Shrinking(u64);

impl<T: Transport> Engine<T> {
    /// Starts an agreement on the survivors of a group. Every survivor must call this.
    pub fn start_shrink(&mut self, id: GroupId) -> Result<Shrinking> {
        let members = self.closed(id)?.peers();
        self.groups.epochs.meet(&members);
        let free = self.groups.epochs.next_survivors();
        self.start_agreement(id, Subject::Survivors(free))
            .map(Shrinking)
    }

    /// Returns the agreed group, or `None` while it is not known. To be called until it returns the group, and not again.
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

    /// Starts an agreement on a flag. Every living member must call this. The agreed flag is in `into` once the request is complete, even if it
    /// completes with the error that a member has died.
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

    /// Returns the number of agreements that are in progress or kept for other members.
    pub fn agreements(&self) -> usize {
        self.agreements.len()
    }
}
