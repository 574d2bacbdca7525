//! The course of a job: a state machine without clock and without processes.
//!
//! What happens (a task ended, a signal came, time passed) goes in; what is to be done about it comes out as [`Act`]s.
//! Time is counted from the start of the job.
//!
//! # What becomes of the others when a task fails
//!
//! A task has failed when it was killed, ended with another status than 0, or ended without leaving the job it had
//! joined. The others are told at once through the job's segment: their operations with the dead task return errors that
//! name it, so nobody waits for it for ever.
//!
//! By default they then have ten seconds, and are ended. Most programs cannot go on without a task, and not all notice:
//! one that computes, or waits for a file, would burn its hours in a batch queue or a test run. The seconds are for those
//! that do notice, to write down what they have. A program made to survive says so with `--on-failure=continue`; there
//! is no third way that would suit both, because a launcher cannot tell a survivor from a task that has lost its sense.
//!
//! A task whose end another living task watches for or has asked for (`rg_notify`, `rg_kill`) is that task's affair: its
//! death is *excused*, is no failure of the job and not told to the user.

use std::time::Duration;

use rustix::process::Signal;

use crate::plan::{OnFailure, Plan};
use crate::words;
use regatta_transport::job::{Cause, TaskState};

/// How long a process has between the request to end and the end.
const ASKED: Duration = Duration::from_secs(2);
/// How long what the tasks left behind may take to end by itself.
const SETTLING: Duration = Duration::from_millis(100);
/// After this time with work left to do, the user is told what is being waited for.
const NOTICE: Duration = Duration::from_secs(1);
/// How often processes that were killed are looked for again, and for how long.
const AGAIN: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5);
/// Two interrupts closer than this are one: a terminal's and a launcher's copy of the same key.
const ONE_KEY: Duration = Duration::from_millis(50);
/// Failures that are told one by one; the rest is counted.
const TOLD: usize = 4;
/// The status when the job ran longer than it may, as that of `timeout`.
const STATUS_TIMEOUT: u8 = 124;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled {
        /// Its number.
        signal: i32,
        /// Whether a core file was written.
        core: bool,
    },
    /// With its host: nobody can tell how.
    Lost,
}

impl End {
    /// The status that stands for this end: 128 and the signal, as in a shell. A task on a lost host has been killed, or
    /// will be: no agent lets tasks outlive its channel.
    pub fn status(self) -> u8 {
        match self {
            End::Exited(status) => status as u8,
            End::Signalled { signal, .. } => (128 + signal) as u8,
            End::Lost => (128 + libc::SIGKILL) as u8,
        }
    }

    pub(crate) fn cause(self) -> Cause {
        match self {
            End::Exited(status) => Cause::Exited(status),
            End::Signalled { signal, .. } => Cause::Signalled(signal),
            End::Lost => Cause::Lost,
        }
    }
}

/// A task that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Its rank.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// How it ended.
    pub end: End,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// Tell the user.
    Say(String),
    /// Tell the members that a task is dead.
    MarkDead(u32, Cause),
    /// Send a signal to every process of the job.
    Signal(Signal),
    /// Send a signal to every process of the job on other hosts: those here have it from the terminal.
    SignalElsewhere(Signal),
    /// Start no more tasks.
    StopStarting,
}

/// How far the ending of the job has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing forces an end.
    Running,
    /// A task failed; at this time the others are asked to end.
    Grace(Duration),
    /// All tasks have ended, something they started has not; at this time it is asked to.
    Settling(Duration),
    /// Everything was asked to end; at this time it is killed.
    Asked(Duration),
    /// Everything was killed; look again at this time, and give up at the second.
    Killed(Duration, Duration),
    /// Something cannot be killed.
    GivenUp,
}

/// The course of one job.
#[derive(Debug)]
pub(crate) struct Course {
    tasks: u32,
    on_failure: OnFailure,
    grace: Duration,
    timeout: Option<Duration>,
    /// Nothing but a wish ends it.
    stays: bool,
    phase: Phase,
    notice: Option<(Duration, String)>,
    running: u32,
    ended: u32,
    starting: bool,
    /// Tasks that other tasks have asked for are being made ready.
    births: u32,
    /// How many tasks there were at first.
    first_tasks: u32,
    /// Some task has joined.
    joined: bool,
    never_joined: Vec<u32>,
    failures: usize,
    first: Option<Failure>,
    status: u8,
    interrupted: Option<Duration>,
    forwarded: Vec<i32>,
    /// What the hosts are called, and the host of each rank; empty when there is only this one.
    hosts: Vec<String>,
    host_of: Vec<u32>,
}

