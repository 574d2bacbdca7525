//! Makes a task end with its guardian.

use std::os::fd::{AsRawFd, OwnedFd};

/// Makes the kernel kill this process when the other end of the line is closed.
///
/// Neither the guardian nor the task sends anything more on the line, so its end is the only event.
pub(super) fn with(line: &OwnedFd) {
    let fd = line.as_raw_fd();
    // SAFETY: this changes flags of an open descriptor that this process owns. If it fails, the task only outlives its guardian.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETOWN, std::process::id() as libc::c_int);
        libc::fcntl(fd, F_SETSIG, libc::SIGKILL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_ASYNC);
    }
}

/// Undoes [`with`].
pub(super) fn no_more(line: &OwnedFd) {
    let fd = line.as_raw_fd();
    // SAFETY: this changes flags of an open descriptor that this process owns.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_ASYNC);
    }
}

/// The same number on all architectures of Linux. Not declared by the libraries in use.
const F_SETSIG: libc::c_int = 10;
