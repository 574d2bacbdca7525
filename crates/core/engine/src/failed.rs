//! Collectives that fail at one member must not leave the others waiting for it.
//!
//! A death is heard of by everybody. But a member that goes no further for another reason (it
//! waited for one that has left; memory ran out) is waited for by members that need nothing of
//! the culprit. So it tells them, by a notice on the group's collective context under a tag that
//! no collective has. From the collective named in the notice on, all collectives of the group
//! fail, here and there, with an error of the same class that names the culprit (`reason`).
//!
//! That a task wrote nonsense is known to those who read it, and to nobody else. They go no further
//! in any group it is a member of, rounds in shared memory included, and tell the others so, in the same way.

use regatta_wire::fields::{bytes_of, whole};
use regatta_wire::{Frame, Kind};

use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::groups::Groups;
use crate::matching::{Select, TagSelect};
use crate::reason::Reason;
use crate::transport::{Peer, Presence, Transport};

/// The tag of notices; those of collectives are smaller.
const NOTICE: i32 = i32::MAX;
/// In place of the first collective that fails: all do, and so do rounds in shared memory.
pub(crate) const ALL: i32 = -1;

fn no_memory_at(peer: Peer) -> Error {
    Error::Memory(format!(
        "task {peer} had no memory for its part of a collective, so the others cannot complete it"
    ))
}

impl<T: Transport> Groups<T> {
    /// Tells the members that wait for this task that a collective ends here with an error.
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

    /// Tells the members of all groups of a peer that this task has found that it writes nonsense.
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
                // One that cannot be told any more is gone itself.
                let _ = self.send_or_queue(peer, frame, &body);
            }
        }
    }

    /// Returns why the collective `tag` of a group fails, if it does.
    pub(crate) fn failed(&mut self, id: GroupId, tag: i32) -> Option<Error> {
        self.read_notices(id);
        let (from, error) = self.group(id).ok()?.failed.as_ref()?;
        (tag >= *from).then(|| error.clone())
    }

    /// Remembers from which collective on a group fails. Returns false if that was known.
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

    /// Reads the notices about a group, which wait among the messages nobody has posted a receive for.
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

    /// Returns the error for what another member says of a peer. A reason that is none is a finding about the one that gives it.
    fn reported(&self, by: Peer, culprit: Peer, reason: Option<Reason>) -> Error {
        // A member may only be taken at its word about members.
        let culprit = if culprit < self.transport().peers() && culprit != self.me() {
            culprit
        } else {
            by
        };
        let is_here = self.presence(culprit) == Presence::Here;
        match reason {
            // Of a loss not all hear at the same time.
            Some(Reason::Left) if is_here => Error::Left(culprit),
            Some(Reason::Dead) if is_here => Error::Dead(culprit),
            Some(Reason::Corrupt) if is_here => Error::Corrupt {
                peer: culprit,
                what: "another task of the group has found it so",
            },
            Some(Reason::Left | Reason::Dead | Reason::Corrupt) => self.loss(culprit),
            Some(Reason::Memory) => no_memory_at(by),
            Some(reason) => Error::Member {
                peer: culprit,
                reason,
            },
            None => Error::Corrupt {
                peer: by,
                what: "it gave a reason for the failure of a collective that is none",
            },
        }
    }
    /// Returns, in a group of two, this task's rank, the other one, and context and tag of the next collective between them, unless something
    /// is in the way of that one. `None`: nothing has happened.
    #[inline(always)]
    pub fn try_pair(&mut self, id: GroupId) -> Option<(u32, Peer, u32, i32)> {
        // Messages that wait may tell that collectives of the group fail.
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

    /// Returns, in a group of two, the other one, and context and tag of the next collective between them.
    pub fn pair(&mut self, id: GroupId) -> Result<(Peer, u32, i32)> {
        let (context, tag) = self.next_collective(id)?;
        let group = self.group(id)?;
        let peer = group.peer(1 - group.rank.min(1)).ok_or(Error::Task(1))?;
        Ok((peer, context, tag))
    }

    /// Returns context and tag of the next collective of a group, if it can be complete.
    pub(crate) fn next_collective(&mut self, id: GroupId) -> Result<(u32, i32)> {
        let group = self.group_mut(id)?;
        let next = group.next_sequence();
        if let Err(error) = group.usable() {
            if matches!(error, Error::Dead(_)) {
                // Members that still reach the one that is dead for this task wait for this one.
                self.notify_failed(id, next, &error);
            }
            return Err(error);
        }
        group.sequence = next;
        if let (0, Some((from, _))) = (group.sequence, &mut group.failed) {
            // The numbers begin again, and what has failed stays so.
            *from = ALL;
        }
        let (context, tag) = (group.context + 1, group.sequence);
        match self.failed(id, tag) {
            Some(error) => Err(error),
            None => Ok((context, tag)),
        }
    }
}
