//! The lifecycle of a job: when it is over, how it is ended, and with which status.
//!
//! A state machine without clock and processes. Events (a task ended, a signal came, time passed) go in; the steps to be
//! taken come out as [`Action`]s. Time is counted from the start of the job.
//!
//! # The other tasks, when one fails
//!
//! A task has failed when it was killed, ended with another status than 0, or ended without leaving the job it had
//! joined. The others learn it at once through the job's segment: their operations with the dead task return errors that
//! name it, so nobody waits for it for ever.
//!
//! By default they then have a grace period of ten seconds, and are ended. Most programs cannot go on without a task, and not all notice:
//! one that computes, or waits for a file, would burn its hours in a batch queue or a test run. The grace period is for programs
//! that do notice, to save what they have. A program made to survive says so with `--on-failure=continue`; there
//! is no third way that would suit both, because a launcher cannot tell a survivor from a task that is stuck.
//!
//! # A request to end
//!
//! A signal that ends programs (SIGTERM, SIGHUP, SIGQUIT, SIGINT) goes to all tasks, which may handle it as they like for the same grace
//! period, whatever the policy says of failures. Tasks that still run then are ended: whoever sends such a signal (a batch system, `timeout`, a
//! terminal that goes away) waits for the end of the command. A terminal's Ctrl-C alone has no such limit: a program may use it for
//! something else, and a second one ends all tasks at once.
//!
//! A task whose end another living task watches for or has requested (`rg_notify`, `rg_kill`) is that task's affair: its
//! death is *excused*, is no failure of the job and not reported to the user. A task that ends before its starter can
//! watch for it is reported, and excused by that watch.

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

/// Time from the request to end (SIGTERM) to the end (SIGKILL).
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(2);
/// Time in which processes that the tasks left behind may end by themselves.
const SETTLING_TIME: Duration = Duration::from_millis(100);
/// Time from the beginning of an end with tasks still at work to the sentence that says what is waited for.
const NOTICE_DELAY: Duration = Duration::from_secs(1);
/// Time between two kills of processes that are still there.
const KILL_INTERVAL: Duration = Duration::from_millis(100);
/// Time from the first kill to the admission that something cannot be killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time within which two interrupts are one: a terminal's and a launcher's copy of the same key.
const SAME_INTERRUPT_TIME: Duration = Duration::from_millis(50);
/// Maximum number of failures that are reported one by one; the rest is counted.
const MAX_REPORTED_FAILURES: usize = 4;
/// The status when the job ran longer than it may, as that of `timeout`.
const STATUS_TIMEOUT: u8 = 124;

/// An action that the launcher must carry out. Actions are carried out in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Report this sentence to the user.
    Report(String),
    /// Report why the rest is ended, or cannot be, with the names of what still runs at this moment.
    ReportEnding(EndReason),
    /// Enter into every host's table that a task is dead.
    MarkDead(u32, Cause),
    /// Send a signal, by its number, to every process of the job.
    Signal(i32),
    /// Send a signal, by its number, to every process of the job on other hosts: those here have it from the terminal.
    SignalElsewhere(i32),
    /// Start no more tasks.
    StopStarting,
}

/// How far the ending of the job has come. Times are those of the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing forces an end.
    Running,
    /// A task has failed, or a signal has asked for the end; what still runs is terminated at this time.
    Grace(Duration),
    /// All tasks have ended, something they started has not; it is terminated at this time.
    Settling(Duration),
    /// Everything was asked to end (SIGTERM); it is killed at this time.
    Terminating(Duration),
    /// Everything was killed; it is killed again at the first time, and given up at the second.
    Killing(Duration, Duration),
    /// Something cannot be killed.
    GivenUp,
}

