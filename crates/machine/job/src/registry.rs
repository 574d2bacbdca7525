//! The registry of a job: its tasks and hosts, names, groups and watches, and the answers to what tasks request.
//!
//! A state machine without clock and processes. Requests and events go in. Messages to tasks are queued until
//! [`Registry::take_messages`]. Work that needs processes, hosts or a clock is returned to the caller as an [`Effect`].
//!
//! | file | part |
//! |---|---|
//! | `requests.rs`, `effect.rs` | what tasks request, and what the launcher must do for it |
//! | `names.rs` | named entries: mailboxes |
//! | `groups.rs` | named groups and their barriers |
//! | `watches.rs` | which task is notified of which end, loss or arrival |
//! | `outputs.rs` | which task receives the output of which others |
//! | `placing.rs` | the hosts on which tasks are started |
//! | `sent.rs` | messages kept until they are acknowledged |
//! | `replicated.rs`, `snapshot.rs` | copies on other hosts: changes and snapshots |

mod effect;
mod groups;
mod names;
mod outputs;
mod placing;
mod replicated;
mod requests;
mod sent;
mod snapshot;
#[cfg(test)]
mod tests;
mod watches;

use std::rc::Rc;

use regatta_wire::control::{Ending, Event, MAX_REQUEST_BYTES, RequestError, Route, Tell};
use regatta_wire::fields::Message;

use crate::end::End;
use crate::lifecycle::Decision;
pub use effect::{Effect, HostChange, Requester};
use groups::Groups;
use names::Names;
pub use outputs::Piece;
use outputs::TaskOutput;
pub use replicated::{Change, ReplicatedRegistry};
use sent::SentLog;
pub use sent::{ACKNOWLEDGE_BYTES, ACKNOWLEDGE_MESSAGES, is_resent};
use watches::Watches;

/// A host of the job, as tasks can query it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRecord {
    /// The host's number in the job, never reused.
    pub number: u32,
    /// The name by which the job knows the host.
    pub name: String,
    /// The architecture of the host's processors, as Rust names it.
    pub architecture: String,
    /// Number of tasks that can run there at once.
    pub cores: u32,
    /// Speed relative to other hosts. [`DEFAULT_SPEED`] unless it has been set.
    pub speed: u32,
    /// False once the host is lost or given back. Its record stays.
    pub alive: bool,
}

/// The speed of a host for which none has been set.
pub const DEFAULT_SPEED: u32 = 1000;

/// A task that has a number, whether or not it still runs.
#[derive(Clone, Debug)]
struct TaskRecord {
    parent: Option<u32>,
    host: u32,
    /// The pid, or 0 if the task has not been started yet.
    pid: u32,
    program: Rc<[u8]>,
    ended: Option<Ending>,
    /// The signal by which another task has requested its death, or 0.
    kill_requested: i32,
    output: TaskOutput,
}

/// Why a request is refused: a kind and a sentence.
pub type Refused = (RequestError, String);

/// The registry of one job; see the module.
#[derive(Debug)]
pub struct Registry {
    /// Indexed by task number.
    tasks: Vec<TaskRecord>,
    hosts: Vec<HostRecord>,
    /// Identities of the runs of hosts that are or were in the job, or could not join it. None of them is added again.
    known_runs: Vec<String>,
    watches: Watches,
    names: Names,
    groups: Groups,
    /// Messages kept until they are acknowledged, or `None` if there are no copies and nothing is ever sent again.
    sent: Option<SentLog>,
    /// Number of changes that have been applied. Of two copies, the one with the higher number knows everything that
    /// the other does.
    changes: u64,
    /// Decisions about the end of the job.
    decision: Decision,
    /// The number of tasks of which watchers and receivers have been notified.
    announced: u32,
    /// Messages that the caller has not taken yet.
    outgoing: Vec<(u32, Tell)>,
}

impl Registry {
    /// Returns the registry of a job that begins with one task of `program` for each entry in `host_of`, which is the
    /// number of its host.
    pub fn new(hosts: Vec<HostRecord>, host_of: &[u32], program: &[u8]) -> Self {
        let mut registry = Self {
            tasks: Vec::new(),
            hosts,
            known_runs: Vec::new(),
            watches: Watches::default(),
            names: Names::default(),
            groups: Groups::default(),
            sent: None,
            changes: 0,
            decision: Decision::default(),
            announced: host_of.len() as u32,
            outgoing: Vec::new(),
        };
        registry.add_tasks(None, host_of, program, None);
        registry
    }

