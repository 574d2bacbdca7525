//! Tasks of this host that are not children of this process: they came by the join socket, or one of them has started
//! this launcher.

use regatta_job::{End, Ended};
use regatta_segment::job::TaskState;
use rustix::event::PollFd;
use rustix::process::Signal;

use crate::resident::guest::Guest;
use crate::tasks::Tasks;

impl Tasks {
    /// Returns the descriptors to poll.
    pub(crate) fn guest_polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.guests.values().map(Guest::poll)
    }

    /// Removes guests that have ended or left, and returns their ends.
    pub(crate) fn take_gone_guests(&mut self) -> Vec<Ended> {
        let gone = |(&rank, guest): (&u32, &Guest)| {
            let left = self.job().state(rank) == TaskState::Left;
            let talks = self.controls.has(rank);
            let end = over(guest.end(left), left, self.adopted, talks)?;
            let state = self.job().state_at_end(rank);
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
            if ended.state != TaskState::Left {
                self.job().mark_dead(ended.rank, ended.end.cause());
            }
        }
        gone
    }

    /// Signals guests that came by the join socket. They were not started for this job, so they get SIGTERM instead of
    /// SIGKILL.
    pub(crate) fn signal_guests(&self, signal: Signal) {
        if self.adopted {
            return;
        }
        for guest in self.guests.values() {
            guest.signal(asked(signal).as_raw());
        }
    }
}

/// Returns how a guest has ended as a task, if it has: its process has ended, or it has left and closed its socket. A
/// process that has started this launcher (`adopted`) stays a task until it ends.
fn over(end: Option<End>, left: bool, adopted: bool, talks: bool) -> Option<End> {
    let parted = left && !adopted && !talks;
    end.or(parted.then_some(End::Exited(0)))
}

/// Returns the signal that a guest gets instead of `signal`, so that it can refuse to end.
fn asked(signal: Signal) -> Signal {
    match signal {
        Signal::KILL => Signal::TERM,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_has_left_and_closed_its_socket_is_over_though_its_process_goes_on() {
        let well = Some(End::Exited(0));
        assert_eq!(over(None, true, false, false), well);
        // One of the two is not enough: the task may still send a request, or be joining again.
        assert_eq!(over(None, true, false, true), None);
        assert_eq!(over(None, false, false, false), None);
    }

    #[test]
    fn a_process_that_has_called_us_is_over_only_when_it_has_ended() {
        assert_eq!(over(None, true, true, false), None);
        let killed = Some(End::Signalled {
            signal: 9,
            core: false,
        });
        for (left, adopted, talks) in [
            (true, true, false),
            (false, true, true),
            (true, false, false),
        ] {
            assert_eq!(over(killed, left, adopted, talks), killed);
        }
    }

    #[test]
    fn guests_are_asked_to_end_and_never_killed() {
        assert_eq!(asked(Signal::KILL), Signal::TERM);
        for signal in [Signal::TERM, Signal::INT, Signal::STOP, Signal::CONT] {
            assert_eq!(asked(signal), signal);
        }
    }
}
