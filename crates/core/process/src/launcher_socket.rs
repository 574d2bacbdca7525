//! This task's end of the connection to its launcher: a socket, and received answers until they are taken.

use std::os::fd::{AsRawFd, OwnedFd};

use regatta_connection::signal_mask::Blocked;
use regatta_engine::{Error, Result};
use regatta_wire::control::{Ask, Tell};
use regatta_wire::framing::{self, FrameReader};
use rustc_hash::FxHashMap;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use crate::abort;
use crate::known_members::Answers;
use crate::lease::Leases;

/// Maximum number of bytes per read.
const PIECE: usize = 4096;
/// The destination of the events of a watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) context: u32,
    pub(crate) tag: i32,
    /// The event can happen repeatedly.
    pub(crate) stays: bool,
}

/// This task's end of the connection to its launcher.
#[derive(Debug)]
pub(crate) struct Control {
    socket: OwnedFd,
    frames: FrameReader,
    unsent: Vec<u8>,
    last_id: u32,
    answers: FxHashMap<u32, Tell>,
    pub(crate) watches: FxHashMap<u32, Watch>,
    /// Unfinished lines of tasks' output, by task and stream.
    pub(crate) begun: FxHashMap<(u32, u32), Vec<u8>>,
    pub(crate) leases: Leases,
    pub(crate) members: Answers,
    /// The value of the news counter at the last read.
    seen: u32,
    /// The launcher has closed the connection.
    ended: bool,
}

impl Control {
    pub(crate) fn new(socket: OwnedFd) -> Control {
        abort::has_launcher(socket.as_raw_fd());
        Control {
            socket,
            frames: FrameReader::default(),
            unsent: Vec::new(),
            last_id: 0,
            answers: FxHashMap::default(),
            watches: FxHashMap::default(),
            begun: FxHashMap::default(),
            leases: Leases::default(),
            members: Answers::default(),
            seen: 0,
            ended: false,
        }
    }

    /// Returns a number for the next request. Never 0, which means no request in a shared barrier, and never the number of a current watch, which
    /// may exist for long.
    pub(crate) fn next_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            if !self.watches.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// Fails if the launcher has ended and will send nothing more.
    pub(crate) fn check(&self) -> Result<()> {
        match self.ended {
            true => Err(Error::Launcher(
                "the launcher of this job has ended, so requests to it fail".into(),
            )),
            false => Ok(()),
        }
    }

    /// Writes as much as the launcher accepts now. A launcher that has ended accepts nothing; its last messages can still be read, and then its end.
    pub(crate) fn flush(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        // Otherwise a signal handler could find an incomplete frame in the socket.
        let _blocked = Blocked::all();
        abort::sends();
        self.send_unsent();
        abort::sent(self.unsent.is_empty());
    }

    /// Returns whether there are news that were not read yet.
    #[inline(always)]
    pub(crate) fn has_news(&self, news: u32) -> bool {
        self.seen != news
    }

    /// Writes as much as the launcher accepts, and reads what it has sent up to this value of the news counter. Returns whether anything was read,
    /// and whether that or the launcher's end is new.
    pub(crate) fn exchange(&mut self, news: u32) -> (bool, bool) {
        self.seen = news;
        let lived = !self.ended;
        self.flush();
        let moved = self.read();
        (moved, moved || lived && self.ended)
    }

    /// Queues a short message.
    pub(crate) fn put(&mut self, ask: &Ask) {
        // The message fits into a frame.
        let _ = framing::put(ask, &mut self.unsent);
    }

    /// Queues a message. Returns false if it does not fit into a frame.
    pub(crate) fn put_bytes(&mut self, request: &[u8]) -> bool {
        framing::put_bytes(request, &mut self.unsent).is_ok()
    }

    /// Removes and returns the answer to a request, if it has arrived.
    pub(crate) fn take_answer(&mut self, id: u32) -> Option<Tell> {
        self.answers.remove(&id)
    }

