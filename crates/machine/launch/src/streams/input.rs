//! The command's standard input, if task 0 runs on another host: read by a child process and sent there in pieces.
//!
//! Only a process in the terminal's foreground group may read from a terminal, and the supervisor is in another group
//! on purpose. So a `cat` in the tasks' group reads the terminal, and the supervisor reads from `cat`.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use regatta_job::credits::SendWindow;
use regatta_program::Refusal;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal};

use crate::streams;
use crate::sys::{self, Image, TaskPlacement};
use crate::system::limits;
use crate::system::signals::Signals;

/// Maximum number of bytes of input in flight.
const WINDOW_BYTES: usize = 256 * 1024;

/// The unread rest of the standard input.
#[derive(Debug)]
pub(crate) struct Input {
    /// `None` if it has ended, or is not wanted any more.
    pipe: Option<OwnedFd>,
    reader: Option<Pid>,
    window: SendWindow,
    buffer: Vec<u8>,
}

impl Input {
    pub(crate) fn open(group: Pid, signals: &Signals) -> Result<Self, Refusal> {
        let cat = regatta_program::find("cat".as_ref(), None)?;
        let failed = |what: String| {
            Refusal::of_regatta(format!("standard input cannot be forwarded: {what}"))
        };
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .and_then(|pipe| rustix::io::ioctl_fionbio(&pipe.0, true).map(|()| pipe))
            .map_err(|errno| failed(errno.to_string()))?;
        let place = TaskPlacement {
            stdio: [None, Some(theirs.as_fd()), None],
            kept: [None, None, None],
            cores: None,
            group,
            files: None,
            mask: signals.before(),
        };
        let reader = Image::new(
            sys::c_string(cat.as_os_str().as_bytes()),
            vec![c"cat".to_owned()],
            Vec::new(),
        )
        .start(c"LC_ALL=C".to_owned(), &place)
        .map_err(|error| failed(format!("{error:?}")))?;
        Ok(Self {
            pipe: Some(ours),
            reader: Some(reader),
            window: SendWindow::open(WINDOW_BYTES),
            buffer: limits::buffer(streams::READ_BYTES)?,
        })
    }

    /// Returns the next piece, if there is one and the window has room for it. An empty piece is the end.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let pipe = self.pipe.as_ref().filter(|_| self.window.has_room())?;
        match rustix::io::read(pipe, &mut self.buffer[..]) {
            Ok(count) if count > 0 => {
                self.window.sent(count);
                Some(self.buffer[..count].to_vec())
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            _ => {
                self.pipe = None;
                Some(Vec::new())
            }
        }
    }

    /// Records that this many bytes have been consumed.
    pub(crate) fn taken(&mut self, bytes: usize) {
        self.window.repaid(bytes);
    }

    /// Closes the input, because it is not wanted any more.
    pub(crate) fn close(&mut self) {
        self.pipe = None;
        if let Some(reader) = self.reader {
            let _ = rustix::process::kill_process(reader, Signal::KILL);
        }
    }

    /// Returns the process that reads, while it runs. It gets no signals of the job.
    pub(crate) fn reader(&self) -> Option<Pid> {
        self.reader
    }

    /// Records the end of a child, if it is that process.
    pub(crate) fn reaped(&mut self, pid: Pid) {
        self.reader.take_if(|reader| *reader == pid);
    }

    /// Returns the descriptors to poll.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let pipe = self.pipe.as_ref().filter(|_| self.window.has_room());
        pipe.into_iter()
            .map(|pipe| PollFd::new(pipe, PollFlags::IN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hang_up::await_hang_up;

    fn input() -> (Input, OwnedFd) {
        let pipe = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        let (ours, theirs) = pipe.expect("a pipe");
        let input = Input {
            pipe: Some(ours),
            reader: None,
            window: SendWindow::open(WINDOW_BYTES),
            buffer: vec![0; 1024],
        };
        (input, theirs)
    }

    #[test]
    fn nothing_is_read_while_a_window_of_bytes_has_not_been_dealt_with() {
        let (mut input, theirs) = input();
        input.window.sent(WINDOW_BYTES - 1);
        rustix::io::write(&theirs, &[7; 1024 + 9]).expect("room");
        assert_eq!(input.next().map(|piece| piece.len()), Some(1024));
        assert_eq!((input.next(), input.polls().count()), (None, 0));
        input.taken(1023);
        assert_eq!((input.next(), input.polls().count()), (None, 0));
        input.taken(1);
        assert_eq!(input.polls().count(), 1);
        assert_eq!(input.next(), Some(vec![7; 9]));
    }

    #[test]
    fn the_end_is_told_once_by_an_empty_piece_and_a_pause_is_no_end() {
        let (mut input, theirs) = input();
        assert_eq!(input.next(), None);
        rustix::io::write(&theirs, b"last").expect("room");
        drop(theirs);
        input.pipe.iter().for_each(await_hang_up);
        assert_eq!(input.next(), Some(b"last".to_vec()));
        assert_eq!(input.next(), Some(Vec::new()));
        assert_eq!((input.next(), input.polls().count()), (None, 0));
    }

    #[test]
    fn input_that_nobody_wants_any_more_is_neither_read_nor_waited_for() {
        let (mut input, theirs) = input();
        rustix::io::write(&theirs, b"unread").expect("room");
        input.close();
        assert_eq!((input.next(), input.polls().count()), (None, 0));
    }

    #[test]
    fn more_bytes_dealt_with_than_were_sent_open_the_window_no_further() {
        let (mut input, _theirs) = input();
        input.window.sent(5);
        input.taken(usize::MAX);
        assert_eq!(input.window.on_their_way(), 0);
    }
}
