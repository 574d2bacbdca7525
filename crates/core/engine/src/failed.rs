//! Collectives that fail at one member must not leave the other members waiting for it.
//!
//! All members are notified of a death. But if a member cannot complete a collective for another reason (it waited for a member that has left, or is
//! out of memory), other members wait for it that need nothing from the culprit. So it sends them a notice in the group's collective context, with a
//! tag that no collective has. The collective named in the notice and all later ones of the group fail, at every member, with an error of the same
//! class that names the culprit (`reason`).
//!
//! If a task writes corrupt data, only the tasks that read it know. They stop in all groups that the task is a member of, including their rounds in
//! shared memory, and send notices to the other members.

use regatta_wire::fields::{bytes_of, whole};
use regatta_wire::{Frame, Kind};

use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::groups::Groups;
use crate::matching::{Select, TagSelect};
use crate::reason::Reason;
use crate::transport::{Peer, Presence, Transport};

/// The tag of notices. Tags of collectives are smaller.
const NOTICE: i32 = i32::MAX;
/// Stands for the first collective that fails: all fail, including rounds in shared memory.
pub(crate) const ALL: i32 = -1;

fn no_memory_at(peer: Peer) -> Error {
    Error::Memory(format!(
        "task {peer} had no memory for its part of a collective, so the other members cannot complete it"
    ))
}

impl<T: Transport> Groups<T> {
    /// Notifies the members that wait for this task that a collective fails here with this error.
    pub(crate) fn notify_failed(&mut self, id: GroupId, tag: i32, error: &Error) {
        let Some(reason) = Reason::of(error) else {
            return;
        };
        let culprit = match *error {
            Error::Dead(peer)
            | Error::Left(peer)
            | Error::Corrupt { peer, .. }
            | Error::Member { peer, .. } => peer,
            _ => self.me(),
        };
        if !self.note_failed(id, tag, error.clone()) {
            return;
        }
        if let Ok(group) = self.group(id) {
            let (context, members) = (group.context, group.peers());
            self.notify(context, &members, (tag, culprit, reason));
        }
    }

    /// Notifies the members of all groups of a peer that this task has found corrupt data of that peer.
    pub(crate) fn notify_condemned(&mut self, culprit: Peer) {
        let groups = self.table.containing(culprit);
        let groups: Vec<_> = groups.map(|group| (group.context, group.peers())).collect();
        for (context, members) in groups {
            self.notify(context, &members, (ALL, culprit, Reason::Corrupt));
        }
    }

    fn notify(
        &mut self,
        context: u32,
        members: &[Peer],
        (tag, culprit, reason): (i32, Peer, Reason),
    ) {
        let frame = Frame {
            kind: Kind::Eager,
            context: context + 1,
            tag: NOTICE,
        };
        let body = bytes_of(&(tag, culprit, reason.number()));
        for &peer in members {
            if peer != self.me() && self.presence(peer) == Presence::Here {
                // Ignore the error: a peer that cannot be reached is gone.
                let _ = self.send_or_queue(peer, frame, &body);
            }
        }
    }

    /// Returns the error with which the collective `tag` of a group fails, if it does.
    pub(crate) fn failed(&mut self, id: GroupId, tag: i32) -> Option<Error> {
        self.read_notices(id);
        let (from, error) = self.group(id).ok()?.failed.as_ref()?;
        (tag >= *from).then(|| error.clone())
    }

    /// Records the collective from which on a group fails. Returns false if an earlier or the same one is known already.
    fn note_failed(&mut self, id: GroupId, tag: i32, error: Error) -> bool {
        let Ok(group) = self.group_mut(id) else {
            return false;
        };
        if tag == ALL && group.usable().is_ok() {
            group.broken = Some(error.clone());
        }
        if group.failed.as_ref().is_some_and(|(from, _)| *from <= tag) {
            return false;
        }
        let (context, dead) = (group.context, error.clone());
        group.failed = Some((tag, error));
        if let Error::Dead(peer) = dead {
            self.note_reported_dead(context, peer);
        }
        true
    }

