//! The signals that concern a job, read from a descriptor instead of interrupting the launcher.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use regatta_program::Refusal;
use rustix::process::Signal;

use crate::sys::{self, Mask};
use crate::system::inherited;

/// Signals that are passed on to the job's tasks.
const FORWARDED: [Signal; 9] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::TSTP,
    Signal::CONT,
];
/// The size of the kernel's `signalfd_siginfo`.
const RECORD: usize = 128;
/// `si_code` of a signal sent by the kernel itself, such as a terminal's Ctrl-C.
const FROM_KERNEL: i32 = 0x80;

/// A signal that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub signal: Signal,
    /// Whether it came from the terminal, which has also sent it to all tasks, since they are in the terminal's
    /// foreground group.
    pub from_terminal: bool,
}

/// The signals of the launcher, blocked and readable from a descriptor.
pub(crate) struct Signals {
    fd: OwnedFd,
    before: Mask,
}

impl Signals {
    /// Blocks the forwarded signals and SIGCHLD for this thread. They stay blocked. Signals that this process ignores
    /// are left out: tasks on this host inherit that, and those on other hosts must not get them either.
    pub(crate) fn catch() -> Result<Self, Refusal> {
        let handled = FORWARDED.into_iter().filter(|&it| !sys::is_ignored(it));
        let all: Vec<Signal> = handled.chain([Signal::CHILD]).collect();
        let before = sys::block(&all);
        match sys::signalfd(&all) {
            Ok(fd) => Ok(Self { fd, before }),
            Err(errno) => {
                sys::restore(&before);
                Err(Refusal::of_regatta(format!(
                    "the launcher cannot watch signals (signalfd): {errno}"
                )))
            }
        }
    }

    /// Returns the signal mask that this process was started with, for its tasks.
    pub(crate) fn before(&self) -> &Mask {
        inherited::get().map_or(&self.before, |inherited| &inherited.mask)
    }

    /// Returns the next forwarded signal, if there is one. Others (SIGCHLD) are skipped.
    pub(crate) fn next(&self) -> Option<Arrived> {
        let mut record = [0_u8; RECORD];
        loop {
            if rustix::io::read(&self.fd, &mut record[..]) != Ok(RECORD) {
                return None;
            }
            if let Some(arrived) = Arrived::of_record(&record) {
                return Some(arrived);
            }
        }
    }

    /// Dies of `signal`, as if it had never been caught.
    pub(crate) fn die_of(&self, signal: Signal) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
        sys::restore(&self.before);
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Arrived {
    /// Returns the signal in a record of the kernel, or `None` if it is not forwarded.
    fn of_record(record: &[u8; RECORD]) -> Option<Self> {
        let word =
            |at: usize| i32::from_ne_bytes(record[at..at + 4].try_into().unwrap_or_default());
        let signal = Signal::from_named_raw(word(0)).filter(|signal| FORWARDED.contains(signal))?;
        Some(Self {
            signal,
            from_terminal: word(8) == FROM_KERNEL,
        })
    }

    /// Encodes the signal for the pipe between front and supervisor.
    pub(crate) fn to_bytes(self) -> [u8; 2] {
        [self.signal.as_raw() as u8, u8::from(self.from_terminal)]
    }

    pub(crate) fn from_bytes(bytes: [u8; 2]) -> Option<Self> {
        let signal = Signal::from_named_raw(i32::from(bytes[0]))?;
        Some(Self {
            signal,
            from_terminal: bytes[1] != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kernel's record of a signal with this code.
    fn record(signal: i32, code: i32) -> [u8; RECORD] {
        let mut record = [0; RECORD];
        record[..4].copy_from_slice(&signal.to_ne_bytes());
        record[8..12].copy_from_slice(&code.to_ne_bytes());
        record
    }

    #[test]
    fn a_signal_of_the_terminal_is_told_from_one_that_somebody_sent() {
        let interrupt = Signal::INT.as_raw();
        for (code, from_terminal) in [(FROM_KERNEL, true), (libc::SI_USER, false)] {
            let arrived = Arrived::of_record(&record(interrupt, code));
            let expected = Arrived {
                signal: Signal::INT,
                from_terminal,
            };
            assert_eq!(arrived, Some(expected));
        }
    }

    #[test]
    fn ends_of_children_and_unknown_signals_are_forwarded_to_nobody() {
        for signal in [Signal::CHILD.as_raw(), Signal::KILL.as_raw(), 0, 64, -1] {
            assert_eq!(Arrived::of_record(&record(signal, 0)), None, "{signal}");
        }
    }

    #[test]
    fn every_forwarded_signal_passes_the_pipe_as_it_came() {
        for signal in FORWARDED {
            for from_terminal in [false, true] {
                let arrived = Arrived {
                    signal,
                    from_terminal,
                };
                assert_eq!(Arrived::from_bytes(arrived.to_bytes()), Some(arrived));
            }
        }
        assert_eq!(Arrived::from_bytes([0, 1]), None);
        assert_eq!(Arrived::from_bytes([255, 0]), None);
    }
}
