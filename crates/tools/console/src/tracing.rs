//! The trace of a job: the events of its tasks, and what these write, in a file or on the console.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use crate::events::Event;
use crate::machine::{Host, Output};
use crate::sddf::{self, Writer};

/// When something is heard: seconds and microseconds.
pub type Now = (i32, i32);

/// How a trace begins: whose it is, when, and what is said.
pub struct Heading {
    pub console: i32,
    pub now: Now,
    pub text: String,
}

/// The trace of a job, and the file that it goes to.
pub struct Trace {
    file: Option<Box<dyn Write>>,
    writer: Writer,
    /// Tasks of which the machine will say that they have ended.
    alive: BTreeSet<i32>,
    /// How often it has been said of tasks that they begin.
    begun: BTreeMap<i32, u32>,
}

impl Trace {
    /// In a file, or else on the console.
    pub fn new(file: Option<Box<dyn Write>>) -> Trace {
        Trace {
            file,
            writer: Writer::default(),
            alive: BTreeSet::new(),
            begun: BTreeMap::new(),
        }
    }

    /// The trace begins: with a heading of the console's, and the hosts that are there. The part for the console is given
    /// back, here and below.
    pub fn begin(&mut self, number: i32, heading: &Heading, hosts: &[Host]) -> Vec<u8> {
        let Heading { console, now, text } = heading;
        let mut told = self.record(number, *console, text);
        for host in hosts {
            let text = self.writer.write(&sddf::host_added(host, *now));
            told.extend(self.record(number, host.tid, &text));
        }
        told
    }

    /// This task has been started.
    pub fn started(&mut self, tid: i32) {
        self.alive.insert(tid);
    }

    /// All of its tasks have ended.
    pub fn is_over(&self) -> bool {
        self.alive.is_empty()
    }

    /// An event of a task, or one that says that it begins or has ended.
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

    /// Something has become of what a task writes; these lines are whole now.
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

    /// Nothing more comes.
    pub fn end(&mut self, number: i32) -> Vec<u8> {
        let flushed = self.file.as_mut().map_or(Ok(()), |file| file.flush());
        match flushed {
            Ok(()) => Vec::new(),
            Err(error) => format!("[{number}] its trace was not written: {error}\n").into_bytes(),
        }
    }

    fn record(&mut self, number: i32, tid: i32, text: &str) -> Vec<u8> {
        if let Some(file) = &mut self.file {
            match file.write_all(text.as_bytes()) {
                Ok(()) => return Vec::new(),
                Err(error) => {
                    self.file = None;
                    let why = format!("[{number}] its trace's file takes no more: {error}\n");
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