    /// Reads the notices about a group, which are among the unexpected messages.
    pub(crate) fn read_notices(&mut self, id: GroupId) {
        while self.waiting() > 0
            && let Ok(group) = self.group(id)
        {
            let select = Select {
                context: group.context + 1,
                source: None,
                tag: TagSelect::Exactly(NOTICE),
            };
            let Some((from, notice)) = self.take_held(&select) else {
                return;
            };
            if let Some(Ok((tag, culprit, reason))) = notice.map(|bytes| whole(&bytes)) {
                let error = self.reported(from, culprit, Reason::from_number(reason));
                self.note_failed(id, tag, error);
            }
        }
    }

    /// Returns the error for what member `by` reports about a peer. If the reason is invalid, the error is about `by` itself.
    fn reported(&self, by: Peer, culprit: Peer, reason: Option<Reason>) -> Error {
        // A member may only report existing other tasks.
        let culprit = if culprit < self.transport().peers() && culprit != self.me() {
            culprit
        } else {
            by
        };
        let is_here = self.presence(culprit) == Presence::Here;
        match reason {
            // Not all members learn of a loss at the same time.
            Some(Reason::Left) if is_here => Error::Left(culprit),
            Some(Reason::Dead) if is_here => Error::Dead(culprit),
            Some(Reason::Corrupt) if is_here => Error::Corrupt {
                peer: culprit,
                what: "another task of the group has found the damage",
            },
            Some(Reason::Left | Reason::Dead | Reason::Corrupt) => self.loss(culprit),
            Some(Reason::Memory) => no_memory_at(by),
            Some(reason) => Error::Member {
                peer: culprit,
                reason,
            },
            None => Error::Corrupt {
                peer: by,
                what: "it reported an unknown reason for the failure of a collective",
            },
        }
    }
    /// Returns, in a group of two members, this task's rank, the other member, and context and tag of the next collective between them. Returns
    /// `None`, without effect, if that collective may not be possible.
    #[inline(always)]
    pub fn try_pair(&mut self, id: GroupId) -> Option<(u32, Peer, u32, i32)> {
        // A waiting message may be a notice that collectives of the group fail.
        if self.waiting() > 0 {
            return None;
        }
        let group = self.table.at_mut(id)?;
        if group.size() != 2 || group.broken.is_some() || group.failed.is_some() {
            return None;
        }
        let peer = group.peer(1 - group.rank.min(1))?;
        group.sequence = group.next_sequence();
        Some((group.rank, peer, group.context + 1, group.sequence))
    }

    /// Returns, in a group of two members, the other member, and context and tag of the next collective between them.
    pub fn pair(&mut self, id: GroupId) -> Result<(Peer, u32, i32)> {
        let (context, tag) = self.next_collective(id)?;
        let group = self.group(id)?;
        let peer = group.peer(1 - group.rank.min(1)).ok_or(Error::Task(1))?;
        Ok((peer, context, tag))
    }

    /// Returns context and tag of the next collective of a group. Fails if the collective cannot complete.
    pub(crate) fn next_collective(&mut self, id: GroupId) -> Result<(u32, i32)> {
        let group = self.group_mut(id)?;
        let next = group.next_sequence();
        if let Err(error) = group.usable() {
            if matches!(error, Error::Dead(_)) {
                // This task considers a member dead. Members that still reach that member wait for this task.
                self.notify_failed(id, next, &error);
            }
            return Err(error);
        }
        group.sequence = next;
        if let (0, Some((from, _))) = (group.sequence, &mut group.failed) {
            // The numbers start again at 0, and collectives still fail.
            *from = ALL;
        }
        let (context, tag) = (group.context + 1, group.sequence);
        match self.failed(id, tag) {
            Some(error) => Err(error),
            None => Ok((context, tag)),
        }
    }
}
