//! The lifecycle of a job: when it is over, how it is ended, and with which status.
//!
//! A state machine without clock and processes. Events (a task ended, a signal arrived, time passed) go in; the steps
//! to be taken come out as [`Action`]s. Time is counted from the start of the job.
//!
//! # The other tasks after a failure
//!
//! A task has failed when it was killed, ended with another status than 0, or ended without leaving the job that it had
//! joined. The other tasks are notified at once through the job's segment: their operations with the dead task return
//! errors that name it, so none of them waits for it forever.
//!
//! By default they then have a grace period of ten seconds, and are ended. Most programs cannot go on without a task,
//! and not all notice: one that computes, or waits for a file, would waste hours in a batch queue or a test run. The
//! grace period is for programs that do notice, to save their data. For a program made to survive, the user gives
//! `--on-failure=continue`. There is no automatic choice, because a launcher cannot distinguish a survivor from a task
//! that is stuck.
//!
//! # A request to end
//!
//! A signal that ends programs (SIGTERM, SIGHUP, SIGQUIT, SIGINT) goes to all tasks. They may handle it during the same
//! grace period, whatever the policy for failures. Tasks that still run then are ended: the sender of such a signal (a
//! batch system, `timeout`, a terminal that closes) waits for the end of the command. Only a Ctrl-C from a terminal has
//! no such limit: a program may use it for something else, and a second one ends all tasks at once.
//!
//! If another living task watches for a task's end or has requested it (`rg_notify`, `rg_kill`), its death is
//! *excused*: it is no failure of the job and is not reported to the user. A task that ends before its starter can
//! watch for it is reported, and excused by the later watch.

mod decision;
mod policy;
mod sentence;

use std::time::Duration;

use crate::end::{End, Failure};
use crate::words;
pub use decision::Decision;
pub use policy::{OnFailure, Policy};
use regatta_wire::life::{Cause, TaskState};
pub use sentence::EndReason;

/// Time from SIGTERM to SIGKILL when everything is ended.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(2);
/// Time in which processes that the tasks left behind may end by themselves.
const SETTLING_TIME: Duration = Duration::from_millis(100);
/// Time from the start of a grace period until the user is told what is waited for.
const NOTICE_DELAY: Duration = Duration::from_secs(1);
/// Time between two kills of processes that still run.
const KILL_INTERVAL: Duration = Duration::from_millis(100);
/// Time from the first kill until the job is given up as unkillable.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time within which two interrupts count as one: the terminal and another launcher may both send the same Ctrl-C.
const SAME_INTERRUPT_TIME: Duration = Duration::from_millis(50);
/// Maximum number of failures that are reported one by one. The rest is counted.
const MAX_REPORTED_FAILURES: usize = 4;
/// The exit status if the job exceeds its time limit, as that of `timeout`.
const STATUS_TIMEOUT: u8 = 124;

/// An action that the launcher must carry out, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Print this sentence for the user.
    Report(String),
    /// Print why the rest of the job is ended, or cannot be, with the names of what still runs at this moment.
    ReportEnding(EndReason),
    /// Enter into every host's table that a task is dead.
    MarkDead(u32, Cause),
    /// Send a signal, by its number, to every process of the job.
    Signal(i32),
    /// Send a signal, by its number, to every process of the job on other hosts. Those on this host have it from the
    /// terminal.
    SignalElsewhere(i32),
    /// Start no more tasks.
    StopStarting,
}

/// The phase of the job's end. Times are those of the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing forces an end.
    Running,
    /// A task has failed, or a signal has requested the end. What still runs is terminated at this time.
    Grace(Duration),
    /// All tasks have ended, but processes that they started have not. These are terminated at this time.
    Settling(Duration),
    /// SIGTERM was sent. What still runs is killed at this time.
    Terminating(Duration),
    /// SIGKILL was sent. It is sent again at the first time, and the job is given up at the second.
    Killing(Duration, Duration),
    /// Some processes cannot be killed.
    GivenUp,
}

