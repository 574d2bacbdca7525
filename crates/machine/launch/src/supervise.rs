//! The supervisor: starts the tasks of a job, and runs until nothing of it is left.
//!
//! One thread, with one loop over one `poll`: signals (including ended children), the front's leash, the tasks' output
//! if it is labelled, and the channels to other hosts. [`Lifecycle`] decides the steps. This file carries them out by
//! orders to hosts: to this one through its [`Worker`], to the others through their agents.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use regatta_job::{
    Action, Barriers, End, Ended, Lifecycle, Reachability, Registry, ReplicatedRegistry, Spawns,
    TimeRequests,
};
use regatta_program::{Refusal, STATUS_REFUSED};
use rustix::event::PollFd;
use rustix::process::{Pid, Signal};
use rustix::time::Timespec;
use serde_json::json;

use crate::channel::messages::Order;
use crate::channel::remote::{self, Remote};
use crate::hosts::fleet;
use crate::hosts::fleet::Fleet;
use crate::plan::{Form, Plan};
use crate::streams::Streams;
use crate::streams::input::Input;
use crate::streams::output::Output;
use crate::summary;
use crate::supervise::owner::Owner;
use crate::system::signals::{Arrived, Signals};
use crate::system::tree;
use crate::tasks::worker::Worker;
use crate::tasks::{self, Started, Tasks};
use crate::words;
use growing::Growing;
use guests::Gate;
use history::History;
use leadership::Failover;
use outputs::UserStreams;
use peers::Peers;
use regatta_segment::job::{Cause, MAX_TASKS, TaskState};
use starters::Starters;

mod barriers;
pub(crate) mod controls;
mod elsewhere;
mod growing;
mod guests;
mod history;
mod leadership;
mod outputs;
pub(crate) mod owner;
mod peers;
mod reach;
mod requests;
pub(crate) mod resuming;
mod spawning;
mod starters;

/// Fails if no host could carry out the plan, before any process is started.
pub(crate) fn check(plan: &Plan) -> Result<(), Refusal> {
    if plan.tasks == Some(0) {
        return Err(Refusal::of_regatta(
            "a job needs at least one task: -n 1 or more",
        ));
    }
    if plan.across.is_none() && plan.tasks.is_none_or(|tasks| tasks <= MAX_TASKS) {
        fleet::check_most(plan, fleet::tasks_here(plan))?;
    }
    if plan.across.is_none() {
        regatta_program::find(&plan.program, std::env::var_os("PATH").as_deref())?;
        crate::system::limits::check(fleet::tasks_here(plan))?;
    }
    Ok(())
}

/// Runs a job to its end from the calling thread and returns the status to exit with.
///
/// Blocks the signals that concern a job for this thread, makes this process a subreaper, and reaps all its children:
/// it must have no other children. If this process dies, the tasks die by their parent-death signal. [`crate::run`]
/// adds a process that also ends what they started.
pub fn run(plan: &Plan) -> Result<u8, Refusal> {
    check(plan)?;
    let owner = Owner {
        leash: None,
        group: crate::sys::process_group(),
    };
    run_for(plan, Signals::catch()?, owner)
}

pub(crate) fn run_for(plan: &Plan, signals: Signals, mut owner: Owner) -> Result<u8, Refusal> {
    tree::adopt_orphans()?;
    let mut output = Output::new(plan.form)?;
    let fleet = fleet::assemble(plan, &signals, &mut owner, &mut output)?;
    run_fleet(plan, signals, owner, output, fleet)
}

/// Runs a job whose hosts are ready.
pub(crate) fn run_fleet(
    plan: &Plan,
    signals: Signals,
    owner: Owner,
    output: Output,
    fleet: Fleet,
) -> Result<u8, Refusal> {
    Ok(Supervisor::new(plan, signals, owner, output, fleet)?.run())
}

