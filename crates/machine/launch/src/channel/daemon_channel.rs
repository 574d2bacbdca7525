//! A channel carried by the daemons of a virtual machine: its bytes are messages on a connection to the daemon of this
//! host.

use std::os::fd::{AsFd, BorrowedFd};

use regatta_program::Refusal;
use regatta_wire::session::{
    ChannelEnd as Closed, ChannelMessage, FromDaemon, FromJob, MAX_MESSAGE_BYTES, MAX_PIECE_BYTES,
    Stream, put_piece,
};

use super::end::ChannelEnd;
use crate::channel::session::{NoSession, Session};

/// Size of the tail of the other side's standard error that is kept until it is taken, in bytes.
const STDERR_TAIL_BYTES: usize = 64 << 10;

/// A channel through the daemons of the virtual machine.
#[derive(Debug)]
pub(crate) struct DaemonChannel {
    /// `None` if it was given up, or could not be made.
    session: Option<Session>,
    /// Set once the channel is open. For a claimed channel it has the runs that its agent names.
    opened: Option<Vec<String>>,
    /// Bytes received and not read yet.
    ready: Vec<u8>,
    errors: Vec<u8>,
    end: Option<ChannelEnd>,
    /// Whether this side has stopped sending.
    closed: bool,
}

impl DaemonChannel {
    /// Requests a channel from the daemon of this host. If that is impossible, the returned channel has ended with the
    /// reason.
    pub(crate) fn open(machine: &str, request: &FromJob) -> Self {
        Self::over(Session::open(machine, request))
    }

    fn over(session: Result<Session, NoSession>) -> Self {
        let end = session.as_ref().err().map(|none| {
            let sentence = none.refusal().sentence.clone();
            ChannelEnd::Daemons(sentence)
        });
        Self {
            closed: end.is_some(),
            session: session.ok(),
            opened: None,
            ready: Vec::new(),
            errors: Vec::new(),
            end,
        }
    }

    /// Reads received bytes. Returns their number, or `None` if the channel has ended.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Option<usize> {
        if self.ready.is_empty() {
            self.receive();
        }
        let count = self.ready.len().min(into.len());
        into[..count].copy_from_slice(&self.ready[..count]);
        self.ready.drain(..count);
        (count > 0 || self.end.is_none()).then_some(count)
    }

    fn receive(&mut self) {
        let Some(session) = self.session.as_mut().filter(|_| self.end.is_none()) else {
            return;
        };
        session.read();
        loop {
            match self.next() {
                Ok(true) => {}
                Ok(false) => break,
                Err(refusal) => {
                    self.end = Some(ChannelEnd::Daemons(refusal.sentence));
                }
            }
        }
        let hung_up = self.session.as_ref().is_some_and(Session::is_ended);
        if hung_up {
            // A living daemon gives the reason when it ends a channel. The membership feed determines whether it has
            // ended.
            self.end.get_or_insert(ChannelEnd::OwnDaemon);
        }
    }

    /// Handles the next message. Returns false if none has been received.
    fn next(&mut self) -> Result<bool, Refusal> {
        let Some(session) = self.session.as_mut().filter(|_| self.end.is_none()) else {
            return Ok(false);
        };
        let strange = || Refusal::of_regatta("the daemon sent an unexpected message");
        if self.opened.is_none() {
            return match session.next()? {
                None => Ok(false),
                Some(FromDaemon::Opened { successors }) => {
                    self.opened = Some(successors);
                    Ok(true)
                }
                Some(FromDaemon::NotOpened { end }) => {
                    self.end = Some(end.into());
                    Ok(false)
                }
                Some(_) => Err(strange()),
            };
        }
        match session.next_other(MAX_MESSAGE_BYTES)? {
            None => return Ok(false),
            Some(ChannelMessage::Data { mut bytes }) => self.ready.append(&mut bytes),
            Some(ChannelMessage::Errors { mut bytes }) => {
                self.errors.append(&mut bytes);
                let excess = self.errors.len().saturating_sub(STDERR_TAIL_BYTES);
                self.errors.drain(..excess);
            }
            Some(ChannelMessage::Closed { end }) => self.end = Some(end.into()),
            Some(_) => return Err(strange()),
        }
        Ok(true)
    }

    /// Writes bytes. Returns how many were taken, or `None` if none will be any more.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Option<usize> {
        let session = self.session.as_mut().filter(|_| !self.closed)?;
        if session.unsent() >= MAX_PIECE_BYTES {
            if !session.flush() {
                return None;
            }
            if session.unsent() >= MAX_PIECE_BYTES {
                return Some(0);
            }
        }
        let mut taken = 0;
        session.send_raw(|to| taken = put_piece(Stream::Data, bytes, to));
        Some(taken)
    }

    pub(super) fn flush(&mut self) {
        // The next read reports it if the session has ended.
        self.session.iter_mut().for_each(|session| {
            session.flush();
        });
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.session
            .as_ref()
            .is_none_or(|session| session.unsent() == 0)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.closed
    }

    /// Sends a message to the daemon that holds a claimed channel.
    pub(crate) fn send(&mut self, word: &ChannelMessage) {
        if let Some(session) = self.session.as_mut().filter(|_| !self.closed) {
            session.send(word);
        }
    }

    /// Stops sending. The other side is notified, and ends.
    pub(super) fn close(&mut self) {
        self.send(&ChannelMessage::EndOfInput {});
        self.closed = true;
    }

    /// Gives the channel up at once.
    pub(super) fn cut(&mut self) {
        self.closed = true;
        self.session = None;
        let given_up = || ChannelEnd::Daemons("it was given up".to_owned());
        self.end.get_or_insert_with(given_up);
    }

    /// Returns the descriptor for input and output.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.session.as_ref().map(|session| session.as_fd())
    }

    /// Returns the runs of the hosts that may take over the agent, for a claimed channel that is open.
    pub(crate) fn successors(&self) -> Option<&[String]> {
        self.opened.as_deref()
    }

    /// Takes the bytes of the other end's standard error since the last call.
    pub(crate) fn take_errors(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.errors)
    }

    /// Returns why the channel has ended, if it has.
    pub(crate) fn end(&self) -> Option<&ChannelEnd> {
        self.end.as_ref()
    }
}

