//! One task of a job that takes turns: its connection to the driver, and the lines on that connection.
//!
//! Lines of a task are untrusted. Each has a maximum length and a deadline, and reading ends once the race is to stop.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rustix::event::PollFlags;

use crate::stop::{Stop, Woken};

/// Maximum length of a task's line, in bytes.
const MAX_LINE_BYTES: usize = 512;

/// A task's connection.
pub(super) struct Task {
    stream: UnixStream,
    /// Bytes received after the last line that was returned.
    ahead: Vec<u8>,
}

impl Task {
    pub(super) fn new(stream: UnixStream) -> Result<Task> {
        stream.set_nonblocking(true)?;
        Ok(Task {
            stream,
            ahead: Vec::new(),
        })
    }

    /// Sends a line to the task. Blocks until the deadline at most.
    pub(super) fn say(&mut self, line: &str, deadline: Instant, stop: &Stop) -> Result<()> {
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(bytes) => rest = &rest[bytes..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.await_flag(PollFlags::OUT, deadline, stop)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("a task does not read any more"),
            }
        }
        Ok(())
    }

    /// Sends a line to the task if that does not block.
    pub(super) fn say_now(&mut self, line: &str) {
        // The exit status of a task that has ended shows the failure.
        let _ = self.stream.write(line.as_bytes());
    }

    /// Returns the task's next line, without the newline. Blocks until the deadline at most.
    pub(super) fn line(&mut self, deadline: Instant, stop: &Stop) -> Result<String> {
        loop {
            if let Some(end) = self.ahead.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.ahead.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.ahead.len() > MAX_LINE_BYTES {
                bail!("a task sent a line without end");
            }
            self.await_flag(PollFlags::IN, deadline, stop)?;
            let mut piece = [0; MAX_LINE_BYTES];
            match self.stream.read(&mut piece) {
                Ok(0) => bail!("a task has ended"),
                Ok(bytes) => self.ahead.extend_from_slice(&piece[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("a task cannot be read any more"),
            }
        }
    }

    fn await_flag(&self, flag: PollFlags, deadline: Instant, stop: &Stop) -> Result<()> {
        match stop.await_ready(&[(self.stream.as_fd(), flag)], deadline)? {
            Woken::Ready(_) => Ok(()),
            Woken::Late => bail!("it did not answer in time"),
            Woken::Stopped => bail!("the race was interrupted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn lines_come_whole_and_one_after_the_other() {
        let stop = Stop::new().unwrap();
        let (mine, mut theirs) = UnixStream::pair().unwrap();
        let mut task = Task::new(mine).unwrap();
        theirs.write_all(b"one\ntwo\nthr").unwrap();
        assert_eq!(task.line(soon(), &stop).unwrap(), "one");
        assert_eq!(task.line(soon(), &stop).unwrap(), "two");
        theirs.write_all(b"ee\n").unwrap();
        assert_eq!(task.line(soon(), &stop).unwrap(), "three");
        drop(theirs);
        assert!(task.line(soon(), &stop).is_err());
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        let stop = Stop::new().unwrap();
        let (mine, mut theirs) = UnixStream::pair().unwrap();
        let mut task = Task::new(mine).unwrap();
        theirs.write_all(&[b'x'; 3 * MAX_LINE_BYTES]).unwrap();
        let error = task.line(soon(), &stop).unwrap_err();
        assert!(error.to_string().contains("without end"), "{error}");
    }

    #[test]
    fn a_line_that_comes_byte_by_byte_is_not_awaited_longer_than_another() {
        let stop = Stop::new().unwrap();
        let (mine, mut theirs) = UnixStream::pair().unwrap();
        let mut task = Task::new(mine).unwrap();
        theirs.write_all(b"to").unwrap();
        let error = task.line(Instant::now(), &stop).unwrap_err();
        assert!(error.to_string().contains("in time"), "{error}");
    }

    #[test]
    fn a_task_that_does_not_listen_holds_up_only_so_long() {
        let stop = Stop::new().unwrap();
        let (mine, _theirs) = UnixStream::pair().unwrap();
        let mut task = Task::new(mine).unwrap();
        let much = "x".repeat(1 << 22);
        assert!(task.say(&much, Instant::now(), &stop).is_err());
    }
}