struct Supervisor<'p> {
    plan: &'p Plan,
    signals: Signals,
    owner: Owner,
    /// Number of tasks that the job began with, on all hosts.
    size: u32,
    /// The tasks of this host, if it has any.
    worker: Worker,
    peers: Peers,
    /// Arriving hosts, if hosts can be added.
    growing: Option<Growing<'p>>,
    failover: Failover,
    reachability: Reachability,
    starters: Starters,
    gate: Gate,
    streams: UserStreams,
    lifecycle: Lifecycle,
    /// The tasks, hosts, names and groups of the job.
    registry: ReplicatedRegistry,
    barriers: Barriers,
    /// Spawns that have not been answered.
    spawns: Spawns,
    time_requests: TimeRequests,
    started: Instant,
    /// Whether no child is left, except the commands of channels once the job is over.
    childless: bool,
}

/// The parts that differ between supervisors. The others start empty.
struct Parts<'p> {
    plan: &'p Plan,
    signals: Signals,
    owner: Owner,
    size: u32,
    worker: Worker,
    peers: Peers,
    growing: Option<Growing<'p>>,
    failover: Failover,
    gate: Gate,
    streams: UserStreams,
    lifecycle: Lifecycle,
    registry: ReplicatedRegistry,
}

impl<'p> Parts<'p> {
    fn assemble(self) -> Supervisor<'p> {
        let across = self.plan.across.as_ref();
        Supervisor {
            reachability: Reachability::new(across.and_then(|across| across.unreachable)),
            starters: Starters::default(),
            barriers: Barriers::default(),
            spawns: Spawns::new(self.plan.most_tasks),
            time_requests: TimeRequests::default(),
            started: Instant::now(),
            childless: false,
            plan: self.plan,
            signals: self.signals,
            owner: self.owner,
            size: self.size,
            worker: self.worker,
            peers: self.peers,
            growing: self.growing,
            failover: self.failover,
            gate: self.gate,
            streams: self.streams,
            lifecycle: self.lifecycle,
            registry: self.registry,
        }
    }
}

/// Returns the registry of a new job, with the runs of its hosts. The first number of a resident job belongs to no
/// task.
fn registry(plan: &Plan, fleet: &Fleet) -> Registry {
    let mut host_of = fleet.host_of.clone();
    host_of.resize(fleet.size as usize, 0);
    let mut registry = Registry::new(requests::hosts(fleet), &host_of, plan.program.as_bytes());
    let growth = plan
        .across
        .iter()
        .filter_map(|across| across.growth.as_ref());
    let known = growth.flat_map(|growth| &growth.known);
    known.for_each(|run| registry.add_known_run(run));
    if plan.stays {
        registry.task_ended(0, End::Exited(0));
    }
    registry
}

impl<'p> Supervisor<'p> {
    fn new(
        plan: &'p Plan,
        signals: Signals,
        owner: Owner,
        output: Output,
        mut fleet: Fleet,
    ) -> Result<Self, Refusal> {
        let mut worker = Worker::new(match plan.form {
            Form::Inherit => None,
            _ => Some(Streams::new()?),
        });
        (worker.tasks, worker.join_socket) = (fleet.tasks.take(), fleet.join_socket.take());
        let first_is_elsewhere = fleet.remotes.iter().any(|remote| remote.has(0));
        let input = match first_is_elsewhere {
            true => Some(Input::open(owner.group, &signals)?),
            false => None,
        };
        let registry = registry(plan, &fleet);
        let leadership = leadership::at_first(plan, &fleet.remotes);
        let growing = Growing::begin(plan.across.as_ref(), fleet.ground, plan.stays);
        let name = |number: u32| fleet.names.get(number as usize).cloned();
        let here = fleet.here.and_then(name);
        let number = fleet.here.unwrap_or(0);
        let history = History::new(growing.is_some(), plan.stays);
        let failover = Failover::new(leadership, None);
        let mut supervisor = Parts {
            plan,
            signals,
            owner,
            size: fleet.size,
            worker,
            peers: Peers::new((number, here), fleet.remotes, history),
            growing,
            gate: Gate::new(fleet.ready),
            streams: UserStreams::new(output, input),
            lifecycle: Lifecycle::new(plan.policy(), fleet.size).across(fleet.names, fleet.host_of),
            registry: ReplicatedRegistry::new(registry, failover.is_possible()),
            failover,
        }
        .assemble();
        // Hosts must know the succession order before their tasks start. Otherwise the job would be lost with the
        // launcher's host.
        supervisor.hosts_changed();
        for remote in supervisor.peers.others_mut() {
            let addresses = fleet.addresses.clone();
            remote.send(&Order::Start { addresses })?;
        }
        let addresses = fleet.addresses;
        supervisor.worker.obey(Order::Start { addresses });
        Ok(supervisor)
    }

