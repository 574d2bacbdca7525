//! Connections between programs that share a key and are not tasks: the daemons of a virtual machine.
//!
//! They are made like the connections of tasks: both ends prove that they know the key, a stranger receives nothing,
//! and everything after the greeting is encrypted. Nothing here blocks. The only thing each end tells about itself is
//! whether it is the caller or the listener.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use crate::channel::Channel;
use crate::dial::{dial, never_time_out, set_keepalive};
use crate::handshake::{Handshake, Identity, Outcome};
use crate::listener::Listener;
use regatta_secure::Key;

/// Used in place of ranks: the caller is the first of two, the listener the second. So an attacker cannot reflect a
/// greeting back to its sender.
const CALLER: u32 = 0;
const LISTENER: u32 = 1;

/// The identities of both ends, derived from the key.
#[derive(Debug)]
pub struct Keys {
    caller: Identity,
    listener: Identity,
}

impl Keys {
    /// Derives both identities from `key`, which must not be used for anything else.
    pub fn new(key: &Key) -> Keys {
        Keys {
            caller: Identity::new(key, CALLER, (2, 2), true),
            listener: Identity::new(key, LISTENER, (2, 2), true),
        }
    }

    /// Sets after how many sent records new connections change the key, instead of the maximum that a key may seal. A
    /// minimum of a few hundred records applies.
    pub fn change_after(&mut self, records: u64) {
        (self.caller.records, self.listener.records) = (records, records);
    }
}

/// The state of a greeting.
#[derive(Debug)]
pub enum Greeting<T> {
    /// Not complete: wait until the socket is readable or, while it is connecting, writable.
    Pending(T),
    /// Both ends know the key.
    Authenticated(Conversation),
    /// The other end knows the key and speaks another version.
    OtherVersion,
    /// The greeting failed: no connection, no answer in time, or a wrong key.
    Failed,
}

/// A call to a listener.
#[derive(Debug)]
pub struct Call(Handshake);

impl Call {
    /// Begins to connect to `address`.
    pub fn to(address: SocketAddr) -> io::Result<Call> {
        Ok(Call(Handshake::caller(dial(address)?, LISTENER)))
    }

    /// Returns the time limit of its greeting.
    pub fn until(&self) -> Instant {
        self.0.until
    }

    /// Sets the time limit of its greeting.
    pub fn limited_to(mut self, until: Instant) -> Call {
        self.0.until = until;
        self
    }

    /// Continues the greeting as far as possible without blocking.
    pub fn advance(mut self, keys: &Keys) -> Greeting<Call> {
        match self.0.advance(&keys.caller) {
            None => Greeting::Pending(self),
            Some(Outcome::Authenticated(_)) => {
                Greeting::Authenticated(Conversation(self.0.into_channel()))
            }
            Some(Outcome::OtherVersion(_)) => Greeting::OtherVersion,
            Some(Outcome::Failed) => Greeting::Failed,
        }
    }
}

impl AsFd for Call {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }
}

/// A listening socket, and the callers that it has accepted and that have not proved yet that they know the key. Their
/// number is bounded.
#[derive(Debug)]
pub struct CallListener {
    listener: Listener,
    guests: Vec<u64>,
}

impl CallListener {
    /// Takes a socket that is already listening.
    pub fn new(listener: OwnedFd) -> io::Result<CallListener> {
        let listener = Listener::new(listener)?;
        let guests = Vec::new();
        Ok(CallListener { listener, guests })
    }

    /// Returns the descriptors to poll for reading.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let guests = self
            .guests
            .iter()
            .filter_map(|&guest| self.listener.guest(guest));
        // While no caller can be accepted, a waiting caller would wake the poll again and again.
        let open = (!self.listener.is_paused()).then(|| self.listener.fd());
        open.into_iter().chain(guests)
    }

    /// Drops overdue guests. Returns whether guests are left or accepting is paused; then [`CallListener::attend`] must
    /// be called soon, even if no descriptor is ready.
    pub fn drop_overdue(&mut self) -> bool {
        self.listener.tidy(Instant::now())
    }

    /// Accepts waiting callers and continues the greetings of all guests. Returns the connections of those that have
    /// proved that they know the key.
    pub fn attend(&mut self, keys: &Keys) -> Vec<Conversation> {
        self.guests.extend(self.listener.accept());
        let mut met = Vec::new();
        let listener = &mut self.listener;
        self.guests.retain(|&guest| {
            if listener.guest(guest).is_none() {
                return false;
            }
            let Some(end) = listener.advance(guest, &keys.listener) else {
                return true;
            };
            if let Outcome::Authenticated(_) = end
                && let Some(channel) = listener.admit(guest)
            {
                met.push(Conversation(channel));
            }
            listener.dismiss(guest);
            false
        });
        // Drop overdue guests only after reading: if `attend` is called late, a guest that sent its proof in time must
        // still be accepted.
        listener.tidy(Instant::now());
        met
    }
}

/// An encrypted connection between two ends that know the key.
#[derive(Debug)]
pub struct Conversation(Channel);

impl Conversation {
    /// Sends as much as the kernel takes now. Returns how many bytes that was.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(&[IoSlice::new(bytes)])
    }

    /// Receives available bytes. Returns `None` if there are none now, and an error if the peer has closed the
    /// connection.
    pub fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        self.0.recv(&mut [IoSliceMut::new(into)])
    }

    /// Returns whether the kernel has taken everything that was given to `send`.
    pub fn is_flushed(&self) -> bool {
        self.0.is_flushed()
    }

    /// Writes as much of the buffered data as the kernel takes now.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    /// Enables TCP keepalive, one probe per second, without a limit: a host that is suspended for a long time does not
    /// lose the connection.
    pub fn enable_keepalive(&self) -> io::Result<()> {
        never_time_out(self)?;
        set_keepalive(self, true)
    }

    /// Returns whether the last data or keepalive probe has had to be retransmitted.
    pub fn is_unanswered(&self) -> bool {
        let progress = self.0.progress();
        progress.is_some_and(|progress| progress.repeated > 0)
    }
}

impl AsFd for Conversation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