    /// Adds new tasks, one for each host number in `host_of`, and returns the number of the first. Their output follows
    /// `route`, or goes to the job's output if that is `None`.
    pub fn add_tasks(
        &mut self,
        parent: Option<u32>,
        host_of: &[u32],
        program: &[u8],
        route: Option<Route>,
    ) -> u32 {
        let first = self.tasks.len() as u32;
        let program: Rc<[u8]> = program.into();
        self.tasks.extend(host_of.iter().map(|&host| TaskRecord {
            parent,
            host,
            pid: 0,
            program: program.clone(),
            ended: None,
            kill_requested: 0,
            output: TaskOutput::to(route),
        }));
        first
    }

    /// Makes each task from this number on its own parent, because the task that started them does not want to be their
    /// parent.
    pub fn detach(&mut self, from: u32) {
        for (number, task) in (0..).zip(&mut self.tasks).skip(from as usize) {
            task.parent = Some(number);
        }
    }

    /// Returns the version of the memberships in named groups. It differs after each change, and is never 0.
    pub fn groups_version(&self) -> u64 {
        self.groups.changes() + 1
    }

    /// Returns how many changes have been applied, here and under former launchers. Counted only if copies are kept.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the number of tasks of which watchers and receivers have been notified.
    pub fn announced(&self) -> u32 {
        self.announced
    }

    /// Returns the decisions about the end of the job.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Sets the decisions about the end of the job.
    pub fn set_decision(&mut self, decision: Decision) {
        self.decision = decision;
    }

    /// Returns the living tasks for which another task has requested SIGKILL.
    pub fn killed_at_once(&self) -> Vec<u32> {
        let tasks = 0..self.task_count();
        tasks.filter(|task| self.is_killed_at_once(*task)).collect()
    }

    /// Returns whether another task has requested SIGKILL for this living task.
    pub fn is_killed_at_once(&self, task: u32) -> bool {
        let task = self.tasks.get(task as usize);
        task.is_some_and(|task| task.ended.is_none() && task.kill_requested == libc::SIGKILL)
    }

