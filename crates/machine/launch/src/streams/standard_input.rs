//! Standard input for a task: a pipe that is written without blocking.

use std::os::fd::OwnedFd;

use regatta_program::Refusal;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

/// The writing end of a pipe.
#[derive(Debug)]
pub(crate) struct Feed {
    /// `None` if the reader has gone, or everything has been written.
    pipe: Option<OwnedFd>,
    waiting: Vec<u8>,
    ended: bool,
}

impl Feed {
    /// Returns the feed, and the reading end of its pipe.
    pub(crate) fn new() -> Result<(Self, OwnedFd), Refusal> {
        let (theirs, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .and_then(|pipe| rustix::io::ioctl_fionbio(&pipe.1, true).map(|()| pipe))
            .map_err(|errno| {
                Refusal::of_regatta(format!("no pipe can be opened for standard input: {errno}"))
            })?;
        let feed = Self {
            pipe: Some(ours),
            waiting: Vec::new(),
            ended: false,
        };
        Ok((feed, theirs))
    }

    /// Appends input. Empty `bytes` mark the end.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.ended |= bytes.is_empty();
        self.waiting.extend_from_slice(bytes);
    }

    /// Writes as much as the pipe takes. Returns the number of bytes consumed.
    pub(crate) fn flush(&mut self) -> usize {
        let mut written = 0;
        while let Some(pipe) = self.pipe.as_ref().filter(|_| written < self.waiting.len()) {
            match rustix::io::write(pipe, &self.waiting[written..]) {
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.pipe = None,
            }
        }
        if self.pipe.is_none() {
            // If the reader has gone, the rest counts as consumed.
            written = self.waiting.len();
        }
        self.waiting.drain(..written);
        if self.ended && self.waiting.is_empty() {
            self.pipe = None;
        }
        written
    }

    /// Returns the descriptors to poll.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.pipe
            .iter()
            .filter(|_| !self.waiting.is_empty())
            .map(|pipe| PollFd::new(pipe, PollFlags::OUT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_waits_and_the_end_comes_last() {
        let (mut feed, reader) = Feed::new().expect("a pipe");
        let sent: Vec<u8> = (0..300_000_u32).map(|n| n as u8).collect();
        feed.push(&sent);
        feed.push(&[]);
        let mut taken = feed.flush();
        assert!(taken < sent.len(), "no pipe holds that much");
        let (mut got, mut buffer) = (Vec::new(), vec![0; 65536]);
        loop {
            let count = rustix::io::read(&reader, &mut buffer[..]).expect("bytes");
            if count == 0 {
                break;
            }
            got.extend_from_slice(&buffer[..count]);
            taken += feed.flush();
        }
        assert_eq!((got == sent, taken), (true, sent.len()));
    }

    #[test]
    fn a_reader_that_has_gone_takes_everything() {
        let (mut feed, reader) = Feed::new().expect("a pipe");
        drop(reader);
        feed.push(&[1, 2, 3]);
        assert_eq!(feed.flush(), 3);
    }
}
