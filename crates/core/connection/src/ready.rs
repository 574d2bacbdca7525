//! Waiting for several descriptors, under any limit of open files.
//!
//! `poll` refuses (`EINVAL`) more descriptors than `RLIMIT_NOFILE` allows, even if they were opened before the limit
//! was lowered (by `prlimit`, or by an inherited smaller limit). A loop that takes this error for a wake-up never
//! sleeps again. `select` has no such limit.

use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use rustix::event::{
    FdSetElement, FdSetIter, PollFd, PollFlags, Timespec, fd_set_insert, fd_set_num_elements,
    select,
};
use rustix::io::Errno;
use rustix::net::RecvFlags;

/// Does what `rustix::event::poll` does, under any limit of open files.
pub fn poll(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> rustix::io::Result<usize> {
    match rustix::event::poll(fds, timeout) {
        Err(Errno::INVAL) => poll_by_select(fds, timeout),
        polled => polled,
    }
}

/// Interval of checks for hang-ups of descriptors that are polled for neither reading nor writing: `select` cannot wait
/// for a hang-up alone.
const HANG_UP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

#[cold]
fn poll_by_select(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> rustix::io::Result<usize> {
    let limit = timeout.map(|timeout| Duration::try_from(*timeout).map_err(|_| Errno::INVAL));
    let until = limit
        .transpose()?
        .and_then(|limit| Instant::now().checked_add(limit));
    let sliced = raw(fds).iter().any(|fd| !asks_to_move(asked(fd)));
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let slice = sliced.then_some(HANG_UP_CHECK_INTERVAL);
        let wait = left.into_iter().chain(slice).min();
        let ready = select_once(fds, wait)?;
        if ready > 0 || until.is_some_and(|until| Instant::now() >= until) {
            return Ok(ready);
        }
    }
}

fn asked(fd: &libc::pollfd) -> PollFlags {
    PollFlags::from_bits_retain(fd.events as u16)
}

/// Returns whether it waits for reading or writing, and not only for a hang-up.
fn asks_to_move(asked: PollFlags) -> bool {
    asked.intersects(PollFlags::IN | PollFlags::OUT)
}

/// Returns whether the end of the stream has been reached. Unread bytes hide the end.
fn has_ended(socket: &impl AsFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    rustix::net::recv(socket, &mut [0; 1], flags).is_ok_and(|(_, length)| length == 0)
}

fn select_once(fds: &mut [PollFd<'_>], wait: Option<Duration>) -> rustix::io::Result<usize> {
    let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
    let end = fds.iter().map(|fd| fd.as_fd().as_raw_fd() + 1).max();
    let end = end.unwrap_or_default();
    let none = || vec![FdSetElement::default(); fd_set_num_elements(fds.len(), end)];
    let (mut reads, mut writes) = (none(), none());
    for fd in raw(fds) {
        fd.revents = 0;
        if asked(fd).contains(PollFlags::IN) {
            fd_set_insert(&mut reads, fd.fd);
        }
        if asked(fd).contains(PollFlags::OUT) {
            fd_set_insert(&mut writes, fd.fd);
        }
    }
    // SAFETY: every descriptor in the sets is borrowed by `fds`, so it is open.
    unsafe {
        select(
            end,
            Some(&mut reads),
            Some(&mut writes),
            None,
            wait.as_ref(),
        )
    }?;
    let mut ready = 0;
    for fd in fds {
        // For a single descriptor `poll` gives the exact answer, under any limit except 0.
        let looked = rustix::event::poll(std::slice::from_mut(fd), Some(&Timespec::default()));
        if looked.is_err() {
            let ended = has_ended(fd);
            let [fd] = raw(std::slice::from_mut(fd)) else {
                continue;
            };
            let mut found = PollFlags::empty();
            if contains(&reads, fd.fd) {
                found |= PollFlags::IN;
            }
            if asked(fd).contains(PollFlags::RDHUP) && ended {
                found |= PollFlags::RDHUP;
            }
            if contains(&writes, fd.fd) {
                found |= asked(fd) & PollFlags::OUT;
            }
            fd.revents = found.bits() as i16;
        }
        ready += usize::from(!fd.revents().is_empty());
    }
    Ok(ready)
}

fn contains(set: &[FdSetElement], fd: i32) -> bool {
    FdSetIter::new(set).any(|found| found == fd)
}

/// Returns the list as the kernel's structures.
fn raw<'a>(fds: &'a mut [PollFd<'_>]) -> &'a mut [libc::pollfd] {
    const {
        assert!(size_of::<PollFd<'_>>() == size_of::<libc::pollfd>());
        assert!(align_of::<PollFd<'_>>() == align_of::<libc::pollfd>());
    }
    // SAFETY: rustix passes a `PollFd` to the kernel as a `pollfd`, so both have the same layout; only `revents` is
    // written here.
    unsafe { std::slice::from_raw_parts_mut(fds.as_mut_ptr().cast(), fds.len()) }
}
