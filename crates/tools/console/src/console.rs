//! A session: reads lines, prints lines, and uses a machine.

use std::io::{self, Write};

use crate::aliases::Aliases;
use crate::commands;
use crate::jobs::Jobs;
use crate::machine::{Code, Host, Machine, Notice};
use crate::report;
use crate::traces::Events;
use crate::verbs::Verb;
use crate::words;

/// A session of the console with a machine.
pub struct Console<M> {
    pub(crate) machine: M,
    pub(crate) aliases: Aliases,
    pub(crate) jobs: Jobs,
    pub(crate) events: Events,
    said: Vec<u8>,
}

/// What to do after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Read another line.
    Line,
    /// End the session. The machine goes on.
    Quit,
    /// The machine has ended, so end the session.
    Halted,
}

impl<M: Machine> Console<M> {
    /// Returns a session with a machine.
    pub fn new(machine: M) -> Console<M> {
        Console {
            machine,
            aliases: Aliases::default(),
            jobs: Jobs::default(),
            events: Events::usual(),
            said: Vec::new(),
        }
    }

    /// Executes a line.
    pub fn line(&mut self, line: &str) -> Next {
        let words = match words::split(line) {
            Ok(words) => words,
            Err(words::Unmatched(mark)) => {
                self.print(format!("unmatched {mark}"));
                return Next::Line;
            }
        };
        let Ok(words) = self.aliases.expand(words) else {
            self.print("alias loop");
            return Next::Line;
        };
        let Some((first, rest)) = words.split_first() else {
            return Next::Line;
        };
        match Verb::meant(first) {
            Ok(verb) => {
                let (fewest, most) = verb.takes();
                if (fewest..=most).contains(&rest.len()) {
                    return commands::run(self, verb, rest);
                }
                self.print(format!("{}: wrong #args", verb.name()));
            }
            Err(several) if several.is_empty() => self.print(format!("{first}: not found")),
            Err(several) => self.print(format!(
                "{first}: not found; did you mean {}?",
                several.join(" or ")
            )),
        }
        Next::Line
    }

    /// Handles the notices of the machine, and prints lines about them.
    pub fn read_news(&mut self) -> Next {
        while let Some(news) = self.machine.news() {
            match news {
                Notice::Ended => {
                    self.print("");
                    self.print("Console: the virtual machine has ended");
                    return Next::Halted;
                }
                Notice::Job { job, tid, what } => {
                    let now = self.machine.now();
                    let told = self.jobs.handle_output(job, tid, what, now);
                    self.print_bytes(&told);
                }
                Notice::Event { job, event } => {
                    let told = self.jobs.handle_event(job, &event);
                    self.print_bytes(&told);
                }
                Notice::Added(tids) => {
                    let hosts = self
                        .machine
                        .hosts()
                        .map_or_else(|_| Vec::new(), |(_, hosts)| hosts);
                    let new = |host: &Host| tids.contains(&host.tid);
                    let hosts: Vec<_> = hosts.into_iter().filter(new).collect();
                    if !hosts.is_empty() {
                        self.print_all(report::new_hosts(&hosts));
                    }
                }
            }
        }
        Next::Line
    }

    /// Writes the output collected since the last call.
    pub fn flush_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let said = std::mem::take(&mut self.said);
        out.write_all(&said)?;
        out.flush()
    }

    /// Appends a line to the output.
    pub(crate) fn print(&mut self, line: impl AsRef<str>) {
        self.said.extend_from_slice(line.as_ref().as_bytes());
        self.said.push(b'\n');
    }

    /// Appends text to the output unchanged.
    pub(crate) fn print_bytes(&mut self, text: &[u8]) {
        self.said.extend_from_slice(text);
    }

    pub(crate) fn print_all(&mut self, lines: impl IntoIterator<Item = impl AsRef<str>>) {
        for line in lines {
            self.print(line);
        }
    }

    /// Returns a function that explains codes, for reports.
    pub(crate) fn explain(&self) -> impl Fn(Code) -> String + use<'_, M> {
        |code| self.machine.explain(code)
    }

    /// Returns the hosts, or none if the machine cannot list them. The library has then reported the error.
    pub(crate) fn hosts(&mut self) -> Vec<Host> {
        self.machine
            .hosts()
            .map_or_else(|_| Vec::new(), |(_, hosts)| hosts)
    }

    /// Returns the machine, for its descriptors.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Returns the machine when the session is over.
    pub fn into_machine(self) -> M {
        self.machine
    }
}

/// Returns the name of a host, or `-` for an unknown one.
pub(crate) fn name_of(hosts: &[Host], tid: i32) -> &str {
    hosts
        .iter()
        .find(|host| host.tid == tid)
        .map_or("-", |host| &host.name)
}

/// Parses a tid as users write it: hexadecimal, with or without a `t`. Returns 0 if it is invalid.
pub(crate) fn tid(word: &str) -> i32 {
    let digits = word.strip_prefix('t').unwrap_or(word);
    u32::from_str_radix(digits, 16).map_or(0, |tid| tid as i32)
}
