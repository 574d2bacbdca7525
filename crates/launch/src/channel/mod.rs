//! The channel between the launcher and the agent of a host: frames over two descriptors.
//!
//! Neither side ever waits in a read or a write: what
//! does not fit now waits in memory, and who sends much (output, input) keeps within a window of bytes that the other
//! side has not dealt with yet. So a chatty task cannot fill our memory, and what is said about the job is never stuck
//! behind what cannot be written.

pub(crate) mod messages;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use messages::Message;
use regatta_wire::Malformed;
use regatta_wire::frames::{self, Frames, LONGEST};

/// Raised when a message changes: launcher and agent must agree.
pub(crate) const VERSION: u32 = 4;
/// Read at once.
const PIECE: usize = 64 << 10;
/// Longest text before the greeting: what a shell says when it starts.
const NOISE: usize = 256 << 10;

/// One end of a channel.
#[derive(Debug)]
pub(crate) struct Link {
    input: OwnedFd,
    /// None: we have ended the channel.
    output: Option<OwnedFd>,
    buffer: Vec<u8>,
    arrived: Frames,
    waiting: Vec<u8>,
    /// How much of `waiting` has been written.
    written: usize,
    ended: bool,
}

impl Link {
    /// Takes two descriptors, which are made non-blocking.
    pub(crate) fn new(input: OwnedFd, output: OwnedFd) -> rustix::io::Result<Self> {
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        Ok(Self {
            input,
            output: Some(output),
            buffer: vec![0; PIECE],
            arrived: Frames::default(),
            waiting: Vec::new(),
            written: 0,
            ended: false,
        })
    }

    /// Reads what has arrived, some of it if it is much. Returns how many bytes it was.
    pub(crate) fn read(&mut self) -> usize {
        let count = match rustix::io::read(&self.input, &mut self.buffer[..]) {
            Ok(count) => {
                self.ended |= count == 0;
                count
            }
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => {
                self.ended = true;
                0
            }
        };
        self.arrived.push(&self.buffer[..count]);
        count
    }

    /// The next message that has arrived as a whole.
    pub(crate) fn next<M: Message>(&mut self) -> Result<Option<M>, Malformed> {
        self.arrived.next_message()
    }

    /// The next line of text that begins with `mark`, before there are frames; other text is skipped.
    pub(crate) fn line(&mut self, mark: &str) -> Result<Option<String>, Malformed> {
        while let Some(end) = self.arrived.unread().iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&self.arrived.unread()[..end]).into_owned();
            self.arrived.pass(end + 1);
            if line.starts_with(mark) {
                return Ok(Some(line));
            }
        }
        match self.arrived.unread().len() > NOISE {
            true => Err(Malformed),
            false => Ok(None),
        }
    }

    /// Sends a message, or as much of it as the other side takes now. Returns how many bytes it has.
    pub(crate) fn send<M: Message>(&mut self, message: &M) -> Result<usize, Malformed> {
        let before = self.waiting.len();
        frames::put(message, &mut self.waiting)?;
        let length = self.waiting.len() - before;
        self.flush();
        Ok(length)
    }

    /// Sends bytes that are no message.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        self.flush();
    }

    /// Writes as much as the other side takes now. Returns how much that was.
    pub(crate) fn flush(&mut self) -> usize {
        let before = self.written;
        let Some(output) = &self.output else {
            self.waiting.clear();
            self.written = 0;
            return 0;
        };
        while self.written < self.waiting.len() {
            match rustix::io::write(output, &self.waiting[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The reading side tells that the channel has ended.
                Err(_) => self.written = self.waiting.len(),
            }
        }
        let count = self.written - before;
        if self.written == self.waiting.len() {
            self.waiting.clear();
            self.written = 0;
        } else if self.written > LONGEST {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        count
    }

    /// Forgets what has come and what was to be sent: who was at the other end is gone, in the middle of whatever he said.
    pub(crate) fn forget(&mut self) {
        self.arrived = Frames::default();
        self.waiting.clear();
        self.written = 0;
    }

    /// Ends the channel from our side.
    pub(crate) fn close(&mut self) {
        self.output = None;
    }

    /// Whether the other side has ended the channel, and everything it said has been taken.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    /// What to wait for.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let reading = (!self.ended).then(|| PollFd::new(&self.input, PollFlags::IN));
        let writing = self
            .output
            .as_ref()
            .filter(|_| !self.waiting.is_empty())
            .map(|output| PollFd::new(output, PollFlags::OUT));
        reading.into_iter().chain(writing)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
}

#[cfg(test)]
mod tests;
