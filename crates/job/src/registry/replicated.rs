//! A desk of which others keep copies: what changes it is written down, and makes the same of a copy.
//!
//! A desk has no clock and throws no dice, so the same changes in the same order make the same desk.

use std::ops::Deref;

use regatta_wire::control::{Ask, Output, Route, Tell, Then};
use regatta_wire::fields::Message;
use regatta_wire::{Malformed, messages};

use super::{Deed, Desk, Host, Refused};
use crate::caught::Piece;
use crate::course::End;

messages! {
    /// Something that changes a desk.
    pub(crate) Change {
        /// A task asks something.
        1 Asked { task: u32, bytes: Vec<u8> }
        /// Numbers are given to tasks.
        2 Tasks { parent: Option<u32>, hosts: Vec<u32>, program: Vec<u8>, route: Option<Route> }
        /// A task runs.
        3 Started { task: u32, pid: u32 }
        /// A task has ended.
        4 Ended { task: u32, end: End }
        /// A host has come.
        5 HostAdded { host: Host }
        /// A host is lost.
        6 HostLost { number: u32 }
        /// A task is told what the desk does not know of itself.
        7 Said { task: u32, bytes: Vec<u8> }
        /// The tasks from this number on are their own parents.
        8 Orphaned { from: u32 }
        /// Their births are told.
        9 Births { from: u32 }
        /// It is asked where goes what tasks write that a task starts.
        10 Routed { by: u32, output: Output }
        /// A task hears no more of what others write.
        11 Hushed { task: u32 }
        /// A task writes no more to a stream.
        12 Closed { task: u32, stream: u32 }
        /// Nor to any other.
        13 Silent { task: u32 }
        /// A host is so fast.
        14 Speed { host: u32, speed: u32 }
        /// A task has been told something so often, with what a former launcher had told it.
        15 Counted { task: u32, count: u32 }
        /// It has heard so many words.
        16 Heard { task: u32, count: u32 }
        /// A host of this run is of the job, or is not for it.
        17 Known { run: String }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Original {
    desk: Desk,
    /// None: nobody has a copy.
    changes: Option<Vec<Change>>,
    /// How many changes there were at the last one that a task could miss.
    last: u64,
}

impl Deref for Original {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.desk
    }
}

impl Original {
    /// `kept` says whether there may be copies.
    pub(crate) fn new(mut desk: Desk, kept: bool) -> Self {
        if kept {
            desk.remember();
        }
        Self {
            desk,
            changes: kept.then(Vec::new),
            last: 0,
        }
    }

    /// The changes since this was last asked.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        self.changes
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// After so many changes the desk was as it is, but for what has only been looked at. None that a copy has to know: 0.
    pub(crate) fn last_change(&self) -> u64 {
        self.last
    }

    fn note(&mut self, change: impl FnOnce() -> Change) {
        self.note_light(change);
        if self.changes.is_some() {
            self.last = self.desk.changes;
        }
    }

    /// Of a change that nobody misses: a question that changes nothing, and who has heard how much.
    fn note_light(&mut self, change: impl FnOnce() -> Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change());
            self.desk.changes += 1;
        }
    }

    pub(crate) fn add_tasks(
        &mut self,
        parent: Option<u32>,
        hosts: &[u32],
        program: &[u8],
        route: Option<Route>,
    ) -> u32 {
        self.note(|| Change::Tasks {
            parent,
            hosts: hosts.to_vec(),
            program: program.to_vec(),
            route,
        });
        self.desk.add_tasks(parent, hosts, program, route)
    }

    pub(crate) fn orphan(&mut self, from: u32) {
        self.note(|| Change::Orphaned { from });
        self.desk.orphan(from);
    }

    pub(crate) fn tell_births(&mut self, from: u32) {
        self.note(|| Change::Births { from });
        self.desk.tell_births(from);
    }

    pub(crate) fn route(&mut self, by: u32, output: Output) -> Option<Route> {
        self.note(|| Change::Routed { by, output });
        self.desk.route(by, output)
    }

    pub(crate) fn hush(&mut self, task: u32) -> bool {
        self.note(|| Change::Hushed { task });
        self.desk.hush(task)
    }

    /// What is written is no business of a copy, but where it ends is.
    pub(crate) fn wrote(&mut self, piece: &mut Piece) -> bool {
        if piece.then == Then::Closed {
            let (task, stream) = (piece.task, piece.stream);
            self.note(|| Change::Closed { task, stream });
        }
        self.desk.wrote(piece)
    }

    pub(crate) fn writes_no_more(&mut self, task: u32) {
        self.note(|| Change::Silent { task });
        self.desk.writes_no_more(task);
    }

    /// See [`Desk::lend`].
    pub(crate) fn lend(&mut self, members: &[u32], gate: u64) {
        self.desk.lend(members, gate);
    }

    pub(crate) fn take_said(&mut self) -> Vec<(u32, Tell)> {
        self.desk.take_said()
    }

    /// See [`Desk::untold`].
    pub(crate) fn untold(&mut self, task: u32, heard: u32) -> Vec<Vec<u8>> {
        let again = self.desk.untold(task, heard);
        let count = self.desk.told_count(task);
        self.note_light(|| Change::Counted { task, count });
        again
    }

    /// A task has heard so many words.
    pub(crate) fn has_heard(&mut self, task: u32, count: u32) {
        self.note_light(|| Change::Heard { task, count });
        self.desk.has_heard(task, count);
    }

    /// Says something to a task that the desk does not know of itself.
    pub(crate) fn say(&mut self, to: u32, what: Tell) {
        self.note(|| {
            let mut bytes = Vec::new();
            what.encode(&mut bytes);
            Change::Said { task: to, bytes }
        });
        self.desk.say(to, what);
    }

    /// Answers a question of which the desk does not know what came.
    pub(crate) fn answer(&mut self, to: u32, id: u32, outcome: Result<u64, Refused>) {
        self.say(to, super::answer(id, outcome));
    }

    /// A task asks something, in these bytes. What makes no sense is not answered: its asker is no task of this version.
    pub(crate) fn asked(&mut self, by: u32, bytes: &[u8]) -> Option<Deed> {
        let ask = Ask::decode(bytes).ok()?;
        let change = || Change::Asked {
            task: by,
            bytes: bytes.to_vec(),
        };
        match ask {
            Ask::Tasks { .. }
            | Ask::Hosts { .. }
            | Ask::Names { .. }
            | Ask::Members { .. }
            | Ask::Groups { .. } => self.note_light(change),
            _ if ask.id().is_some() => self.note(change),
            _ => {}
        }
        self.desk.asked(by, ask)
    }

    pub(crate) fn started(&mut self, task: u32, pid: u32) {
        self.note(|| Change::Started { task, pid });
        self.desk.started(task, pid);
    }

    pub(crate) fn ended(&mut self, task: u32, end: End) {
        self.note(|| Change::Ended { task, end });
        self.desk.ended(task, end);
    }

    pub(crate) fn host_added(&mut self, host: Host) {
        self.note(|| Change::HostAdded { host: host.clone() });
        self.desk.host_added(host);
    }

    pub(crate) fn note_known(&mut self, run: &str) {
        let run = run.to_owned();
        self.desk.note_known(&run);
        self.note(|| Change::Known { run });
    }

    pub(crate) fn set_speed(&mut self, host: u32, speed: u32) {
        self.note(|| Change::Speed { host, speed });
        self.desk.set_speed(host, speed);
    }

    pub(crate) fn host_lost(&mut self, number: u32) {
        self.note(|| Change::HostLost { number });
        self.desk.host_lost(number);
    }
}

