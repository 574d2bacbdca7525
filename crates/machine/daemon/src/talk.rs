//! Conversations in lines or messages, over the user's socket or between daemons, which may continue as plain bytes.
//!
//! Each has a thread of its own, so it may block, though never without a time limit. The length of a line or a message
//! is limited; a longer one is an error.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use regatta_connection::calls::{Call, Conversation, Greeting, Keys};
use regatta_launch::Refusal;
use regatta_wire::fields::Message;
use regatta_wire::framing;
use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ask;

/// Time limit for a host's kernel to accept a connection. It does so however busy its processes are, so beyond this
/// time the packets do not get through.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1800);
/// Time within which a daemon that refuses a caller closes the connection. If a daemon closes it later without a
/// greeting, it has not read the caller's greeting in time, because one of the two hosts is busy, so the call is
/// repeated.
const REFUSAL_TIME: Duration = Duration::from_secs(1);
/// Size of one read, in bytes.
const READ_BYTES: usize = 16 << 10;
/// Size of the length in front of a message, in bytes.
const HEAD: usize = 4;

/// A connection that carries bytes. Nothing here blocks.
#[derive(Debug)]
pub(crate) enum Wire {
    /// A connection to a command or a starter on this host.
    Local(UnixStream),
    /// A connection to another daemon.
    Far(Box<Conversation>),
}

impl Wire {
    /// Wraps a socket of this host, and makes it non-blocking.
    pub(crate) fn local(stream: UnixStream) -> io::Result<Wire> {
        stream.set_nonblocking(true)?;
        Ok(Wire::Local(stream))
    }

    /// Receives available bytes. Returns `None` if there are none now, and an error if the other end has closed the
    /// connection.
    pub(crate) fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Wire::Far(conversation) => conversation.recv(into),
            Wire::Local(stream) => match later(io::Read::read(stream, into))? {
                Some(0) => Err(ErrorKind::UnexpectedEof.into()),
                read => Ok(read),
            },
        }
    }

    /// Sends as much as possible now. Returns how many bytes that was.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Far(conversation) => conversation.send(bytes),
            Wire::Local(stream) => Ok(later(io::Write::write(stream, bytes))?.unwrap_or(0)),
        }
    }

    pub(crate) fn is_flushed(&self) -> bool {
        match self {
            Wire::Far(conversation) => conversation.is_flushed(),
            Wire::Local(_) => true,
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Wire::Far(conversation) => conversation.flush(),
            Wire::Local(_) => Ok(()),
        }
    }

    /// Enables TCP keepalive on a connection to another host, so that a broken connection is noticed.
    pub(crate) fn enable_keepalive(&self) {
        if let Wire::Far(conversation) = self {
            // If this fails, the last data that was sent is retransmitted nevertheless.
            let _ = conversation.enable_keepalive();
        }
    }

    /// Returns whether the other host's kernel has not acknowledged the last data or probe.
    pub(crate) fn is_unanswered(&self) -> bool {
        match self {
            Wire::Far(conversation) => conversation.is_unanswered(),
            Wire::Local(_) => false,
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Wire::Local(stream) => stream.as_fd(),
            Wire::Far(conversation) => conversation.as_fd(),
        }
    }
}

