//! A connection to this host's daemon that never blocks. `regatta_wire::session` defines its messages.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use regatta_program::Refusal;
use regatta_wire::fields::Message;
use regatta_wire::framing::{self, FrameReader};
use regatta_wire::session::{FromDaemon, FromJob, PREAMBLE, PROTOCOL};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::hosts::rsh;
use crate::resident::place::{DEFAULT, MachinePlace};

/// Environment variable of a daemon's shell with the number of its session.
pub const SESSION: &str = "REGATTA_SESSION";
/// Size of one read, in bytes.
const READ_BYTES: usize = 64 << 10;

/// The reason why a daemon cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// This host has no daemon of the machine.
    NoDaemon(Refusal),
    /// The daemon accepts no connection now.
    NotNow(Refusal),
}

impl NoSession {
    pub(crate) fn refusal(&self) -> &Refusal {
        match self {
            NoSession::NoDaemon(refusal) | NoSession::NotNow(refusal) => refusal,
        }
    }
}

/// A connection to this host's daemon.
#[derive(Debug)]
pub(crate) struct Session {
    stream: UnixStream,
    buffer: Vec<u8>,
    arrived: FrameReader,
    unsent: Vec<u8>,
    /// Whether the daemon's first message has been received.
    greeted: bool,
    /// A descriptor received with a message.
    handed: Option<OwnedFd>,
    /// Whether the daemon has ended the connection.
    ended: bool,
}

impl Session {
    /// Connects to the daemon of a machine, and sends a request.
    pub(crate) fn open(machine: &str, request: &FromJob) -> Result<Session, NoSession> {
        let place = MachinePlace::of(machine).map_err(NoSession::NotNow)?;
        Session::open_at(&place, request)
    }

    /// Like [`Session::open`], with the daemon at this place.
    pub(crate) fn open_at(place: &MachinePlace, request: &FromJob) -> Result<Session, NoSession> {
        let connected = place.connect_now().map_err(NoSession::NotNow)?;
        let stream = connected.ok_or_else(|| NoSession::NoDaemon(no_daemon(place.machine())))?;
        let mut session = Session::over(stream);
        session.send(&FromJob::Hello {
            protocol: PROTOCOL,
            identity: rsh::identity(),
        });
        session.send(request);
        Ok(session)
    }

    /// Creates a session over a non-blocking connection.
    fn over(stream: UnixStream) -> Session {
        Session {
            stream,
            buffer: vec![0; READ_BYTES],
            arrived: FrameReader::default(),
            unsent: PREAMBLE.to_vec(),
            greeted: false,
            handed: None,
            ended: false,
        }
    }

    /// Sends a message, now or when there is room. A message that is too long is dropped.
    pub(crate) fn send<M: Message>(&mut self, message: &M) {
        let _ = framing::put(message, &mut self.unsent);
        self.flush();
    }

    /// Sends the bytes that `put` appends to the unsent ones.
    pub(crate) fn send_raw(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        put(&mut self.unsent);
        self.flush();
    }

    /// Sends as many bytes as there is room for. Returns false if the daemon takes none any more.
    pub(crate) fn flush(&mut self) -> bool {
        let mut sent = 0;
        let open = loop {
            if sent == self.unsent.len() {
                break true;
            }
            match std::io::Write::write(&mut self.stream, &self.unsent[sent..]) {
                Ok(count) => sent += count,
                Err(error) => match error.kind() {
                    std::io::ErrorKind::Interrupted => {}
                    std::io::ErrorKind::WouldBlock => break true,
                    _ => break false,
                },
            }
        };
        self.unsent.drain(..sent);
        if !open {
            self.unsent.clear();
        }
        open
    }

    /// Returns the number of unsent bytes.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Reads some of the available bytes, perhaps with a descriptor. Returns the number of bytes.
    pub(crate) fn read(&mut self) -> usize {
        if self.ended {
            return 0;
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut self.buffer)];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let got = rustix::net::recvmsg(&self.stream, &mut slices, &mut with, flags);
        for message in with.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.handed = fds.last().or(self.handed.take());
            }
        }
        match got.map(|got| got.bytes) {
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Ok(0) | Err(_) => {
                self.ended = true;
                0
            }
            Ok(count) => {
                self.arrived.push(&self.buffer[..count]);
                count
            }
        }
    }

    /// Takes the last descriptor received.
    pub(crate) fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.handed.take()
    }

    /// Returns the next complete answer. Fails if the daemon has another version, sends something malformed, or
    /// refuses.
    pub(crate) fn next(&mut self) -> Result<Option<FromDaemon>, Refusal> {
        loop {
            let next = self.arrived.next_message();
            let next = next.map_err(|_| not_understood())?;
            return match next {
                None => Ok(None),
                Some(FromDaemon::Refused { sentence }) => Err(Refusal::of_regatta(sentence)),
                Some(FromDaemon::Hello { protocol, identity }) if !self.greeted => {
                    self.greeted = true;
                    match (protocol, identity == rsh::identity()) {
                        (PROTOCOL, true) => continue,
                        _ => Err(other_version(protocol, &identity)),
                    }
                }
                Some(_) if !self.greeted => Err(not_understood()),
                message => Ok(message),
            };
        }
    }

    /// Returns the next message of another type.
    pub(crate) fn next_other<M: Message>(&mut self, longest: usize) -> Result<Option<M>, Refusal> {
        let next = self.arrived.next_message_within(longest);
        next.map_err(|_| not_understood())
    }

    /// Returns whether the daemon has ended the connection, and everything that it sent has been read.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Returns the descriptor to poll.
    pub(crate) fn poll(&self) -> PollFd<'_> {
        let mut flags = PollFlags::empty();
        if !self.ended {
            flags |= PollFlags::IN;
        }
        if !self.unsent.is_empty() {
            flags |= PollFlags::OUT;
        }
        PollFd::from_borrowed_fd(self.stream.as_fd(), flags)
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn not_understood() -> Refusal {
    Refusal::of_regatta("the daemon sent an invalid message")
}