/// The lifecycle of one job; the module describes it.
#[derive(Debug)]
pub struct Lifecycle {
    policy: Policy,
    /// How many tasks have been given numbers.
    tasks: u32,
    phase: Phase,
    /// A sentence on how many tasks still run, and when it is due.
    notice: Option<(Duration, String)>,
    running: u32,
    ended: u32,
    /// Some tasks have numbers and have not been started.
    starting: bool,
    /// Spawns that tasks have requested and of which the number of tasks is not known yet.
    pending_spawns: u32,
    /// How many tasks there were at first.
    first_tasks: u32,
    /// Some task has joined.
    joined: bool,
    /// First tasks that ended well without joining.
    never_joined: Vec<u32>,
    /// Failures that were to be reported.
    failures: usize,
    /// Failures that are not excused, in their order. The first one gives the status.
    unexcused: Vec<Failure>,
    /// The exit status so far.
    status: u8,
    /// When the first interrupt came.
    interrupted: Option<Duration>,
    /// The signals that the user has sent to end the job.
    forwarded: Vec<i32>,
    /// The first signal after which the job has to end within the grace period.
    asked: Option<i32>,
    /// The job has run for as long as it may.
    timed_out: bool,
    /// The names of hosts by their numbers, and the host of each rank; empty if this host is the only one.
    hosts: Vec<String>,
    host_of: Vec<u32>,
    /// The job goes on elsewhere: what is decided here is not for the others.
    left_to_others: bool,
}

impl Lifecycle {
    /// The lifecycle of a job that begins with this many tasks.
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

    /// A job that runs on several hosts: their names by number, and the host of each rank.
    pub fn across(mut self, hosts: Vec<String>, host_of: Vec<u32>) -> Self {
        (self.hosts, self.host_of) = (hosts, host_of);
        self
    }

    /// A job that had another launcher before: so many of its tasks run, and so many have ended.
    pub fn resumed(mut self, first_tasks: u32, running: u32, ended: u32) -> Self {
        (self.first_tasks, self.running, self.ended) = (first_tasks, running, ended);
        self.starting = running + ended < self.tasks;
        self.joined = true;
        self
    }

    /// The job cannot go on here, for a reason that gives `status`; others may go on with it.
    pub fn give_up(&mut self, now: Duration, status: u8, actions: &mut Vec<Action>) {
        self.left_to_others = true;
        self.status = status;
        self.kill(now, actions);
    }

    /// A host with this number and name has joined the job.
    pub fn add_host(&mut self, number: u32, name: &str) {
        let number = number as usize;
        if self.hosts.len() <= number {
            self.hosts.resize(number + 1, String::new());
        }
        name.clone_into(&mut self.hosts[number]);
    }

    /// The name of a task's host, if there are several hosts.
    pub fn host(&self, rank: u32) -> Option<&str> {
        let host = *self.host_of.get(rank as usize)?;
        self.hosts.get(host as usize).map(String::as_str)
    }

    /// A task has been started.
    pub fn task_started(&mut self) {
        self.running += 1;
        self.starting &= self.running + self.ended < self.tasks;
    }

    /// A task has requested a spawn. The job is not over until [`Self::spawn_resolved`].
    pub fn spawn_requested(&mut self) {
        self.pending_spawns += 1;
    }

    /// The number of tasks of a requested spawn is known: none, or [`Self::tasks_added`] follows.
    pub fn spawn_resolved(&mut self) {
        self.pending_spawns = self.pending_spawns.saturating_sub(1);
    }

    /// More tasks have numbers and are to be started, on these hosts.
    pub fn tasks_added(&mut self, hosts: &[u32]) {
        self.tasks += hosts.len() as u32;
        self.starting = true;
        self.host_of.extend(hosts);
    }

    /// One of them cannot be started.
    pub fn start_failed(&mut self) {
        self.ended += 1;
        self.starting &= self.running + self.ended < self.tasks;
    }

    /// The first tasks cannot be started, for a reason that gives `status`: the job ends.
    pub fn cannot_start(&mut self, now: Duration, status: u8, actions: &mut Vec<Action>) {
        self.starting = false;
        self.status = status;
        self.kill(now, actions);
    }

