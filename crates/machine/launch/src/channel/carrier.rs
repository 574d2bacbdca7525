//! The carrier of a channel: the streams of a command, an encrypted connection, or the daemons of a virtual machine. Nothing here waits.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use regatta_transport::calls::Conversation;
use rustix::io::Errno;

use super::daemon_channel::DaemonChannel;

/// See the module. Streams that have been closed are not there any more.
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
    /// How many bytes have come; none: it has ended.
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

    /// Whether there may be more to read although there is nothing to wait for.
    pub(super) fn keeps_back(&self) -> bool {
        !matches!(self, Carrier::Streams { .. })
    }

    /// How many bytes have been taken; none: they never will be.
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

    /// Has what was taken go on.
    pub(super) fn flush(&mut self) {
        match self {
            // The reading side tells that it has ended.
            Carrier::Call(Some(conversation)) => _ = conversation.flush(),
            Carrier::Daemons(channel) => channel.flush(),
            _ => {}
        }
    }

    /// Whether anything can be said.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Carrier::Streams { output, .. } => output.is_some(),
            Carrier::Call(conversation) => conversation.is_some(),
            Carrier::Daemons(channel) => channel.is_open(),
        }
    }

    /// Says no more. Of a connection nothing is heard any more either.
    pub(super) fn close(&mut self) {
        match self {
            Carrier::Streams { output, .. } => *output = None,
            Carrier::Call(conversation) => *conversation = None,
            Carrier::Daemons(channel) => channel.close(),
        }
    }

    /// Says no more, and does not wait until the other side has heard so.
    pub(super) fn cut(&mut self) {
        match self {
            Carrier::Daemons(channel) => channel.cut(),
            other => other.close(),
        }
    }

    /// Where something may arrive.
    pub(super) fn input(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Carrier::Streams { input, .. } => Some(input.as_fd()),
            Carrier::Call(conversation) => conversation.as_ref().map(|call| call.as_fd()),
            Carrier::Daemons(channel) => channel.fd(),
        }
    }

    /// Where there may be room, if that is waited for: because bytes wait, or because they were taken and have not gone.
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
