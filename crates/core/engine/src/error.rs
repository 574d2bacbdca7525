//! The errors of operations. Each says who is at fault and what state it leaves.

use std::ffi::CStr;

use regatta_memory::views::Refused;
use regatta_wire::control::RequestError;

use crate::reason::Reason;
use crate::transport::{Fault, Peer};

/// The result of an operation that failed. Nothing has happened unless said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An argument makes no sense; says which.
    Argument(String),
    /// No such task or rank.
    Task(i64),
    /// A tag outside 0 ..= 2147483647.
    Tag(i64),
    /// A stale or made-up handle of a request, group or operator.
    Handle(&'static str),
    /// The message was longer than the buffer. The front was kept; the message is gone.
    Truncated {
        /// Bytes sent.
        length: usize,
        /// Bytes there was room for.
        capacity: usize,
    },
    /// A task this depends on died.
    Dead(Peer),
    /// A task this depends on left in good order.
    Left(Peer),
    /// Memory, or a limit on it, is used up; says which.
    Memory(String),
    /// Blocked senders form a cycle, starting with this task. The message was not sent.
    Cycle(Vec<Peer>),
    /// The group of the operation is revoked.
    Revoked,
    /// The receive was cancelled; or its sender took the message back, and then the status says
    /// which sender. The content of the buffer has no meaning.
    Cancelled,
    /// A peer wrote nonsense into shared memory. It is treated as dead from now on.
    Corrupt {
        /// The peer.
        peer: Peer,
        /// The finding, for the sentence that the user reads.
        what: &'static str,
    },
    /// Called where no call can be made: before init, after finalize, in a forked child, or inside another call. A text that C can be
    /// given as it is: a signal handler must not allocate.
    State(&'static CStr),
    /// Started by a launcher Regatta cannot speak to.
    Launcher(String),
    /// Launcher and library do not fit.
    Version(String),
    /// The operating system refused something.
    System(String),
    /// The launcher does not do what it was asked for; why, and a sentence.
    Refused(RequestError, String),
    /// A member of the group is there, and goes no further in a collective, whose others cannot complete it.
    Member {
        /// The member.
        peer: Peer,
        /// The class of its error.
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
            "the system has no memory for {bytes} bytes that this call needs besides its buffers; \
             end something, raise the limit (ulimit -v), or send less at a time"
        ))
    }
}

/// Short for results of engine calls.
pub type Result<T> = std::result::Result<T, Error>;
