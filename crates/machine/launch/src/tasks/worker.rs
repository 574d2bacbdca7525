//! The tasks of this host: orders go in, and events come out as reports.
//!
//! This is the part that the loops of a launcher and of an agent have in common. Orders and reports are values here: an
//! agent gets its orders from a channel and sends the reports on it, while a launcher gives the orders itself and
//! handles the reports like those of other hosts. Only output for the job bypasses them, from the pipe to the code that
//! shows or sends it, without a copy.

use std::collections::VecDeque;
use std::time::Duration;

use regatta_job::registry::shortened;
use regatta_program::Refusal;
use regatta_wire::control::RequestError;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, WaitStatus};

use crate::channel::clock;
use crate::channel::messages::{Order, Report};
use crate::resident::join_socket::{Arrival, JoinSocket};
use crate::resident::newcomers::{Newcomer, Newcomers};
use crate::streams::{Heard, Streams};
use crate::sys::Mask;
use crate::tasks::prepared::StartOutcome;
use crate::tasks::{self, Started, Tasks};

/// The tasks of this host with everything that serves them, and the unhandled reports.
#[derive(Default)]
pub(crate) struct Worker {
    /// `None` if this host has no part in the job, or has not been prepared.
    pub tasks: Option<Tasks>,
    /// The output of the tasks, or `None` if they write directly to that of this process.
    pub streams: Option<Streams>,
    /// The socket at which processes join, if they may.
    pub join_socket: Option<JoinSocket>,
    newcomers: Newcomers,
    /// Whether the tasks may be started, or never will be.
    pub begun: bool,
    /// The unhandled reports, in order.
    reports: VecDeque<Report>,
}

impl Worker {
    /// Returns a worker without tasks. Their output will go to `streams`, or directly to that of this process.
    pub(crate) fn new(streams: Option<Streams>) -> Self {
        Self {
            streams,
            ..Self::default()
        }
    }

    /// Takes the next unhandled report.
    pub(crate) fn next_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Returns whether there are tasks to be started.
    pub(crate) fn are_to_start(&self) -> bool {
        let are_to_start = |tasks: &Tasks| tasks.are_to_start() || tasks.are_prepared_to_start();
        self.begun && self.tasks.as_ref().is_some_and(are_to_start)
    }

