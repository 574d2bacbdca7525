//! Routing of output: which task receives the output of the tasks that it has started.

use regatta_wire::control::{Event, Output, Route, StreamState, Tell};
use regatta_wire::fields::{Bytes, Field};
use regatta_wire::{Malformed, fields};

use super::{Registry, TaskRecord};

/// A piece of a task's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The task that wrote it.
    pub task: u32,
    /// 0 for standard output, 1 for standard error.
    pub stream: u32,
    /// The task that receives it, or `None` for the job's output.
    pub route: Option<Route>,
    /// The written bytes.
    pub bytes: Vec<u8>,
    /// Whether the stream continues after this piece.
    pub then: StreamState,
}
fields!(Piece {
    task,
    stream,
    route,
    bytes,
    then
});

/// The destination of a task's output, and whether the task receives that of others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TaskOutput {
    /// The task that receives its output, or `None` for the job's output.
    route: Option<Route>,
    /// Whether its streams are closed: standard output, standard error.
    closed: [bool; 2],
    /// Whether this task has been made the receiver of others' output.
    receives: bool,
    /// Whether the task does not receive any more output.
    refuses_output: bool,
}

impl Field for TaskOutput {
    fn put(&self, to: &mut Vec<u8>) {
        self.route.put(to);
        self.closed.iter().for_each(|closed| closed.put(to));
        self.receives.put(to);
        self.refuses_output.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Ok(Self {
            route: Field::take(from)?,
            closed: [Field::take(from)?, Field::take(from)?],
            receives: Field::take(from)?,
            refuses_output: Field::take(from)?,
        })
    }
}

impl TaskOutput {
    pub(super) fn to(route: Option<Route>) -> Self {
        Self {
            route,
            ..Self::default()
        }
    }
}

impl Registry {
    /// Returns the route for the output of tasks that `by` starts.
    pub fn route(&mut self, by: u32, output: Output) -> Option<Route> {
        let own = self
            .tasks
            .get(by as usize)
            .and_then(|task| task.output.route);
        let route = match output {
            Output::AsMine => own,
            Output::Job => None,
            Output::Me(manner) => Some(Route { to: by, manner }),
            Output::Task(route) => Some(route),
        };
        let route = route.filter(|route| self.receives(route.to));
        if let Some(to) = route.and_then(|route| self.tasks.get_mut(route.to as usize)) {
            to.output.receives = true;
        }
        route
    }

    /// Notifies watchers and receivers of the tasks from this number on.
    pub fn notify_starts(&mut self, from: u32) {
        self.announced = self.task_count();
        for task in from..self.task_count() {
            self.notify_watchers_of(task);
            let TaskRecord { parent, output, .. } = &self.tasks[task as usize];
            let route = output.route.filter(|route| route.manner.births);
            if let Some(Route { to, manner }) = route.filter(|route| self.receives(route.to)) {
                let parent = parent.filter(|parent| *parent != task);
                let message = Tell::Born {
                    task,
                    parent,
                    manner,
                };
                self.send(to, message);
            }
        }
    }

    /// Notifies the watchers of all tasks that this task exists.
    fn notify_watchers_of(&mut self, task: u32) {
        let watchers = self.watches.of_every_task().to_vec();
        if watchers.is_empty() {
            return;
        }
        let known = &self.tasks[task as usize];
        let event = Event::TaskCame {
            task,
            host: known.host,
            parent: known.parent,
            program: known.program.to_vec(),
        };
        self.notify(watchers, &event);
    }

    /// Returns whether output can be sent to a task.
    fn receives(&self, task: u32) -> bool {
        self.is_alive(task) && !self.tasks[task as usize].output.refuses_output
    }

    /// Returns whether a task receives output without being recorded as a receiver: the spawn of the writer was not in
    /// the replica with which this launcher began.
    pub(super) fn receives_unexpectedly(&self, task: u32) -> bool {
        self.receives(task) && !self.tasks[task as usize].output.receives
    }

    /// Stops sending output of others to a task. Returns whether it received any until now.
    pub fn stop_output_to(&mut self, task: u32) -> bool {
        let Some(task) = self.tasks.get_mut(task as usize) else {
            return false;
        };
        let before = task.output.receives && !task.output.refuses_output;
        task.output.refuses_output = true;
        before
    }

    /// Handles a piece that a task has written for another one. Takes its bytes and sends them there. Returns false,
    /// with the bytes left in the piece, if no task receives them. A piece that closes a stream has no bytes.
    pub fn task_wrote(&mut self, piece: &mut Piece) -> bool {
        if piece.then == StreamState::Closed {
            return self.close_stream(piece.task, piece.stream);
        }
        let Some(route) = piece.route.filter(|route| self.receives(route.to)) else {
            return false;
        };
        let message = Tell::Output {
            task: piece.task,
            stream: piece.stream,
            manner: route.manner,
            bytes: std::mem::take(&mut piece.bytes),
            then: piece.then,
        };
        self.send(route.to, message);
        true
    }

    /// Records that a task has closed one of its streams, and notifies the receiver once. Returns false if there is no
    /// receiver, or the stream was closed before.
    pub fn close_stream(&mut self, task: u32, stream: u32) -> bool {
        let Some(known) = self.tasks.get_mut(task as usize) else {
            return false;
        };
        let route = known.output.route;
        match known.output.closed.get_mut(stream as usize) {
            Some(closed) if !*closed => *closed = true,
            _ => return false,
        }
        let Some(route) = route.filter(|route| self.receives(route.to)) else {
            return false;
        };
        let message = Tell::Output {
            task,
            stream,
            manner: route.manner,
            bytes: Vec::new(),
            then: StreamState::Closed,
        };
        self.send(route.to, message);
        true
    }

    /// Returns the open streams, of tasks that have been started, whose output another task receives.
    pub fn open_streams(&self) -> Vec<(u32, u32)> {
        let started = (0..).zip(&self.tasks).filter(|(_, task)| task.pid != 0);
        let routed = started.filter(|(_, task)| task.output.route.is_some());
        let open = |(number, task): (u32, &TaskRecord)| {
            let closed = task.output.closed;
            let open = (0..2_u32).filter(move |stream| !closed[*stream as usize]);
            open.map(move |stream| (number, stream))
        };
        routed.flat_map(open).collect()
    }

    /// Closes the streams of a task that was lost with its host, since no agent will report that.
    pub fn close_streams(&mut self, task: u32) {
        for stream in 0..2 {
            self.close_stream(task, stream);
        }
    }
}