/// The lifecycle of one job; see the module.
#[derive(Debug)]
pub struct Lifecycle {
    policy: Policy,
    /// Number of tasks with numbers.
    tasks: u32,
    phase: Phase,
    /// A sentence about the tasks that still run, and the time at which it is due.
    notice: Option<(Duration, String)>,
    running: u32,
    ended: u32,
    /// Whether some tasks have numbers and have not been started.
    starting: bool,
    /// Number of requested spawns whose number of tasks is not known yet.
    pending_spawns: u32,
    /// Number of tasks that the job began with.
    first_tasks: u32,
    /// Whether some task has joined.
    joined: bool,
    /// First tasks that ended with status 0 without joining.
    never_joined: Vec<u32>,
    /// Number of failures to be reported.
    failures: usize,
    /// Failures that are not excused, in order. The first one determines the status.
    unexcused: Vec<Failure>,
    /// The exit status so far.
    status: u8,
    /// The time of the first interrupt.
    interrupted: Option<Duration>,
    /// The signals that the user has sent to end the job.
    forwarded: Vec<i32>,
    /// The first signal after which the job must end within the grace period.
    asked: Option<i32>,
    /// Whether the job has reached its time limit.
    timed_out: bool,
    /// The names of hosts by number, and the host of each rank. Empty if this host is the only one.
    hosts: Vec<String>,
    host_of: Vec<u32>,
    /// Whether the job goes on under another launcher, so that decisions made here are not for the other hosts.
    left_to_others: bool,
}

impl Lifecycle {
    /// Returns the lifecycle of a job that begins with this many tasks.
    pub fn new(policy: Policy, tasks: u32) -> Self {
        // The first number of a resident job belongs to no task.
        let tasks = if policy.resident { 0 } else { tasks };
        Self {
            policy,
            tasks,
            phase: Phase::Running,
            notice: None,
            running: 0,
            ended: 0,
            starting: !policy.resident,
            pending_spawns: 0,
            first_tasks: tasks,
            joined: false,
            never_joined: Vec::new(),
            failures: 0,
            unexcused: Vec::new(),
            status: 0,
            interrupted: None,
            forwarded: Vec::new(),
            asked: None,
            timed_out: false,
            hosts: Vec::new(),
            host_of: Vec::new(),
            left_to_others: false,
        }
    }

    /// Makes this the lifecycle of a job on several hosts. `hosts` are their names by number, `host_of` has the host of
    /// each rank.
    pub fn across(mut self, hosts: Vec<String>, host_of: Vec<u32>) -> Self {
        (self.hosts, self.host_of) = (hosts, host_of);
        self
    }

    /// Makes this the lifecycle of a job that another launcher has led: this many of its tasks run, and this many have
    /// ended.
    pub fn resumed(mut self, first_tasks: u32, running: u32, ended: u32) -> Self {
        (self.first_tasks, self.running, self.ended) = (first_tasks, running, ended);
        self.starting = running + ended < self.tasks;
        self.joined = true;
        self
    }

    /// Ends this launcher's part of the job with `status`. Another launcher may go on with it.
    pub fn give_up(&mut self, now: Duration, status: u8, actions: &mut Vec<Action>) {
        self.left_to_others = true;
        self.status = status;
        self.kill(now, actions);
    }

    /// Records that a host with this number and name has joined the job.
    pub fn add_host(&mut self, number: u32, name: &str) {
        let number = number as usize;
        if self.hosts.len() <= number {
            self.hosts.resize(number + 1, String::new());
        }
        name.clone_into(&mut self.hosts[number]);
    }

    /// Returns the name of a task's host, or `None` if there is only one host.
    pub fn host(&self, rank: u32) -> Option<&str> {
        let host = *self.host_of.get(rank as usize)?;
        self.hosts.get(host as usize).map(String::as_str)
    }

    /// Records that a task has been started.
    pub fn task_started(&mut self) {
        self.running += 1;
        self.starting &= self.running + self.ended < self.tasks;
    }

    /// Records that a task has requested a spawn. The job is not over until [`Self::spawn_resolved`].
    pub fn spawn_requested(&mut self) {
        self.pending_spawns += 1;
    }

    /// Records that the number of tasks of a requested spawn is known: none, or [`Self::tasks_added`] follows.
    pub fn spawn_resolved(&mut self) {
        self.pending_spawns = self.pending_spawns.saturating_sub(1);
    }

    /// Records that more tasks have numbers and are to be started, on these hosts.
    pub fn tasks_added(&mut self, hosts: &[u32]) {
        self.tasks += hosts.len() as u32;
        self.starting = true;
        self.host_of.extend(hosts);
    }