    /// Returns how many task numbers have been assigned.
    pub fn task_count(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// Returns all hosts that are or were in the job, in the order of their arrival.
    pub fn hosts(&self) -> &[HostRecord] {
        &self.hosts
    }

    /// Returns the pid of a task, or 0 if it has not been started yet or does not exist.
    pub fn pid(&self, task: u32) -> u32 {
        self.tasks.get(task as usize).map_or(0, |task| task.pid)
    }

    /// Returns the number of the host of a task.
    pub fn host_of(&self, task: u32) -> Option<u32> {
        self.tasks.get(task as usize).map(|task| task.host)
    }

    /// Returns whether a task has a number and has not ended: it runs, or is to be started.
    pub fn is_alive(&self, task: u32) -> bool {
        let task = self.tasks.get(task as usize);
        task.is_some_and(|task| task.ended.is_none())
    }

    /// Returns every task that has ended, and how.
    pub fn endings(&self) -> impl Iterator<Item = (u32, Ending)> {
        let tasks = (0..).zip(&self.tasks);
        tasks.filter_map(|(number, task)| Some((number, task.ended?)))
    }

    /// Returns the messages to tasks since the last call, in the order in which they must be sent.
    pub fn take_messages(&mut self) -> Vec<(u32, Tell)> {
        std::mem::take(&mut self.outgoing)
    }

    /// Sends a message to a task. A list that is too long for one message becomes a refusal.
    pub fn send(&mut self, to: u32, message: Tell) {
        let message = that_fits(message);
        self.log_sent(to, &message);
        self.outgoing.push((to, message));
    }

    /// Replies to a request with its outcome.
    pub fn reply(&mut self, to: u32, id: u32, outcome: Result<u64, Refused>) {
        self.send(to, reply(id, outcome));
    }

    fn notify(&mut self, watchers: Vec<watches::Watcher>, event: &Event) {
        for (watcher, watch) in watchers {
            let event = event.clone();
            self.send(watcher, Tell::Event { watch, event });
        }
    }

    /// Records that a task has been started, with this pid on its host.
    pub fn task_started(&mut self, task: u32, pid: u32) {
        if let Some(task) = self.tasks.get_mut(task as usize) {
            task.pid = pid;
        }
    }

    /// Returns whether the failure of a task is no failure of the job: its death was requested, or another task watches
    /// it.
    pub fn is_excused(&self, task: u32) -> bool {
        let known = self.tasks.get(task as usize);
        known.is_some_and(|task| task.kill_requested != 0) || self.watches.watches_end_of(task)
    }

    /// Records that a task has ended, or will never be started. Its names, memberships, watches and unacknowledged
    /// messages are removed.
    pub fn task_ended(&mut self, number: u32, end: End) {
        let Some(task) = self.tasks.get_mut(number as usize) else {
            return;
        };
        if task.ended.is_some() {
            return;
        }
        let ending = end.ending();
        task.ended = Some(ending);
        let event = Event::TaskEnded {
            task: number,
            host: task.host,
            ending,
        };
        self.watches.forget_all(number);
        let mut watchers = self.watches.task_ended(number);
        watchers.extend(self.watches.of_every_task());
        self.notify(watchers, &event);
        self.names.owner_gone(number);
        self.groups.gone(number);
        if let Some(sent) = &mut self.sent {
            sent.forget(number);
        }
    }

    /// Records that a host has joined the job.
    pub fn host_added(&mut self, host: HostRecord) {
        let event = Event::HostAdded {
            host: host.number,
            name: host.name.clone(),
        };
        self.hosts.push(host);
        let watchers = self.watches.host_added().to_vec();
        self.notify(watchers, &event);
    }

    /// Returns the runs of hosts that must not be added, or not again.
    pub fn known_runs(&self) -> &[String] {
        &self.known_runs
    }

    /// Records that a host of this run has joined the job, or could not.
    pub fn add_known_run(&mut self, run: &str) {
        // A host without a run was requested by its name, and may be requested again.
        if !run.is_empty() && !self.known_runs.iter().any(|known| known == run) {
            self.known_runs.push(run.to_owned());
        }
    }

    /// Sets the speed of a host relative to the others.
    pub fn set_host_speed(&mut self, number: u32, speed: u32) {
        if let Some(host) = self.hosts.iter_mut().find(|host| host.number == number) {
            host.speed = speed;
        }
    }

    /// Records that a host is lost or given back. The ends of its tasks have been recorded before.
    pub fn host_lost(&mut self, number: u32) {
        let Some(host) = self.hosts.iter_mut().find(|host| host.number == number) else {
            return;
        };
        host.alive = false;
        let event = Event::HostLost {
            host: number,
            name: host.name.clone(),
        };
        let watchers = self.watches.host_lost(number);
        self.notify(watchers, &event);
    }
}

/// Maximum size of a sentence sent to a task, in bytes.
const MAX_SENTENCE_BYTES: usize = 4096;

/// Returns the refusal with its sentence shortened so that it fits into every message. Names in a sentence can be of
/// any length.
pub fn shortened((why, mut sentence): Refused) -> Refused {
    if sentence.len() > MAX_SENTENCE_BYTES {
        sentence.truncate(sentence.floor_char_boundary(MAX_SENTENCE_BYTES));
        sentence.push_str(" ...");
    }
    (why, sentence)
}

/// Returns the message with its sentence shortened. A list for a task that is too long for one message is replaced by a
/// refusal.
fn that_fits(mut message: Tell) -> Tell {
    if let Tell::Refused { why, sentence, .. } = &mut message {
        (*why, *sentence) = shortened((*why, std::mem::take(sentence)));
    }
    if let Tell::Spawned { sentence, .. } | Tell::Hosted { sentence, .. } = &mut message {
        (_, *sentence) = shortened((RequestError::System, std::mem::take(sentence)));
    }
    let (Tell::Tasks { id, .. }
    | Tell::Names { id, .. }
    | Tell::Members { id, .. }
    | Tell::Groups { id, .. }) = message
    else {
        return message;
    };
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    match bytes.len() > MAX_REQUEST_BYTES {
        true => reply(
            id,
            Err(too_long(
                "the list in the answer to this request",
                bytes.len(),
            )),
        ),
        false => message,
    }
}

/// Returns the refusal for something that does not fit into a message.
pub fn too_long(what: &str, bytes: usize) -> Refused {
    let sentence = format!("{what} has {bytes} bytes; the limit is {MAX_REQUEST_BYTES}");
    (RequestError::Memory, sentence)
}

/// Returns the reply to a request, with its outcome.
pub fn reply(id: u32, outcome: Result<u64, Refused>) -> Tell {
    match outcome {
        Ok(value) => Tell::Done { id, value },
        Err((why, sentence)) => Tell::Refused { id, why, sentence },
    }
}
