//! A registry with copies on other hosts. Each change is recorded, and a copy that applies the changes becomes equal.
//!
//! A registry has no clock and draws no random numbers, so the same changes in the same order make the same registry.

use std::ops::Deref;

use regatta_wire::control::{Ask, MAX_REQUEST_BYTES, Output, Route, StreamState, Tell};
use regatta_wire::fields::Message;
use regatta_wire::{Malformed, messages};

use super::{Effect, HostRecord, Piece, Refused, Registry, too_long};
use crate::end::End;
use crate::lifecycle::Decision;

messages! {
    /// A change of a registry, as sent to the copies.
    pub Change {
        /// A task has sent a request.
        1 Requested { task: u32, bytes: Vec<u8> }
        /// New tasks have been numbered.
        2 TasksAdded { parent: Option<u32>, hosts: Vec<u32>, program: Vec<u8>, route: Option<Route> }
        /// A task has been started.
        3 Started { task: u32, pid: u32 }
        /// A task has ended.
        4 Ended { task: u32, end: End }
        /// A host has joined.
        5 HostAdded { host: HostRecord }
        /// A host is lost.
        6 HostLost { number: u32 }
        /// A message that the launcher has sent to a task.
        7 Sent { task: u32, bytes: Vec<u8> }
        /// The tasks from this number on have been made their own parents.
        8 Detached { from: u32 }
        /// Watchers and receivers have been notified of the tasks from this number on.
        9 StartsNotified { from: u32 }
        /// The route for the output of a task's children has been determined.
        10 Routed { by: u32, output: Output }
        /// A task does not receive output of others any more.
        11 OutputStopped { task: u32 }
        /// A task has closed a stream.
        12 StreamClosed { task: u32, stream: u32 }
        /// All streams of a task have been closed.
        13 StreamsClosed { task: u32 }
        /// The speed of a host has been set.
        14 SpeedSet { host: u32, speed: u32 }
        /// The number of messages that have been sent to a task, including those of former launchers.
        15 SentCountSet { task: u32, count: u32 }
        /// The first `count` messages to a task have been received.
        16 Acknowledged { task: u32, count: u32 }
        /// A host of this run has joined the job, or could not.
        17 RunKnown { run: String }
        /// The decisions about the end of the job have changed.
        18 Decided { decision: Decision }
    }
}

/// A registry that records its changes for copies. It dereferences to the [`Registry`] for reading. All changes go
/// through this type.
#[derive(Debug)]
pub struct ReplicatedRegistry {
    registry: Registry,
    /// Changes that have not been taken, or `None` if there are no copies.
    changes: Option<Vec<Change>>,
    /// The number of changes at the last one that a message to a task may depend on.
    last: u64,
}

impl Deref for ReplicatedRegistry {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        &self.registry
    }
}

impl ReplicatedRegistry {
    /// Wraps a registry. With `replicated` there may be copies; otherwise nothing is recorded.
    pub fn new(mut registry: Registry, replicated: bool) -> Self {
        if replicated {
            registry.keep_sent();
        }
        Self {
            // Messages of an earlier launcher may depend on any change that this copy has applied.
            last: registry.changes,
            registry,
            changes: replicated.then(Vec::new),
        }
    }

    /// Returns the changes since the last call. They must be sent to the copies before any message taken later is sent
    /// to a task.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.changes
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Returns how many changes a copy must have applied to know everything that the messages so far depend on. 0 if
    /// they depend on no change.
    pub fn last_change(&self) -> u64 {
        self.last
    }

    fn record(&mut self, change: impl FnOnce() -> Change) {
        self.record_light(change);
        if self.changes.is_some() {
            self.last = self.registry.changes;
        }
    }

