//! State of a task's life, and how it ended.

use std::fmt;

use crate::Malformed;
use crate::fields::{Bytes, Field};

/// State of a task's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Not joined yet.
    Expected,
    /// Between init and finalize.
    Joined,
    /// Left with finalize.
    Left,
    /// Ended without leaving.
    Dead,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Exited with this status.
    Exited(i32),
    /// Killed by this signal.
    Signalled(i32),
    /// Lost with its host; the cause is unknown.
    Lost,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Exited(status) => write!(f, "exited with status {status} without leaving"),
            Cause::Signalled(signal) => write!(f, "was killed by signal {signal}"),
            Cause::Lost => write!(f, "was on a host that was lost"),
        }
    }
}

impl Field for Cause {
    fn put(&self, to: &mut Vec<u8>) {
        match *self {
            Cause::Exited(status) => (0_u32, status).put(to),
            Cause::Signalled(signal) => (1_u32, signal).put(to),
            Cause::Lost => (2_u32, 0_i32).put(to),
        }
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let (kind, value) = <(u32, i32)>::take(from)?;
        Ok(match kind {
            0 => Cause::Exited(value),
            1 => Cause::Signalled(value),
            2 => Cause::Lost,
            _ => return Err(Malformed),
        })
    }
}

impl Field for TaskState {
    fn put(&self, to: &mut Vec<u8>) {
        (*self as u32).put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Ok(match u32::take(from)? {
            0 => TaskState::Expected,
            1 => TaskState::Joined,
            2 => TaskState::Left,
            3 => TaskState::Dead,
            _ => return Err(Malformed),
        })
    }
}