    fn run(&mut self) -> u8 {
        let adopted = self.worker.tasks.iter().filter(|tasks| tasks.adopted);
        let first = adopted.flat_map(|tasks| tasks.guests.get(&0)).next();
        if let Some(pid) = first.map(|guest| guest.pid) {
            self.task_started(Started { rank: 0, pid });
        }
        // The process that requests to join first waits for this, and nothing else would wake the loop.
        self.handle_join_socket();
        loop {
            self.worker.start_some(self.signals.before());
            self.speak();
            self.wait(None);
            self.handle_signals();
            self.handle_hosts();
            self.worker.listen();
            self.speak();
            self.send_input();
            self.reap();
            self.handle_join_socket();
            self.handle_starter();
            self.handle_host_starter();
            self.watch_reaches();
            self.speak();
            self.pump();
            self.tick();
            if self.lifecycle.is_over() && (self.is_left_by_all() || self.lifecycle.is_given_up()) {
                break;
            }
        }
        self.drain();
        self.pass_last_errors();
        self.conclude();
        self.flush();
        let lost = self.streams.report_loss();
        self.flush();
        self.streams.close_input();
        self.growing.iter_mut().for_each(Growing::close);
        remote::part(self.peers.others_mut());
        match self.lifecycle.status() {
            0 if lost => STATUS_REFUSED,
            status => status,
        }
    }

    /// Returns whether nothing of the job is left, on this host or others.
    fn is_left_by_all(&self) -> bool {
        self.childless
            && self
                .peers
                .others()
                .iter()
                .all(|remote| remote.settled || remote.lost)
    }

    fn task_started(&mut self, Started { rank, pid }: Started) {
        self.lifecycle.task_started();
        self.registry.task_started(rank, pid);
        // Another task may have killed it before it had a process.
        if self.registry.is_killed_at_once(rank) {
            self.signal(rank, libc::SIGKILL);
        }
        let mut event = json!({"event": "start", "task": rank, "pid": pid});
        if let Some(host) = self.lifecycle.host(rank) {
            event["host"] = json!(host);
        }
        self.streams.event(&event);
    }

    fn cannot_start(&mut self, refusal: &Refusal) {
        self.streams.report(&refusal.sentence);
        let mut actions = Vec::new();
        self.lifecycle
            .cannot_start(self.started.elapsed(), refusal.status, &mut actions);
        self.perform(actions);
    }

    /// Waits until something happens, at most until `until`, counted from the start. Does not block while tasks are
    /// being started.
    fn wait(&self, until: Option<Duration>) {
        let timeout = if self.worker.are_to_start() {
            Some(Duration::ZERO)
        } else {
            let deadlines = self.lifecycle.deadline().into_iter().chain(until);
            let deadline = deadlines
                .min()
                .map(|at| at.saturating_sub(self.started.elapsed()));
            let step = self.growing.as_ref().and_then(Growing::until_step);
            let worker = Some(&self.worker).filter(|_| self.is_open());
            deadline
                .into_iter()
                .chain(self.until_beat())
                .chain(self.until_reaches())
                .chain(step)
                .chain(worker.and_then(Worker::until_due))
                .min()
        };
        let mut fds: Vec<PollFd> = self.owner.polls(&self.signals).collect();
        let shows = !self.streams.is_full();
        fds.extend(self.worker.polls(shows, self.is_open()));
        fds.extend(self.streams.polls());
        fds.extend(self.peers.others().iter().flat_map(Remote::polls));
        fds.extend(self.growing.iter().flat_map(Growing::polls));
        fds.extend(self.failover.polls());
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let _ = regatta_connection::ready::poll(&mut fds, timeout.as_ref());
    }

