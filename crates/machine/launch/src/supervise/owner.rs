//! The owner of a job: how its signals and its death are received.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal};

use crate::system::signals::{Arrived, Signals};

/// The owner of a job, as seen by the process that runs the job.
pub(crate) struct Owner {
    /// The pipe on which the owner passes signals. Its end reports the owner's death.
    pub leash: Option<OwnedFd>,
    /// The process group of the tasks.
    pub group: Pid,
}

impl Owner {
    /// Returns the signals that this process got or the owner has passed on, and whether the owner lives. Its death is
    /// reported once.
    pub(crate) fn wishes(&mut self, signals: &Signals) -> (Vec<Arrived>, bool) {
        let mut arrived: Vec<Arrived> = std::iter::from_fn(|| signals.next()).collect();
        let lives = self.read(&mut arrived);
        if !lives {
            self.leash = None;
        }
        (arrived, lives)
    }

    fn read(&self, arrived: &mut Vec<Arrived>) -> bool {
        let Some(leash) = &self.leash else {
            return true;
        };
        let mut bytes = [0_u8; 64];
        match rustix::io::read(leash, &mut bytes) {
            Ok(0) => return false,
            Ok(count) => arrived.extend(
                bytes[..count]
                    .chunks_exact(2)
                    .filter_map(|b| Arrived::from_bytes([b[0], b[1]])),
            ),
            Err(_) => {}
        }
        true
    }

    /// Returns the descriptors to poll.
    pub(crate) fn polls<'a>(&'a self, signals: &'a Signals) -> impl Iterator<Item = PollFd<'a>> {
        let leash = self
            .leash
            .iter()
            .map(|leash| PollFd::new(leash, PollFlags::IN));
        std::iter::once(PollFd::new(signals, PollFlags::IN)).chain(leash)
    }
}

/// Returns whether a signal requests the end of the job.
pub(crate) fn is_end(signal: Signal) -> bool {
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal)
}

#[cfg(test)]
mod tests {
    use rustix::pipe::PipeFlags;

    use super::*;
    use crate::hang_up::await_hang_up;
    use crate::sys;

    fn leash() -> (Owner, OwnedFd) {
        let pipe = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        let (end, leash) = pipe.expect("a pipe");
        let owner = Owner {
            leash: Some(end),
            group: rustix::process::getpgrp(),
        };
        (owner, leash)
    }

    #[test]
    fn signals_that_the_owner_has_passed_on_come_in_their_order_and_nonsense_between_them_does_not()
    {
        let (owner, leash) = leash();
        let passed_on = [Signal::INT, Signal::USR1].map(|signal| Arrived {
            signal,
            from_terminal: signal == Signal::INT,
        });
        let [first, second] = passed_on.map(Arrived::to_bytes);
        let bytes = [first, [0, 0], second].concat();
        rustix::io::write(&leash, &bytes).expect("room");
        let mut arrived = Vec::new();
        assert!(owner.read(&mut arrived));
        assert_eq!(arrived, passed_on);
        // Nothing more has arrived, which is not the owner's death.
        assert!(owner.read(&mut arrived));
        assert_eq!(arrived, passed_on);
    }

    #[test]
    fn the_death_of_the_owner_is_told_once_and_after_its_last_wish() {
        let signals = Signals::catch().expect("signals");
        let (mut owner, leash) = leash();
        let last = Arrived {
            signal: Signal::TERM,
            from_terminal: false,
        };
        rustix::io::write(&leash, &last.to_bytes()).expect("room");
        drop(leash);
        owner.leash.iter().for_each(await_hang_up);
        assert_eq!(owner.wishes(&signals), (vec![last], true));
        assert_eq!(owner.polls(&signals).count(), 2);
        assert_eq!(owner.wishes(&signals), (Vec::new(), false));
        assert_eq!(owner.wishes(&signals), (Vec::new(), true));
        assert_eq!(owner.polls(&signals).count(), 1);
        sys::restore(signals.before());
    }

    #[test]
    fn a_job_is_ended_by_the_signals_that_end_programs_and_no_others() {
        let all = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
        assert!(all.into_iter().all(is_end));
        let others = [Signal::USR1, Signal::TSTP, Signal::CONT, Signal::WINCH];
        assert!(!others.into_iter().any(is_end));
    }
}
