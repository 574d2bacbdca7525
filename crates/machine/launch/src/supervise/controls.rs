//! The sockets on which the tasks of this host send requests to their launcher. Each task inherits one.
//!
//! All are watched by one epoll descriptor, so that a thousand tasks need one entry in the loop's `poll`. Nothing here
//! blocks: messages that a task does not read now are kept in memory, up to a limit.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use regatta_program::Refusal;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use crate::system::limits;
use regatta_wire::framing::{self, FrameReader};

const MAX_EVENTS: usize = 64;
/// Size of one read, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// Unread bytes of a task at which it is considered not to read any more.
const MAX_UNREAD_BYTES: usize = 64 << 20;

/// The launcher's end of one task's socket.
#[derive(Debug)]
struct Line {
    socket: OwnedFd,
    frames: FrameReader,
    unsent: Vec<u8>,
}

/// The launcher's ends of the sockets of this host's tasks.
#[derive(Debug)]
pub(crate) struct Controls {
    lines: HashMap<u32, Line>,
    epoll: OwnedFd,
    buffer: Vec<u8>,
    /// Tasks whose sockets have ended, not reported yet.
    ended: Vec<u32>,
    /// Tasks that had not read everything, and got further bytes since.
    pub(crate) written: Vec<u32>,
}

impl Controls {
    pub(crate) fn new() -> Result<Self, Refusal> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| {
            Refusal::of_regatta(format!(
                "the launcher cannot watch its tasks' requests: {errno}"
            ))
        })?;
        Ok(Self {
            lines: HashMap::new(),
            epoll,
            buffer: limits::buffer(PIECE_BYTES)?,
            ended: Vec::new(),
            written: Vec::new(),
        })
    }

    /// Creates a socket for a task about to start. Returns the task's end.
    pub(crate) fn open(&mut self, task: u32) -> rustix::io::Result<OwnedFd> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        self.add(task, ours)?;
        Ok(theirs)
    }

    /// Watches this socket for requests of a task.
    pub(crate) fn add(&mut self, task: u32, socket: OwnedFd) -> rustix::io::Result<()> {
        let data = EventData::new_u64(u64::from(task));
        epoll::add(&self.epoll, &socket, data, EventFlags::IN)?;
        let (frames, unsent) = (FrameReader::default(), Vec::new());
        self.lines.insert(
            task,
            Line {
                socket,
                frames,
                unsent,
            },
        );
        Ok(())
    }

    /// Returns a descriptor that is readable when a task has sent a request.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Returns whether a task's socket is open.
    pub(crate) fn has(&self, task: u32) -> bool {
        self.lines.contains_key(&task)
    }

    /// Closes the socket of a task that has ended.
    pub(crate) fn close(&mut self, task: u32) {
        if let Some(line) = self.lines.remove(&task) {
            // If another process has a descriptor of this socket, epoll would report its end as long as that lives.
            let _ = epoll::delete(&self.epoll, &line.socket);
        }
    }

    /// Reads the requests that have arrived completely, and passes them to `asked`. Returns the tasks that have closed
    /// their sockets.
    pub(crate) fn read_requests(&mut self, mut asked: impl FnMut(u32, &[u8])) -> Vec<u32> {
        let mut events = [const {
            epoll::Event {
                flags: EventFlags::empty(),
                data: EventData::new_u64(0),
            }
        }; MAX_EVENTS];
        let now = rustix::time::Timespec::default();
        let ready = epoll::wait(&self.epoll, &mut events[..], Some(&now)).unwrap_or(0);
        let mut ended = std::mem::take(&mut self.ended);
        for event in &events[..ready] {
            let task = event.data.u64() as u32;
            let Some(line) = self.lines.get_mut(&task) else {
                continue;
            };
            let flags = event.flags;
            if !line.unsent.is_empty() {
                self.written.push(task);
            }
            let lives = line.flush(&self.epoll, task)
                && (!flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR)
                    || line.read(&mut self.buffer))
                && line.take(|bytes| asked(task, bytes));
            if !lives {
                self.close(task);
                ended.push(task);
            }
        }
        ended
    }

    /// Sends a message to a task. What it does not read now is kept.
    pub(crate) fn send(&mut self, task: u32, bytes: &[u8]) {
        let Some(line) = self.lines.get_mut(&task) else {
            return;
        };
        let fits = framing::put_bytes(bytes, &mut line.unsent).is_ok();
        if !fits || !line.flush(&self.epoll, task) || line.unsent.len() > MAX_UNREAD_BYTES {
            self.close(task);
            self.ended.push(task);
        }
    }
}

