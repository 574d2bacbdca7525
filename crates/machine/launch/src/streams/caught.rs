//! Output of this host's tasks that goes to the task that has started them, instead of the job's output.
//!
//! Each receiving task has a window for the bytes in flight to it from this host. While it is full, the pipes are not
//! read, and writers block. So memory does not fill up because a task does not receive. Only what a task has left in
//! its pipes at its end is read at once, since its last output must arrive before its end is notified. What exceeds the
//! limit for that goes to the job's output.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use regatta_job::credits::ReceiverWindows;
use regatta_job::registry::Piece;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use regatta_wire::control::{Route, StreamState};

const MAX_EVENTS: usize = 64;
/// Size of one read, in bytes.
const READ_BYTES: usize = 64 << 10;

#[derive(Debug)]
struct Source {
    fd: OwnedFd,
    route: Route,
}

/// Pipes of tasks whose output goes to other tasks, and the windows of the receivers.
#[derive(Debug, Default)]
pub(crate) struct Caught {
    /// Created on first use.
    epoll: Option<OwnedFd>,
    sources: HashMap<u64, Source>,
    windows: ReceiverWindows,
    buffer: Vec<u8>,
}

fn key(task: u32, stream: u32) -> u64 {
    u64::from(task) << 1 | u64::from(stream)
}

impl Caught {
    /// Returns the standard output and error for a task about to start.
    pub(crate) fn pipes(&mut self, task: u32, route: Route) -> rustix::io::Result<[OwnedFd; 2]> {
        let pipes = self.pipe(task, 0, route).and_then(|output| {
            let error = self.pipe(task, 1, route)?;
            Ok([output, error])
        });
        pipes.inspect_err(|_| self.forget(task))
    }

    fn pipe(&mut self, task: u32, stream: u32, route: Route) -> rustix::io::Result<OwnedFd> {
        let epoll = match &self.epoll {
            Some(epoll) => epoll,
            None => {
                self.buffer = vec![0; READ_BYTES];
                self.epoll
                    .insert(epoll::create(epoll::CreateFlags::CLOEXEC)?)
            }
        };
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let key = key(task, stream);
        epoll::add(epoll, &ours, EventData::new_u64(key), EventFlags::IN)?;
        self.sources.insert(key, Source { fd: ours, route });
        Ok(theirs)
    }

    /// Returns the open streams that are for another task: numbers of tasks and of their streams.
    pub(crate) fn open_streams(&self) -> Vec<(u32, u32)> {
        let keys = self.sources.keys();
        keys.map(|key| ((key >> 1) as u32, (key & 1) as u32))
            .collect()
    }

    /// Removes the pipes of a task that was not started after all.
    pub(crate) fn forget(&mut self, task: u32) {
        self.remove(key(task, 0));
        self.remove(key(task, 1));
    }

    /// Closes a stream that is not wanted: its writer gets a broken pipe.
    pub(crate) fn deafen(&mut self, task: u32, stream: u32) {
        self.remove(key(task, stream));
    }

    fn remove(&mut self, key: u64) -> Option<Source> {
        let source = self.sources.remove(&key)?;
        if let Some(epoll) = &self.epoll {
            // If another process has a descriptor of this pipe, epoll would report its end as long as that lives. The
            // error for a parked source, which is not watched, is ignored.
            let _ = epoll::delete(epoll, &source.fd);
        }
        Some(source)
    }

