//! Waiting for the end of a pipe, in tests: a process that another test starts has all descriptors of this one until
//! its exec.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Time limit for a process to exec, which takes milliseconds.
const EXEC_TIMEOUT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// Waits until no process has the other end of this pipe.
pub(crate) fn await_hang_up(end: impl AsFd) {
    // Hang-ups and errors are reported without being requested. A signal of another test may interrupt the wait.
    let told = loop {
        match poll(
            &mut [PollFd::new(&end, PollFlags::empty())],
            Some(&EXEC_TIMEOUT),
        ) {
            Err(Errno::INTR) => {}
            told => break told,
        }
    };
    assert_eq!(told, Ok(1), "the end of a pipe");
}