    /// Records that one of the added tasks cannot be started.
    pub fn start_failed(&mut self) {
        self.ended += 1;
        self.starting &= self.running + self.ended < self.tasks;
    }

    /// Ends the job with `status` because its first tasks cannot be started.
    pub fn cannot_start(&mut self, now: Duration, status: u8, actions: &mut Vec<Action>) {
        self.starting = false;
        self.status = status;
        self.kill(now, actions);
    }

    /// Handles the end of a task. `state` tells whether it had joined or left. An excused end is no failure.
    pub fn task_ended(
        &mut self,
        now: Duration,
        (rank, pid): (u32, u32),
        (end, state): (End, TaskState),
        excused: bool,
        actions: &mut Vec<Action>,
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
        // Also if it is marked dead here: the task may have written that itself, and then the other tables do not have
        // it.
        if state != TaskState::Left {
            actions.push(Action::MarkDead(rank, end.cause()));
        }
        let harmless = end == End::Exited(0) && state == TaskState::Expected;
        if !harmless && !wanted && !excused {
            self.failed(now, Failure { rank, pid, end }, actions);
        }
    }

    /// Handles the loss of a host, with the tasks that ran on it (`running`, with their pids) and those that were to be
    /// started there. `sentence` says how it was lost.
    pub fn host_lost(
        &mut self,
        now: Duration,
        sentence: &str,
        running: &[(u32, u32)],
        unstarted: &[u32],
        excused: impl Fn(u32) -> bool,
        actions: &mut Vec<Action>,
    ) {
        self.running -= running.len() as u32;
        self.ended += (running.len() + unstarted.len()) as u32;
        self.starting &= self.running + self.ended < self.tasks;
        let unstarted = unstarted.iter().map(|&rank| (rank, 0));
        let mut lost: Vec<(u32, u32)> = running.iter().copied().chain(unstarted).collect();
        lost.sort_unstable();
        let dead = |&(rank, _): &(u32, u32)| Action::MarkDead(rank, Cause::Lost);
        actions.extend(lost.iter().map(dead));
        let Some(&(rank, pid)) = lost.first() else {
            return;
        };
        if self.is_ending() {
            return;
        }
        // Report one sentence for the host, not one for each of its tasks.
        let ranks: Vec<u32> = lost.iter().map(|&(rank, _)| rank).collect();
        let tasks = words::tasks(&ranks);
        actions.push(Action::Report(format!("{sentence}; lost with it: {tasks}")));
        if !ranks.iter().all(|&rank| excused(rank)) {
            let end = End::Lost;
            self.first_failed(now, Failure { rank, pid, end });
        }
    }

    fn failed(&mut self, now: Duration, failure: Failure, actions: &mut Vec<Action>) {
        // The user expects a task to end by a signal that the user has sent.
        let requested = matches!(failure.end, End::Signalled { signal, .. } if self.forwarded.contains(&signal));
        if !requested {
            self.failures += 1;
            if self.failures <= MAX_REPORTED_FAILURES {
                let sentence = sentence::failure(&failure, self.host(failure.rank));
                actions.push(Action::Report(sentence));
            }
        }
        self.first_failed(now, failure);
    }

    /// Counts a failure. The first one determines the status, and what happens to the other tasks.
    fn first_failed(&mut self, now: Duration, failure: Failure) {
        self.unexcused.push(failure);
        if self.unexcused.len() > 1 {
            return;
        }
        self.status = failure.end.status().max(1);
        if self.policy.on_failure == OnFailure::Stop && self.phase == Phase::Running {
            let grace = self.policy.grace;
            self.phase = Phase::Grace(now + grace);
            let seconds = grace.as_secs_f32();
            let text = format!(
                "{{}}; they are ended {seconds} s after the failure (--on-failure=continue keeps them running)"
            );
            self.notice = (grace > NOTICE_DELAY).then(|| (now + NOTICE_DELAY, text));
        }
    }