    /// Returns the descriptors to poll. With `shows`, the job's output is read. With `serves`, there is an owner that
    /// the rest is for.
    pub(crate) fn polls(&self, shows: bool, serves: bool) -> impl Iterator<Item = PollFd<'_>> {
        let streams = self.streams.iter().filter(move |_| shows);
        let served = self.tasks.iter().filter(move |_| serves);
        let caught = served.filter_map(|tasks| tasks.caught.fd());
        let requests = self.tasks.iter().map(|tasks| tasks.controls.fd());
        let callers = self.join_socket.iter().filter(move |_| serves);
        let all = streams.map(Streams::fd).chain(caught).chain(requests);
        all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .chain(self.tasks.iter().flat_map(Tasks::guest_polls))
            .chain(callers.flat_map(JoinSocket::polls))
    }

    /// Returns the time until something is due even if nothing arrives, for a worker with an owner.
    pub(crate) fn until_due(&self) -> Option<Duration> {
        let look = self.tasks.as_ref().and_then(Tasks::until_look);
        let open = self.join_socket.as_ref().and_then(JoinSocket::until_open);
        look.into_iter().chain(open).min()
    }

    /// Starts the next few tasks.
    pub(crate) fn start_some(&mut self, mask: &Mask) {
        let Some(tasks) = self.tasks.as_mut().filter(|_| self.begun) else {
            return;
        };
        let (streams, reports) = (&mut self.streams, &mut self.reports);
        let result = tasks.start_some(streams.as_mut(), mask, |Started { rank, pid }| {
            reports.push_back(Report::Started { rank, pid });
        });
        let outcomes = tasks.start_some_prepared(streams.as_mut(), mask);
        reports.extend(outcomes.into_iter().map(spawn_started));
        reports.extend(result.err().map(refused));
    }

    /// Reads the tasks' requests, and checks the tasks that are not children of this process.
    pub(crate) fn listen(&mut self) {
        let Some(tasks) = &mut self.tasks else { return };
        let reports = &mut self.reports;
        let hushed = tasks.read_requests(|task, bytes| {
            let bytes = bytes.to_vec();
            reports.push_back(Report::Asked { task, bytes });
        });
        reports.extend(hushed.into_iter().map(|task| Report::Hushed { task }));
        let gone = tasks.take_gone_guests().into_iter();
        reports.extend(gone.map(|task| Report::Ended { task }));
    }

    /// Reaps children. Returns those that were not tasks, and whether none is left.
    pub(crate) fn reap(&mut self) -> (Vec<(Pid, WaitStatus)>, bool) {
        let (mut children, none_left) = tasks::reap();
        children.retain(|&(pid, status)| !self.child_ended(pid, status));
        (children, none_left)
    }

    /// Returns whether the child was a task. Its last output is reported before its end.
    fn child_ended(&mut self, pid: Pid, status: WaitStatus) -> bool {
        let Some(tasks) = &mut self.tasks else {
            return false;
        };
        let Some(task) = tasks.ended(pid, status) else {
            return false;
        };
        let reports = &mut self.reports;
        let caught = &mut tasks.caught;
        caught.last_words(task.rank, &mut |piece| {
            reports.push_back(Report::Caught { piece })
        });
        reports.push_back(Report::Ended { task });
        true
    }

    /// Returns the processes that have requested to join.
    pub(crate) fn callers(&mut self) -> Vec<Arrival> {
        let join_socket = self.join_socket.as_mut();
        join_socket.map_or_else(Vec::new, JoinSocket::handle_callers)
    }

    /// Lets a process wait until it is a task.
    pub(crate) fn let_wait(&mut self, arrival: Arrival) {
        let Some(tasks) = &mut self.tasks else { return };
        let newcomer = Newcomer::of(arrival, tasks);
        let request = newcomer.map(|newcomer| self.newcomers.add(newcomer));
        self.reports.extend(request);
    }

    /// Reports the waiting processes again.
    pub(crate) fn report_waiting(&mut self) {
        self.reports.extend(self.newcomers.requests());
    }

    /// Reads what tasks have written: for other tasks, which becomes reports, and for the job's output while `more`
    /// returns true, which is passed to `hear`.
    pub(crate) fn pump(&mut self, more: impl Fn() -> bool, hear: &mut impl FnMut(Heard) -> bool) {
        if let Some(streams) = &mut self.streams {
            streams.pump(more, hear);
        }
        let reports = &mut self.reports;
        if let Some(tasks) = &mut self.tasks {
            tasks.pump_caught(&mut |piece| reports.push_back(Report::Caught { piece }));
        }
    }

    /// Reads all that is left, like [`Self::pump`]. No process writes any more. Returns whether everything has been
    /// read.
    pub(crate) fn drain(
        &mut self,
        more: impl Fn() -> bool,
        hear: &mut impl FnMut(Heard) -> bool,
    ) -> bool {
        let reports = &mut self.reports;
        if let Some(tasks) = &mut self.tasks {
            let caught = &mut tasks.caught;
            caught.drain(&mut |piece| reports.push_back(Report::Caught { piece }));
        }
        let streams = self.streams.as_mut();
        streams.is_none_or(|streams| streams.drain(more, hear))
    }

    /// Carries out an order, if it concerns the tasks.
    pub(crate) fn obey(&mut self, order: Order) {
        self.begun |= matches!(order, Order::Start { .. } | Order::Stop {});
        if let Order::Clock { by, id } = order {
            // Hosts without tasks are asked as well.
            let time = clock::now();
            self.reports.push_back(Report::Clock { by, id, time });
        }
        let Some(tasks) = &mut self.tasks else { return };
        match order {
            Order::Tell { task, bytes } => tasks.send(task, &bytes),
            Order::Taken { by, bytes } => tasks.caught.taken(by, bytes as usize),
            Order::Gone { rank, cause } => tasks.note_gone(rank, cause),
            Order::SignalTask { task, signal } => {
                // If it has ended meanwhile, its end is reported anyway.
                let _ = tasks.signal(task, signal);
            }
            Order::Deaf { rank, stream } => {
                let streams = self.streams.iter_mut();
                streams.for_each(|streams| streams.deafen(rank, stream as usize));
                tasks.caught.deafen(rank, stream);
            }
            Order::PrepareSpawn {
                spawn,
                count,
                order,
                route,
            } => {
                let (addresses, refused) = match tasks.prepare(spawn, count, &order, route) {
                    Ok(addresses) => (addresses, None),
                    Err(refused) => (Vec::new(), Some(shortened(refused))),
                };
                self.reports.push_back(Report::SpawnPrepared {
                    spawn,
                    addresses,
                    refused,
                });
            }
            Order::StartSpawn { share } if share.count == 0 => {
                tasks.abandon(share.spawn, share.first);
            }
            Order::StartSpawn { share } => tasks.start_prepared(share),
            Order::Admit { caller, task } => {
                let gone = || {
                    (
                        RequestError::State,
                        "there is no connection with that number".to_owned(),
                    )
                };
                let newcomer = self.newcomers.take(caller).ok_or_else(gone);
                let admitted = newcomer.and_then(|newcomer| tasks.admit(task, &newcomer));
                self.reports.push_back(spawn_started((task, admitted)));
            }
            Order::TurnAway { caller, sentence } => {
                let newcomer = self.newcomers.take(caller).into_iter();
                newcomer.for_each(|newcomer| newcomer.arrival.refuse(sentence.clone()));
            }
            Order::Start { addresses } => tasks.locate(&addresses),
            Order::Stop {} => tasks.stop_starting(),
            _ => {}
        }
    }
}

