//! The errors of operations. Each says who is at fault and which state it leaves.

use std::ffi::CStr;

use regatta_memory::views::Refused;
use regatta_wire::control::RequestError;

use crate::reason::Reason;
use crate::transport::{Fault, Peer};

/// The error of an operation. Unless stated otherwise, the operation had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An argument is invalid. Says which.
    Argument(String),
    /// There is no such task or rank.
    Task(i64),
    /// A tag outside 0 ..= 2147483647.
    Tag(i64),
    /// An invalid or stale handle of a request, group or operator.
    Handle(&'static str),
    /// The message was longer than the buffer. Its beginning was received; the rest is lost.
    Truncated {
        /// Length of the message, in bytes.
        length: usize,
        /// Size of the buffer, in bytes.
        capacity: usize,
    },
    /// A task on which the operation depends has died.
    Dead(Peer),
    /// A task on which the operation depends has left in good order.
    Left(Peer),
    /// Memory, or a limit on it, is exhausted. Says which.
    Memory(String),
    /// Blocked senders form a cycle, starting with this task. The message was not sent.
    Cycle(Vec<Peer>),
    /// The group of the operation is revoked.
    Revoked,
    /// The receive was cancelled, or its sender withdrew the message; then the status contains the sender. The contents of the buffer are undefined.
    Cancelled,
    /// A peer wrote invalid data into shared memory. It is treated as dead from now on.
    Corrupt {
        /// The peer.
        peer: Peer,
        /// The finding, as a part of the message to the user.
        what: &'static str,
    },
    /// A call that is not allowed in this state: before init, after finalize, in a forked child, or inside another call. The text is a C string that
    /// can be returned as it is, since a signal handler must not allocate.
    State(&'static CStr),
    /// The task was started by a launcher that Regatta cannot communicate with.
    Launcher(String),
    /// The versions of launcher and library do not match.
    Version(String),
    /// A call of the operating system failed.
    System(String),
    /// The launcher refused a request. Contains the reason and a sentence for the user.
    Refused(RequestError, String),
    /// A living member of the group cannot complete a collective, so the other members cannot either.
    Member {
        /// The member.
        peer: Peer,
        /// The class of the member's error.
        reason: Reason,
    },
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::Corrupt { peer, what } => Error::Corrupt { peer, what },
            Fault::Memory(what) => Error::Memory(what),
            Fault::System(what) => Error::System(what),
        }
    }
}

impl From<Refused> for Error {
    fn from(Refused(bytes): Refused) -> Error {
        Error::Memory(format!(
            "the system has no memory for {bytes} bytes that this call needs in addition to its buffers; end processes, raise the limit (ulimit -v), or send less at a time"
        ))
    }
}

/// Short for results of engine calls.
pub type Result<T> = std::result::Result<T, Error>;
