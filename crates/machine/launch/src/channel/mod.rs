//! The channel between the launcher and the agent of a host: frames over two descriptors, or over a connection.
//!
//! Neither side ever blocks in a read or a write. What cannot be written now is kept in memory, and senders of much
//! data (output, input) keep within a window of bytes that the other side has not consumed yet. So a chatty task cannot
//! fill the memory, and orders and reports are never stuck behind data that cannot be written.

mod carrier;
pub(crate) mod clock;
pub(crate) mod daemon_channel;
pub(crate) mod end;
pub mod keeper;
pub(crate) mod membership_feed;
pub(crate) mod messages;
pub(crate) mod remote;
pub(crate) mod session;

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};

use carrier::Carrier;
use daemon_channel::DaemonChannel;
use messages::Message;
use regatta_connection::calls::Conversation;
use regatta_wire::Malformed;
use regatta_wire::framing::{self, FrameReader, MAX_FRAME_BYTES};

/// Size of one read, in bytes.
const READ_BYTES: usize = 64 << 10;
/// Maximum size of the text before the greeting, in bytes: the output of shell startup files.
const MAX_NOISE_BYTES: usize = 256 << 10;

/// One end of a channel.
#[derive(Debug)]
pub(crate) struct Link {
    way: Carrier,
    buffer: Vec<u8>,
    arrived: FrameReader,
    waiting: Vec<u8>,
    /// Number of bytes of `waiting` that have been written.
    written: usize,
    ended: bool,
}

impl Link {
    /// Creates a link over two descriptors, which are made non-blocking.
    pub(crate) fn new(input: OwnedFd, output: OwnedFd) -> rustix::io::Result<Self> {
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        Ok(Self::over(Carrier::Streams {
            input,
            output: Some(output),
        }))
    }

    /// Creates a link over a connection whose handshake is complete.
    pub(crate) fn of_call(conversation: Conversation) -> Self {
        Self::over(Carrier::Call(Some(Box::new(conversation))))
    }

    /// Creates a link over a channel that daemons carry.
    pub(crate) fn of_daemons(channel: DaemonChannel) -> Self {
        Self::over(Carrier::Daemons(Box::new(channel)))
    }

    /// Returns the underlying channel, if daemons carry it.
    pub(crate) fn daemons(&mut self) -> Option<&mut DaemonChannel> {
        match &mut self.way {
            Carrier::Daemons(channel) => Some(channel),
            _ => None,
        }
    }

    fn over(way: Carrier) -> Self {
        Self {
            way,
            buffer: vec![0; READ_BYTES],
            arrived: FrameReader::default(),
            waiting: Vec::new(),
            written: 0,
            ended: false,
        }
    }

    /// Reads what has arrived. A long input needs several calls. Returns the number of bytes read.
    pub(crate) fn read(&mut self) -> usize {
        let mut all = 0;
        loop {
            let Some(count) = self.way.read(&mut self.buffer) else {
                self.ended = true;
                return all;
            };
            self.arrived.push(&self.buffer[..count]);
            all += count;
            // Buffered bytes do not wake `poll`, so read them all.
            if count == 0 || !self.way.keeps_back() {
                return all;
            }
        }
    }

    /// Returns the next complete message.
    pub(crate) fn next<M: Message>(&mut self) -> Result<Option<M>, Malformed> {
        self.arrived.next_message()
    }

    /// Returns the next line of text that begins with `mark`, before any frames. Other lines are skipped.
    pub(crate) fn line(&mut self, mark: &str) -> Result<Option<String>, Malformed> {
        while let Some(end) = self.arrived.unread().iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&self.arrived.unread()[..end]).into_owned();
            self.arrived.pass(end + 1);
            if line.starts_with(mark) {
                return Ok(Some(line));
            }
        }
        match self.arrived.unread().len() > MAX_NOISE_BYTES {
            true => Err(Malformed),
            false => Ok(None),
        }
    }

    /// Sends a message, or as much of it as the other side takes now. The rest is kept. Returns the size of its frame
    /// in bytes.
    pub(crate) fn send<M: Message>(&mut self, message: &M) -> Result<usize, Malformed> {
        let before = self.waiting.len();
        framing::put(message, &mut self.waiting)?;
        let length = self.waiting.len() - before;
        self.flush();
        Ok(length)
    }

    /// Sends bytes that are no message.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        self.flush();
    }

    /// Writes as many kept bytes as the other side takes now. Returns their number.
    pub(crate) fn flush(&mut self) -> usize {
        let before = self.written;
        if !self.way.is_open() {
            self.waiting.clear();
            self.written = 0;
            return 0;
        }
        self.way.flush();
        while self.written < self.waiting.len() {
            match self.way.write(&self.waiting[self.written..]) {
                Some(0) => break,
                Some(count) => self.written += count,
                // The reading side reports that the channel has ended.
                None => self.written = self.waiting.len(),
            }
        }
        let count = self.written - before;
        if self.written == self.waiting.len() {
            self.waiting.clear();
            self.written = 0;
        } else if self.written > MAX_FRAME_BYTES {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        count
    }

    /// Discards what was received and what was to be sent, because the other end is gone, perhaps in the middle of a
    /// message.
    pub(crate) fn forget(&mut self) {
        self.arrived = FrameReader::default();
        self.waiting.clear();
        self.written = 0;
    }

    /// Closes the channel for sending.
    pub(crate) fn close(&mut self) {
        self.way.close();
    }

    /// Closes the channel at once, whether or not the other side notices.
    pub(crate) fn cut(&mut self) {
        self.way.cut();
    }

    /// Returns whether the other side has ended the channel, and everything that it sent has been read.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Returns the descriptors to poll.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let input = self.way.input().filter(|_| !self.ended);
        let reading = input.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let output = self.way.output(!self.waiting.is_empty());
        let writing = output.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT));
        reading.into_iter().chain(writing)
    }
}

#[cfg(test)]
mod tests;
