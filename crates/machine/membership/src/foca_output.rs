//! Foca's output: datagrams to send, notifications, and timers to set.

use std::time::Duration;

use foca::{Notification, Timer};

use crate::host::HostId;

/// A notification of foca.
pub(crate) enum Note {
    Up(HostId),
    Down(HostId),
    Replaced { old: HostId, new: HostId },
    Renewed(HostId),
}

/// Collects foca's outputs.
#[derive(Default)]
pub(crate) struct Sink {
    pub sends: Vec<(HostId, Vec<u8>)>,
    pub notes: Vec<Note>,
    pub timers: Vec<(Duration, Timer<HostId>)>,
}

impl foca::Runtime<HostId> for Sink {
    fn notify(&mut self, notification: Notification<'_, HostId>) {
        self.notes.push(match notification {
            Notification::MemberUp(host) => Note::Up(*host),
            Notification::MemberDown(host) => Note::Down(*host),
            Notification::Rename(old, new) => Note::Replaced {
                old: *old,
                new: *new,
            },
            Notification::Rejoin(new) => Note::Renewed(*new),
            Notification::Active | Notification::Idle | Notification::Defunct => return,
        });
    }

    fn send_to(&mut self, to: HostId, data: &[u8]) {
        self.sends.push((to, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<HostId>, after: Duration) {
        self.timers.push((after, event));
    }
}
