//! The trace of a job: the events of its tasks and their output, in a file or on the console.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use crate::events::Event;
use crate::machine::{Host, Output};
use crate::sddf::{self, Writer};

/// The time of a notice: seconds and microseconds.
pub type Now = (i32, i32);

/// The heading of a trace: the console, the time, and the text.
pub struct Heading {
    pub console: i32,
    pub now: Now,
    pub text: String,
}

/// The trace of a job, and its file.
pub struct Trace {
    file: Option<Box<dyn Write>>,
    writer: Writer,
    /// Tasks whose end the machine will report.
    alive: BTreeSet<i32>,
    /// The number of start notices for each task.
    begun: BTreeMap<i32, u32>,
}

impl Trace {
    /// Returns a trace that goes to a file, or to the console if there is none.
    pub fn new(file: Option<Box<dyn Write>>) -> Trace {
        Trace {
            file,
            writer: Writer::default(),
            alive: BTreeSet::new(),
            begun: BTreeMap::new(),
        }
    }

    /// Begins the trace with the console's heading and the present hosts. Like the functions below, returns the part
    /// for the console.
    pub fn begin(&mut self, number: i32, heading: &Heading, hosts: &[Host]) -> Vec<u8> {
        let Heading { console, now, text } = heading;
        let mut told = self.record(number, *console, text);
        for host in hosts {
            let text = self.writer.write(&sddf::host_added(host, *now));
            told.extend(self.record(number, host.tid, &text));
        }
        told
    }

    /// Records that this task has been started.
    pub fn started(&mut self, tid: i32) {
        self.alive.insert(tid);
    }

    /// Returns whether all of its tasks have ended.
    pub fn is_over(&self) -> bool {
        self.alive.is_empty()
    }

    /// Records an event of a task. Some events mean that a task starts or has ended.
    pub fn handle_event(&mut self, number: i32, event: &Event) -> Vec<u8> {
        match event.name.as_str() {
            "newtask" => self.started(event.task()),
            "endtask" => {
                self.alive.remove(&event.task());
            }
            _ => {}
        }
        let text = self.writer.write(event);
        self.record(number, event.task(), &text)
    }

    /// Records a notice about a task's output. `lines` are the lines that are complete now.
    pub fn handle_output(
        &mut self,
        number: i32,
        tid: i32,
        what: &Output,
        lines: &[String],
        now: Now,
    ) -> Vec<u8> {
        let mut said: Vec<&str> = lines.iter().map(String::as_str).collect();
        match what {
            Output::Begun => {
                let times = self.begun.entry(tid).or_default();
                *times += 1;
                said.push(if *times == 1 { "CREATION" } else { "GOTSPAWN" });
            }
            Output::Text(_) => {}
            Output::End => said.push("GOTEOF"),
        }
        let mut told = Vec::new();
        for text in said {
            let text = self.writer.write(&sddf::output(tid, text, now));
            told.extend(self.record(number, tid, &text));
        }
        told
    }

    /// Ends the trace.
    pub fn end(&mut self, number: i32) -> Vec<u8> {
        let flushed = self.file.as_mut().map_or(Ok(()), |file| file.flush());
        match flushed {
            Ok(()) => Vec::new(),
            Err(error) => {
                format!("[{number}] the trace file was not written: {error}\n").into_bytes()
            }
        }
    }

    fn record(&mut self, number: i32, tid: i32, text: &str) -> Vec<u8> {
        if let Some(file) = &mut self.file {
            match file.write_all(text.as_bytes()) {
                Ok(()) => return Vec::new(),
                Err(error) => {
                    self.file = None;
                    let why = format!("[{number}] writing to the trace file failed: {error}\n");
                    return why.into_bytes();
                }
            }
        }
        let lines = text
            .lines()
            .map(|line| format!("[T{number}:t{tid:x}] {line}\n"));
        lines.collect::<String>().into_bytes()
    }
}
