//! The front process of the command, and the supervisor behind it.
//!
//! `regatta run` is three processes, so that the death of one or two of them leaves nothing behind:
//!
//! ```text
//! shell ── front (regatta) ── watch (regatta-watch) ── supervisor (regatta-job) ── task 0, task 1, ...
//! ```
//!
//! The **front** is in the terminal's foreground group, passes signals on, and exits with the job's status. The
//! **supervisor** is in a process group of its own and is the parent of all tasks. A descendant that loses its parent
//! becomes its child, so it always knows all of them. The **watch** between the two only waits for the supervisor's
//! end. The tasks are in the front's group: a terminal's Ctrl-C, Ctrl-Z and input reach them as if there were no
//! launcher.
//!
//! | killed with -9 | what ends the tasks and the processes that they started |
//! |---|---|
//! | the front, or its whole group | the supervisor, which reads the end of the *leash*, a pipe that only the front holds |
//! | the supervisor, alone or with the front | the watch, which adopts the supervisor's children; the tasks also die by their parent-death signal |
//! | the watch, alone or with the supervisor | the front, which adopts all processes below |
//! | the front and the watch | the supervisor, by the leash |
//! | all three at once | the parent-death signal ends the tasks; processes that have detached from them (`setsid` and a second fork) go on |
//!
//! More is impossible without privileges: a process must be alive to end such processes, and control groups are not
//! available everywhere. Watch and supervisor have names and groups of their own so that `killall regatta`, or a signal
//! to the group, is the first case.

use std::os::fd::OwnedFd;
use std::time::Duration;

use regatta_program::{Refusal, STATUS_REFUSED};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::plan::Plan;
use crate::supervise;
use crate::supervise::owner::Owner;
use crate::sys;
use crate::system::inherited;
use crate::system::signals::Signals;
use crate::system::tree;
use crate::words;

/// Time limit for ending what a dead supervisor has left.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a job to its end and returns the status to exit with.
///
/// For programs with one thread, like the command `regatta`: the process is forked, and catches the signals that
/// concern a job. A program with more threads calls [`supervise::run`].
pub fn run(plan: &Plan) -> Result<u8, Refusal> {
    run_then(plan, |_| ())
}

/// Like [`run`], and calls `after` with the status when the job is over, also before this process dies of an interrupt.
pub fn run_then(plan: &Plan, after: impl FnOnce(u8)) -> Result<u8, Refusal> {
    supervise::check(plan)?;
    inherited::normalize();
    let signals = Signals::catch()?;
    let no_leash = |errno| Refusal::of_regatta(format!("the launcher cannot open a pipe: {errno}"));
    let (end, leash) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(no_leash)?;
    tree::adopt_orphans()?;
    let group = sys::process_group();
    match fork_watched(Some("supervisor of the job")) {
        Err(errno) => Err(crate::system::limits::explain(errno, 0)),
        Ok(None) => {
            drop(leash);
            hide();
            let owner = Owner {
                leash: Some(end),
                group,
            };
            let status = supervise::run_for(plan, signals, owner).unwrap_or_else(|refusal| {
                crate::report_refusal(plan.form, &refusal);
                refusal.status
            });
            std::process::exit(i32::from(status));
        }
        Ok(Some(supervisor)) => {
            drop(end);
            let conclusion = accompany(supervisor, &signals, &leash);
            after(conclusion.status);
            if conclusion.dies_of_interrupt {
                signals.die_of(Signal::INT);
            }
            Ok(conclusion.status)
        }
    }
}

/// Forks a worker process, and a process between it and this one that ends what the worker leaves when it is killed.
/// Returns `None` in the worker, and the pid of the process between in this one. `named` is the worker's name for the
/// report that it was killed. `None` if that is not reported.
pub(crate) fn fork_watched(named: Option<&str>) -> rustix::io::Result<Option<Pid>> {
    if let Some(watch) = sys::fork()? {
        return Ok(Some(watch));
    }
    let _ = rustix::process::setpgid(None, None);
    let _ = rustix::thread::set_name(c"regatta-watch");
    if tree::adopt_orphans().is_err() {
        std::process::exit(i32::from(STATUS_REFUSED));
    }
    match sys::fork() {
        Ok(None) => Ok(None),
        Ok(Some(worker)) => watch(worker, named),
        Err(errno) => {
            crate::warn(&crate::system::limits::explain(errno, 0).sentence);
            std::process::exit(i32::from(STATUS_REFUSED));
        }
    }
}