    /// A task has ended; `state` is how far it had joined. An excused end is no failure.
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
        // Dead already: the task may have written that itself, and then the other tables do not have it.
        if state != TaskState::Left {
            actions.push(Action::MarkDead(rank, end.cause()));
        }
        let harmless = end == End::Exited(0) && state == TaskState::Expected;
        if !harmless && !wanted && !excused {
            self.failed(now, Failure { rank, pid, end }, actions);
        }
    }

    /// A host is lost, and with it the tasks that ran on it (`running`, with their processes) and those that were to be
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
        // One sentence for the host, not one for each of its tasks.
        let ranks: Vec<u32> = lost.iter().map(|&(rank, _)| rank).collect();
        let tasks = words::tasks(&ranks);
        actions.push(Action::Report(format!("{sentence}; lost with it: {tasks}")));
        if !ranks.iter().all(|&rank| excused(rank)) {
            let end = End::Lost;
            self.first_failed(now, Failure { rank, pid, end });
        }
    }

    fn failed(&mut self, now: Duration, failure: Failure, actions: &mut Vec<Action>) {
        // A task that ends by the signal that the user has sent is no news.
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

    /// The first failure gives the status, and decides what becomes of the others.
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
                "{{}}; they are ended {seconds} s after the failure (--on-failure=continue lets them go on)"
            );
            self.notice = (grace > NOTICE_DELAY).then(|| (now + NOTICE_DELAY, text));
        }
    }

    /// Excuses a death that has been counted as a failure: the task had died before its starter could watch for it. The exit status becomes that of
    /// the next failure, if there is one; otherwise the other tasks are not ended any more.
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

    /// A signal for the job, by its number. `delivered` says that the terminal has sent it to the tasks already.
    pub fn signal(
        &mut self,
        now: Duration,
        signal: i32,
        delivered: bool,
        actions: &mut Vec<Action>,
    ) {
        // A shell or another launcher may pass the same Ctrl-C on.
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

    /// Has whatever still runs ended when the grace period is over. An end that comes sooner anyway stays so.
    fn ask_to_end(&mut self, now: Duration, signal: i32) {
        self.asked.get_or_insert(signal);
        if self.phase != Phase::Running {
            return;
        }
        let grace = self.policy.grace;
        self.phase = Phase::Grace(now + grace);
        let (signal, seconds) = (words::signal(signal), grace.as_secs_f32());
        let text = format!("{{}} after {signal}; they are ended {seconds} s after it (--grace)");
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

    /// A task has requested the end of the job.
    pub fn halt(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.kill(now, actions);
    }

    /// A task has requested the end of the job, with this status. A failure before it, or another such request, keeps its own.
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

    /// The owner of the job is gone.
    pub fn abandoned(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.status = by_signal(libc::SIGKILL);
        self.kill(now, actions);
    }

    /// Time has passed: to be called at [`Self::deadline`], and after every other input.
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

    /// Sets the status unless something has set it before.
    fn set_status(&mut self, status: u8) {
        if self.status == 0 {
            self.status = status;
        }
    }

    fn terminate(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.end(actions);
        actions.push(Action::Signal(libc::SIGTERM));
        // A stopped process handles it when it is continued.
        actions.push(Action::Signal(libc::SIGCONT));
        self.phase = Phase::Terminating(now + TERMINATION_TIMEOUT);
    }

    fn kill(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.end(actions);
        actions.push(Action::Signal(libc::SIGKILL));
        self.phase = Phase::Killing(now + KILL_INTERVAL, now + KILL_TIMEOUT);
    }

    /// Nothing is started any more, and nothing keeps the job alive.
    fn end(&mut self, actions: &mut Vec<Action>) {
        self.notice = None;
        actions.push(Action::StopStarting);
        (self.starting, self.pending_spawns, self.policy.resident) = (false, 0, false);
    }

    /// Whether somebody waits for the end of the job: a signal has asked for it, or it has run for as long as it may.
    pub fn is_awaited(&self) -> bool {
        self.asked.is_some() || self.timed_out
    }

    /// Whether everything is being ended.
    pub fn is_ending(&self) -> bool {
        matches!(
            self.phase,
            Phase::Terminating(_) | Phase::Killing(..) | Phase::GivenUp
        )
    }

    /// When [`Self::tick`] has something to do next.
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

    /// Whether all tasks have ended and no more will be started.
    pub fn is_over(&self) -> bool {
        let waits = self.starting || self.pending_spawns > 0 || self.policy.resident;
        self.running == 0 && !waits
    }

    /// Whether something that still runs cannot be ended.
    pub fn is_given_up(&self) -> bool {
        self.phase == Phase::GivenUp
    }

    /// The status that the command exits with.
    pub fn status(&self) -> u8 {
        self.status
    }

    /// The failure that gave the status, if one did.
    pub fn first_failure(&self) -> Option<Failure> {
        self.unexcused.first().copied()
    }

    /// Whether any task joined.
    pub fn joined(&self) -> bool {
        self.joined
    }

    /// The ranks of the first tasks that ended well without ever joining, ascending.
    pub fn never_joined(&self) -> Vec<u32> {
        let mut ranks = self.never_joined.clone();
        ranks.sort_unstable();
        ranks
    }

    /// A sentence on the failures that were not reported, for the end of the job.
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
