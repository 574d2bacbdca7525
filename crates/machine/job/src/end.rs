//! How a task ended.

use regatta_wire::Malformed;
use regatta_wire::control::Ending;
use regatta_wire::fields;
use regatta_wire::fields::{Bytes, Field};
use regatta_wire::life::{Cause, TaskState};

/// How the process of a task ended, as seen by its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Exited with this status.
    Exited(i32),
    /// Killed by a signal.
    Signalled {
        /// The signal's number.
        signal: i32,
        /// Whether a core file was written.
        core: bool,
    },
    /// The task's host was lost, so the end of the process is unknown.
    Lost,
}

impl End {
    /// Returns the exit status that stands for this end: for a signal 128 plus its number, as in a shell. A task on a
    /// lost host counts as killed: no agent lets tasks outlive its channel.
    pub fn status(self) -> u8 {
        match self {
            End::Exited(status) => status as u8,
            End::Signalled { signal, .. } => (128 + signal) as u8,
            End::Lost => (128 + libc::SIGKILL) as u8,
        }
    }

    /// Returns this end as the tables of tasks record it.
    pub fn cause(self) -> Cause {
        match self {
            End::Exited(status) => Cause::Exited(status),
            End::Signalled { signal, .. } => Cause::Signalled(signal),
            End::Lost => Cause::Lost,
        }
    }

    /// Returns this end as it is notified to tasks.
    pub fn ending(self) -> Ending {
        match self {
            End::Exited(status) => Ending::Exited(status),
            End::Signalled { signal, .. } => Ending::Signalled(signal),
            End::Lost => Ending::Lost,
        }
    }
}

/// A task that has ended, as its host reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The task's number.
    pub rank: u32,
    /// The pid of its process.
    pub pid: u32,
    /// How the process ended.
    pub end: End,
    /// The task's state when it ended.
    pub state: TaskState,
}
fields!(Ended {
    rank,
    pid,
    end,
    state
});

impl Field for End {
    fn put(&self, to: &mut Vec<u8>) {
        match *self {
            End::Exited(status) => (0_u32, status).put(to),
            End::Signalled { signal, core } => (1 + u32::from(core), signal).put(to),
            End::Lost => (3_u32, 0_i32).put(to),
        }
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let (kind, value) = <(u32, i32)>::take(from)?;
        Ok(match kind {
            0 => End::Exited(value),
            1 | 2 => End::Signalled {
                signal: value,
                core: kind == 2,
            },
            3 => End::Lost,
            _ => return Err(Malformed),
        })
    }
}

/// A task that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The task's rank.
    pub rank: u32,
    /// The pid of its process, or 0 if it was never started.
    pub pid: u32,
    /// How the task ended.
    pub end: End,
}
fields!(Failure { rank, pid, end });