impl Line {
    /// Reads once. Returns false if the other end is closed.
    fn read(&mut self, buffer: &mut [u8]) -> bool {
        match rustix::io::read(&self.socket, &mut *buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.frames.push(&buffer[..count]);
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        }
    }

    /// Passes on complete requests. Returns false if the bytes are malformed.
    fn take(&mut self, mut asked: impl FnMut(&[u8])) -> bool {
        loop {
            match self.frames.next_bytes() {
                Ok(Some(bytes)) => asked(bytes),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Writes what the task takes now. If it has ended, the bytes are dropped, and its last requests are read before
    /// its end. Returns false if the socket cannot be watched.
    fn flush(&mut self, epoll: &OwnedFd, task: u32) -> bool {
        let mut sent = 0;
        let mut full = false;
        while sent < self.unsent.len() && !full {
            match rustix::net::send(&self.socket, &self.unsent[sent..], SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => full = true,
                Err(_) => sent = self.unsent.len(),
            }
        }
        if sent == 0 && !full {
            return true;
        }
        self.unsent.drain(..sent);
        let more = match full {
            true => EventFlags::IN | EventFlags::OUT,
            false => EventFlags::IN,
        };
        epoll::modify(
            epoll,
            &self.socket,
            EventData::new_u64(u64::from(task)),
            more,
        )
        .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: &[u8]) -> Vec<u8> {
        let mut stream = Vec::new();
        framing::put_bytes(bytes, &mut stream).unwrap();
        stream
    }

    #[test]
    fn questions_arrive_whole_with_who_asks() {
        let mut controls = Controls::new().unwrap();
        let (one, two) = (controls.open(1).unwrap(), controls.open(2).unwrap());
        let question = written(b"what");
        rustix::io::write(&one, &question[..3]).unwrap();
        rustix::io::write(&two, &question).unwrap();
        let mut heard = Vec::new();
        controls.read_requests(|task, bytes| heard.push((task, bytes.to_vec())));
        rustix::io::write(&one, &question[3..]).unwrap();
        controls.read_requests(|task, bytes| heard.push((task, bytes.to_vec())));
        assert_eq!(heard, [(2, b"what".to_vec()), (1, b"what".to_vec())]);
        drop(two);
        assert_eq!(controls.read_requests(|_, _| ()), [2]);
    }

    #[test]
    fn answers_wait_for_a_task_that_does_not_read_up_to_a_limit() {
        let mut controls = Controls::new().unwrap();
        let task = controls.open(1).unwrap();
        let answer = vec![7; 8 << 20];
        controls.send(1, &answer);
        let mut frames = FrameReader::default();
        let mut buffer = vec![0; 1 << 16];
        let came = loop {
            let count = rustix::io::read(&task, &mut buffer[..]).unwrap();
            frames.push(&buffer[..count]);
            if let Some(bytes) = frames.next_bytes().unwrap() {
                break bytes.to_vec();
            }
            // A task that sleeps by now must be woken for the rest.
            controls.read_requests(|_, _| ());
            assert!(controls.written.iter().all(|&task| task == 1));
        };
        assert_eq!(came, answer);
        assert!(!std::mem::take(&mut controls.written).is_empty());
        for _ in 0..12 {
            controls.send(1, &answer);
        }
        assert!(controls.lines.is_empty());
        assert_eq!(controls.read_requests(|_, _| ()), [1]);
    }

    #[test]
    fn the_last_words_of_a_task_that_has_not_read_everything_are_heard() {
        let mut controls = Controls::new().unwrap();
        let task = controls.open(1).unwrap();
        rustix::io::write(&task, &written(b"last words")).unwrap();
        controls.send(1, &vec![7; 8 << 20]);
        drop(task);
        let mut heard = Vec::new();
        while controls
            .read_requests(|_, bytes| heard.push(bytes.to_vec()))
            .is_empty()
        {}
        assert_eq!(heard, [b"last words".to_vec()]);
        assert!(controls.lines.is_empty());
    }

    #[test]
    fn nonsense_ends_the_conversation() {
        let mut controls = Controls::new().unwrap();
        let task = controls.open(4).unwrap();
        rustix::io::write(&task, &[255; 8]).unwrap();
        assert_eq!(controls.read_requests(|_, _| ()), [4]);
    }
}
