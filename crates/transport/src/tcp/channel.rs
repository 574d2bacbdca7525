//! A connected socket, as it is or encrypted. Nothing here waits.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// See the module.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
}

const FLAGS: libc::c_int = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;

/// What a system call said: bytes, nothing now, or that the connection is lost.
fn outcome(n: isize) -> io::Result<Option<usize>> {
    if n >= 0 {
        return Ok(Some(n as usize));
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
        _ => Err(error),
    }
}

impl Channel {
    /// A connected, non-blocking socket.
    pub(crate) fn plain(socket: OwnedFd) -> Channel {
        Channel { socket }
    }

    /// The same, encrypted if it is to be; `seed` is known to both sides only.
    pub(crate) fn secured(
        self,
        encrypted: bool,
        _seed: &[u8; 32],
        _called: bool,
    ) -> io::Result<Channel> {
        if encrypted {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(self)
    }

    /// Send what can be sent now; how many bytes that was.
    #[inline]
    pub(crate) fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let fd = self.socket.as_raw_fd();
        let n = match parts {
            // SAFETY: the part is readable memory of that length.
            [one] => unsafe { libc::send(fd, one.as_ptr().cast(), one.len(), FLAGS) },
            _ => {
                // SAFETY: all zeros is a valid message header: no name, no parts, no control data.
                let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
                message.msg_iov = parts.as_ptr().cast_mut().cast();
                message.msg_iovlen = parts.len();
                // SAFETY: an `IoSlice` is an `iovec`; the parts live across the call.
                unsafe { libc::sendmsg(fd, &message, FLAGS) }
            }
        };
        Ok(outcome(n)?.unwrap_or(0))
    }

    /// Receive what is there; `None`: nothing now. The other side's end is an error.
    #[inline]
    pub(crate) fn recv(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        let fd = self.socket.as_raw_fd();
        let n = match parts {
            // SAFETY: the part is writable memory of that length.
            [one] => unsafe { libc::recv(fd, one.as_mut_ptr().cast(), one.len(), FLAGS) },
            _ => {
                // SAFETY: as in `send`.
                let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
                message.msg_iov = parts.as_mut_ptr().cast();
                message.msg_iovlen = parts.len();
                // SAFETY: an `IoSliceMut` is an `iovec`; the parts live across the call.
                unsafe { libc::recvmsg(fd, &mut message, FLAGS) }
            }
        };
        match outcome(n)? {
            Some(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            some => Ok(some),
        }
    }

    /// Has all that was given to `send` gone to the kernel?
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    /// Has the other side's kernel everything that was sent, as far as this one knows?
    pub(crate) fn is_delivered(&self) -> bool {
        let mut left: libc::c_int = 0;
        // SAFETY: SIOCOUTQ (TIOCOUTQ by its older name) writes one int.
        let asked = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::TIOCOUTQ, &mut left) };
        asked != 0 || left == 0
    }

    /// Nothing more will be sent.
    pub(crate) fn close_sending(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