impl Desk {
    /// Makes the same of a copy. What is said is only remembered.
    pub(crate) fn follow(&mut self, change: Change) -> Result<(), Malformed> {
        self.changes = self.changes.saturating_add(1);
        match change {
            Change::Asked { task, bytes } => drop(self.asked(task, Ask::decode(&bytes)?)),
            Change::Tasks {
                parent,
                hosts,
                program,
                route,
            } => drop(self.add_tasks(parent, &hosts, &program, route)),
            Change::Orphaned { from } => self.orphan(from),
            Change::Births { from } => self.tell_births(from),
            Change::Routed { by, output } => drop(self.route(by, output)),
            Change::Hushed { task } => drop(self.hush(task)),
            Change::Closed { task, stream } => self.closed(task, stream),
            Change::Silent { task } => self.writes_no_more(task),
            Change::Started { task, pid } => self.started(task, pid),
            Change::Ended { task, end } => self.ended(task, end),
            Change::HostAdded { host } => self.host_added(host),
            Change::HostLost { number } => self.host_lost(number),
            Change::Known { run } => self.note_known(&run),
            Change::Speed { host, speed } => self.set_speed(host, speed),
            Change::Heard { task, count } => self.has_heard(task, count),
            Change::Counted { task, count } => self.set_told_count(task, count),
            Change::Said { task, bytes } => self.say(task, Tell::decode(&bytes)?),
        }
        self.take_said();
        Ok(())
    }
}