    /// Excuses a death that has been counted as a failure, because the task died before its starter could watch for it.
    /// The exit status becomes that of the next failure. If there is none, the other tasks are not ended any more.
    pub fn excuse(&mut self, rank: u32) {
        let Some(first) = self.first_failure() else {
            return;
        };
        self.unexcused.retain(|failure| failure.rank != rank);
        if first.rank != rank || self.is_ending() || self.asked.is_some() {
            return;
        }
        let status = |failure: Failure| failure.end.status().max(1);
        self.status = self.first_failure().map_or(0, status);
        if self.unexcused.is_empty() && matches!(self.phase, Phase::Grace(_)) {
            (self.phase, self.notice) = (Phase::Running, None);
        }
    }

    /// Handles a signal for the job, by its number. With `delivered`, the terminal has sent it to the tasks already.
    pub fn signal(
        &mut self,
        now: Duration,
        signal: i32,
        delivered: bool,
        actions: &mut Vec<Action>,
    ) {
        // A shell or another launcher may pass on the same Ctrl-C.
        let is_echo = signal == libc::SIGINT && self.interrupted.is_some();
        if signal == libc::SIGINT && self.is_second_interrupt(now) {
            let sentence = "interrupted twice: ending all tasks at once".to_owned();
            actions.push(Action::Report(sentence));
            self.set_status(by_signal(libc::SIGINT));
            return self.kill(now, actions);
        }
        let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&signal);
        if ends && self.policy.resident {
            return self.kill(now, actions);
        }
        if ends {
            self.forwarded.push(signal);
            if self.starting {
                self.starting = false;
                self.status = by_signal(signal);
                actions.push(Action::StopStarting);
            }
            if signal != libc::SIGINT || !(delivered || is_echo) {
                self.ask_to_end(now, signal);
            }
        }
        actions.push(match delivered {
            true => Action::SignalElsewhere(signal),
            false => Action::Signal(signal),
        });
    }

    /// Starts the grace period after which whatever still runs is ended. An earlier end stays.
    fn ask_to_end(&mut self, now: Duration, signal: i32) {
        self.asked.get_or_insert(signal);
        if self.phase != Phase::Running {
            return;
        }
        let grace = self.policy.grace;
        self.phase = Phase::Grace(now + grace);
        let (signal, seconds) = (words::signal(signal), grace.as_secs_f32());
        let text =
            format!("{{}} after {signal}; they are ended {seconds} s after the signal (--grace)");
        self.notice = (grace > NOTICE_DELAY).then(|| (now + NOTICE_DELAY, text));
    }

    fn is_second_interrupt(&mut self, now: Duration) -> bool {
        let first = *self.interrupted.get_or_insert(now);
        if now > first + SAME_INTERRUPT_TIME {
            return true;
        }
        if self.notice.is_none() {
            let text = "{} after the interrupt; a second Ctrl-C ends them at once".to_owned();
            self.notice = Some((now + NOTICE_DELAY, text));
        }
        false
    }

    /// Ends the job at the request of a task.
    pub fn halt(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.kill(now, actions);
    }

    /// Ends the job at the request of a task, with this status. The status of an earlier failure or request is kept.
    pub fn abort(&mut self, now: Duration, task: u32, status: u8, actions: &mut Vec<Action>) {
        if self.is_ending() {
            return;
        }
        let status = status.max(1);
        actions.push(Action::Report(sentence::abort(
            task,
            self.host(task),
            status,
        )));
        self.set_status(status);
        self.kill(now, actions);
    }

    /// Ends the job because its owner is gone.
    pub fn abandoned(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.status = by_signal(libc::SIGKILL);
        self.kill(now, actions);
    }

    /// Handles the passing of time. To be called at [`Self::deadline`], and after every other input.
    pub fn tick(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if self.is_over() && matches!(self.phase, Phase::Running | Phase::Grace(_)) {
            self.phase = Phase::Settling(now + SETTLING_TIME);
            self.notice = None;
        }
        let timeout = self.policy.timeout.filter(|_| !self.is_ending());
        if let Some(limit) = timeout.filter(|&limit| now >= limit) {
            (self.policy.timeout, self.timed_out) = (None, true);
            actions.push(Action::ReportEnding(EndReason::TimeOver { limit }));
            self.set_status(STATUS_TIMEOUT);
            return self.terminate(now, actions);
        }
        if let Some((_, text)) = self.notice.take_if(|(at, _)| now >= *at) {
            let text = text.replace("{}", &sentence::still_running(self.running));
            actions.push(Action::Report(text));
        }
        match self.phase {
            Phase::Grace(until) if now >= until => {
                actions.push(Action::ReportEnding(match self.asked {
                    Some(signal) => EndReason::Asked { signal },
                    None => EndReason::TaskFailed,
                }));
                self.set_status(self.asked.map_or(0, by_signal));
                self.terminate(now, actions);
            }
            Phase::Settling(until) if now >= until => {
                actions.push(Action::ReportEnding(EndReason::LeftBehind));
                self.terminate(now, actions);
            }
            Phase::Terminating(until) if now >= until => self.kill(now, actions),
            Phase::Killing(_, until) if now >= until => {
                actions.push(Action::ReportEnding(EndReason::Unkillable));
                self.phase = Phase::GivenUp;
            }
            Phase::Killing(again, until) if now >= again => {
                actions.push(Action::Signal(libc::SIGKILL));
                self.phase = Phase::Killing(now + KILL_INTERVAL, until);
            }
            _ => {}
        }
    }

    /// Sets the status unless it has been set before.
    fn set_status(&mut self, status: u8) {
        if self.status == 0 {
            self.status = status;
        }
    }

    fn terminate(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.end(actions);
        actions.push(Action::Signal(libc::SIGTERM));
        // A stopped process handles SIGTERM only when it is continued.
        actions.push(Action::Signal(libc::SIGCONT));
        self.phase = Phase::Terminating(now + TERMINATION_TIMEOUT);
    }

    fn kill(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.end(actions);
        actions.push(Action::Signal(libc::SIGKILL));
        self.phase = Phase::Killing(now + KILL_INTERVAL, now + KILL_TIMEOUT);
    }

    /// Stops starting tasks, and drops everything that keeps the job alive.
    fn end(&mut self, actions: &mut Vec<Action>) {
        self.notice = None;
        actions.push(Action::StopStarting);
        (self.starting, self.pending_spawns, self.policy.resident) = (false, 0, false);
    }

    /// Returns whether the end of the job is awaited: a signal has requested it, or the job has reached its time limit.
    pub fn is_awaited(&self) -> bool {
        self.asked.is_some() || self.timed_out
    }

    /// Returns whether everything is being ended.
    pub fn is_ending(&self) -> bool {
        matches!(
            self.phase,
            Phase::Terminating(_) | Phase::Killing(..) | Phase::GivenUp
        )
    }

    /// Returns the time at which [`Self::tick`] must be called next.
    pub fn deadline(&self) -> Option<Duration> {
        let phase = match self.phase {
            Phase::Running | Phase::GivenUp => None,
            Phase::Grace(at)
            | Phase::Settling(at)
            | Phase::Terminating(at)
            | Phase::Killing(at, _) => Some(at),
        };
        let notice = self.notice.as_ref().map(|&(at, _)| at);
        let timeout = self.policy.timeout.filter(|_| !self.is_ending());
        [phase, notice, timeout].into_iter().flatten().min()
    }

    /// Returns whether all tasks have ended and no more will be started.
    pub fn is_over(&self) -> bool {
        let waits = self.starting || self.pending_spawns > 0 || self.policy.resident;
        self.running == 0 && !waits
    }

    /// Returns whether processes that still run cannot be killed.
    pub fn is_given_up(&self) -> bool {
        self.phase == Phase::GivenUp
    }

    /// Returns the status that the command exits with.
    pub fn status(&self) -> u8 {
        self.status
    }

    /// Returns the failure that determined the status, if one did.
    pub fn first_failure(&self) -> Option<Failure> {
        self.unexcused.first().copied()
    }

    /// Returns whether any task has joined.
    pub fn joined(&self) -> bool {
        self.joined
    }

    /// Returns the ranks of the first tasks that ended with status 0 without ever joining, ascending.
    pub fn never_joined(&self) -> Vec<u32> {
        let mut ranks = self.never_joined.clone();
        ranks.sort_unstable();
        ranks
    }

    /// Returns a sentence about the failures that were not reported one by one, if there are any.
    pub fn unreported(&self) -> Option<String> {
        let unreported = self.failures.checked_sub(MAX_REPORTED_FAILURES)?;
        (unreported > 0).then(|| format!("{} failed", words::count(unreported, "more task")))
    }
}

fn by_signal(signal: i32) -> u8 {
    let core = false;
    End::Signalled { signal, core }.status()
}

#[cfg(test)]
mod tests;
