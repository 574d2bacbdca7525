//! The standard output and error of this host's tasks: a pipe for each of the two.
//!
//! All pipes are watched by one epoll descriptor, so that a thousand tasks cost the loop one entry.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::limits;
use crate::refusal::Refusal;

const EVENTS: usize = 64;
/// Read at once.
pub(crate) const PIECE: usize = 64 * 1024;

/// Where one task's output (0), or its errors (1), come from.
#[derive(Debug)]
struct Stream {
    fd: OwnedFd,
    rank: u32,
    which: usize,
}

/// Something that a task wrote.
pub(crate) enum Heard<'a> {
    Bytes(u32, usize, &'a [u8]),
    /// It will write no more.
    End(u32, usize),
}

impl Heard<'_> {
    /// The task or host that wrote it.
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
            buffer: limits::buffer(PIECE)?,
        })
    }

    /// The standard output and error for a task about to start.
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

    /// A descriptor that is readable when a task has written.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Reads what some of the tasks have written, while `more` allows it. `hear` returns whether anybody still listens to
    /// that stream: if not, the task learns it by a broken pipe.
    pub(crate) fn pump(&mut self, more: impl Fn() -> bool, hear: &mut impl FnMut(Heard) -> bool) {
        let mut events = [const {
            epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0),
            }
        }; EVENTS];
        let now = rustix::time::Timespec::default();
        let ready = epoll::wait(&self.epoll, &mut events[..], Some(&now)).unwrap_or(0);
        for event in &events[..ready] {
            let index = event.data.u64() as usize;
            if more() {
                self.read(index, hear);
            }
        }
    }

    /// Reads what is still in the pipes, while `more` allows it; nobody writes to them any more. Returns whether
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

    /// Closes a stream that nobody listens to: its writer learns it by a broken pipe.
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

    /// One read from one stream. Returns whether there may be more.
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
