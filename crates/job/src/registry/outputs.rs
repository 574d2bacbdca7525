//! Which task gets what the tasks write that it has started.

use regatta_wire::Malformed;
use regatta_wire::control::{Event, Output, Route, Tell, Then};
use regatta_wire::fields::{Bytes, Field};

use super::{Desk, Task};
use crate::caught::Piece;

/// What is known of a task's output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    /// Who gets it; none: it goes with the job's output.
    route: Option<Route>,
    /// Which of its streams have ended.
    closed: [bool; 2],
    /// Whether this task gets what others write, and whether it does so no more.
    receives: bool,
    hushed: bool,
}

impl Field for Written {
    fn put(&self, to: &mut Vec<u8>) {
        self.route.put(to);
        self.closed.iter().for_each(|closed| closed.put(to));
        self.receives.put(to);
        self.hushed.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Ok(Self {
            route: Field::take(from)?,
            closed: [Field::take(from)?, Field::take(from)?],
            receives: Field::take(from)?,
            hushed: Field::take(from)?,
        })
    }
}

impl Written {
    pub(super) fn to(route: Option<Route>) -> Self {
        Self {
            route,
            ..Self::default()
        }
    }
}

impl Desk {
    /// Who gets what tasks write that `by` starts.
    pub(crate) fn route(&mut self, by: u32, output: Output) -> Option<Route> {
        let own = self
            .tasks
            .get(by as usize)
            .and_then(|task| task.written.route);
        let route = match output {
            Output::AsMine => own,
            Output::Job => None,
            Output::Me(manner) => Some(Route { to: by, manner }),
            Output::Task(route) => Some(route),
        };
        let route = route.filter(|route| self.hears(route.to));
        if let Some(to) = route.and_then(|route| self.tasks.get_mut(route.to as usize)) {
            to.written.receives = true;
        }
        route
    }

    /// Tells those who want to know of them of the tasks from this number on.
    pub(crate) fn tell_births(&mut self, from: u32) {
        for task in from..self.count() {
            self.tell_every_watcher_of(task);
            let Task {
                parent, written, ..
            } = &self.tasks[task as usize];
            let route = written.route.filter(|route| route.manner.births);
            if let Some(Route { to, manner }) = route.filter(|route| self.hears(route.to)) {
                let parent = parent.filter(|parent| *parent != task);
                let tell = Tell::Born {
                    task,
                    parent,
                    manner,
                };
                self.say(to, tell);
            }
        }
    }

    /// Those who want to hear of every task hear of this one.
    fn tell_every_watcher_of(&mut self, task: u32) {
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
        for (watcher, watch) in watchers {
            let event = event.clone();
            self.say(watcher, Tell::Event { watch, event });
        }
    }

    fn hears(&self, task: u32) -> bool {
        self.lives(task) && !self.tasks[task as usize].written.hushed
    }

    /// A task receives nothing more. Whether it did before.
    pub(crate) fn hush(&mut self, task: u32) -> bool {
        let Some(task) = self.tasks.get_mut(task as usize) else {
            return false;
        };
        let before = task.written.receives && !task.written.hushed;
        task.written.hushed = true;
        before
    }

    /// A task has written something for another one. False: that does not hear it.
    pub(crate) fn wrote(&mut self, piece: &mut Piece) -> bool {
        if piece.then == Then::Closed {
            self.closed(piece.task, piece.stream);
        }
        let Some(route) = piece.route.filter(|route| self.hears(route.to)) else {
            return false;
        };
        let tell = Tell::Output {
            task: piece.task,
            stream: piece.stream,
            manner: route.manner,
            bytes: std::mem::take(&mut piece.bytes),
            then: piece.then,
        };
        self.say(route.to, tell);
        true
    }

    /// A task writes no more to one of its streams.
    pub(super) fn closed(&mut self, task: u32, stream: u32) {
        if let Some(task) = self.tasks.get_mut(task as usize)
            && let Some(closed) = task.written.closed.get_mut(stream as usize)
        {
            *closed = true;
        }
    }

    /// A task was lost with its host: nobody else can say that it writes no more.
    pub(crate) fn writes_no_more(&mut self, task: u32) {
        let Some(Written { route, closed, .. }) =
            self.tasks.get(task as usize).map(|task| task.written)
        else {
            return;
        };
        for stream in (0..2).filter(|&stream| !closed[stream as usize]) {
            self.wrote(&mut Piece {
                task,
                stream,
                route,
                bytes: Vec::new(),
                then: Then::Closed,
            });
        }
    }
}