    /// Records a change that no message depends on: a request that only reads, or an acknowledgement.
    fn record_light(&mut self, change: impl FnOnce() -> Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change());
            self.registry.changes += 1;
        }
    }

    /// See [`Registry::add_tasks`].
    pub fn add_tasks(
        &mut self,
        parent: Option<u32>,
        hosts: &[u32],
        program: &[u8],
        route: Option<Route>,
    ) -> u32 {
        self.record(|| Change::TasksAdded {
            parent,
            hosts: hosts.to_vec(),
            program: program.to_vec(),
            route,
        });
        self.registry.add_tasks(parent, hosts, program, route)
    }

    /// See [`Registry::detach`].
    pub fn detach(&mut self, from: u32) {
        self.record(|| Change::Detached { from });
        self.registry.detach(from);
    }

    /// See [`Registry::notify_starts`].
    pub fn notify_starts(&mut self, from: u32) {
        self.record(|| Change::StartsNotified { from });
        self.registry.notify_starts(from);
    }

    /// See [`Registry::route`].
    pub fn route(&mut self, by: u32, output: Output) -> Option<Route> {
        self.record(|| Change::Routed { by, output });
        self.registry.route(by, output)
    }

    /// See [`Registry::stop_output_to`].
    pub fn stop_output_to(&mut self, task: u32) -> bool {
        self.record(|| Change::OutputStopped { task });
        self.registry.stop_output_to(task)
    }

    /// See [`Registry::task_wrote`]. Copies record which streams are closed and which tasks receive output, but not
    /// what is written.
    pub fn task_wrote(&mut self, piece: &mut Piece) -> bool {
        if piece.then == StreamState::Closed {
            return self.close_stream(piece.task, piece.stream);
        }
        let unexpected = |route: &Route| self.registry.receives_unexpectedly(route.to);
        if let Some(route) = piece.route.filter(unexpected) {
            // When the receiver ends, the hosts of writers must be told, so record it as a receiver.
            self.route(route.to, Output::Task(route));
        }
        self.registry.task_wrote(piece)
    }

    /// See [`Registry::close_stream`].
    pub fn close_stream(&mut self, task: u32, stream: u32) -> bool {
        self.record(|| Change::StreamClosed { task, stream });
        self.registry.close_stream(task, stream)
    }

    /// See [`Registry::close_streams`].
    pub fn close_streams(&mut self, task: u32) {
        self.record(|| Change::StreamsClosed { task });
        self.registry.close_streams(task);
    }

    /// See [`Registry::share_barrier`].
    pub fn share_barrier(&mut self, members: &[u32], barrier: u64) {
        self.registry.share_barrier(members, barrier);
    }

    /// See [`Registry::take_messages`].
    pub fn take_messages(&mut self) -> Vec<(u32, Tell)> {
        self.registry.take_messages()
    }

    /// See [`Registry::unacknowledged`].
    pub fn unacknowledged(&mut self, task: u32, received: u32) -> Vec<Vec<u8>> {
        let again = self.registry.unacknowledged(task, received);
        let count = self.registry.sent_count(task);
        self.record_light(|| Change::SentCountSet { task, count });
        again
    }

    /// Records that the first `count` messages to a task have been received.
    pub fn acknowledged(&mut self, task: u32, count: u32) {
        self.record_light(|| Change::Acknowledged { task, count });
        self.registry.acknowledged(task, count);
    }

    /// Sends a task a message that the registry does not generate itself.
    pub fn send(&mut self, to: u32, message: Tell) {
        self.record(|| {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            Change::Sent { task: to, bytes }
        });
        self.registry.send(to, message);
    }

    /// Replies to a request with an outcome that the registry does not determine itself.
    pub fn reply(&mut self, to: u32, id: u32, outcome: Result<u64, Refused>) {
        self.send(to, super::reply(id, outcome));
    }

    /// Handles a task's request in encoded form. A malformed request is not answered, since the task is of another
    /// version.
    pub fn handle_request(&mut self, by: u32, bytes: &[u8]) -> Option<Effect> {
        let request = Ask::decode(bytes).ok()?;
        if let Some(id) = request.id().filter(|_| bytes.len() > MAX_REQUEST_BYTES) {
            self.reply(by, id, Err(too_long("the request", bytes.len())));
            return None;
        }
        let change = || Change::Requested {
            task: by,
            bytes: bytes.to_vec(),
        };
        match request {
            Ask::Tasks { .. }
            | Ask::Hosts { .. }
            | Ask::Names { .. }
            | Ask::Members { .. }
            | Ask::Groups { .. } => self.record_light(change),
            _ if request.id().is_some() => self.record(change),
            _ => {}
        }
        self.registry.handle_request(by, request)
    }

    /// See [`Registry::task_started`].
    pub fn task_started(&mut self, task: u32, pid: u32) {
        self.record(|| Change::Started { task, pid });
        self.registry.task_started(task, pid);
    }

    /// See [`Registry::task_ended`].
    pub fn task_ended(&mut self, task: u32, end: End) {
        self.record(|| Change::Ended { task, end });
        self.registry.task_ended(task, end);
    }

    /// See [`Registry::host_added`].
    pub fn host_added(&mut self, host: HostRecord) {
        self.record(|| Change::HostAdded { host: host.clone() });
        self.registry.host_added(host);
    }

    /// See [`Registry::add_known_run`].
    pub fn add_known_run(&mut self, run: &str) {
        let run = run.to_owned();
        self.registry.add_known_run(&run);
        self.record(|| Change::RunKnown { run });
    }

    /// Sets the decisions about the end of the job, if they have changed.
    pub fn set_decision(&mut self, decision: Decision) {
        if decision != self.registry.decision() {
            self.record(|| Change::Decided { decision });
            self.registry.set_decision(decision);
        }
    }

    /// See [`Registry::set_host_speed`].
    pub fn set_host_speed(&mut self, host: u32, speed: u32) {
        self.record(|| Change::SpeedSet { host, speed });
        self.registry.set_host_speed(host, speed);
    }

    /// See [`Registry::host_lost`].
    pub fn host_lost(&mut self, number: u32) {
        self.record(|| Change::HostLost { number });
        self.registry.host_lost(number);
    }
}

impl Registry {
    /// Applies a change to a copy. The resulting messages are recorded as sent, and not given to the caller.
    pub fn apply(&mut self, change: Change) -> Result<(), Malformed> {
        self.changes = self.changes.saturating_add(1);
        match change {
            Change::Requested { task, bytes } => {
                drop(self.handle_request(task, Ask::decode(&bytes)?));
            }
            Change::TasksAdded {
                parent,
                hosts,
                program,
                route,
            } => drop(self.add_tasks(parent, &hosts, &program, route)),
            Change::Detached { from } => self.detach(from),
            Change::StartsNotified { from } => self.notify_starts(from),
            Change::Routed { by, output } => drop(self.route(by, output)),
            Change::OutputStopped { task } => drop(self.stop_output_to(task)),
            Change::StreamClosed { task, stream } => {
                self.close_stream(task, stream);
            }
            Change::StreamsClosed { task } => self.close_streams(task),
            Change::Started { task, pid } => self.task_started(task, pid),
            Change::Ended { task, end } => self.task_ended(task, end),
            Change::HostAdded { host } => self.host_added(host),
            Change::HostLost { number } => self.host_lost(number),
            Change::RunKnown { run } => self.add_known_run(&run),
            Change::Decided { decision } => self.set_decision(decision),
            Change::SpeedSet { host, speed } => self.set_host_speed(host, speed),
            Change::Acknowledged { task, count } => self.acknowledged(task, count),
            Change::SentCountSet { task, count } => self.set_sent_count(task, count),
            Change::Sent { task, bytes } => self.send(task, Tell::decode(&bytes)?),
        }
        self.take_messages();
        Ok(())
    }
}