/// Returns the report that a spawned task has been started, or why not.
fn spawn_started((task, outcome): StartOutcome) -> Report {
    let (pid, refused) = match outcome {
        Ok(started) => (started.pid, None),
        Err(refused) => (0, Some(shortened(refused))),
    };
    Report::SpawnStarted { task, pid, refused }
}

/// Returns the report of the reason why no more tasks are started.
pub(crate) fn refused(refusal: Refusal) -> Report {
    let (status, sentence) = (u32::from(refusal.status), refusal.sentence);
    Report::Refused { status, sentence }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use regatta_job::spawn::SpawnedTasks;
    use regatta_job::{End, Ended};
    use regatta_segment::job::{Cause, Job, TaskState};
    use regatta_wire::control::{OutputFormat, Route, Spawn};
    use regatta_wire::world::World;
    use rustix::process::WaitOptions;

    use super::*;
    use crate::sys;
    use crate::tasks::Recipe;

    const ROUTE: Route = Route {
        to: 0,
        manner: OutputFormat {
            context: 0,
            tag: 0,
            lines: false,
            births: false,
        },
    };

    /// Returns a worker that may start tasks, and has none.
    fn worker() -> Worker {
        let recipe = Recipe {
            name: OsString::new(),
            program: "".into(),
            arguments: Vec::new(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            group: rustix::process::getpgrp(),
            files: None,
        };
        let mut worker = Worker::new(None);
        worker.tasks = Some(Tasks::vacant(|| Job::create(1), recipe).expect("room"));
        worker.begun = true;
        worker
    }

    fn reports(worker: &mut Worker) -> Vec<Report> {
        std::iter::from_fn(|| worker.next_report()).collect()
    }

    /// Prepares one task with the number 1, which runs this shell script.
    fn prepare(worker: &mut Worker, program: &str, text: &str) {
        let order = Spawn {
            arguments: vec!["-c".into(), text.into()],
            ..Spawn::one_here(program.into())
        };
        worker.obey(Order::PrepareSpawn {
            spawn: 5,
            count: 1,
            order,
            route: Some(ROUTE),
        });
        let world = World {
            first: 1,
            parent: None,
            request: None,
            places: vec![(0, None)],
        };
        let tasks = worker.tasks.as_mut().expect("tasks");
        tasks.enter(&world).expect("room in the table");
    }

    const START: Order = Order::StartSpawn {
        share: SpawnedTasks {
            spawn: 5,
            first: 1,
            count: 1,
        },
    };

    #[test]
    fn a_task_is_prepared_started_heard_and_has_ended_in_this_order() {
        let mut worker = worker();
        prepare(&mut worker, "sh", "echo last words");
        let prepared = Report::SpawnPrepared {
            spawn: 5,
            addresses: vec![None],
            refused: None,
        };
        assert_eq!(reports(&mut worker), [prepared]);
        worker.obey(START);
        assert!(worker.are_to_start());
        worker.start_some(&sys::block(&[]));
        let started = reports(&mut worker);
        let [
            Report::SpawnStarted {
                task: 1,
                pid,
                refused: None,
            },
        ] = started[..]
        else {
            panic!("{started:?}");
        };
        let process = Pid::from_raw(pid as i32);
        let ended = rustix::process::waitpid(process, WaitOptions::empty());
        let (process, status) = ended.expect("a child").expect("its end");
        assert!(worker.child_ended(process, status));
        assert!(!worker.child_ended(process, status), "it has ended already");
        let reports = reports(&mut worker);
        let written = |report: &Report| match report {
            Report::Caught { piece } if (piece.task, piece.stream) == (1, 0) => piece.bytes.clone(),
            _ => Vec::new(),
        };
        let written: Vec<u8> = reports.iter().flat_map(written).collect();
        assert_eq!(written, b"last words\n");
        let task = Ended {
            rank: 1,
            pid,
            end: End::Exited(0),
            state: TaskState::Expected,
        };
        assert_eq!(reports.last(), Some(&Report::Ended { task }));
    }

    #[test]
    fn nothing_starts_before_the_job_begins() {
        let mut worker = worker();
        worker.begun = false;
        prepare(&mut worker, "sh", "exit");
        reports(&mut worker);
        worker.obey(START);
        worker.start_some(&sys::block(&[]));
        assert!(!worker.are_to_start() && reports(&mut worker).is_empty());
    }

    #[test]
    fn a_host_without_tasks_tells_its_time() {
        let mut worker = Worker::new(None);
        worker.obey(Order::Clock { by: 3, id: 7 });
        let told = reports(&mut worker);
        assert!(
            matches!(told[..], [Report::Clock { by: 3, id: 7, .. }]),
            "{told:?}"
        );
    }

    #[test]
    fn what_cannot_be_is_refused_to_whoever_gave_the_order() {
        let mut worker = worker();
        prepare(&mut worker, "no-such-program", "");
        let refused = reports(&mut worker);
        let is_of_program =
            |why: &Option<(RequestError, String)>| matches!(why, Some((RequestError::Program, _)));
        assert!(
            matches!(&refused[..], [Report::SpawnPrepared { refused, .. }] if is_of_program(refused)),
            "{refused:?}"
        );
        // Nothing is prepared, and no process waits under that number.
        worker.obey(START);
        worker.start_some(&sys::block(&[]));
        worker.obey(Order::Admit { caller: 7, task: 2 });
        let refused = reports(&mut worker);
        let of = |report: &Report| match report {
            Report::SpawnStarted {
                task,
                refused: Some((RequestError::State, _)),
                ..
            } => *task,
            _ => panic!("{report:?}"),
        };
        assert_eq!(refused.iter().map(of).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_task_is_gone_as_was_first_said_and_one_that_nobody_knows_never() {
        let mut worker = worker();
        prepare(&mut worker, "sh", "exit");
        let (of_the_first, again) = (Some(Cause::Exited(3)), None);
        for (rank, cause) in [(1, of_the_first), (1, again), (2, of_the_first)] {
            worker.obey(Order::Gone { rank, cause });
        }
        let job = worker.tasks.as_ref().expect("tasks").job();
        assert_eq!((job.state(1), job.tasks()), (TaskState::Dead, 2));
        assert_eq!(job.cause(1), of_the_first);
    }
}
