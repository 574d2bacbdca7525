//! Writes to this process's standard output or error that never block.
//!
//! The launcher must handle signals while a pager does not read, so it must not block in a write. Making the descriptor
//! non-blocking would affect all processes that share it, including the user's shell. A pipe or a terminal is therefore
//! opened again. Nothing is dropped: what cannot be written now is kept in memory, and the tasks' pipes are not read
//! while much is kept.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;

/// Backlog in bytes beyond which no more is read from the tasks.
const BACKLOG_LIMIT_BYTES: usize = 1 << 20;

/// The standard output or error.
#[derive(Debug)]
pub(crate) struct Sink {
    fd: OwnedFd,
    socket: bool,
    waiting: Vec<u8>,
    /// Number of bytes of `waiting` that have been written.
    written: usize,
    closed: bool,
    /// Why nothing more can be written, unless the reader has gone.
    failed: Option<Errno>,
}

impl Sink {
    pub(crate) fn new(fd: BorrowedFd) -> rustix::io::Result<Self> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        let anew = matches!(kind, FileType::Fifo | FileType::CharacterDevice)
            .then(|| {
                let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                rustix::fs::open(path, flags, Mode::empty()).ok()
            })
            .flatten();
        let fd = match anew {
            Some(fd) => fd,
            None => rustix::io::fcntl_dupfd_cloexec(fd, 3)?,
        };
        Ok(Self {
            fd,
            socket: kind == FileType::Socket,
            waiting: Vec::new(),
            written: 0,
            closed: false,
            failed: None,
        })
    }

    /// Appends to the bytes to be written.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) {
        if !self.closed {
            parts
                .iter()
                .for_each(|part| self.waiting.extend_from_slice(part));
        }
    }

    /// Writes as much as the reader takes now.
    pub(crate) fn flush(&mut self) {
        while self.written < self.waiting.len() {
            let rest = &self.waiting[self.written..];
            let written = if self.socket {
                rustix::net::send(&self.fd, rest, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            } else {
                rustix::io::write(&self.fd, rest)
            };
            match written {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => {
                    // If the reader has gone, the rest is not wanted. Any other error is a loss.
                    self.failed = (errno != Errno::PIPE).then_some(errno);
                    self.closed = true;
                    self.written = self.waiting.len();
                }
            }
        }
        if self.written == self.waiting.len() {
            self.waiting.clear();
            self.written = 0;
        } else if self.written > BACKLOG_LIMIT_BYTES {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() - self.written > BACKLOG_LIMIT_BYTES
    }

    /// Returns whether written bytes are no longer read.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns why bytes were lost, if any were.
    pub(crate) fn failure(&self) -> Option<Errno> {
        self.failed
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;
    use crate::hang_up::await_hang_up;

    /// More than a pipe holds.
    const OVERFLOWING_BYTES: usize = 300 << 10;

    #[test]
    fn bytes_that_the_reader_does_not_take_wait_and_come_in_their_order() {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let mut sink = Sink::new(writer.as_fd()).expect("a sink");
        let all: Vec<u8> = (0..OVERFLOWING_BYTES).map(|at| (at / 256) as u8).collect();
        sink.push(&[&all[..9], &all[9..]]);
        sink.flush();
        assert!(
            !sink.is_empty(),
            "a pipe has taken {OVERFLOWING_BYTES} bytes"
        );
        let (mut read, mut piece) = (Vec::new(), [0; 4096]);
        while read.len() < all.len() {
            let count = reader.read(&mut piece).expect("bytes");
            read.extend_from_slice(&piece[..count]);
            sink.flush();
        }
        assert!(sink.is_empty() && read == all);
    }

    #[test]
    fn whoever_shares_the_pipe_finds_it_as_it_was() {
        let (_reader, writer) = std::io::pipe().expect("a pipe");
        let _sink = Sink::new(writer.as_fd()).expect("a sink");
        let flags = rustix::fs::fcntl_getfl(&writer).expect("its flags");
        assert!(!flags.contains(OFlags::NONBLOCK));
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure_and_a_full_disk_is_one() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let mut sink = Sink::new(writer.as_fd()).expect("a sink");
        drop(reader);
        await_hang_up(&writer);
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("a full disk");
        let mut lost = Sink::new(full.as_fd()).expect("a sink");
        for sink in [&mut sink, &mut lost] {
            sink.push(&[b"words"]);
            sink.flush();
            assert!(sink.is_closed() && sink.is_empty());
            // Nothing is kept after the end.
            sink.push(&[b"more"]);
            assert!(sink.is_empty());
        }
        assert_eq!((sink.failure(), lost.failure()), (None, Some(Errno::NOSPC)));
    }

    #[test]
    fn the_tasks_are_not_read_further_only_while_much_waits() {
        let (_reader, writer) = std::io::pipe().expect("a pipe");
        let mut sink = Sink::new(writer.as_fd()).expect("a sink");
        sink.push(&[&vec![0; BACKLOG_LIMIT_BYTES]]);
        assert!(!sink.is_full());
        sink.push(&[b"x"]);
        assert!(sink.is_full());
        // The part that the pipe has taken is not counted any more.
        sink.flush();
        assert!(!sink.is_full());
    }
}
