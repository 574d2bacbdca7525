//! Collectives that fail at one member must not leave the others waiting for it.
//!
//! A death is heard of by everybody. But a member that goes no further for another reason (it
//! waited for one that has left; memory ran out) is waited for by members that need nothing of
//! the culprit. So it tells them, by a notice on the group's collective context under a tag that
//! no collective has. From the collective named in the notice on, all collectives of the group
//! fail, here and there, with an error that names the culprit.

use regatta_wire::{Frame, Kind};

use crate::arrival::{Body, charge};
use crate::engine::Engine;
use crate::error::Error;
use crate::group::GroupId;
use crate::matching::{Select, TagSelect};
use crate::schedule::Schedule;
use crate::transport::{Peer, Presence, Transport};

/// The tag of notices; those of collectives are smaller.
const NOTICE: i32 = i32::MAX;

impl<T: Transport> Engine<T> {
    /// A collective ends here with an error: tell the members that wait for this task.
    pub(crate) fn tell_failed(&mut self, schedule: &Schedule, error: &Error) {
        let culprit = match *error {
            Error::Dead(peer) | Error::Left(peer) | Error::Corrupt { peer, .. } => peer,
            _ => self.me,
        };
        if !self.note_failed(schedule.group, schedule.tag, error.clone()) {
            return;
        }
        let Ok(group) = self.group(schedule.group) else {
            return;
        };
        let frame = Frame {
            kind: Kind::Eager,
            context: group.context + 1,
            tag: NOTICE,
        };
        let mut body = [0; 8];
        body[..4].copy_from_slice(&schedule.tag.to_le_bytes());
        body[4..].copy_from_slice(&culprit.to_le_bytes());
        for peer in group.peers() {
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
        if group.failed.as_ref().is_some_and(|(from, _)| *from <= tag) {
            return false;
        }
        group.failed = Some((tag, error));
        true
    }

    /// Notices wait among the messages nobody has posted a receive for.
    fn read_notices(&mut self, id: GroupId) {
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
            let word =
                |at: usize| Some(i32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
            if let (Some(tag), Some(culprit)) = (word(0), word(4)) {
                let error = self.reported(notice.source, culprit as Peer);
                self.note_failed(id, tag, error);
            }
        }
    }

    /// The error for what another member says of a peer.
    fn reported(&self, by: Peer, culprit: Peer) -> Error {
        // A member may only be taken at its word about members.
        let culprit = if culprit < self.transport.peers() && culprit != self.me {
            culprit
        } else {
            by
        };
        match self.presence(culprit) {
            Presence::Here => Error::Left(culprit),
            _ => self.loss(culprit),
        }
    }
}