impl Course {
    pub(crate) fn new(plan: &Plan, tasks: u32) -> Self {
        // The first number of a job that stays is nobody's.
        let tasks = if plan.stays { 0 } else { tasks };
        Self {
            tasks,
            on_failure: plan.on_failure,
            grace: plan.grace,
            timeout: plan.timeout,
            stays: plan.stays,
            phase: Phase::Running,
            notice: None,
            running: 0,
            ended: 0,
            starting: !plan.stays,
            births: 0,
            first_tasks: tasks,
            joined: false,
            never_joined: Vec::new(),
            failures: 0,
            first: None,
            status: 0,
            interrupted: None,
            forwarded: Vec::new(),
            hosts: Vec::new(),
            host_of: Vec::new(),
        }
    }

    /// The job runs on hosts of these names.
    pub(crate) fn across(mut self, hosts: Vec<String>, host_of: Vec<u32>) -> Self {
        (self.hosts, self.host_of) = (hosts, host_of);
        self
    }

    /// The job has run before, with another launcher: so many of its tasks run, and so many have ended.
    pub(crate) fn resumed(mut self, first_tasks: u32, running: u32, ended: u32) -> Self {
        (self.first_tasks, self.running, self.ended) = (first_tasks, running, ended);
        self.starting = running + ended < self.tasks;
        self.joined = true;
        self
    }

    /// The job cannot go on here, for a reason that gives `status`.
    pub(crate) fn give_up(&mut self, now: Duration, status: u8, acts: &mut Vec<Act>) {
        self.status = status;
        self.kill(now, acts);
    }

    /// The job has one more host, of this number and name.
    pub(crate) fn add_host(&mut self, number: u32, name: &str) {
        let number = number as usize;
        if self.hosts.len() <= number {
            self.hosts.resize(number + 1, String::new());
        }
        name.clone_into(&mut self.hosts[number]);
    }

    /// The name of a task's host, when there are several.
    pub(crate) fn host(&self, rank: u32) -> Option<&str> {
        let host = *self.host_of.get(rank as usize)?;
        self.hosts.get(host as usize).map(String::as_str)
    }

    pub(crate) fn task_started(&mut self) {
        self.running += 1;
        self.starting &= self.running + self.ended < self.tasks;
    }

    /// A task has asked for others; it is not known yet how many there will be.
    pub(crate) fn birth_begins(&mut self) {
        self.births += 1;
    }

    /// It is known now.
    pub(crate) fn birth_ends(&mut self) {
        self.births = self.births.saturating_sub(1);
    }

    /// More tasks are started, on these hosts.
    pub(crate) fn more(&mut self, hosts: &[u32]) {
        self.tasks += hosts.len() as u32;
        self.starting = true;
        self.host_of.extend(hosts);
    }

    /// One of them cannot be started.
    pub(crate) fn unborn(&mut self) {
        self.ended += 1;
        self.starting &= self.running + self.ended < self.tasks;
    }

    /// No more tasks will be started: the host gave `status` a reason.
    pub(crate) fn cannot_start(&mut self, now: Duration, status: u8, acts: &mut Vec<Act>) {
        self.starting = false;
        self.status = status;
        self.kill(now, acts);
    }

    pub(crate) fn task_ended(
        &mut self,
        now: Duration,
        (rank, pid): (u32, u32),
        (end, state): (End, TaskState),
        excused: bool,
        acts: &mut Vec<Act>,
    ) {
        self.running -= 1;
        self.ended += 1;
        let wanted = self.is_ending();
        self.joined |= matches!(state, TaskState::Joined | TaskState::Left);
        match (end, state) {
            (End::Exited(0), TaskState::Left | TaskState::Dead) => return,
            (End::Exited(0), TaskState::Expected) if rank < self.first_tasks => {
                self.never_joined.push(rank);
            }
            _ => {}
        }
        // Dead already: a scribble may have said so, and then nobody has been told.
        if state != TaskState::Left {
            acts.push(Act::MarkDead(rank, end.cause()));
        }
        let harmless = end == End::Exited(0) && state == TaskState::Expected;
        if !harmless && !wanted && !excused {
            self.failed(now, Failure { rank, pid, end }, acts);
        }
    }

