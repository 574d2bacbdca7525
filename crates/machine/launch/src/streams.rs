//! The standard output and error of this host's tasks, a pipe for each of the two.
//!
//! All pipes are watched by one epoll descriptor, so that a thousand tasks need one entry in the loop's `poll`.

pub(crate) mod caught;
pub(crate) mod input;
pub(crate) mod lines;
pub(crate) mod nonblocking;
pub(crate) mod output;
pub(crate) mod standard_input;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use regatta_program::Refusal;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::system::limits;

const MAX_EVENTS: usize = 64;
/// Size of one read, in bytes.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// A task's standard output (0) or standard error (1).
#[derive(Debug)]
struct Stream {
    fd: OwnedFd,
    rank: u32,
    which: usize,
}

/// Output that was read.
pub(crate) enum Heard<'a> {
    Bytes(u32, usize, &'a [u8]),
    /// The end of a stream.
    End(u32, usize),
}

impl Heard<'_> {
    /// Returns the task that wrote it.
    pub(crate) fn rank(&self) -> u32 {
        let (Heard::Bytes(rank, ..) | Heard::End(rank, _)) = self;
        *rank
    }
}

/// The pipes of this host's tasks.
#[derive(Debug)]
pub(crate) struct Streams {
    streams: Vec<Option<Stream>>,
    epoll: OwnedFd,
    buffer: Vec<u8>,
}

