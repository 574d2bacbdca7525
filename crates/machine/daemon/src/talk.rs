//! Conversations in lines or messages, over the user's socket or between daemons; and after them, bytes.
//!
//! Each has a thread of its own, so it may wait, though never without a limit. Nobody is read without end: a line or a message that
//! is too long is an error.

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

/// Time limit for a host's kernel to accept a connection. It does so however busy its processes are, so beyond that nothing gets
/// through.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1800);
/// Time within which a daemon that refuses a caller hangs up. One that hangs up later without a greeting has not heard the caller in
/// time, because one of the two hosts is busy, so the call is made again.
const REFUSAL_TIME: Duration = Duration::from_secs(1);
/// Size of one read, in bytes.
const READ_BYTES: usize = 16 << 10;
/// Bytes of a message's length, before the message.
const HEAD: usize = 4;

/// Something connected that bytes go over; nothing here waits.
#[derive(Debug)]
pub(crate) enum Wire {
    /// To a command or a starter of this host.
    Local(UnixStream),
    /// To another daemon.
    Far(Box<Conversation>),
}

impl Wire {
    /// A socket of this host, from now on without waiting.
    pub(crate) fn local(stream: UnixStream) -> io::Result<Wire> {
        stream.set_nonblocking(true)?;
        Ok(Wire::Local(stream))
    }

    /// The bytes that are there; `None`: nothing now. The end is an error.
    pub(crate) fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Wire::Far(conversation) => conversation.recv(into),
            Wire::Local(stream) => match later(io::Read::read(stream, into))? {
                Some(0) => Err(ErrorKind::UnexpectedEof.into()),
                read => Ok(read),
            },
        }
    }

    /// Sends what can be sent now.
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

    /// Has the kernel ask another host's now and then whether this connection is there, so that it can be seen that it is not.
    pub(crate) fn ask_now_and_then(&self) {
        if let Wire::Far(conversation) = self {
            // Where this cannot be, what was sent last is still asked for.
            let _ = conversation.ask_now_and_then();
        }
    }

    /// Whether another host's kernel has left unanswered what this one's has sent or asked last.
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

/// Waits for one of these; false: the time is over.
pub(crate) fn wait(fds: &mut [PollFd<'_>], until: Option<Instant>) -> bool {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    !matches!(
        regatta_connection::ready::poll(fds, timeout.as_ref()),
        Ok(0)
    ) || left.is_none()
}

/// Waits for this one. An error: the time is over, or the other one could be read before (`Interrupted`).
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
    /// Lines must have gone or come after this time, counted from now.
    pub(crate) fn new(wire: Wire, limit: Duration) -> Talk {
        Talk {
            wire,
            arrived: Vec::new(),
            until: Some(Instant::now() + limit),
        }
    }

    /// Calls a daemon, and returns when both have proved that they belong to the machine. A daemon whose host takes the
    /// connection has the whole limit to answer.
    pub(crate) fn call(address: SocketAddr, keys: &Keys, limit: Duration) -> io::Result<Talk> {
        Talk::call_unless(address, keys, limit, None)
    }

    /// Calls a daemon, unless this can be read before: then the error is `Interrupted`.
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
                // Just after a network has come back the kernel may still be finding out that a host was away before. The next
                // attempt makes it ask anew.
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
            // A connected socket can be written at once, so this waits for the connection only.
            wait_unless(PollFd::new(&call, flags), Some(connected), other)?;
            // No route, or nobody listens: the kernel knows.
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
            // Once connected it can always be written: from here on only what is read counts.
            if rustix::net::getpeername(&call).is_ok() {
                wait_unless(PollFd::new(&call, PollFlags::IN), Some(until), other)?;
            }
        }
    }

    /// No limit from now on, or a new one.
    pub(crate) fn limit(&mut self, limit: Option<Duration>) {
        self.until = limit.map(|limit| Instant::now() + limit);
    }

    /// Says something.
    pub(crate) fn send_line<T: Serialize>(&mut self, what: &T) -> io::Result<()> {
        self.send(&ask::encode(what))
    }

    /// Says something to a process of a job, or as one.
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

    /// Hears something.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let line = self.line(ask::MAX_LINE_BYTES)?;
        ask::decode(&line).map_err(|refusal| io::Error::new(ErrorKind::InvalidData, refusal))
    }

    /// Hears something, unless this can be read before it has come: then the error is `Interrupted`, and nothing is lost.
    pub(crate) fn receive_unless<T: DeserializeOwned>(
        &mut self,
        other: BorrowedFd<'_>,
    ) -> io::Result<T> {
        let line = self.line_unless(ask::MAX_LINE_BYTES, Some(other))?;
        ask::decode(&line).map_err(|refusal| io::Error::new(ErrorKind::InvalidData, refusal))
    }

    /// The next line, if it is not longer than that.
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

    /// The next bytes, so many.
    pub(crate) fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        self.take(
            None,
            |arrived| Ok((arrived.len() >= count).then_some(count)),
        )
    }

    /// Hears a process of a job, or a daemon as one, if the message is not longer than that.
    pub(crate) fn receive_message<M: Message>(&mut self, longest: usize) -> io::Result<M> {
        // Head and body are taken together: when the time is over between them, both are there for the next call.
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

    /// The first byte that comes, which stays.
    pub(crate) fn first_byte(&mut self) -> io::Result<u8> {
        self.take(None, |arrived| Ok((!arrived.is_empty()).then_some(0)))?;
        Ok(self.arrived[0])
    }

    /// The first bytes of what comes, as many as `count` says when enough is there. With the other descriptor readable before that, the error
    /// is `Interrupted`.
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

    /// The socket below, if it is one of this host, for another thread to write to.
    pub(crate) fn socket(&self) -> io::Result<UnixStream> {
        match &self.wire {
            Wire::Local(stream) => stream.try_clone(),
            Wire::Far(_) => Err(ErrorKind::Unsupported.into()),
        }
    }

    /// The lines are over: what is below, and what has come of the bytes that follow.
    pub(crate) fn into_parts(self) -> (Wire, Vec<u8>) {
        (self.wire, self.arrived)
    }
}

impl AsFd for Talk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

/// Why a talk with this host failed, for a sentence.
pub(crate) fn explain(host: &str, error: &io::Error) -> Refusal {
    let why = match error.kind() {
        ErrorKind::TimedOut => "does not answer (is it cut off?)".to_owned(),
        ErrorKind::Unsupported => "runs another version of Regatta".to_owned(),
        ErrorKind::HostUnreachable => "cannot be reached (is it up, and its network?)".to_owned(),
        ErrorKind::ConnectionRefused => "has no daemon of this machine any more".to_owned(),
        ErrorKind::UnexpectedEof => "has hung up (has its daemon ended?)".to_owned(),
        ErrorKind::InvalidData => "says what is not understood".to_owned(),
        _ => format!("cannot be spoken to: {error}"),
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

    /// They are joined, and other sentences follow.
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

    /// The kernel of a busy host takes a connection long before the daemon comes to look at it.
    #[test]
    fn a_daemon_may_be_slow_to_greet() {
        const KEY: [u8; 32] = [7; 32];
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let daemon = std::thread::spawn(move || {
            // Longer than any greeting between tasks may take.
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
