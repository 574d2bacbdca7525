//! A task falls with its guardian.

use std::os::fd::{AsRawFd, OwnedFd};

/// From now on the kernel kills this process when the other end of the line is closed.
///
/// The guardian says nothing more on the line and the task neither: its end is the only event that can come.
pub(super) fn with(line: &OwnedFd) {
    let fd = line.as_raw_fd();
    // SAFETY: settings of a descriptor that is ours. Without them a task outlives its guardian, and no worse.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETOWN, std::process::id() as libc::c_int);
        libc::fcntl(fd, F_SETSIG, libc::SIGKILL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_ASYNC);
    }
}

/// Takes that back.
pub(super) fn no_more(line: &OwnedFd) {
    let fd = line.as_raw_fd();
    // SAFETY: as above.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_ASYNC);
    }
}

/// One number on every machine that Linux runs on; not among the declarations we use.
const F_SETSIG: libc::c_int = 10;
