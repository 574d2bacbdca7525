//! The owner of a job: where its tasks stand, and how the owner's wishes and its death arrive.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal};

use crate::signals::{Arrived, Signals};

/// The owner of a job, as the process that runs it sees it.
pub(crate) struct Owner {
    /// Signals to pass on, and the owner's death: the end of the pipe.
    pub leash: Option<OwnedFd>,
    /// The process group of the tasks.
    pub group: Pid,
}

impl Owner {
    /// The signals that came to us or were passed on by the owner, and whether the owner lives. Its death is told once.
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

    /// The descriptors to wait for.
    pub(crate) fn polls<'a>(&'a self, signals: &'a Signals) -> impl Iterator<Item = PollFd<'a>> {
        let leash = self
            .leash
            .iter()
            .map(|leash| PollFd::new(leash, PollFlags::IN));
        std::iter::once(PollFd::new(signals, PollFlags::IN)).chain(leash)
    }
}

/// Whether a signal asks for the end of the job.
pub(crate) fn is_end(signal: Signal) -> bool {
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal)
}