    fn handle_signals(&mut self) {
        let mut actions = Vec::new();
        let now = self.started.elapsed();
        let (arrived, lives) = self.owner.wishes(&self.signals);
        let untethered = self.failover.has_lost_tether();
        if !lives || untethered && !self.handle_end_of_tether() {
            self.lifecycle.abandoned(now, &mut actions);
        }
        for Arrived {
            signal,
            from_terminal,
        } in arrived
        {
            self.lifecycle
                .signal(now, signal.as_raw(), from_terminal, &mut actions);
        }
        self.perform(actions);
    }

    fn reap(&mut self) {
        let (others, none_left) = self.worker.reap();
        self.handle_own_reports();
        for (pid, status) in others {
            self.streams.reaped(pid);
            let growing = self.growing.iter_mut();
            growing.for_each(|growing| growing.reaped(pid, status));
            let remotes = self.peers.others_mut().iter_mut();
            remotes.for_each(|remote| remote.reaped(pid, status));
        }
        // The commands that carry channels run until the end.
        self.childless = none_left || self.lifecycle.is_over() && self.has_only_commands();
    }

    fn has_only_commands(&self) -> bool {
        let helpers = self.helpers();
        !helpers.is_empty() && tree::descendants(&helpers).is_empty()
    }

    /// Returns the processes that carry channels and that read the standard input. They get no signals of the job.
    fn helpers(&self) -> Vec<Pid> {
        let reader = self.streams.reader();
        self.peers
            .others()
            .iter()
            .filter_map(Remote::command)
            .chain(reader)
            .chain(self.growing.iter().flat_map(Growing::helpers))
            .collect()
    }

    fn task_ended(&mut self, task: Ended) {
        let Ended {
            rank,
            pid,
            end,
            state,
        } = task;
        if rank == 0 {
            self.streams.close_input();
        }
        self.streams
            .event(&summary::task_event(&self.lifecycle, rank, pid, end));
        if state == TaskState::Left {
            self.notify_gone(rank, None);
        }
        let mut actions = Vec::new();
        // The user sees the end of a task that was started by hand.
        let tasks = self.worker.tasks.as_ref();
        let by_hand = tasks.is_some_and(|tasks| tasks.adopted && rank == 0);
        let excused = by_hand || self.plan.stays || self.registry.is_excused(rank);
        self.lifecycle.task_ended(
            self.started.elapsed(),
            (rank, pid),
            (end, state),
            excused,
            &mut actions,
        );
        // Update the tables before notifying: a task that is notified of an end must find it in its table.
        self.perform(actions);
        self.shut_barriers_of(rank);
        self.forget_reach(rank);
        self.registry.task_ended(rank, end);
        self.hushed(rank);
        if by_hand && state != TaskState::Left {
            let mut actions = Vec::new();
            self.lifecycle
                .abandoned(self.started.elapsed(), &mut actions);
            self.perform(actions);
        }
    }

    /// Writes into every host's table that a task is gone. Its own host knows.
    fn notify_gone(&mut self, rank: u32, cause: Option<Cause>) {
        self.worker.obey(Order::Gone { rank, cause });
        self.peers.note_gone(rank, cause);
    }

    /// Passes what the tasks have written to the job's output.
    fn pump(&mut self) {
        self.streams.pump(&mut self.worker, &self.registry);
        self.handle_own_reports();
        self.repay_caught();
        self.streams.flush();
    }

    /// Reads everything that is still in the pipes. No process writes to them any more.
    fn drain(&mut self) {
        self.streams.drain(&mut self.worker, &self.registry);
        self.handle_own_reports();
        self.streams.flush();
    }

