//! A connected socket, as it is or encrypted. Nothing here waits.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustls::Connection;

use super::secure;

/// See the module.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    tls: Option<Box<Connection>>,
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

#[inline]
fn send(socket: &OwnedFd, parts: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
    let fd = socket.as_raw_fd();
    outcome(match parts {
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
    })
}

/// The other side's end is an error.
#[inline]
fn recv(socket: &OwnedFd, parts: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
    let fd = socket.as_raw_fd();
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

/// The socket as TLS uses it.
struct Bare<'a>(&'a OwnedFd);

impl Read for Bare<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        recv(self.0, &mut [IoSliceMut::new(bytes)])?.ok_or(io::ErrorKind::WouldBlock.into())
    }
}

impl Write for Bare<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        send(self.0, parts)?.ok_or(io::ErrorKind::WouldBlock.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_later(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Write what TLS wants written; whether that is all.
fn flush(tls: &mut Connection, socket: &OwnedFd) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(&mut Bare(socket)) {
            Ok(_) => {}
            Err(error) if is_later(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Take in what has come for TLS, and what follows from it.
fn take_in(tls: &mut Connection, socket: &OwnedFd) -> io::Result<bool> {
    match tls.read_tls(&mut Bare(socket)) {
        Ok(_) => {}
        Err(error) if is_later(&error) => return Ok(false),
        Err(error) => return Err(error),
    }
    let processed = tls.process_new_packets();
    // Also what it has to say about a failure.
    flush(tls, socket)?;
    processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    Ok(true)
}

impl Channel {
    /// A connected, non-blocking socket.
    pub(crate) fn plain(socket: OwnedFd) -> Channel {
        Channel { socket, tls: None }
    }

    /// The same, encrypted if it is to be; `seed` is known to both sides only.
    pub(crate) fn secured(
        self,
        encrypted: bool,
        seed: &[u8; 32],
        called: bool,
    ) -> io::Result<Channel> {
        let tls = match encrypted {
            true => Some(Box::new(secure::begin(seed, called)?)),
            false => None,
        };
        Ok(Channel { tls, ..self })
    }

    /// Send what can be sent now; how many bytes that was.
    #[inline]
    pub(crate) fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return Ok(send(&self.socket, parts)?.unwrap_or(0));
        };
        let n = tls.writer().write_vectored(parts)?;
        flush(tls, &self.socket)?;
        Ok(n)
    }

    /// Receive what is there; `None`: nothing now. The other side's end is an error.
    #[inline]
    pub(crate) fn recv(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else {
            return recv(&self.socket, parts);
        };
        loop {
            match tls.reader().read_vectored(parts) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => return Ok(Some(n)),
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
            if !take_in(tls, &self.socket)? {
                return Ok(None);
            }
        }
    }

    /// May there be more than the last `recv` gave, though it had room?
    #[inline]
    pub(crate) fn holds_back(&self) -> bool {
        self.tls.is_some()
    }

    /// Has all that was given to `send` gone to the kernel?
    #[inline]
    pub(crate) fn is_flushed(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// See to that.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => flush(tls, &self.socket).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Has the other side's kernel everything that was sent, as far as this one knows?
    pub(crate) fn is_delivered(&self) -> bool {
        let mut left: libc::c_int = 0;
        // SAFETY: SIOCOUTQ (TIOCOUTQ by its older name) writes one int.
        let asked = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::TIOCOUTQ, &mut left) };
        self.is_flushed() && (asked != 0 || left == 0)
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
