//! Lines of standard input, and waiting for notices.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Standard input, split into lines.
#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    over: bool,
}

/// The reason why waiting has ended.
pub(crate) enum Woken {
    /// A line, without its end.
    Line(String),
    /// No more lines will come.
    End,
    /// There may be notices.
    Notice,
}

impl Input {
    /// Waits for a line or for one of the machine's descriptors.
    pub(crate) fn wait(&mut self, news: &[BorrowedFd<'_>]) -> io::Result<Woken> {
        loop {
            if let Some(line) = self.line() {
                return Ok(Woken::Line(line));
            }
            if self.over {
                return Ok(Woken::End);
            }
            if !self.readable(news)? {
                return Ok(Woken::Notice);
            }
            self.read()?;
        }
    }

    /// Waits, and returns whether standard input is readable, not only one of the others.
    fn readable(&self, news: &[BorrowedFd<'_>]) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut polls = vec![PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        polls.extend(
            news.iter()
                .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)),
        );
        loop {
            match poll(&mut polls, None) {
                Ok(_) => return Ok(!polls[0].revents().is_empty()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        match rustix::io::read(io::stdin(), &mut bytes) {
            Ok(0) => self.over = true,
            Ok(count) => self.bytes.extend_from_slice(&bytes[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The end of a terminal is treated like the end of a file.
            Err(Errno::IO) => self.over = true,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Returns a complete line, or at the end of input the rest.
    fn line(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n');
        let line: Vec<u8> = match end {
            Some(end) => self.bytes.drain(..=end).collect(),
            None if self.over && !self.bytes.is_empty() => std::mem::take(&mut self.bytes),
            None => return None,
        };
        let line = String::from_utf8_lossy(&line);
        Some(line.trim_end_matches(['\n', '\r']).to_owned())
    }
}
