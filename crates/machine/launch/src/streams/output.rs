//! The tasks' output and the launcher's own sentences, in the form that the user wants.
//!
//! Without labels the tasks of this host write directly to the launcher's standard output and error. Output of tasks on
//! other hosts is passed on unchanged.
//!
//! A journal is the log of a resident job. It has a size limit, so that runaway tasks do not fill the disk. Bytes
//! beyond the limit are read and discarded, so that tasks do not block.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};

use regatta_program::Refusal;
use serde_json::{Value, json};

use crate::plan::Form;
use crate::streams::Heard;
use crate::streams::lines::Lines;
use crate::streams::nonblocking::Sink;
use crate::sys;
use crate::words;

/// Standard output and standard error.
const NAMES: [&str; 2] = ["stdout", "stderr"];

/// All output to the user.
#[derive(Debug)]
pub(crate) struct Output {
    form: Form,
    sinks: [Sink; 2],
    /// Incomplete lines, by rank and stream.
    lines: HashMap<(u32, usize), Lines>,
    /// Number of bytes that the journal may still take.
    room: usize,
}

/// The variable that limits a journal, the same as that of PVM's daemon, and the default limit.
const LIMIT: &str = "PVMDLOGMAX";
const DEFAULT_LIMIT_BYTES: usize = 1_000_000;
/// The last line of a journal that has reached its limit.
const CUT: &[u8] = b"\n*** logging truncated\n";

/// Returns the limit of a journal in bytes.
fn limit() -> usize {
    let named = std::env::var(LIMIT).ok().and_then(|text| text.parse().ok());
    named.unwrap_or(DEFAULT_LIMIT_BYTES)
}

/// The writer of a line: a task, and the host it runs on.
#[derive(Clone, Copy, Debug)]
struct Writer {
    rank: u32,
    host: u32,
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
                room: limit(),
            })
        };
        open().map_err(|errno| {
            Refusal::of_regatta(format!("the launcher cannot open its own output: {errno}"))
        })
    }

    /// Returns whether so much waits to be written that no more should be read.
    pub(crate) fn is_full(&self) -> bool {
        self.sinks.iter().any(Sink::is_full)
    }

    /// Returns the descriptors that must become writable before more can be written.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sinks
            .iter()
            .filter(|sink| !sink.is_empty())
            .map(Sink::fd)
    }

    /// Passes on what a task has written. Returns whether more of it will be read.
    pub(crate) fn pass(&mut self, heard: Heard, host: u32) -> bool {
        let form = self.form;
        let Output {
            sinks, lines, room, ..
        } = self;
        match heard {
            Heard::Bytes(_, which, bytes) if form == Form::Inherit => sinks[which].push(&[bytes]),
            Heard::Bytes(rank, which, bytes) => {
                let lines = lines.entry((rank, which)).or_default();
                lines.push(bytes, |line| {
                    put(form, sinks, room, Writer { rank, host }, which, line)
                });
            }
            Heard::End(rank, which) => {
                if let Some(mut lines) = lines.remove(&(rank, which)) {
                    lines.finish(|line| put(form, sinks, room, Writer { rank, host }, which, line));
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

    /// Returns whether everything has been written.
    pub(crate) fn is_flushed(&self) -> bool {
        self.sinks.iter().all(Sink::is_empty)
    }

    /// Reports lost output in a sentence on standard error, in every form. Returns whether any was lost.
    pub(crate) fn report_loss(&mut self) -> bool {
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
            (_, "stderr") => "the standard error of the tasks",
            _ => "the output of the tasks",
        };
        let sentence = format!(
            "regatta: {what} could not be written ({}), so a part of it is lost: free space at its destination, or redirect it\n",
            std::io::Error::from(errno)
        );
        self.sinks[1].push(&[sentence.as_bytes()]);
        self.flush();
        true
    }

    /// Writes a sentence of the launcher.
    pub(crate) fn report(&mut self, sentence: &str) {
        if self.form == Form::Json {
            self.event(&json!({"event": "note", "text": sentence}));
        } else {
            let sentence = words::printable(sentence);
            self.sinks[1].push(&[b"regatta: ", sentence.as_bytes(), b"\n"]);
            self.flush();
        }
    }

    /// Writes an event for a program, if the form is JSON.
    pub(crate) fn event(&mut self, event: &Value) {
        if self.form == Form::Json {
            self.sinks[0].push(&[event.to_string().as_bytes(), b"\n"]);
            self.flush();
        }
    }
}

/// Writes a line of a task in the user's form.
fn put(
    form: Form,
    sinks: &mut [Sink; 2],
    room: &mut usize,
    writer: Writer,
    which: usize,
    line: &[u8],
) {
    match form {
        Form::Journal => note(sinks, room, writer, line),
        form => show(form, sinks, writer.rank, which, line),
    }
}

/// Writes a line of a journal in the format of PVM's log: the writer of the log, the time, the task, with PVM's
/// numbers.
fn note(sinks: &mut [Sink; 2], room: &mut usize, writer: Writer, line: &[u8]) {
    if *room == 0 {
        return;
    }
    let head = head(writer, sys::local_time());
    sinks[1].push(&[head.as_bytes(), line, b"\n"]);
    *room = room.saturating_sub(head.len() + line.len() + 1);
    if *room == 0 {
        sinks[1].push(&[CUT]);
    }
}

fn head(Writer { rank, host }: Writer, [month, day, hour, minute, second]: [i32; 5]) -> String {
    let task = (host + 1) << 18 | (rank + 1) & 0x3ffff;
    format!("[t80040000] {month:02}/{day:02} {hour:02}:{minute:02}:{second:02} [t{task:x}] ")
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_journal_says_who_and_when_and_ends_at_its_limit() {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let sink = || Sink::new(writer.as_fd()).expect("its end");
        let mut output = Output {
            form: Form::Journal,
            sinks: [sink(), sink()],
            lines: HashMap::new(),
            room: 120,
        };
        for _ in 0..10 {
            assert!(output.pass(Heard::Bytes(1, 0, b"one line\n"), 0));
        }
        output.flush();
        drop((output, writer));
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[0].starts_with("[t80040000] "), "{text}");
        assert!(lines[0].ends_with(" [t40002] one line"), "{text}");
        assert_eq!(lines[3..], ["", "*** logging truncated"]);
    }

    #[test]
    fn its_lines_begin_as_those_of_pvm() {
        let writer = Writer { rank: 6, host: 1 };
        let said = head(writer, [3, 7, 9, 0, 59]);
        assert_eq!(said, "[t80040000] 03/07 09:00:59 [t80007] ");
    }
}