    /// A host is gone, and with it the tasks that ran on it (`running`, with their processes) and those that were to be
    /// started there. `sentence` says how it was lost.
    pub(crate) fn host_lost(
        &mut self,
        now: Duration,
        sentence: &str,
        running: &[(u32, u32)],
        unstarted: &[u32],
        excused: impl Fn(u32) -> bool,
        acts: &mut Vec<Act>,
    ) {
        self.running -= running.len() as u32;
        self.ended += (running.len() + unstarted.len()) as u32;
        self.starting &= self.running + self.ended < self.tasks;
        let lost = running
            .iter()
            .copied()
            .chain(unstarted.iter().map(|&rank| (rank, 0)));
        let mut lost: Vec<(u32, u32)> = lost.collect();
        lost.sort_unstable();
        acts.extend(
            lost.iter()
                .map(|&(rank, _)| Act::MarkDead(rank, Cause::Lost)),
        );
        let Some(&(rank, pid)) = lost.first() else {
            return;
        };
        if !self.is_ending() {
            // One sentence for the host, not one for each of its tasks.
            let ranks: Vec<u32> = lost.iter().map(|&(rank, _)| rank).collect();
            acts.push(Act::Say(format!(
                "{sentence}; lost with it: {}",
                words::tasks(&ranks)
            )));
            if ranks.iter().all(|&rank| excused(rank)) {
                return;
            }
            self.first_failed(
                now,
                Failure {
                    rank,
                    pid,
                    end: End::Lost,
                },
            );
        }
    }

    fn failed(&mut self, now: Duration, failure: Failure, acts: &mut Vec<Act>) {
        // A task that ends by the signal that the user sent is no news.
        let asked_for = matches!(failure.end, End::Signalled { signal, .. } if self.forwarded.contains(&signal));
        if !asked_for {
            self.failures += 1;
            if self.failures <= TOLD {
                acts.push(Act::Say(sentence(&failure, self.host(failure.rank))));
            }
        }
        self.first_failed(now, failure);
    }

    /// The first failure gives the status, and decides what becomes of the others.
    fn first_failed(&mut self, now: Duration, failure: Failure) {
        if self.first.is_none() {
            self.first = Some(failure);
            self.status = failure.end.status().max(1);
            if self.on_failure == OnFailure::Stop && self.phase == Phase::Running {
                self.phase = Phase::Grace(now + self.grace);
                let seconds = self.grace.as_secs_f32();
                let text = format!(
                    "{{}}; they are ended {seconds} s after the failure (--on-failure=continue lets them go on)"
                );
                self.notice = (self.grace > NOTICE).then(|| (now + NOTICE, text));
            }
        }
    }

