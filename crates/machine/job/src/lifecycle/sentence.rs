//! The lifecycle's sentences for the user.

use std::time::Duration;

use crate::end::{End, Failure};
use crate::words;

/// Why the rest of a job is ended, or cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The job has reached its time limit.
    TimeOver {
        /// The time limit.
        limit: Duration,
    },
    /// The grace period after a failure is over.
    TaskFailed,
    /// The grace period after a signal that requests the end is over.
    Asked {
        /// The signal's number.
        signal: i32,
    },
    /// All tasks have ended, but processes that they started have not.
    LeftBehind,
    /// Processes that were killed do not end.
    Unkillable,
}

impl EndReason {
    /// Returns the sentence for the user. `left` names what still runs.
    pub fn sentence(self, left: &str) -> String {
        match self {
            EndReason::TimeOver { limit } => {
                let seconds = limit.as_secs_f32();
                format!(
                    "the job has reached its time limit of {seconds} s (--timeout): ending {left}"
                )
            }
            EndReason::TaskFailed => format!("ending {left}, because a task failed"),
            EndReason::Asked { signal } => format!(
                "ending {left}: the grace period (--grace) after {} is over",
                words::signal(signal)
            ),
            EndReason::LeftBehind => {
                format!(
                    "all tasks have ended, but processes that they started still run: ending {left}"
                )
            }
            EndReason::Unkillable => {
                format!("some processes could not be ended and are still running: {left}")
            }
        }
    }
}

/// Returns how many tasks still run, for a sentence.
pub(super) fn still_running(running: u32) -> String {
    let verb = if running == 1 { "runs" } else { "run" };
    format!("{} still {verb}", words::count(running as usize, "task"))
}

/// Returns the sentence that a task has ended the job. `host` is given if there are several.
pub(super) fn abort(task: u32, host: Option<&str>, status: u8) -> String {
    let place = host.map(|host| format!(" on {host}")).unwrap_or_default();
    format!("task {task}{place} has called rg_abort({status}): ending all tasks at once")
}

/// Returns the sentence about a failed task. `host` is given if there are several.
pub(super) fn failure(failure: &Failure, host: Option<&str>) -> String {
    let Failure { rank, pid, end } = failure;
    let place = host.map(|host| format!(" on {host}")).unwrap_or_default();
    let task = format!("task {rank} (pid {pid}{place})");
    match end {
        End::Exited(0) => {
            format!(
                "{task} exited with status 0 without leaving (rg_finalize); others may be waiting for it"
            )
        }
        End::Exited(status) => format!("{task} exited with status {status}"),
        End::Signalled { signal, core } => {
            let core = if *core { ", core dumped" } else { "" };
            format!("{task} was killed by {}{core}", words::signal(*signal))
        }
        End::Lost => format!("{task} was lost with its host"),
    }
}