impl From<Closed> for ChannelEnd {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::ShellEnded { status } => ChannelEnd::Command {
                status: Some(status),
                said: String::new(),
            },
            Closed::HostLost { cause } => ChannelEnd::HostLost(cause),
            Closed::HostGone { sentence } | Closed::Cut { sentence } => {
                ChannelEnd::Daemons(sentence)
            }
            Closed::Renewed { why } => ChannelEnd::Renewed(why),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Read;

    use super::*;
    use crate::channel::session::tests::{hello, pair, say};

    /// Returns an open channel, and the daemon's end of it.
    pub(crate) fn opened() -> (DaemonChannel, std::os::unix::net::UnixStream) {
        let (session, mut daemon) = pair();
        say(&mut daemon, &hello());
        let successors = vec!["r1".to_owned()];
        say(&mut daemon, &FromDaemon::Opened { successors });
        let mut channel = DaemonChannel::over(Ok(session));
        assert_eq!(channel.read(&mut [0; 8]), Some(0));
        assert_eq!(channel.successors(), Some(&["r1".to_owned()][..]));
        (channel, daemon)
    }

    #[test]
    fn bytes_come_in_order_and_before_the_reason_for_the_end() {
        let (mut channel, mut daemon) = opened();
        let bytes = b"hello".to_vec();
        say(&mut daemon, &ChannelMessage::Data { bytes });
        let bytes = b"oh".to_vec();
        say(&mut daemon, &ChannelMessage::Errors { bytes });
        let cause = "silent".to_owned();
        let end = Closed::HostLost { cause };
        say(&mut daemon, &ChannelMessage::Closed { end });
        let mut into = [0; 4];
        assert_eq!(channel.read(&mut into), Some(4));
        assert_eq!(&into, b"hell");
        assert_eq!(channel.read(&mut into), Some(1));
        assert_eq!(into[0], b'o');
        assert_eq!(channel.read(&mut into), None);
        assert_eq!(channel.take_errors(), b"oh");
        let end = ChannelEnd::HostLost("silent".to_owned());
        assert_eq!(channel.end(), Some(&end));
    }

    /// The kind of the reason decides what follows: if this host is lost, the job goes on under another launcher.
    #[test]
    fn a_channel_that_is_cut_before_it_is_there_ends_as_one_that_was_there() {
        let why = || "silent".to_owned();
        let ends = [
            (
                Closed::HostLost { cause: why() },
                ChannelEnd::HostLost(why()),
            ),
            (Closed::Renewed { why: why() }, ChannelEnd::Renewed(why())),
            (Closed::Cut { sentence: why() }, ChannelEnd::Daemons(why())),
        ];
        for (end, expected) in ends {
            let (session, mut daemon) = pair();
            say(&mut daemon, &hello());
            say(&mut daemon, &FromDaemon::NotOpened { end });
            drop(daemon);
            let mut channel = DaemonChannel::over(Ok(session));
            assert_eq!(channel.read(&mut [0; 8]), None);
            let end = (channel.end(), channel.successors());
            assert_eq!(end, (Some(&expected), None));
        }
    }

    #[test]
    fn a_channel_that_is_refused_ends_with_the_sentence() {
        let (session, mut daemon) = pair();
        say(&mut daemon, &hello());
        let sentence = "on the host beta: there are no processes".to_owned();
        let refused = FromDaemon::Refused {
            sentence: sentence.clone(),
        };
        say(&mut daemon, &refused);
        drop(daemon);
        let mut channel = DaemonChannel::over(Ok(session));
        assert_eq!(channel.read(&mut [0; 8]), None);
        let end = ChannelEnd::Daemons(sentence);
        assert_eq!((channel.end(), channel.successors()), (Some(&end), None));
    }

    #[test]
    fn a_daemon_that_hangs_up_without_a_word_seems_to_have_ended() {
        let (mut channel, daemon) = opened();
        drop(daemon);
        assert_eq!(channel.read(&mut [0; 8]), None);
        assert_eq!(channel.end(), Some(&ChannelEnd::OwnDaemon));
    }

    #[test]
    fn who_does_not_read_is_waited_for_with_little_in_memory() {
        let (mut channel, mut daemon) = opened();
        let bytes = vec![7; 1 << 20];
        let mut all = 0;
        while let Some(count @ 1..) = channel.write(&bytes) {
            all += count;
        }
        assert!(
            channel
                .session
                .as_ref()
                .is_some_and(|it| it.unsent() < 3 * MAX_PIECE_BYTES)
        );
        let mut read = vec![0; 1 << 20];
        let mut came = daemon.read(&mut read).expect("bytes");
        while came < all {
            channel.flush();
            came += daemon.read(&mut read).expect("bytes");
        }
        assert!(channel.write(&bytes).is_some_and(|count| count > 0));
        channel.close();
        assert_eq!(channel.write(&bytes), None);
    }
}
