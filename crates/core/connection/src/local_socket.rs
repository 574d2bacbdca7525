//! Sockets between processes of one host: whose process is at the other end, and messages that carry descriptors.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::ready;

/// The most descriptors that [`send`] passes on with a message.
pub const HANDED: usize = 2;

/// Process and user at the other end; the process is 0 when it has no number here.
pub fn peer(socket: impl AsFd) -> Option<(u32, u32)> {
    let mut found = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes of a struct of integers, which is as long. The number of a process
    // may be 0, which the type of the library used elsewhere cannot hold.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &mut length,
        )
    };
    (result == 0).then_some((found.pid as u32, found.uid))
}

/// Waits until there is something to read, or nobody any more. False: neither, in time.
pub fn readable(socket: BorrowedFd, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match ready::poll(&mut [PollFd::new(&socket, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => return false,
            Err(Errno::INTR) => {}
            Err(_) => return false,
            Ok(_) => return true,
        }
    }
}

/// Sends a message with descriptors, [`HANDED`] at most. Waits while the other end's queue is full.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd]) -> io::Result<()> {
    // The space below is rounded up, and has room for more than the receiver awaits.
    if descriptors.len() > HANDED {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    rustix::net::sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_other_end_is_named_by_the_kernel() {
        let (here, _there) = UnixStream::pair().expect("a pair");
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(peer(&here), Some((std::process::id(), user)));
        let file = std::fs::File::open("/dev/null").expect("no socket");
        assert_eq!(peer(&file), None);
    }

    #[test]
    fn a_socket_is_readable_when_something_has_come_or_nobody_is_left() {
        let (here, there) = UnixStream::pair().expect("a pair");
        assert!(!readable(here.as_fd(), Instant::now()));
        send(&there, b"x", &[]).expect("room");
        let until = Instant::now() + Duration::from_secs(60);
        assert!(readable(here.as_fd(), until));
        assert_eq!((&here).read(&mut [0; 9]).expect("a byte"), 1);
        assert!(!readable(here.as_fd(), Instant::now()));
        drop(there);
        assert!(readable(here.as_fd(), until));
    }

    #[test]
    fn more_descriptors_than_fit_are_refused_and_nothing_is_sent() {
        let (here, there) = UnixStream::pair().expect("a pair");
        let many = [here.as_fd(); HANDED + 1];
        let refused = send(&there, b"x", &many).expect_err("too many");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert!(!readable(here.as_fd(), Instant::now()));
        send(&there, b"x", &many[..HANDED]).expect("they fit");
        assert!(readable(here.as_fd(), Instant::now()));
    }
}
