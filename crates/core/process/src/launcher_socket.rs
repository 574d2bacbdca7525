//! This task's end of the way to its launcher: a socket, and what has come through it for whoever asks.

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

/// Number of bytes that are read at once.
const PIECE: usize = 4096;
/// The destination of the events of a watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) context: u32,
    pub(crate) tag: i32,
    /// It happens again and again.
    pub(crate) stays: bool,
}

/// This task's end of the way to its launcher.
#[derive(Debug)]
pub(crate) struct Control {
    socket: OwnedFd,
    frames: FrameReader,
    unsent: Vec<u8>,
    last_id: u32,
    answers: FxHashMap<u32, Tell>,
    pub(crate) watches: FxHashMap<u32, Watch>,
    /// Lines of tasks' output that have begun, by task and stream.
    pub(crate) begun: FxHashMap<(u32, u32), Vec<u8>>,
    pub(crate) leases: Leases,
    pub(crate) members: Answers,
    /// The news that have been looked at.
    seen: u32,
    /// The launcher has ended it.
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

    /// Returns the number of a question that is asked next, or once. Never 0, which in a shared barrier means no question, and never that of a watch,
    /// which lives longer than others.
    pub(crate) fn next_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            if !self.watches.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    /// Fails if the launcher has ended: nothing comes from it any more.
    pub(crate) fn check(&self) -> Result<()> {
        match self.ended {
            true => Err(Error::Launcher(
                "the launcher of this job has ended, and cannot be asked for anything".into(),
            )),
            false => Ok(()),
        }
    }

    /// Writes what the launcher takes now. One that has ended takes nothing; its last words can still be read, and then its end.
    pub(crate) fn flush(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        // A handler of a signal would else find a frame half in the socket.
        let _blocked = Blocked::all();
        abort::sends();
        self.send_unsent();
        abort::sent(self.unsent.is_empty());
    }

    /// Returns whether there are other news than those that have been looked at.
    #[inline(always)]
    pub(crate) fn has_news(&self, news: u32) -> bool {
        self.seen != news
    }

    /// Writes what the launcher takes, and reads what it has sent with these news. Returns whether it has sent something, and whether that, or its end,
    /// is new.
    pub(crate) fn exchange(&mut self, news: u32) -> (bool, bool) {
        self.seen = news;
        let lived = !self.ended;
        self.flush();
        let moved = self.read();
        (moved, moved || lived && self.ended)
    }

    /// Puts a short message behind what is to be written.
    pub(crate) fn put(&mut self, ask: &Ask) {
        // It fits every frame.
        let _ = framing::put(ask, &mut self.unsent);
    }

    /// Puts a message behind what is to be written. Returns false if no frame holds it.
    pub(crate) fn put_bytes(&mut self, request: &[u8]) -> bool {
        framing::put_bytes(request, &mut self.unsent).is_ok()
    }

    /// Takes the answer to a question, if it has come.
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

    /// Reads what has arrived. Returns whether it was anything.
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

    /// Keeps answers that have come for whoever asked. Returns all else, in its order.
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
    /// Ends the socket, so that the launcher knows that nobody listens any more: the inherited descriptor stays open.
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

    /// A handler of a signal that aborts in another thread does not write into the middle of a frame.
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
                // The launcher takes it at once.
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