fn other_version(protocol: u32, identity: &str) -> Refusal {
    Refusal::of_regatta(format!(
        "the daemon of this host is regatta {identity} (session {protocol}), but this program is regatta {} (session {PROTOCOL}): use the same release on all hosts (`regatta down` works with any release)",
        rsh::identity()
    ))
}

/// Sends a message with a descriptor. Returns false if it was not sent completely.
pub fn hand(to: &UnixStream, message: &FromDaemon, descriptor: BorrowedFd) -> bool {
    let mut bytes = Vec::new();
    if framing::put(message, &mut bytes).is_err() {
        return false;
    }
    let handed = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let fits = with.push(SendAncillaryMessage::ScmRights(&handed));
    let slices = [IoSlice::new(&bytes)];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    fits && rustix::net::sendmsg(to, &slices, &mut with, flags) == Ok(bytes.len())
}

/// Returns the refusal that this host has no daemon of this machine.
pub fn no_daemon(machine: &str) -> Refusal {
    Refusal::of_regatta(format!(
        "no virtual machine named {machine} runs on this host: `regatta up` starts one{}",
        if machine == DEFAULT {
            ""
        } else {
            "; without --vm and REGATTA_VM, the default machine is used"
        }
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a session, and the daemon's end of it. Nothing has been sent yet.
    pub(crate) fn pair() -> (Session, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        ours.set_nonblocking(true).expect("a socket");
        let mut session = Session::over(ours);
        session.unsent.clear();
        (session, theirs)
    }

    /// Sends a message as the daemon.
    pub(crate) fn say(daemon: &mut UnixStream, message: &impl Message) {
        let mut bytes = Vec::new();
        framing::put(message, &mut bytes).expect("a short message");
        std::io::Write::write_all(daemon, &bytes).expect("room");
    }

    pub(crate) fn hello() -> FromDaemon {
        FromDaemon::Hello {
            protocol: PROTOCOL,
            identity: rsh::identity(),
        }
    }

    #[test]
    fn a_daemon_of_another_version_is_named_with_this_one() {
        let (mut session, mut daemon) = pair();
        let identity = "9.9.9".to_owned();
        say(
            &mut daemon,
            &FromDaemon::Hello {
                protocol: PROTOCOL,
                identity,
            },
        );
        session.read();
        let said = session.next().expect_err("another version").sentence;
        assert!(
            said.contains("9.9.9") && said.contains(&rsh::identity()),
            "{said}"
        );
    }

    #[test]
    fn nothing_counts_before_the_greeting_and_what_is_refused_is_told() {
        let (mut session, mut daemon) = pair();
        say(
            &mut daemon,
            &FromDaemon::Led {
                run: "r1".to_owned(),
            },
        );
        session.read();
        assert!(session.next().is_err());
        say(&mut daemon, &hello());
        let sentence = "no such host".to_owned();
        say(&mut daemon, &FromDaemon::Refused { sentence });
        session.read();
        assert_eq!(
            session.next().expect_err("refused").sentence,
            "no such host"
        );
        drop(daemon);
        session.read();
        assert!(session.is_ended());
    }

    #[test]
    fn a_descriptor_comes_with_the_message_it_belongs_to() {
        let (mut session, mut daemon) = pair();
        say(&mut daemon, &hello());
        session.read();
        assert_eq!(session.next().expect("a greeting"), None);
        assert!(session.take_descriptor().is_none());
        let (ours, _) = UnixStream::pair().expect("sockets");
        assert!(crate::channel::session::hand(
            &daemon,
            &FromDaemon::Led {
                run: "r1".to_owned()
            },
            ours.as_fd()
        ));
        session.read();
        let led = session.next().expect("a message");
        assert_eq!(
            led,
            Some(FromDaemon::Led {
                run: "r1".to_owned()
            })
        );
        assert!(session.take_descriptor().is_some());
    }
}