/// Waits for the end of the worker, ends what it has left, and exits with its status.
fn watch(worker: Pid, named: Option<&str>) -> ! {
    // This process must not keep pipes of the other two open, whose readers wait for the end.
    sys::close_inherited(&[]);
    let status = loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == worker => break status,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => std::process::exit(i32::from(STATUS_REFUSED)),
        }
    };
    tree::kill_all(KILL_TIMEOUT);
    let signal = status.terminating_signal();
    if let (Some(signal), Some(named)) = (signal, named) {
        report_killed(named, worker, signal);
    }
    let killed = 128 + signal.unwrap_or(libc::SIGKILL);
    std::process::exit(status.exit_status().unwrap_or(killed));
}

fn report_killed(named: &str, pid: Pid, signal: i32) {
    crate::warn(&format!(
        "the {named} (pid {pid}) was killed by {}; its tasks have been ended",
        words::signal(signal)
    ));
}

/// Moves the supervisor out of the process group that a terminal, or `kill -9 -GROUP`, addresses.
fn hide() {
    let _ = rustix::process::setpgid(None, None);
    let _ = rustix::thread::set_name(c"regatta-job");
    // If the user has set `stty tostop`, writing to the terminal from a background group would stop it.
    sys::block(&[Signal::TTOU]);
}

/// Passes signals on until the supervisor has ended.
fn accompany(supervisor: Pid, signals: &Signals, leash: &OwnedFd) -> Conclusion {
    let mut interrupted = false;
    loop {
        let _ = regatta_connection::ready::poll(&mut [PollFd::new(signals, PollFlags::IN)], None);
        while let Some(arrived) = signals.next() {
            interrupted |= arrived.signal == Signal::INT;
            let _ = rustix::io::write(leash, &arrived.to_bytes());
            if arrived.signal == Signal::TSTP {
                // Stop like the tasks, so that the shell shows its prompt. SIGCONT ends the stop.
                let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
            }
        }
        if let Some(end) = end_of(supervisor) {
            return conclude(end, supervisor, interrupted);
        }
    }
}

/// Returns how the supervisor ended, if it did. Also reaps adopted orphans.
fn end_of(supervisor: Pid) -> Option<WaitStatus> {
    while let Ok(Some((pid, end))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == supervisor {
            return Some(end);
        }
    }
    None
}

fn conclude(end: WaitStatus, supervisor: Pid, interrupted: bool) -> Conclusion {
    // A supervisor that ended in good order has left nothing. Other children belong to a program that this process ran
    // before.
    if end.terminating_signal().is_some() {
        tree::kill_all(KILL_TIMEOUT);
    }
    let conclusion = Conclusion::of(end.exit_status(), end.terminating_signal(), interrupted);
    if let Some(signal) = conclusion.killed_by {
        report_killed(
            "process between launcher and supervisor",
            supervisor,
            signal,
        );
    }
    conclusion
}

/// How the front ends after the process below it.
#[derive(Debug, PartialEq, Eq)]
struct Conclusion {
    status: u8,
    /// The signal that has killed the process below, which is then reported.
    killed_by: Option<i32>,
    /// Whether the front dies of the interrupt itself: a shell stops its loop only for such a command.
    dies_of_interrupt: bool,
}

impl Conclusion {
    fn of(exit: Option<i32>, signal: Option<i32>, interrupted: bool) -> Self {
        let (status, killed_by) = match exit {
            Some(status) => (status as u8, None),
            None => {
                let signal = signal.unwrap_or(libc::SIGKILL);
                ((128 + signal) as u8, Some(signal))
            }
        };
        Self {
            status,
            killed_by,
            dies_of_interrupt: interrupted && status == (128 + libc::SIGINT) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_ends_with_the_status_of_the_job() {
        for status in [0, 3, 125] {
            let conclusion = Conclusion::of(Some(status), None, true);
            let expected = Conclusion {
                status: status as u8,
                killed_by: None,
                dies_of_interrupt: false,
            };
            assert_eq!(conclusion, expected);
        }
    }

    #[test]
    fn the_front_dies_of_an_interrupt_only_if_it_got_one_and_the_job_ended_by_it() {
        let dies =
            |exit, interrupted| Conclusion::of(Some(exit), None, interrupted).dies_of_interrupt;
        assert!(dies(130, true));
        // A task that exits with 130 itself, and a job that went on to its end after the interrupt.
        assert!(!dies(130, false) && !dies(0, true));
    }

    #[test]
    fn a_process_below_that_was_killed_is_reported_as_a_shell_does() {
        let conclusion = Conclusion::of(None, Some(libc::SIGTERM), false);
        assert_eq!(
            (conclusion.status, conclusion.killed_by),
            (143, Some(libc::SIGTERM))
        );
        let unknown = Conclusion::of(None, None, false);
        assert_eq!(
            (unknown.status, unknown.killed_by),
            (137, Some(libc::SIGKILL))
        );
    }
}
