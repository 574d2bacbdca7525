//! Tasks of this host that are no children of ours: they came by the join socket, or the launcher was called by one.

use regatta_job::{End, Ended};
use regatta_segment::job::TaskState;
use rustix::event::PollFd;
use rustix::process::Signal;

use crate::launcher_on_demand::Guest;
use crate::tasks::Tasks;

impl Tasks {
    /// The descriptors to wait for.
    pub(crate) fn guest_polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.guests.values().map(Guest::poll)
    }

    /// Takes note of guests that have ended, or have left.
    pub(crate) fn take_gone_guests(&mut self) -> Vec<Ended> {
        let gone = |(&rank, guest): (&u32, &Guest)| {
            let state = self.job().state(rank);
            let left = state == TaskState::Left;
            // A process that has called us stays ours until it ends.
            let parted = left && !self.adopted && !self.controls.has(rank);
            let end = guest.end(left).or(parted.then_some(End::Exited(0)))?;
            let pid = guest.pid;
            Some(Ended {
                rank,
                pid,
                end,
                state,
            })
        };
        let gone: Vec<Ended> = self.guests.iter().filter_map(gone).collect();
        for ended in &gone {
            self.guests.remove(&ended.rank);
            self.departed(ended.rank);
        }
        gone
    }

    /// Guests that came by the join socket are asked to end where others are made to: they were not started for this job.
    pub(crate) fn signal_guests(&self, signal: Signal) {
        if self.adopted {
            return;
        }
        let signal = match signal {
            Signal::KILL => Signal::TERM,
            other => other,
        };
        for guest in self.guests.values() {
            guest.signal(signal.as_raw());
        }
    }
}