impl Streams {
    pub(crate) fn new() -> Result<Self, Refusal> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| {
            Refusal::of_regatta(format!(
                "the launcher cannot watch its tasks' output: {errno}"
            ))
        })?;
        Ok(Self {
            streams: Vec::new(),
            epoll,
            buffer: limits::buffer(READ_BYTES)?,
        })
    }

    /// Returns the standard output and error for a task about to start.
    pub(crate) fn pipes(&mut self, rank: u32) -> rustix::io::Result<[OwnedFd; 2]> {
        Ok([self.pipe(rank, 0)?, self.pipe(rank, 1)?])
    }

    fn pipe(&mut self, rank: u32, which: usize) -> rustix::io::Result<OwnedFd> {
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let key = epoll::EventData::new_u64(self.streams.len() as u64);
        epoll::add(&self.epoll, &ours, key, epoll::EventFlags::IN)?;
        self.streams.push(Some(Stream {
            fd: ours,
            rank,
            which,
        }));
        Ok(theirs)
    }

    /// Returns a descriptor that is readable when a task has written.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Reads what some of the tasks have written, while `more` returns true. `hear` returns whether the stream is still
    /// wanted. If not, the pipe is closed, and the task gets a broken pipe.
    pub(crate) fn pump(&mut self, more: impl Fn() -> bool, hear: &mut impl FnMut(Heard) -> bool) {
        let mut events = [const {
            epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0),
            }
        }; MAX_EVENTS];
        let now = rustix::time::Timespec::default();
        let ready = epoll::wait(&self.epoll, &mut events[..], Some(&now)).unwrap_or(0);
        for event in &events[..ready] {
            let index = event.data.u64() as usize;
            if more() {
                self.read(index, hear);
            }
        }
    }

    /// Reads the rest from the pipes, while `more` returns true. No task writes to them any more. Returns whether
    /// everything has been read.
    pub(crate) fn drain(
        &mut self,
        more: impl Fn() -> bool,
        hear: &mut impl FnMut(Heard) -> bool,
    ) -> bool {
        for index in 0..self.streams.len() {
            while self.streams[index].is_some() {
                if !more() {
                    return false;
                }
                if !self.read(index, hear) {
                    self.close(index, hear);
                }
            }
        }
        true
    }

    /// Closes a stream that is not wanted: its writer gets a broken pipe.
    pub(crate) fn deafen(&mut self, rank: u32, which: usize) {
        let matches = |stream: &Option<Stream>| {
            stream
                .as_ref()
                .is_some_and(|stream| (stream.rank, stream.which) == (rank, which))
        };
        if let Some(stream) = self.streams.iter_mut().find(|stream| matches(stream)) {
            *stream = None;
        }
    }

    /// Reads once from one stream. Returns whether there may be more.
    fn read(&mut self, index: usize, hear: &mut impl FnMut(Heard) -> bool) -> bool {
        let Some(stream) = self.streams[index].as_mut() else {
            return false;
        };
        match rustix::io::read(&stream.fd, &mut self.buffer[..]) {
            Ok(0) => self.close(index, hear),
            Ok(count) => {
                if !hear(Heard::Bytes(
                    stream.rank,
                    stream.which,
                    &self.buffer[..count],
                )) {
                    self.streams[index] = None;
                }
                return true;
            }
            Err(Errno::AGAIN) => {}
            Err(Errno::INTR) => return true,
            Err(_) => self.close(index, hear),
        }
        false
    }

    fn close(&mut self, index: usize, hear: &mut impl FnMut(Heard) -> bool) {
        if let Some(stream) = self.streams[index].take() {
            hear(Heard::End(stream.rank, stream.which));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{ErrorKind, Write};

    use super::*;
    use crate::hang_up::await_hang_up;

    /// Bytes and ends that were passed on, in order.
    type Record = Vec<(u32, usize, Option<Vec<u8>>)>;

    fn note(record: &mut Record) -> impl FnMut(Heard) -> bool {
        |heard| {
            record.push(match heard {
                Heard::Bytes(rank, which, bytes) => (rank, which, Some(bytes.to_vec())),
                Heard::End(rank, which) => (rank, which, None),
            });
            true
        }
    }

    fn task(streams: &mut Streams, rank: u32) -> [File; 2] {
        streams.pipes(rank).expect("pipes").map(File::from)
    }

    #[test]
    fn each_stream_is_heard_as_its_tasks_own_and_its_end_once() {
        let mut streams = Streams::new().expect("streams");
        let [mut output, mut error] = task(&mut streams, 7);
        output.write_all(b"out").expect("room");
        error.write_all(b"err").expect("room");
        drop(error);
        let errors = streams.streams[1].as_ref().expect("its errors");
        await_hang_up(&errors.fd);
        let mut record = Record::new();
        for _ in 0..3 {
            streams.pump(|| true, &mut note(&mut record));
        }
        record.sort();
        let words = |bytes: &[u8]| Some(bytes.to_vec());
        let expected = [(7, 0, words(b"out")), (7, 1, None), (7, 1, words(b"err"))];
        assert_eq!(record, expected);
    }

    #[test]
    fn nothing_is_read_while_nothing_more_is_wanted() {
        let mut streams = Streams::new().expect("streams");
        let [mut output, _error] = task(&mut streams, 0);
        output.write_all(b"later").expect("room");
        let mut record = Record::new();
        streams.pump(|| false, &mut note(&mut record));
        assert!(!streams.drain(|| false, &mut note(&mut record)));
        assert_eq!(record, []);
        streams.pump(|| true, &mut note(&mut record));
        assert_eq!(record, [(0, 0, Some(b"later".to_vec()))]);
    }

    #[test]
    fn a_writer_that_nobody_hears_any_more_gets_a_broken_pipe() {
        let mut streams = Streams::new().expect("streams");
        let [mut first, _error] = task(&mut streams, 0);
        let [mut second, mut other] = task(&mut streams, 1);
        first.write_all(b"to nobody").expect("room");
        streams.pump(|| true, &mut |_| false);
        streams.deafen(1, 0);
        for unheard in [&mut first, &mut second] {
            await_hang_up(&*unheard);
            let broken = unheard.write_all(b"more").expect_err("no reader");
            assert_eq!(broken.kind(), ErrorKind::BrokenPipe);
        }
        // The other stream of that task is not affected.
        other.write_all(b"heard").expect("a reader");
        let mut record = Record::new();
        streams.pump(|| true, &mut note(&mut record));
        assert_eq!(record, [(1, 1, Some(b"heard".to_vec()))]);
    }

    #[test]
    fn the_last_words_are_read_though_a_stray_keeps_the_pipe_open() {
        let mut streams = Streams::new().expect("streams");
        let [mut output, _stray] = task(&mut streams, 3);
        rustix::pipe::fcntl_setpipe_size(&output, 2 * READ_BYTES).expect("a large pipe");
        output.write_all(&[b'x'; READ_BYTES + 1]).expect("room");
        let mut record = Record::new();
        assert!(streams.drain(|| true, &mut note(&mut record)));
        let (ends, pieces): (Record, Record) =
            record.into_iter().partition(|(.., bytes)| bytes.is_none());
        let read = pieces.iter().filter_map(|(.., bytes)| bytes.as_ref());
        assert_eq!(read.map(Vec::len).sum::<usize>(), READ_BYTES + 1);
        assert_eq!(ends, [(3, 0, None), (3, 1, None)]);
    }
}
