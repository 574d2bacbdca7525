//! Waiting for several descriptors, under any limit of open files.
//!
//! `poll` refuses (`EINVAL`) to look at more descriptors than `RLIMIT_NOFILE` allows, also when they were opened before somebody
//! lowered the limit (`prlimit`, or a smaller one that is inherited). A loop that takes the error for a wake-up never sleeps again.
//! `select` knows no such limit.

use std::os::fd::{AsFd, AsRawFd};

use rustix::event::{
    FdSetElement, FdSetIter, PollFd, PollFlags, Timespec, fd_set_insert, fd_set_num_elements,
    select,
};
use rustix::io::Errno;

/// Events that count as something to read.
const READ: PollFlags = PollFlags::IN.union(PollFlags::RDHUP);

/// As `rustix::event::poll`.
pub fn poll(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> rustix::io::Result<usize> {
    match rustix::event::poll(fds, timeout) {
        Err(Errno::INVAL) => poll_by_select(fds, timeout),
        polled => polled,
    }
}

#[cold]
fn poll_by_select(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> rustix::io::Result<usize> {
    let end = fds.iter().map(|fd| fd.as_fd().as_raw_fd() + 1).max();
    let end = end.unwrap_or_default();
    let none = || vec![FdSetElement::default(); fd_set_num_elements(fds.len(), end)];
    let (mut reads, mut writes) = (none(), none());
    let raw = raw(fds);
    for fd in raw.iter_mut() {
        fd.revents = 0;
        let asked = PollFlags::from_bits_retain(fd.events as u16);
        if asked.intersects(READ) {
            fd_set_insert(&mut reads, fd.fd);
        }
        if asked.contains(PollFlags::OUT) {
            fd_set_insert(&mut writes, fd.fd);
        }
    }
    // SAFETY: every descriptor in the sets is borrowed by `fds`, so it is open.
    unsafe { select(end, Some(&mut reads), Some(&mut writes), None, timeout) }?;
    let mut ready = 0;
    for fd in raw {
        let asked = PollFlags::from_bits_retain(fd.events as u16);
        let mut found = PollFlags::empty();
        if asked.intersects(READ) && contains(&reads, fd.fd) {
            found |= asked & READ;
        }
        if asked.contains(PollFlags::OUT) && contains(&writes, fd.fd) {
            found |= PollFlags::OUT;
        }
        fd.revents = found.bits() as i16;
        ready += usize::from(!found.is_empty());
    }
    Ok(ready)
}

fn contains(set: &[FdSetElement], fd: i32) -> bool {
    FdSetIter::new(set).any(|found| found == fd)
}

/// The list as the kernel's.
fn raw<'a>(fds: &'a mut [PollFd<'_>]) -> &'a mut [libc::pollfd] {
    const {
        assert!(size_of::<PollFd<'_>>() == size_of::<libc::pollfd>());
        assert!(align_of::<PollFd<'_>>() == align_of::<libc::pollfd>());
    }
    // SAFETY: a `PollFd` is passed to the kernel as a `pollfd`, so it is laid out as one; only `revents` is written here.
    unsafe { std::slice::from_raw_parts_mut(fds.as_mut_ptr().cast(), fds.len()) }
}
