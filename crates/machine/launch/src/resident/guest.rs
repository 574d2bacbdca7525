//! A task whose launcher is not its parent. Its end is read from a pidfd, and from its stat file in /proc.

use std::os::fd::OwnedFd;

use regatta_job::End;
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use rustix::time::Timespec;

/// A task that is not a child of its launcher.
pub(crate) struct Guest {
    pub pid: u32,
    /// A pidfd, readable when the process has ended.
    pub fd: OwnedFd,
}

/// Returns the end of a process from its line in /proc. The last field is the wait status that its parent will get.
fn end_in(stat: &str) -> Option<End> {
    let status: i32 = stat.split_whitespace().last()?.parse().ok()?;
    Some(match status & 0x7f {
        0 => End::Exited(status >> 8),
        signal => End::Signalled {
            signal,
            core: status & 0x80 != 0,
        },
    })
}

impl Guest {
    pub(crate) fn try_clone(&self) -> std::io::Result<Guest> {
        let (pid, fd) = (self.pid, self.fd.try_clone()?);
        Ok(Guest { pid, fd })
    }

    /// Returns the descriptor to poll.
    pub(crate) fn poll(&self) -> PollFd<'_> {
        PollFd::new(&self.fd, PollFlags::IN)
    }

    /// Returns how it has ended, as far as known, or `None` if it runs. `left` means that it had left in good order,
    /// and is used if its status is not known.
    pub(crate) fn end(&self, left: bool) -> Option<End> {
        let now = Timespec::default();
        let ended = regatta_connection::ready::poll(&mut [self.poll()], Some(&now)) == Ok(1);
        ended.then(|| self.status().unwrap_or(End::Exited(i32::from(!left))))
    }

    /// Returns the status, if its parent has not reaped it yet.
    fn status(&self) -> Option<End> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        end_in(&text)
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            // If it has ended, that is noticed anyway.
            let _ = rustix::process::pidfd_send_signal(&self.fd, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::PidfdFlags;

    use super::*;

    #[test]
    fn the_end_of_a_process_is_what_its_parent_will_be_told() {
        let line = |status: i32| format!("77 (a b) 3) Z 1 77 77 0 -1 4228364 0 0 {status}\n");
        assert_eq!(end_in(&line(0)), Some(End::Exited(0)));
        assert_eq!(end_in(&line(3 << 8)), Some(End::Exited(3)));
        for (status, signal, core) in [(9, 9, false), (11 | 0x80, 11, true)] {
            let end = End::Signalled { signal, core };
            assert_eq!(end_in(&line(status)), Some(end));
        }
        assert_eq!(end_in(""), None);
        assert_eq!(end_in("77 (x) Z"), None);
    }

    #[test]
    fn a_process_that_runs_has_no_end_even_if_it_has_left_the_job() {
        let process = rustix::process::getpid();
        let fd = rustix::process::pidfd_open(process, PidfdFlags::empty()).expect("its end");
        let pid = std::process::id();
        let guest = Guest { pid, fd };
        assert_eq!((guest.end(false), guest.end(true)), (None, None));
    }
}
