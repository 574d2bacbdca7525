//! The tasks' output and the launcher's own sentences, in the form that the user asked for.
//!
//! Without labels the tasks write to our standard output and error themselves, and this does nothing. With them each
//! task has a pipe for each of the two, and all pipes are watched by one epoll descriptor, so that a thousand tasks cost
//! the launcher's loop one entry.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use serde_json::{Value, json};

use crate::lines::Lines;
use crate::plan::Form;
use crate::refusal::Refusal;
use crate::sink::Sink;

/// Standard output and standard error.
const NAMES: [&str; 2] = ["stdout", "stderr"];
const EVENTS: usize = 64;

/// Where one task's output, or its errors, come from.
#[derive(Debug)]
struct Stream {
    fd: OwnedFd,
    rank: u32,
    which: usize,
    lines: Lines,
}

/// Everything that reaches the user.
#[derive(Debug)]
pub(crate) struct Output {
    form: Form,
    sinks: [Sink; 2],
    streams: Vec<Option<Stream>>,
    epoll: OwnedFd,
    buffer: Vec<u8>,
}

impl Output {
    pub(crate) fn new(form: Form) -> Result<Self, Refusal> {
        let open = || -> rustix::io::Result<Self> {
            Ok(Self {
                form,
                sinks: [
                    Sink::new(std::io::stdout().as_fd())?,
                    Sink::new(std::io::stderr().as_fd())?,
                ],
                streams: Vec::new(),
                epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
                buffer: vec![0; 64 * 1024],
            })
        };
        open().map_err(|errno| {
            Refusal::of_regatta(format!("the launcher cannot open its own output: {errno}"))
        })
    }

    /// The standard output and error for a task about to start; none when it shares ours.
    pub(crate) fn pipes(&mut self, rank: u32) -> rustix::io::Result<[Option<OwnedFd>; 2]> {
        if self.form == Form::Inherit {
            return Ok([None, None]);
        }
        Ok([Some(self.pipe(rank, 0)?), Some(self.pipe(rank, 1)?)])
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
            lines: Lines::default(),
        }));
        Ok(theirs)
    }

    /// What is readable when a task has written, or nothing while too much is waiting to be written by us.
    pub(crate) fn sources(&self) -> Option<BorrowedFd<'_>> {
        let full = self.sinks.iter().any(Sink::is_full);
        (self.form != Form::Inherit && !full).then(|| self.epoll.as_fd())
    }

    /// What must become writable before more can be written.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sinks
            .iter()
            .filter(|sink| !sink.is_empty())
            .map(Sink::fd)
    }

    /// Moves what the tasks have written to our own output.
    pub(crate) fn pump(&mut self) {
        if self.sources().is_some() {
            let mut events = [const {
                epoll::Event {
                    flags: epoll::EventFlags::empty(),
                    data: epoll::EventData::new_u64(0),
                }
            }; EVENTS];
            let ready = epoll::wait(
                &self.epoll,
                &mut events[..],
                Some(&rustix::time::Timespec::default()),
            )
            .unwrap_or(0);
            for event in &events[..ready] {
                let index = event.data.u64() as usize;
                self.read(index);
            }
        }
        self.flush();
    }

    /// Reads everything that is still in the pipes; nobody writes to them any more.
    pub(crate) fn drain(&mut self) {
        for index in 0..self.streams.len() {
            while self.read(index) {}
            self.close(index);
        }
        self.flush();
    }

    /// One read from one stream. Returns whether there may be more.
    fn read(&mut self, index: usize) -> bool {
        let Some(stream) = self.streams[index].as_mut() else {
            return false;
        };
        match rustix::io::read(&stream.fd, &mut self.buffer[..]) {
            Ok(0) => self.close(index),
            Ok(count) => {
                let (rank, which) = (stream.rank, stream.which);
                let (form, sinks) = (self.form, &mut self.sinks);
                stream.lines.push(&self.buffer[..count], |line| {
                    show(form, sinks, rank, which, line)
                });
                let sink = &self.sinks[if form == Form::Json { 0 } else { which }];
                if sink.is_closed() {
                    // Our reader is gone: the task learns it as it would without labels, by a broken pipe.
                    self.streams[index] = None;
                }
                return true;
            }
            Err(Errno::AGAIN) => {}
            Err(Errno::INTR) => return true,
            Err(_) => self.close(index),
        }
        false
    }

    fn close(&mut self, index: usize) {
        if let Some(mut stream) = self.streams[index].take() {
            let (form, sinks) = (self.form, &mut self.sinks);
            stream
                .lines
                .finish(|line| show(form, sinks, stream.rank, stream.which, line));
        }
    }

    fn flush(&mut self) {
        self.sinks.iter_mut().for_each(Sink::flush);
    }

    /// Whether everything has been written.
    pub(crate) fn is_flushed(&self) -> bool {
        self.sinks.iter().all(Sink::is_empty)
    }

    /// A sentence of the launcher itself.
    pub(crate) fn say(&mut self, sentence: &str) {
        if self.form == Form::Json {
            self.event(&json!({"event": "note", "text": sentence}));
        } else {
            self.sinks[1].push(&[b"regatta: ", sentence.as_bytes(), b"\n"]);
            self.flush();
        }
    }

    /// Something for a program to read; silent in the other forms.
    pub(crate) fn event(&mut self, event: &Value) {
        if self.form == Form::Json {
            self.sinks[0].push(&[event.to_string().as_bytes(), b"\n"]);
            self.flush();
        }
    }
}

fn show(form: Form, sinks: &mut [Sink; 2], rank: u32, which: usize, line: &[u8]) {
    if form == Form::Json {
        let text = String::from_utf8_lossy(line);
        let event = json!({"event": "line", "task": rank, "stream": NAMES[which], "text": text});
        sinks[0].push(&[event.to_string().as_bytes(), b"\n"]);
    } else {
        sinks[which].push(&[format!("[{rank}] ").as_bytes(), line, b"\n"]);
    }
}