    /// Returns a descriptor that is readable when a task has written.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.epoll.as_ref().map(AsFd::as_fd)
    }

    /// Reads what some of the tasks have written, as far as the windows allow.
    pub(crate) fn pump(&mut self, hear: &mut impl FnMut(Piece)) {
        let Some(epoll) = &self.epoll else { return };
        let mut events = [const {
            epoll::Event {
                flags: EventFlags::empty(),
                data: EventData::new_u64(0),
            }
        }; MAX_EVENTS];
        let now = rustix::time::Timespec::default();
        let ready = epoll::wait(epoll, &mut events[..], Some(&now)).unwrap_or(0);
        for event in &events[..ready] {
            let key = event.data.u64();
            if !self.park(key) {
                self.read(key, true, hear);
            }
        }
    }

    /// Stops watching a source if its receiver's window is full. Returns whether it did.
    fn park(&mut self, key: u64) -> bool {
        let (Some(source), Some(epoll)) = (self.sources.get(&key), &self.epoll) else {
            return false;
        };
        let to = source.route.to;
        let full = self.windows.is_full(to) && epoll::delete(epoll, &source.fd).is_ok();
        if full {
            self.windows.wait(to, key);
        }
        full
    }

    /// Records that a task has received this many bytes. It makes no difference if the task receives no more.
    pub(crate) fn taken(&mut self, by: u32, bytes: usize) {
        let again = self.windows.received(by, bytes);
        self.read_again(again);
    }

    fn read_again(&self, keys: Vec<u64>) {
        for key in keys {
            if let (Some(source), Some(epoll)) = (self.sources.get(&key), &self.epoll) {
                // It was watched before, so epoll has room for it.
                let _ = epoll::add(epoll, &source.fd, EventData::new_u64(key), EventFlags::IN);
            }
        }
    }

    /// Counts bytes of this process that are sent like a task's standard error. Returns the route, if there is one.
    pub(crate) fn on_behalf_of(&mut self, task: u32, bytes: usize) -> Option<Route> {
        let route = self.sources.get(&key(task, 1))?.route;
        self.windows.sent(route.to, bytes);
        Some(route)
    }

    /// Empties all windows, because all output in flight has arrived or is lost.
    pub(crate) fn all_taken(&mut self) {
        let again = self.windows.all_received();
        self.read_again(again);
    }

    /// Reads what a task that has ended has left in its pipes, and no more than that.
    pub(crate) fn last_words(&mut self, task: u32, hear: &mut impl FnMut(Piece)) {
        for stream in 0..2 {
            let key = key(task, stream);
            let Some(source) = self.sources.get(&key) else {
                continue;
            };
            let mut left = rustix::io::ioctl_fionread(&source.fd).unwrap_or(0) as usize;
            let route = source.route;
            while left > 0 {
                let count = self.read(key, self.windows.takes_last_output(route.to), hear);
                left = if count == 0 {
                    0
                } else {
                    left.saturating_sub(count)
                };
            }
            // Usually no other process has the pipe, and this finds its end.
            self.read(key, true, hear);
            if self.sources.contains_key(&key) {
                hear(Piece {
                    task,
                    stream,
                    route: Some(route),
                    bytes: Vec::new(),
                    then: StreamState::Ended,
                });
            }
        }
    }

    /// Reads everything that is left. No process writes any more.
    pub(crate) fn drain(&mut self, hear: &mut impl FnMut(Piece)) {
        let mut keys: Vec<u64> = self.sources.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            while self.read(key, true, hear) > 0 {}
            self.close(key, hear);
        }
    }

    /// Reads once from one source. Returns the number of bytes.
    fn read(&mut self, key: u64, routed: bool, hear: &mut impl FnMut(Piece)) -> usize {
        let Some(source) = self.sources.get(&key) else {
            return 0;
        };
        let count = loop {
            match rustix::io::read(&source.fd, &mut self.buffer[..]) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return 0,
                Ok(0) | Err(_) => {
                    self.close(key, hear);
                    return 0;
                }
                Ok(count) => break count,
            }
        };
        let route = Some(source.route).filter(|_| routed);
        if let Some(route) = route {
            self.windows.sent(route.to, count);
        }
        hear(Piece {
            task: (key >> 1) as u32,
            stream: (key & 1) as u32,
            route,
            bytes: self.buffer[..count].to_vec(),
            then: StreamState::More,
        });
        count
    }

    fn close(&mut self, key: u64, hear: &mut impl FnMut(Piece)) {
        if let Some(source) = self.remove(key) {
            hear(Piece {
                task: (key >> 1) as u32,
                stream: (key & 1) as u32,
                route: Some(source.route),
                bytes: Vec::new(),
                then: StreamState::Closed,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hang_up::await_hang_up;
    use regatta_wire::control::OutputFormat;

    const ROUTE: Route = Route {
        to: 3,
        manner: OutputFormat {
            context: 1,
            tag: 2,
            lines: true,
            births: false,
        },
    };

    fn pumped(caught: &mut Caught) -> Vec<Piece> {
        let mut pieces = Vec::new();
        caught.pump(&mut |piece| pieces.push(piece));
        pieces
    }

    /// Writes as much as the pipe takes.
    fn fill(pipe: &OwnedFd) -> usize {
        rustix::io::ioctl_fionbio(pipe, true).unwrap();
        let mut written = 0;
        while let Ok(count) = rustix::io::write(pipe, &[b'x'; 4096]) {
            written += count;
        }
        written
    }

    #[test]
    fn a_full_window_stops_the_reading_until_something_was_received() {
        let mut caught = Caught::default();
        let [output, _error] = caught.pipes(7, ROUTE).unwrap();
        let mut heard = 0;
        loop {
            fill(&output);
            let pieces = pumped(&mut caught);
            if pieces.is_empty() {
                break;
            }
            heard += pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>();
        }
        assert!(
            (256 << 10..(256 << 10) + READ_BYTES).contains(&heard),
            "{heard}"
        );
        assert!(pumped(&mut caught).is_empty());
        caught.taken(3, READ_BYTES);
        let pieces = pumped(&mut caught);
        assert_eq!((pieces[0].task, pieces[0].stream), (7, 0));
        assert_eq!(pieces[0].route, Some(ROUTE));
    }

    #[test]
    fn last_words_are_heard_whatever_the_window_and_some_go_elsewhere() {
        let mut caught = Caught::default();
        let (mut routed, mut others) = (0, 0);
        for task in 10..200 {
            let [output, error] = caught.pipes(task, ROUTE).unwrap();
            let written = fill(&output);
            drop((output, error));
            for source in caught.sources.values() {
                await_hang_up(&source.fd);
            }
            let mut ends = 0;
            let before = routed + others;
            caught.last_words(task, &mut |piece| {
                ends += u32::from(piece.then == StreamState::Closed);
                match piece.route {
                    Some(_) => routed += piece.bytes.len(),
                    None => others += piece.bytes.len(),
                }
            });
            assert_eq!((ends, routed + others - before), (2, written));
        }
        assert!((4 << 20..(4 << 20) + (256 << 10) + READ_BYTES + 1).contains(&routed));
        assert!(others > 0 && caught.sources.is_empty());
        caught.taken(3, usize::MAX);
        assert!(caught.windows.are_whole());
    }

    #[test]
    fn an_ended_task_whose_pipe_lives_on_is_said_to_have_ended() {
        let mut caught = Caught::default();
        let [output, error] = caught.pipes(5, ROUTE).unwrap();
        drop(error);
        rustix::io::write(&output, b"no end of line").unwrap();
        let mut heard = Vec::new();
        caught.last_words(5, &mut |piece| heard.push((piece.stream, piece.then)));
        assert_eq!(
            heard,
            [
                (0, StreamState::More),
                (0, StreamState::Ended),
                (1, StreamState::Closed)
            ]
        );
        drop(output);
        assert_eq!(pumped(&mut caught)[0].then, StreamState::Closed);
    }
}
