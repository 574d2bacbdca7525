//! The reasons for which a job cannot be made or joined, and their messages.

use std::fmt;
use std::io;

use regatta_memory::Corrupt;

use crate::job::{MAX_TASKS, VERSION};

/// The reason why a job could not be made or joined.
#[derive(Debug)]
pub enum JobError {
    /// The number of tasks is out of range.
    Tasks(u32),
    /// The operating system refused memory.
    Memory(io::Error),
    /// The join token cannot be read.
    JoinToken(String),
    /// Launcher and library are of different versions.
    Version {
        /// The launcher's version.
        launcher: u32,
    },
    /// This rank has already been taken by another process.
    Taken {
        /// The rank.
        rank: u32,
        /// The process that has taken the rank.
        pid: u32,
    },
    /// The segment's contents are invalid.
    Corrupt(Corrupt),
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::Tasks(tasks) => write!(
                f,
                "a job cannot have {tasks} tasks; the limits are 1 and {MAX_TASKS}"
            ),
            JobError::Memory(error) => write!(
                f,
                "shared memory could not be reserved: {error}. Start fewer tasks, or raise the memory limit"
            ),
            JobError::JoinToken(what) => write!(
                f,
                "the launcher's join token (REGATTA_JOB) cannot be used: {what}. If the program was started in a way that closes inherited files, start it with `regatta run`. If a program of this job started it as an ordinary process, start it without REGATTA_JOB in its environment"
            ),
            JobError::Version { launcher } => write!(
                f,
                "the launcher speaks version {launcher} of the job protocol, and this library speaks version {VERSION}; install both from the same release of Regatta"
            ),
            JobError::Taken { rank, pid } => write!(
                f,
                "rank {rank} of this job already belongs to process {pid}; a task's child cannot join as well"
            ),
            JobError::Corrupt(corrupt) => write!(
                f,
                "the job's shared memory is damaged: {}. Start the job again",
                corrupt.what
            ),
        }
    }
}

impl std::error::Error for JobError {}

impl From<Corrupt> for JobError {
    fn from(corrupt: Corrupt) -> Self {
        JobError::Corrupt(corrupt)
    }
}
