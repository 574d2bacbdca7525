//! The tasks' output and the launcher's own sentences, in the form that the user asked for.
//!
//! Without labels the tasks of this host write to our standard output and error themselves; what tasks of other hosts
//! write is passed on as it comes.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};

use serde_json::{Value, json};

use crate::lines::Lines;
use crate::plan::Form;
use crate::refusal::Refusal;
use crate::sink::Sink;
use crate::streams::Heard;

/// Standard output and standard error.
const NAMES: [&str; 2] = ["stdout", "stderr"];

/// Everything that reaches the user.
#[derive(Debug)]
pub(crate) struct Output {
    form: Form,
    sinks: [Sink; 2],
    /// Lines that have begun, by rank and stream.
    lines: HashMap<(u32, usize), Lines>,
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
                lines: HashMap::new(),
            })
        };
        open().map_err(|errno| {
            Refusal::of_regatta(format!("the launcher cannot open its own output: {errno}"))
        })
    }

    /// Whether so much waits to be written by us that no more should be read.
    pub(crate) fn is_full(&self) -> bool {
        self.sinks.iter().any(Sink::is_full)
    }

    /// What must become writable before more can be written.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sinks
            .iter()
            .filter(|sink| !sink.is_empty())
            .map(Sink::fd)
    }

    /// Passes on what a task wrote. Returns whether there is a reader for more of it.
    pub(crate) fn pass(&mut self, heard: Heard) -> bool {
        let (form, sinks) = (self.form, &mut self.sinks);
        match heard {
            Heard::Bytes(_, which, bytes) if form == Form::Inherit => sinks[which].push(&[bytes]),
            Heard::Bytes(rank, which, bytes) => {
                let lines = self.lines.entry((rank, which)).or_default();
                lines.push(bytes, |line| show(form, sinks, rank, which, line));
            }
            Heard::End(rank, which) => {
                if let Some(mut lines) = self.lines.remove(&(rank, which)) {
                    lines.finish(|line| show(form, sinks, rank, which, line));
                }
                return false;
            }
        }
        let (Heard::Bytes(_, which, _) | Heard::End(_, which)) = heard;
        !self.sinks[if form == Form::Json { 0 } else { which }].is_closed()
    }

    pub(crate) fn flush(&mut self) {
        self.sinks.iter_mut().for_each(Sink::flush);
    }

    /// Whether everything has been written.
    pub(crate) fn is_flushed(&self) -> bool {
        self.sinks.iter().all(Sink::is_empty)
    }

    /// A sentence about output that was lost, if some was. It is for standard error in every form.
    pub(crate) fn tell_loss(&mut self) -> bool {
        let failed = |sink: &Sink| sink.failure();
        let Some((errno, name)) = self
            .sinks
            .iter()
            .zip(NAMES)
            .find_map(|(sink, name)| Some((failed(sink)?, name)))
        else {
            return false;
        };
        let what = match (self.form, name) {
            (Form::Json, _) => "the report of the job",
            (_, "stderr") => "what the tasks write to standard error",
            _ => "what the tasks write",
        };
        let sentence = format!(
            "regatta: {what} could not be written ({}), so a part of it is lost: make room where it goes, or send it elsewhere\n",
            std::io::Error::from(errno)
        );
        self.sinks[1].push(&[sentence.as_bytes()]);
        self.flush();
        true
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