fn later(outcome: io::Result<usize>) -> io::Result<Option<usize>> {
    match outcome {
        Ok(count) => Ok(Some(count)),
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Waits until one of these descriptors is ready. Returns `false` after `until`.
pub(crate) fn wait(fds: &mut [PollFd<'_>], until: Option<Instant>) -> bool {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    !matches!(
        regatta_connection::ready::poll(fds, timeout.as_ref()),
        Ok(0)
    ) || left.is_none()
}

/// Waits until `own` is ready. Fails with `TimedOut` after `until`, or with `Interrupted` if `other` is readable
/// before.
fn wait_unless(
    own: PollFd<'_>,
    until: Option<Instant>,
    other: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let other = other.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let mut fds: Vec<PollFd> = std::iter::once(own).chain(other).collect();
    if !wait(&mut fds, until) {
        return Err(ErrorKind::TimedOut.into());
    }
    match fds.iter().skip(1).any(|fd| !fd.revents().is_empty()) {
        true => Err(ErrorKind::Interrupted.into()),
        false => Ok(()),
    }
}

/// A conversation with a process of this host, or with the daemon of another one.
#[derive(Debug)]
pub(crate) struct Talk {
    wire: Wire,
    arrived: Vec<u8>,
    until: Option<Instant>,
}

impl Talk {
    /// Creates a conversation. Sending or receiving fails after `limit` from now.
    pub(crate) fn new(wire: Wire, limit: Duration) -> Talk {
        Talk {
            wire,
            arrived: Vec::new(),
            until: Some(Instant::now() + limit),
        }
    }

    /// Calls a daemon, and returns when both ends have proved that they belong to the machine. A daemon whose host has
    /// accepted the connection has the whole `limit` to answer.
    pub(crate) fn call(address: SocketAddr, keys: &Keys, limit: Duration) -> io::Result<Talk> {
        Talk::call_unless(address, keys, limit, None)
    }

    /// Calls a daemon, but fails with `Interrupted` if `other` is readable before.
    pub(crate) fn call_unless(
        address: SocketAddr,
        keys: &Keys,
        limit: Duration,
        other: Option<BorrowedFd<'_>>,
    ) -> io::Result<Talk> {
        let until = Instant::now() + limit;
        let mut was_unreachable = false;
        loop {
            let begun = Instant::now();
            let called = Talk::try_call(address, keys, until, other);
            let again = match called.as_ref().map_err(io::Error::kind) {
                // Just after a network has recovered, the kernel may still be finding that a host was unreachable
                // before. The next attempt makes it try again.
                Err(ErrorKind::HostUnreachable) => !std::mem::replace(&mut was_unreachable, true),
                Err(ErrorKind::ConnectionRefused) => begun.elapsed() > REFUSAL_TIME,
                _ => false,
            };
            if !again || Instant::now() >= until {
                return called.map(|wire| Talk::new(wire, limit));
            }
        }
    }

    fn try_call(
        address: SocketAddr,
        keys: &Keys,
        until: Instant,
        other: Option<BorrowedFd<'_>>,
    ) -> io::Result<Wire> {
        let mut call = Call::to(address)?.limited_to(until);
        let connected = until.min(Instant::now() + CONNECT_TIMEOUT);
        loop {
            let flags = PollFlags::IN | PollFlags::OUT;
            // A connected socket is writable at once, so this waits for the connection only.
            wait_unless(PollFd::new(&call, flags), Some(connected), other)?;
            // The kernel reports that there is no route, or that no process listens.
            if let Ok(Err(errno)) = rustix::net::sockopt::socket_error(&call) {
                return Err(errno.into());
            }
            call = match call.advance(keys) {
                Greeting::Pending(call) => call,
                Greeting::Authenticated(conversation) => {
                    return Ok(Wire::Far(Box::new(conversation)));
                }
                Greeting::OtherVersion => return Err(ErrorKind::Unsupported.into()),
                Greeting::Failed if Instant::now() >= until => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Greeting::Failed => return Err(ErrorKind::ConnectionRefused.into()),
            };
            // A connected socket is always writable, so from here on only wait for reading.
            if rustix::net::getpeername(&call).is_ok() {
                wait_unless(PollFd::new(&call, PollFlags::IN), Some(until), other)?;
            }
        }
    }

    /// Removes the time limit, or sets a new one from now.
    pub(crate) fn limit(&mut self, limit: Option<Duration>) {
        self.until = limit.map(|limit| Instant::now() + limit);
    }

    /// Sends a line.
    pub(crate) fn send_line<T: Serialize>(&mut self, what: &T) -> io::Result<()> {
        self.send(&ask::encode(what))
    }

    /// Sends a message, to a process of a job or as one.
    pub(crate) fn send_message(&mut self, message: &impl Message) -> io::Result<()> {
        let mut bytes = Vec::new();
        framing::put(message, &mut bytes).map_err(|_| ErrorKind::InvalidInput)?;
        self.send(&bytes)
    }

    /// Sends all of these bytes.
    pub(crate) fn send(&mut self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() || !self.wire.is_flushed() {
            let count = self.wire.send(rest)?;
            rest = &rest[count..];
            if !rest.is_empty() || !self.wire.is_flushed() {
                let mut fds = [PollFd::new(&self.wire, PollFlags::OUT)];
                if !wait(&mut fds, self.until) {
                    return Err(ErrorKind::TimedOut.into());
                }
                self.wire.flush()?;
            }
        }
        Ok(())
    }

    /// Receives a line.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let line = self.line(ask::MAX_LINE_BYTES)?;
        ask::decode(&line).map_err(|refusal| io::Error::new(ErrorKind::InvalidData, refusal))
    }

    /// Receives a line. Fails with `Interrupted` if `other` is readable before; nothing is lost then.
    pub(crate) fn receive_unless<T: DeserializeOwned>(
        &mut self,
        other: BorrowedFd<'_>,
    ) -> io::Result<T> {
        let line = self.line_unless(ask::MAX_LINE_BYTES, Some(other))?;
        ask::decode(&line).map_err(|refusal| io::Error::new(ErrorKind::InvalidData, refusal))
    }

    /// Receives a line. Fails if it is longer than `longest`.
    pub(crate) fn line(&mut self, longest: usize) -> io::Result<Vec<u8>> {
        self.line_unless(longest, None)
    }

    fn line_unless(
        &mut self,
        longest: usize,
        other: Option<BorrowedFd<'_>>,
    ) -> io::Result<Vec<u8>> {
        let mut looked = 0;
        self.take(other, |arrived| {
            let mut rest = arrived[looked..].iter();
            if let Some(end) = rest.position(|&byte| byte == b'\n') {
                return Ok(Some(looked + end + 1));
            }
            looked = arrived.len();
            match looked > longest {
                true => Err(ErrorKind::InvalidData.into()),
                false => Ok(None),
            }
        })
    }

    /// Receives exactly `count` bytes.
    pub(crate) fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        self.take(
            None,
            |arrived| Ok((arrived.len() >= count).then_some(count)),
        )
    }

    /// Receives a message, from a process of a job or as one. Fails if it is longer than `longest`.
    pub(crate) fn receive_message<M: Message>(&mut self, longest: usize) -> io::Result<M> {
        // Length and message are taken together: after a timeout between them, both are still available for the next
        // call.
        let bytes = self.take(None, |arrived| {
            let Some(head) = arrived.first_chunk() else {
                return Ok(None);
            };
            let length = usize::try_from(u32::from_le_bytes(*head)).unwrap_or(usize::MAX);
            if length > longest {
                return Err(ErrorKind::InvalidData.into());
            }
            let whole = HEAD + length;
            Ok((arrived.len() >= whole).then_some(whole))
        })?;
        M::decode(&bytes[HEAD..]).map_err(|_| ErrorKind::InvalidData.into())
    }

    /// Waits for the first byte and returns it without taking it.
    pub(crate) fn first_byte(&mut self) -> io::Result<u8> {
        self.take(None, |arrived| Ok((!arrived.is_empty()).then_some(0)))?;
        Ok(self.arrived[0])
    }

    /// Takes the first bytes that are received, as many as `count` returns once there are enough. Fails with
    /// `Interrupted` if the other descriptor is readable before.
    fn take(
        &mut self,
        other: Option<BorrowedFd<'_>>,
        mut count: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Vec<u8>> {
        let mut piece = [0; READ_BYTES];
        loop {
            if let Some(count) = count(&self.arrived)? {
                let rest = self.arrived.split_off(count);
                return Ok(std::mem::replace(&mut self.arrived, rest));
            }
            match self.wire.recv(&mut piece)? {
                Some(count) => self.arrived.extend_from_slice(&piece[..count]),
                None => wait_unless(PollFd::new(&self.wire, PollFlags::IN), self.until, other)?,
            }
        }
    }

    /// Returns the underlying socket, if it is a socket of this host, so that another thread can write to it.
    pub(crate) fn socket(&self) -> io::Result<UnixStream> {
        match &self.wire {
            Wire::Local(stream) => stream.try_clone(),
            Wire::Far(_) => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// Returns the connection, and the bytes that were received after the last line.
    pub(crate) fn into_parts(self) -> (Wire, Vec<u8>) {
        (self.wire, self.arrived)
    }
}

impl AsFd for Talk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

/// Returns why a talk with this host failed, as a sentence.
pub(crate) fn explain(host: &str, error: &io::Error) -> Refusal {
    let why = match error.kind() {
        ErrorKind::TimedOut => "does not answer; it may be cut off".to_owned(),
        ErrorKind::Unsupported => "runs another version of Regatta".to_owned(),
        ErrorKind::HostUnreachable => {
            "cannot be reached; it may be down, or its network".to_owned()
        }
        ErrorKind::ConnectionRefused => "no longer has a daemon of this machine".to_owned(),
        ErrorKind::UnexpectedEof => "closed the connection; its daemon may have ended".to_owned(),
        ErrorKind::InvalidData => "sent an invalid message".to_owned(),
        _ => format!("cannot be contacted: {error}"),
    };
    Refusal::of_regatta(format!("the host {host} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn pair() -> (Talk, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let wire = Wire::local(ours).expect("a wire");
        (Talk::new(wire, Duration::from_millis(300)), theirs)
    }

    #[test]
    fn a_wait_for_a_word_can_be_interrupted_and_loses_nothing() {
        let (mut talk, mut theirs) = pair();
        let (signal, mut sender) = UnixStream::pair().expect("sockets");
        theirs.write_all(b"\"one\"\n\"tw").expect("a word");
        let one: String = talk.receive_unless(signal.as_fd()).expect("a word");
        sender.write_all(b"!").expect("a signal");
        let away = talk.receive_unless::<String>(signal.as_fd());
        let kind = away.expect_err("called away").kind();
        assert_eq!((one.as_str(), kind), ("one", ErrorKind::Interrupted));
        theirs.write_all(b"o\"\n").expect("a word");
        assert_eq!(talk.receive::<String>().expect("a word"), "two");
    }

    /// The sentences are joined, and others may follow.
    #[test]
    fn sentences_about_hosts_are_without_an_end() {
        for kind in [
            ErrorKind::TimedOut,
            ErrorKind::Unsupported,
            ErrorKind::HostUnreachable,
            ErrorKind::ConnectionRefused,
            ErrorKind::UnexpectedEof,
            ErrorKind::InvalidData,
            ErrorKind::Other,
        ] {
            let sentence = explain("alpha", &kind.into()).sentence;
            assert!(!sentence.ends_with(['.', '?', '!', ';', ':']), "{sentence}");
        }
    }

    /// The kernel of a busy host accepts a connection long before the daemon handles it.
    #[test]
    fn a_daemon_may_be_slow_to_greet() {
        const KEY: [u8; 32] = [7; 32];
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let daemon = std::thread::spawn(move || {
            // Longer than a greeting between tasks may take.
            let busy = Instant::now() + Duration::from_millis(2200);
            while wait(&mut [], Some(busy)) {}
            let keys = Keys::new(&KEY);
            let mut listener =
                regatta_connection::calls::CallListener::new(listener.into()).expect("a listener");
            let until = Instant::now() + Duration::from_secs(10);
            loop {
                if let Some(caller) = listener.attend(&keys).pop() {
                    return caller;
                }
                let fds = listener
                    .fds()
                    .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
                assert!(
                    wait(&mut fds.collect::<Vec<_>>(), Some(until)),
                    "nobody calls"
                );
            }
        });
        let called = Talk::call(address, &Keys::new(&KEY), Duration::from_secs(20));
        called.expect("an answer");
        daemon.join().expect("the daemon");
    }

    #[test]
    fn lines_come_whole_and_what_follows_is_kept() {
        let (mut talk, mut other) = pair();
        other.write_all(b"\"one\"\n\"tw").expect("room");
        assert_eq!(talk.receive::<String>().expect("a line"), "one");
        other.write_all(b"o\"\nrest").expect("room");
        assert_eq!(talk.receive::<String>().expect("a line"), "two");
        drop(other);
        let error = talk.receive::<String>().expect_err("no line");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(talk.into_parts().1, b"rest");
    }

    #[test]
    fn messages_come_whole_and_those_that_are_too_long_are_refused() {
        use regatta_wire::session::FromJob;
        let (mut talk, mut other) = pair();
        let watch = FromJob::Watch {};
        let mut bytes = Vec::new();
        framing::put(&watch, &mut bytes).expect("a message");
        other.write_all(&bytes[..3]).expect("room");
        assert_eq!(talk.first_byte().expect("a byte"), bytes[0]);
        other.write_all(&bytes[3..]).expect("room");
        other.write_all(&2_u32.to_le_bytes()).expect("room");
        assert_eq!(talk.receive_message::<FromJob>(1).expect("whole"), watch);
        let error = talk.receive_message::<FromJob>(1).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_message_that_comes_in_pieces_is_not_lost_when_the_time_is_over_between_them() {
        use regatta_wire::session::FromJob;
        let (mut talk, mut other) = pair();
        let said = FromJob::Unreachable {
            job: "alpha:1".to_owned(),
            pairs: Vec::new(),
        };
        let mut bytes = Vec::new();
        framing::put(&said, &mut bytes).expect("a message");
        let (head, rest) = bytes.split_at(HEAD + 3);
        other.write_all(head).expect("room");
        let late = talk.receive_message::<FromJob>(100);
        assert_eq!(late.expect_err("half").kind(), ErrorKind::TimedOut);
        other.write_all(rest).expect("room");
        assert_eq!(talk.receive_message::<FromJob>(100).expect("whole"), said);
    }

    #[test]
    fn who_says_nothing_or_too_much_is_not_waited_for() {
        let (mut talk, mut other) = pair();
        let error = talk.line(10).expect_err("no line");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        other.write_all(&[b'x'; 40]).expect("room");
        let error = talk.line(10).expect_err("no line");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}
