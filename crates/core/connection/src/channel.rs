//! A connected socket, as it is or encrypted. Nothing here waits.

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
    /// How often in a row it has sent the same, or asked for room, without an answer.
    pub repeated: u8,
    /// Nothing waits to be sent or acknowledged.
    pub idle: bool,
    /// Bytes that are acknowledged.
    pub acknowledged: u64,
    /// As the kernel has measured it; 0: it has not.
    pub round_trip: Duration,
}

/// The result of a system call: bytes, nothing now, or that the connection is lost.
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

/// The other side's end is an error.
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
    /// A connected, non-blocking socket.
    pub fn plain(socket: OwnedFd) -> Channel {
        Channel {
            socket: Socket::new(socket),
            session: None,
            sent: 0,
            received: 0,
        }
    }

    /// Bytes that `send` has taken, ever.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes that `recv` has given, ever. At last it is as many as the other side has sent.
    #[inline]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The keys of a bypass beside an encrypted connection; they are given out once.
    pub fn take_bypass(&mut self) -> Option<Bypass> {
        self.session.as_mut()?.take_bypass()
    }

    /// The addresses of this side and of the other.
    pub fn ends(&self) -> io::Result<(IpAddr, IpAddr)> {
        let ours = SocketAddr::try_from(rustix::net::getsockname(&self.socket)?)?;
        let theirs = rustix::net::getpeername(&self.socket)?;
        let theirs = theirs.ok_or(io::ErrorKind::NotConnected)?;
        let theirs = SocketAddr::try_from(theirs)?;
        Ok((ours.ip(), theirs.ip()))
    }

    /// From now on `epoll` reports these events, under this token, until the channel is dropped.
    pub fn watch(&mut self, epoll: &Arc<OwnedFd>, token: u64, flags: EventFlags) -> io::Result<()> {
        Ok(self.socket.watch(epoll, token, flags)?)
    }

    /// All that goes and comes from now on is encrypted.
    pub fn secure(&mut self, session: Session) {
        self.session = Some(Box::new(session));
    }

    /// Is what goes and comes encrypted?
    pub fn is_secure(&self) -> bool {
        self.session.is_some()
    }

    /// Send what can be sent now; how many bytes that was.
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

    /// Receive what is there; `None`: nothing now. The other side's end is an error.
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

    /// May there be more than the last `recv` gave, though it had room?
    #[inline]
    pub fn holds_back(&self) -> bool {
        let session = self.session.as_deref();
        session.is_some_and(Session::holds_back)
    }

    /// Has all that was given to `send` gone to the kernel?
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.session.as_deref().is_none_or(Session::is_flushed)
    }

    /// See to that.
    pub fn flush(&mut self) -> io::Result<()> {
        let socket = &self.socket;
        match &mut self.session {
            Some(session) => session.flush(|bytes| one(socket, bytes)).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Has the other side's kernel everything that was sent, as far as this one knows?
    pub fn is_delivered(&self) -> bool {
        let mut left: libc::c_int = 0;
        // SAFETY: SIOCOUTQ (TIOCOUTQ by its older name) writes one int.
        let asked = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::TIOCOUTQ, &mut left) };
        self.is_flushed() && (asked != 0 || left == 0)
    }

    /// Nothing more is sent or comes but what has come already: the end can be seen behind that, whatever became of the
    /// other side.
    pub fn end(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }

    /// How far the other side's kernel has come with what was sent; `None`: this kernel does not say.
    pub fn progress(&self) -> Option<Progress> {
        // Of `tcp_info`, as `linux/tcp.h` has it.
        const REPEATED: usize = 2;
        const PROBES: usize = 3;
        const IN_FLIGHT: usize = 24;
        const ROUND_TRIP: usize = 68;
        const ACKNOWLEDGED: usize = 120;
        const UNSENT: usize = 144;
        let mut info = [0_u8; UNSENT + 4];
        let mut size = info.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `size` bytes, which are there.
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

    /// Whether the other side's kernel has left an attempt of this one's without an answer.
    pub fn is_silent(&self) -> bool {
        self.progress()
            .is_some_and(|progress| progress.repeated > 0)
    }

    /// Nothing more will be sent.
    pub fn close_sending(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