    /// A signal for the job. `delivered` says that the terminal has sent it to the tasks already.
    pub(crate) fn signal(
        &mut self,
        now: Duration,
        signal: Signal,
        delivered: bool,
        acts: &mut Vec<Act>,
    ) {
        if signal == Signal::INT {
            let first = *self.interrupted.get_or_insert(now);
            if now > first + ONE_KEY {
                acts.push(Act::Say(
                    "interrupted twice: ending all tasks at once".to_owned(),
                ));
                self.status = if self.status == 0 {
                    End::Signalled {
                        signal: libc::SIGINT,
                        core: false,
                    }
                    .status()
                } else {
                    self.status
                };
                return self.kill(now, acts);
            }
            if self.notice.is_none() {
                let text = "{} after the interrupt; a second Ctrl-C ends them at once".to_owned();
                self.notice = Some((now + NOTICE, text));
            }
        }
        let ends = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal);
        if ends && self.stays {
            return self.kill(now, acts);
        }
        if ends {
            self.forwarded.push(signal.as_raw());
            if self.starting {
                self.starting = false;
                self.status = End::Signalled {
                    signal: signal.as_raw(),
                    core: false,
                }
                .status();
                acts.push(Act::StopStarting);
            }
        }
        acts.push(match delivered {
            true => Act::SignalElsewhere(signal),
            false => Act::Signal(signal),
        });
    }

    /// A task wants the job to end.
    pub(crate) fn halt(&mut self, now: Duration, acts: &mut Vec<Act>) {
        self.kill(now, acts);
    }

    /// Nobody is there any more to whom the job belongs.
    pub(crate) fn abandoned(&mut self, now: Duration, acts: &mut Vec<Act>) {
        self.status = End::Signalled {
            signal: libc::SIGKILL,
            core: false,
        }
        .status();
        self.kill(now, acts);
    }

    /// Time has passed. `left` names what still runs, when it is needed.
    pub(crate) fn tick(&mut self, now: Duration, left: impl Fn() -> String, acts: &mut Vec<Act>) {
        if self.is_over() && matches!(self.phase, Phase::Running | Phase::Grace(_)) {
            self.phase = Phase::Settling(now + SETTLING);
            self.notice = None;
        }
        if self.timeout.is_some_and(|limit| now >= limit) && !self.is_ending() {
            let limit = self.timeout.take().unwrap_or_default().as_secs_f32();
            acts.push(Act::Say(format!(
                "the job has run for the {limit} s that --timeout allows: ending {}",
                left()
            )));
            self.status = if self.status == 0 {
                STATUS_TIMEOUT
            } else {
                self.status
            };
            return self.ask(now, acts);
        }
        if let Some((_, text)) = self.notice.take_if(|(at, _)| now >= *at) {
            acts.push(Act::Say(text.replace("{}", &still_running(self.running))));
        }
        match self.phase {
            Phase::Grace(until) if now >= until => {
                acts.push(Act::Say(format!(
                    "ending {}, because a task failed",
                    left()
                )));
                self.ask(now, acts);
            }
            Phase::Settling(until) if now >= until => {
                acts.push(Act::Say(format!(
                    "all tasks have ended, but not what they started: ending {}",
                    left()
                )));
                self.ask(now, acts);
            }
            Phase::Asked(until) if now >= until => self.kill(now, acts),
            Phase::Killed(_, until) if now >= until => {
                acts.push(Act::Say(format!(
                    "{} cannot be ended: the kernel holds it (state D)",
                    left()
                )));
                self.phase = Phase::GivenUp;
            }
            Phase::Killed(again, until) if now >= again => {
                acts.push(Act::Signal(Signal::KILL));
                self.phase = Phase::Killed(now + AGAIN, until);
            }
            _ => {}
        }
    }

    fn ask(&mut self, now: Duration, acts: &mut Vec<Act>) {
        self.notice = None;
        acts.push(Act::StopStarting);
        acts.push(Act::Signal(Signal::TERM));
        // A stopped process takes note when it goes on.
        acts.push(Act::Signal(Signal::CONT));
        (self.starting, self.births, self.stays) = (false, 0, false);
        self.phase = Phase::Asked(now + ASKED);
    }

    fn kill(&mut self, now: Duration, acts: &mut Vec<Act>) {
        self.notice = None;
        acts.push(Act::StopStarting);
        acts.push(Act::Signal(Signal::KILL));
        (self.starting, self.births, self.stays) = (false, 0, false);
        self.phase = Phase::Killed(now + AGAIN, now + PATIENCE);
    }

    /// Is everything being ended?
    pub(crate) fn is_ending(&self) -> bool {
        matches!(
            self.phase,
            Phase::Asked(_) | Phase::Killed(..) | Phase::GivenUp
        )
    }

    /// When [`Self::tick`] has something to do next.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let phase = match self.phase {
            Phase::Running | Phase::GivenUp => None,
            Phase::Grace(at) | Phase::Settling(at) | Phase::Asked(at) | Phase::Killed(at, _) => {
                Some(at)
            }
        };
        let notice = self.notice.as_ref().map(|&(at, _)| at);
        let timeout = self.timeout.filter(|_| !self.is_ending());
        [phase, notice, timeout].into_iter().flatten().min()
    }

    /// Whether all tasks have ended and no more will be started.
    pub(crate) fn is_over(&self) -> bool {
        self.running == 0 && !self.starting && self.births == 0 && !self.stays
    }

    /// Whether what still runs cannot be ended.
    pub(crate) fn is_given_up(&self) -> bool {
        self.phase == Phase::GivenUp
    }

    /// The status that the command exits with.
    pub(crate) fn status(&self) -> u8 {
        self.status
    }

    pub(crate) fn first_failure(&self) -> Option<Failure> {
        self.first
    }

    /// Whether any task joined.
    pub(crate) fn joined(&self) -> bool {
        self.joined
    }

    /// The ranks of the tasks that ended well without ever joining, ascending.
    pub(crate) fn never_joined(&self) -> Vec<u32> {
        let mut ranks = self.never_joined.clone();
        ranks.sort_unstable();
        ranks
    }

    /// What is left to say about failures when the job is over.
    pub(crate) fn untold(&self) -> Option<String> {
        let untold = self
            .failures
            .checked_sub(TOLD)
            .filter(|&untold| untold > 0)?;
        Some(format!("{} failed", words::count(untold, "more task")))
    }
}

fn still_running(running: u32) -> String {
    let verb = if running == 1 { "runs" } else { "run" };
    format!("{} still {verb}", words::count(running as usize, "task"))
}

/// How a task failed.
fn sentence(failure: &Failure, host: Option<&str>) -> String {
    let Failure { rank, pid, end } = failure;
    let place = host.map(|host| format!(" on {host}")).unwrap_or_default();
    let who = format!("task {rank} (pid {pid}{place})");
    match end {
        End::Exited(0) => {
            format!(
                "{who} exited with status 0 without leaving (rg_finalize); others may be waiting for it"
            )
        }
        End::Exited(status) => format!("{who} exited with status {status}"),
        End::Signalled { signal, core } => {
            let core = if *core { ", core dumped" } else { "" };
            format!("{who} was killed by {}{core}", words::signal(*signal))
        }
        End::Lost => format!("{who} was lost with its host"),
    }
}

#[cfg(test)]
#[path = "lifecycle/tests.rs"]
mod tests;
