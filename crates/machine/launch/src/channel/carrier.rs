//! The carrier of a channel: the streams of a command, an encrypted connection, or the daemons of a virtual machine.
//! Nothing here blocks.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use regatta_connection::calls::Conversation;
use rustix::io::Errno;

use super::daemon_channel::DaemonChannel;

/// The transport of a channel's bytes. `None` stands for a stream or connection that this side has closed.
#[derive(Debug)]
pub(super) enum Carrier {
    Streams {
        input: OwnedFd,
        output: Option<OwnedFd>,
    },
    Call(Option<Box<Conversation>>),
    Daemons(Box<DaemonChannel>),
}

impl Carrier {
    /// Reads available bytes. Returns their number, or `None` if the channel has ended.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Option<usize> {
        match self {
            Carrier::Streams { input, .. } => match rustix::io::read(input, into) {
                Ok(0) => None,
                Ok(count) => Some(count),
                Err(Errno::AGAIN | Errno::INTR) => Some(0),
                Err(_) => None,
            },
            Carrier::Call(conversation) => match conversation.as_mut()?.recv(into) {
                Ok(count) => Some(count.unwrap_or(0)),
                Err(_) => None,
            },
            Carrier::Daemons(channel) => channel.read(into),
        }
    }

    /// Returns whether there may be more to read although the descriptor is not readable, because the carrier buffers
    /// input.
    pub(super) fn keeps_back(&self) -> bool {
        !matches!(self, Carrier::Streams { .. })
    }

    /// Writes bytes. Returns how many were taken, or `None` if the other side will never take any.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Carrier::Streams { output, .. } => loop {
                match rustix::io::write(output.as_ref()?, bytes) {
                    Ok(count) => return Some(count),
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return Some(0),
                    Err(_) => return None,
                }
            },
            Carrier::Call(conversation) => conversation.as_mut()?.send(bytes).ok(),
            Carrier::Daemons(channel) => channel.write(bytes),
        }
    }

    /// Sends on the bytes that were taken and buffered.
    pub(super) fn flush(&mut self) {
        match self {
            // The next read reports it if the channel has ended.
            Carrier::Call(Some(conversation)) => _ = conversation.flush(),
            Carrier::Daemons(channel) => channel.flush(),
            _ => {}
        }
    }

    /// Returns whether this side can still send.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Carrier::Streams { output, .. } => output.is_some(),
            Carrier::Call(conversation) => conversation.is_some(),
            Carrier::Daemons(channel) => channel.is_open(),
        }
    }

    /// Closes the sending side. A connection is closed in both directions.
    pub(super) fn close(&mut self) {
        match self {
            Carrier::Streams { output, .. } => *output = None,
            Carrier::Call(conversation) => *conversation = None,
            Carrier::Daemons(channel) => channel.close(),
        }
    }

    /// Closes the sending side without waiting until the other side has noticed.
    pub(super) fn cut(&mut self) {
        match self {
            Carrier::Daemons(channel) => channel.cut(),
            other => other.close(),
        }
    }

    /// Returns the descriptor for input.
    pub(super) fn input(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Carrier::Streams { input, .. } => Some(input.as_fd()),
            Carrier::Call(conversation) => conversation.as_ref().map(|call| call.as_fd()),
            Carrier::Daemons(channel) => channel.fd(),
        }
    }

    /// Returns the descriptor for output if there is something to write: bytes of the caller (`wanted`), or bytes that
    /// were taken and are buffered.
    pub(super) fn output(&self, wanted: bool) -> Option<BorrowedFd<'_>> {
        match self {
            Carrier::Streams { output, .. } => {
                output.as_ref().filter(|_| wanted).map(|fd| fd.as_fd())
            }
            Carrier::Call(conversation) => {
                let call = conversation.as_ref();
                let call = call.filter(|call| wanted || !call.is_flushed());
                call.map(|call| call.as_fd())
            }
            Carrier::Daemons(channel) => channel.fd().filter(|_| wanted || !channel.is_flushed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::PipeFlags;

    use super::*;
    use crate::hang_up::await_hang_up;

    /// Returns streams and their other ends: the one that they read from, and the one that they write to.
    fn streams() -> (Carrier, OwnedFd, OwnedFd) {
        let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        let (input, to_us) = pipe().expect("a pipe");
        let (from_us, output) = pipe().expect("a pipe");
        let output = Some(output);
        (Carrier::Streams { input, output }, to_us, from_us)
    }

    #[test]
    fn nothing_yet_is_not_the_end() {
        let (mut carrier, to_us, _from_us) = streams();
        let mut bytes = [0; 9];
        assert_eq!(carrier.read(&mut bytes), Some(0));
        rustix::io::write(&to_us, b"last").expect("room");
        drop(to_us);
        await_hang_up(carrier.input().expect("where it reads"));
        assert_eq!(carrier.read(&mut bytes), Some(4));
        assert_eq!(carrier.read(&mut bytes), None);
    }

    #[test]
    fn no_room_now_is_not_the_same_as_no_reader_any_more() {
        let (mut carrier, _to_us, from_us) = streams();
        let much = vec![0; 1 << 20];
        let taken = carrier.write(&much).expect("a reader");
        assert!((1..much.len()).contains(&taken));
        assert_eq!(carrier.write(&much), Some(0));
        drop(from_us);
        await_hang_up(carrier.output(true).expect("where it writes"));
        assert_eq!(carrier.write(&much), None);
    }

    #[test]
    fn streams_that_say_no_more_still_hear() {
        let (mut carrier, to_us, _from_us) = streams();
        assert!(carrier.is_open());
        carrier.close();
        assert!(!carrier.is_open());
        assert_eq!(carrier.write(b"x"), None);
        assert!(carrier.output(true).is_none() && carrier.input().is_some());
        rustix::io::write(&to_us, b"word").expect("room");
        assert_eq!(carrier.read(&mut [0; 9]), Some(4));
    }

    #[test]
    fn room_is_waited_for_only_when_bytes_wait() {
        let (carrier, ..) = streams();
        assert!(carrier.output(false).is_none());
        assert!(carrier.output(true).is_some());
    }
}