    fn tick(&mut self) {
        if self.lifecycle.is_over() && self.is_left_by_all() {
            return;
        }
        let mut actions = Vec::new();
        self.lifecycle.tick(self.started.elapsed(), &mut actions);
        self.perform(actions);
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Report(sentence) => self.streams.report(&sentence),
                Action::ReportEnding(reason) => {
                    let mut left = left(&self.worker.tasks, self.peers.others(), &self.helpers());
                    if reason == regatta_job::lifecycle::EndReason::Unkillable {
                        let held = Some(tasks::unkillable(&self.helpers()));
                        let held = held.filter(|held| !held.is_empty());
                        left += &held.map_or(String::new(), |held| format!("; here: {held}"));
                    }
                    self.streams.report(&reason.sentence(&left));
                }
                Action::MarkDead(rank, cause) => self.notify_gone(rank, Some(cause)),
                Action::Signal(signal) => {
                    if let Some(signal) = Signal::from_named_raw(signal) {
                        tree::signal_all(signal, &self.helpers());
                        let tasks = self.worker.tasks.iter();
                        tasks.for_each(|tasks| tasks.signal_guests(signal));
                    }
                    self.peers.send_to_all(&Order::Signal { signal });
                }
                Action::SignalElsewhere(signal) => {
                    self.peers.send_to_all(&Order::Signal { signal })
                }
                Action::StopStarting => {
                    self.end_spawns();
                    self.worker.obey(Order::Stop {});
                    self.peers.send_to_all(&Order::Stop {});
                }
            }
        }
    }

    /// Reports what is only known at the end of the job.
    fn conclude(&mut self) {
        let tasks = self.worker.tasks.as_ref();
        let program = tasks.map_or(Path::new(&self.plan.program), Tasks::program);
        if let Some(sentence) =
            summary::never_joined(&self.lifecycle, self.size, &self.plan.program, program)
        {
            self.streams.report(&sentence);
        }
        if let Some(sentence) = self.lifecycle.unreported() {
            self.streams.report(&sentence);
        }
        self.streams.event(&summary::job_event(
            &self.lifecycle,
            self.size,
            self.started.elapsed(),
        ));
    }

    /// Writes the remaining output, and waits for a slow reader, but not for one that has gone. If the end of the job
    /// is awaited, it waits no longer than the grace period.
    fn flush(&mut self) {
        let grace = self.lifecycle.is_awaited().then_some(self.plan.grace);
        let until = grace.map(|grace| self.started.elapsed() + grace);
        while !self.streams.is_flushed() && self.owner.leash.is_some() {
            if until.is_some_and(|until| until <= self.started.elapsed()) {
                self.streams.report(UNREAD);
                return;
            }
            self.wait(until);
            self.handle_hosts();
            self.streams.flush();
            let (arrived, lives) = self.owner.wishes(&self.signals);
            if !lives || arrived.iter().any(|arrived| owner::is_end(arrived.signal)) {
                return;
            }
        }
    }
}

/// The sentence if the job must end and the rest of its output is not read.
const UNREAD: &str = "the rest of the output was not read within the grace period (--grace) after the job was asked to end, and is lost";

/// Returns the processes that still run, for a sentence: tasks, or processes that they have left.
fn left(tasks: &Option<Tasks>, remotes: &[Remote], helpers: &[Pid]) -> String {
    let here = tasks.iter().flat_map(Tasks::running);
    let elsewhere = remotes.iter().flat_map(|remote| remote.running.keys());
    let ranks: BTreeSet<u32> = here.chain(elsewhere.copied()).collect();
    if !ranks.is_empty() {
        return words::tasks(&Vec::from_iter(ranks));
    }
    let here = Some(tasks::strays(helpers)).filter(|here| !here.is_empty());
    let unsettled = remotes.iter().filter(|it| !it.settled && !it.lost);
    let elsewhere = unsettled.map(|remote| format!("{} on {}", remote.strays, remote.name));
    let all: Vec<String> = here.into_iter().chain(elsewhere).collect();
    all.join(" and ")
}