    fn send_unsent(&mut self) {
        while !self.unsent.is_empty() && !self.ended {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&self.socket, &self.unsent, flags) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// Reads what has arrived. Returns whether there was anything.
    fn read(&mut self) -> bool {
        let mut moved = false;
        let mut piece = [0_u8; PIECE];
        while !self.ended {
            match rustix::net::recv(&self.socket, &mut piece, RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.ended = true,
                Ok((n, _)) => {
                    self.frames.push(&piece[..n]);
                    moved = true;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.ended = true,
            }
        }
        moved
    }

    /// Keeps the answers that have arrived until they are taken. Returns all other messages, in order.
    pub(crate) fn keep_answers(&mut self) -> Vec<Tell> {
        let mut unasked = Vec::new();
        loop {
            match self.frames.next_message::<Tell>() {
                Ok(None) => break,
                Ok(Some(tell)) => match tell.id() {
                    Some(id) => drop(self.answers.insert(id, tell)),
                    None => unasked.push(tell),
                },
                Err(_) => {
                    self.ended = true;
                    break;
                }
            }
        }
        unasked
    }
}

impl Drop for Control {
    /// Shuts the socket down, so that the launcher knows that this task does not read any more: the inherited descriptor stays open.
    fn drop(&mut self) {
        abort::has_no_launcher(self.socket.as_raw_fd());
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn the_last_words_of_a_launcher_are_heard_by_a_task_that_has_something_to_say() {
        let (launcher, ours) = UnixStream::pair().unwrap();
        let mut control = Control::new(OwnedFd::from(ours));
        let mut words = Vec::new();
        framing::put_bytes(b"last words", &mut words).unwrap();
        rustix::io::write(&launcher, &words).unwrap();
        drop(launcher);
        control.unsent.extend_from_slice(&words);
        control.flush();
        assert!(control.check().is_ok(), "there is something to read");
        assert!(control.read() && control.check().is_err());
        let heard = control.frames.next_bytes().unwrap();
        assert_eq!(heard, Some(&b"last words"[..]));
    }

    /// Tests that a signal handler that aborts in another thread does not write into the middle of a frame.
    #[test]
    fn other_threads_see_that_a_frame_is_being_written() {
        const TIME_LIMIT: Duration = Duration::from_secs(20);
        let (mut launcher, ours) = UnixStream::pair().unwrap();
        let mut control = Control::new(OwnedFd::from(ours));
        let is_over = AtomicBool::new(false);
        let is_seen = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let begun = Instant::now();
                let mut is_seen = false;
                while !is_seen && begun.elapsed() < TIME_LIMIT {
                    is_seen = abort::is_frame_cut();
                }
                is_over.store(true, Ordering::Relaxed);
                is_seen
            });
            while !is_over.load(Ordering::Relaxed) {
                // The launcher reads it at once.
                control.unsent.extend_from_slice(&[0; PIECE]);
                control.flush();
                launcher.read_exact(&mut [0; PIECE]).unwrap();
            }
            other.join().unwrap()
        });
        assert!(is_seen);
    }

    #[test]
    fn no_question_has_the_number_of_none() {
        let (_launcher, ours) = UnixStream::pair().unwrap();
        let mut control = Control::new(OwnedFd::from(ours));
        control.last_id = u32::MAX - 1;
        assert_eq!(control.next_id(), u32::MAX);
        assert_eq!(control.next_id(), 1);
    }

    #[test]
    fn no_question_has_the_number_of_a_watch_that_lives() {
        let (_launcher, ours) = UnixStream::pair().unwrap();
        let mut control = Control::new(OwnedFd::from(ours));
        let number = control.next_id();
        let watch = Watch {
            context: 0,
            tag: 0,
            stays: true,
        };
        control.watches.insert(number, watch);
        control.last_id = u32::MAX;
        assert_eq!(control.next_id(), number + 1);
    }
}
