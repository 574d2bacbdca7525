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

use crate::arrival::{Body, charge};
use crate::engine::Engine;
use crate::error::Error;
use crate::group::GroupId;
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

impl<T: Transport> Engine<T> {
    /// A collective ends here with an error: tell the members that wait for this task.
    pub(crate) fn notify_failed(&mut self, id: GroupId, tag: i32, error: &Error) {
        let Some(reason) = Reason::of(error) else {
            return;
        };
        let culprit = match *error {
            Error::Dead(peer)
            | Error::Left(peer)
            | Error::Corrupt { peer, .. }
            | Error::Member { peer, .. } => peer,
            _ => self.me,
        };
        if !self.note_failed(id, tag, error.clone()) {
            return;
        }
        if let Ok(group) = self.group(id) {
            let (context, members) = (group.context, group.peers());
            self.notify(context, &members, (tag, culprit, reason));
        }
    }

    /// This task has found that a peer writes nonsense.
    pub(crate) fn notify_condemned(&mut self, culprit: Peer) {
        let groups = self.groups.containing(culprit);
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
            if peer != self.me && self.presence(peer) == Presence::Here {
                // One that cannot be told any more is gone itself.
                let _ = self.send_or_queue(peer, frame, &body);
            }
        }
    }

    /// Why the collective `tag` of a group fails, if it does.
    pub(crate) fn failed(&mut self, id: GroupId, tag: i32) -> Option<Error> {
        self.read_notices(id);
        let (from, error) = self.group(id).ok()?.failed.as_ref()?;
        (tag >= *from).then(|| error.clone())
    }

    /// Remember from which collective on a group fails. False: that was known.
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

    /// Notices wait among the messages nobody has posted a receive for.
    pub(crate) fn read_notices(&mut self, id: GroupId) {
        while !self.unexpected.is_empty()
            && let Ok(group) = self.group(id)
        {
            let select = Select {
                context: group.context + 1,
                source: None,
                tag: TagSelect::Exactly(NOTICE),
            };
            let Some(found) = self.unexpected.find(&select) else {
                return;
            };
            let Some(notice) = self.unexpected.remove(found) else {
                return;
            };
            let Body::Bytes(bytes) = notice.body else {
                continue;
            };
            self.buffered -= charge(bytes.len());
            if let Ok((tag, culprit, reason)) = whole(&bytes) {
                let error = self.reported(notice.source, culprit, Reason::from_number(reason));
                self.note_failed(id, tag, error);
            }
        }
    }

    /// The error for what another member says of a peer. A reason that is none is a finding about the one that gives it.
    fn reported(&self, by: Peer, culprit: Peer, reason: Option<Reason>) -> Error {
        // A member may only be taken at its word about members.
        let culprit = if culprit < self.transport.peers() && culprit != self.me {
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
}
