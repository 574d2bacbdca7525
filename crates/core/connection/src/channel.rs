//! A connected socket, encrypted or not. Nothing here blocks.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use regatta_secure::{Bypass, Session};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags};

use crate::socket::Socket;

/// A connected socket, encrypted or not.
#[derive(Debug)]
pub struct Channel {
    socket: Socket,
    session: Option<Box<Session>>,
    sent: u64,
    received: u64,
}

/// The state of a connection's sending side, as the kernel knows it.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Number of consecutive retransmissions or probes without an answer.
    pub repeated: u8,
    /// Whether nothing waits to be sent or acknowledged.
    pub idle: bool,
    /// Number of acknowledged bytes.
    pub acknowledged: u64,
    /// Round-trip time as measured by the kernel; 0 if it has not measured one.
    pub round_trip: Duration,
}

/// Maps the result of a system call to the number of bytes, `None` (nothing now), or an error (the connection is lost).
#[inline]
fn outcome(result: rustix::io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[inline]
fn send(socket: &OwnedFd, parts: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    outcome(match parts {
        [one] => rustix::net::send(socket, one, flags),
        _ => rustix::net::sendmsg(socket, parts, &mut SendAncillaryBuffer::default(), flags),
    })
}

/// Receives available bytes. Fails if the peer has closed the connection.
#[inline]
fn recv(socket: &OwnedFd, parts: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
    let flags = RecvFlags::DONTWAIT;
    let count = outcome(match parts {
        [one] => rustix::net::recv(socket, &mut **one, flags).map(|(count, _)| count),
        _ => rustix::net::recvmsg(socket, parts, &mut RecvAncillaryBuffer::default(), flags)
            .map(|message| message.bytes),
    })?;
    match count {
        Some(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        some => Ok(some),
    }
}

#[inline]
fn one(socket: &OwnedFd, bytes: &[u8]) -> io::Result<Option<usize>> {
    send(socket, &[IoSlice::new(bytes)])
}

impl Channel {
    /// Wraps a connected, non-blocking socket without encryption.
    pub fn plain(socket: OwnedFd) -> Channel {
        Channel {
            socket: Socket::new(socket),
            session: None,
            sent: 0,
            received: 0,
        }
    }

    /// Returns how many bytes `send` has taken so far.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns how many bytes `recv` has returned so far. When everything has been received, this equals the peer's
    /// `sent`.
    #[inline]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the keys of a bypass beside an encrypted connection, once; afterwards `None`.
    pub fn take_bypass(&mut self) -> Option<Bypass> {
        self.session.as_mut()?.take_bypass()
    }

    /// Returns the addresses of this end and of the peer.
    pub fn ends(&self) -> io::Result<(IpAddr, IpAddr)> {
        let ours = SocketAddr::try_from(rustix::net::getsockname(&self.socket)?)?;
        let theirs = rustix::net::getpeername(&self.socket)?;
        let theirs = theirs.ok_or(io::ErrorKind::NotConnected)?;
        let theirs = SocketAddr::try_from(theirs)?;
        Ok((ours.ip(), theirs.ip()))
    }

    /// Registers the socket with `epoll` for these events under `token`, until the channel is dropped.
    pub fn watch(&mut self, epoll: &Arc<OwnedFd>, token: u64, flags: EventFlags) -> io::Result<()> {
        Ok(self.socket.watch(epoll, token, flags)?)
    }

    /// Encrypts everything that is sent and received from now on.
    pub fn secure(&mut self, session: Session) {
        self.session = Some(Box::new(session));
    }

    /// Returns whether the channel is encrypted.
    pub fn is_secure(&self) -> bool {
        self.session.is_some()
    }

    /// Sends as much as the kernel takes now. Returns how many bytes that was.
    #[inline]
    pub fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let socket = &self.socket;
        let n = match &mut self.session {
            Some(session) => session.send(parts, |bytes| one(socket, bytes))?,
            None => send(socket, parts)?.unwrap_or(0),
        };
        self.sent += n as u64;
        Ok(n)
    }

    /// Receives available bytes. Returns `None` if there are none now, and an error if the peer has closed the
    /// connection.
    #[inline]
    pub fn recv(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        let socket = &self.socket;
        let came = match &mut self.session {
            Some(session) => session.recv(parts, |room| recv(socket, &mut [IoSliceMut::new(room)])),
            None => recv(socket, parts),
        };
        if let Ok(Some(n)) = came {
            self.received += n as u64;
        }
        came
    }

    /// Returns whether received bytes may be left that the last `recv` did not return although it had room.
    #[inline]
    pub fn holds_back(&self) -> bool {
        let session = self.session.as_deref();
        session.is_some_and(Session::holds_back)
    }

    /// Returns whether the kernel has taken everything that was given to `send`.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.session.as_deref().is_none_or(Session::is_flushed)
    }

    /// Writes as much of the buffered data as the kernel takes now.
    pub fn flush(&mut self) -> io::Result<()> {
        let socket = &self.socket;
        match &mut self.session {
            Some(session) => session.flush(|bytes| one(socket, bytes)).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Returns whether the peer's kernel has acknowledged everything that was sent, as far as this kernel knows.
    pub fn is_delivered(&self) -> bool {
        let mut left: libc::c_int = 0;
        // SAFETY: SIOCOUTQ (an alias of TIOCOUTQ) writes one int, to `left`.
        let asked = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::TIOCOUTQ, &mut left) };
        self.is_flushed() && (asked != 0 || left == 0)
    }

    /// Shuts down both directions. What has been received already can still be read, followed by the end of the stream,
    /// whatever has become of the peer.
    pub fn end(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }

    /// Returns the state of the sending side, or `None` if this kernel does not report it.
    pub fn progress(&self) -> Option<Progress> {
        // Offsets in `tcp_info`, from `linux/tcp.h`.
        const REPEATED: usize = 2;
        const PROBES: usize = 3;
        const IN_FLIGHT: usize = 24;
        const ROUND_TRIP: usize = 68;
        const ACKNOWLEDGED: usize = 120;
        const UNSENT: usize = 144;
        let mut info = [0_u8; UNSENT + 4];
        let mut size = info.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `size` bytes, and `info` has that many.
        let asked = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut size,
            )
        };
        let whole = asked == 0 && size as usize == info.len();
        let packets = u32::from_ne_bytes(*info[IN_FLIGHT..].first_chunk()?);
        let unsent = u32::from_ne_bytes(*info[UNSENT..].first_chunk()?);
        let round_trip = u32::from_ne_bytes(*info[ROUND_TRIP..].first_chunk()?);
        let acknowledged = *info[ACKNOWLEDGED..].first_chunk()?;
        whole.then(|| Progress {
            repeated: info[REPEATED].max(info[PROBES]),
            idle: packets == 0 && unsent == 0,
            acknowledged: u64::from_ne_bytes(acknowledged),
            round_trip: Duration::from_micros(round_trip.into()),
        })
    }

    /// Returns whether the last data or probe has had to be retransmitted.
    pub fn is_silent(&self) -> bool {
        self.progress()
            .is_some_and(|progress| progress.repeated > 0)
    }

    /// Shuts down the sending direction.
    pub fn close_sending(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
