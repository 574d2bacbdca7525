//! Connections between programs that know one key and are no tasks: the daemons of a virtual machine.
//!
//! They are made exactly as those of tasks are: both ends prove that they know the key, a stranger hears nothing, and
//! all that follows is encrypted. Nothing here waits; who calls and who answers is all that the
//! ends tell each other of themselves.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use crate::channel::Channel;
use crate::dial::{ask_now_and_then, be_patient, dial};
use crate::handshake::{Handshake, Identity, Outcome};
use crate::listener::Listener;
use regatta_secure::Key;

/// In the place of ranks: whoever calls is the first of two, whoever answers the second. So a greeting can never be sent
/// back to where it came from.
const CALLER: u32 = 0;
const LISTENER: u32 = 1;

/// The key, ready to be used for either end.
#[derive(Debug)]
pub struct Keys {
    caller: Identity,
    listener: Identity,
}

impl Keys {
    /// A key that serves nothing else.
    pub fn new(key: &Key) -> Keys {
        Keys {
            caller: Identity::new(key, CALLER, (2, 2), true),
            listener: Identity::new(key, LISTENER, (2, 2), true),
        }
    }

    /// Connections made from now on change the keys of what this end sends after this many records, instead of the most
    /// that a key may seal. At least some hundred records have one key, whatever is asked for.
    pub fn change_after(&mut self, records: u64) {
        (self.caller.records, self.listener.records) = (records, records);
    }
}

/// The state of a greeting.
#[derive(Debug)]
pub enum Greeting<T> {
    /// Not to its end: wait until there is more to read, or, at first, until it can be written.
    Pending(T),
    /// Both know the key.
    Authenticated(Conversation),
    /// The other end knows the key and speaks another version.
    OtherVersion,
    /// There is no conversation: no connection, no answer in time, or not the key.
    Failed,
}

/// A call to a listener.
#[derive(Debug)]
pub struct Call(Handshake);

impl Call {
    /// Begins to connect.
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

    /// Goes on as far as possible.
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

/// A listening socket, and the bounded number of callers that it has accepted and that have proved nothing yet.
#[derive(Debug)]
pub struct CallListener {
    listener: Listener,
    guests: Vec<u64>,
}

impl CallListener {
    /// At a socket that listens.
    pub fn new(listener: OwnedFd) -> io::Result<CallListener> {
        let listener = Listener::new(listener)?;
        let guests = Vec::new();
        Ok(CallListener { listener, guests })
    }

    /// The descriptors to wait for until it can be read from.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let guests = self
            .guests
            .iter()
            .filter_map(|&guest| self.listener.guest(guest));
        // A caller that waits outside while nobody can be let in would wake us again and again.
        let open = (!self.listener.is_paused()).then(|| self.listener.fd());
        open.into_iter().chain(guests)
    }

    /// Whether there is somebody whose time runs out, so that [`CallListener::attend`] must be called soon whatever happens.
    pub fn is_busy(&mut self) -> bool {
        self.listener.tidy(Instant::now())
    }

    /// Lets in who waits outside and hears what the guests say. Returns those who have proved that they know the key.
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
        // A listener that comes late has heard those who spoke in time.
        listener.tidy(Instant::now());
        met
    }
}

/// An encrypted connection between two who know the key.
#[derive(Debug)]
pub struct Conversation(Channel);

impl Conversation {
    /// Sends what can be sent now; returns how many bytes that was.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(&[IoSlice::new(bytes)])
    }

    /// Receives what is there; `None`: nothing now. The other side's end is an error.
    pub fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        self.0.recv(&mut [IoSliceMut::new(into)])
    }

    /// Whether the kernel has taken all that was sent.
    pub fn is_flushed(&self) -> bool {
        self.0.is_flushed()
    }

    /// Sees to that, as far as is possible now.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    /// Has the kernel ask the other side's each second whether it is still there. However long there is no answer, the connection does not
    /// end of it: a host may stand still, and go on later.
    pub fn ask_now_and_then(&self) -> io::Result<()> {
        be_patient(self)?;
        ask_now_and_then(self, true)
    }

    /// Whether the other side's kernel has left unanswered what this one's has sent or asked last.
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
