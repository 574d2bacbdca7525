//! The errors of calls: a kind for programs, a sentence for people.

use std::fmt;

use regatta_process::control::RequestError;
use regatta_process::{self as process, Reason};

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// A call that failed. Nothing has happened, unless the call says otherwise.
///
/// `Display` (and `Debug`, so that `fn main() -> regatta::Result<()>` reads well) is a sentence:
/// what happened, what it means, what to do next. [`Error::kind`] is for programs.
///
/// ```
/// let task = regatta::init()?;
/// let error = task.world().send(&[1u8], 7, 0).unwrap_err();
/// assert_eq!(*error.kind(), regatta::ErrorKind::Task(7));
/// assert_eq!(error.to_string(), "there is no task with rank or id 7 in this group");
/// # Ok::<(), regatta::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    /// Made when the error is, while the names and numbers in it can still be had.
    sentence: Box<str>,
}

/// The kind of failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument makes no sense; the sentence says which.
    Argument,
    /// Called from inside an operator of a reduction, or before the task has joined.
    State,
    /// There is no task with this rank or id; -1 where the launcher or another member of the group says so, and the sentence names it.
    Task(i64),
    /// Tags are 0 to 2147483647; -1 where another member of the group has given one that is none.
    Tag(i64),
    /// A group or request that does not exist any more.
    Handle,
    /// The message was longer than the memory for it. The front was kept; the rest is gone. Both lengths are 0 where this has happened
    /// to another member of the group, in a collective.
    Truncated {
        /// Bytes sent.
        length: usize,
        /// Bytes there was room for.
        capacity: usize,
    },
    /// The task with this id, on which the call depends, has died.
    Dead(usize),
    /// The task with this id, on which the call depends, has left.
    Left(usize),
    /// Memory, or a limit on it, is used up.
    Memory,
    /// Blocked senders wait for each other in a circle, all buffers full: their ids, or none where another member of the group says so, of
    /// a collective. The message was not sent.
    Cycle(Vec<usize>),
    /// A member has revoked the group.
    Revoked,
    /// The receive was cancelled.
    Cancelled,
    /// Shared memory holds what no task of this version writes; the id of the task it is shared with. That task counts as dead from now on.
    Corrupt(usize),
    /// Started by a launcher Regatta cannot speak to.
    Launcher,
    /// Launcher and library are of different versions.
    Version,
    /// The operating system refused something.
    System,
    /// A program to be started is missing, or cannot be executed.
    Program,
    /// No such host in the job.
    Host,
    /// Nothing has this name.
    Name,
    /// Something has this name already.
    Exists,
    /// It belongs to another task.
    Denied,
}

impl Error {
    /// The kind of failure.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    #[cold]
    pub(crate) fn argument(sentence: impl Into<String>) -> Error {
        Error {
            kind: ErrorKind::Argument,
            sentence: sentence.into().into(),
        }
    }

    /// No call may be made from here. (Says so without looking at the engine, which is busy.)
    #[cold]
    pub(crate) fn inside_operator() -> Error {
        let sentence = "an operator of a reduction has called Regatta, which is in the middle of \
                        that reduction; operators only compute";
        Error {
            kind: ErrorKind::State,
            sentence: sentence.into(),
        }
    }

    #[cold]
    pub(crate) fn of(error: process::Error) -> Error {
        use process::Error as Engine;
        let sentence = process::sentence(&error).into();
        let kind = match error {
            Engine::Argument(_) => ErrorKind::Argument,
            Engine::Task(rank) => ErrorKind::Task(rank),
            Engine::Tag(tag) => ErrorKind::Tag(tag),
            Engine::Handle(_) => ErrorKind::Handle,
            Engine::Truncated { length, capacity } => ErrorKind::Truncated { length, capacity },
            Engine::Dead(peer) => ErrorKind::Dead(peer as usize),
            Engine::Left(peer) => ErrorKind::Left(peer as usize),
            Engine::Memory(_) => ErrorKind::Memory,
            Engine::Cycle(peers) => {
                ErrorKind::Cycle(peers.into_iter().map(|peer| peer as usize).collect())
            }
            Engine::Revoked => ErrorKind::Revoked,
            Engine::Cancelled => ErrorKind::Cancelled,
            Engine::Corrupt { peer, .. } => ErrorKind::Corrupt(peer as usize),
            Engine::State(_) => ErrorKind::State,
            Engine::Launcher(_) => ErrorKind::Launcher,
            Engine::Version(_) => ErrorKind::Version,
            Engine::System(_) => ErrorKind::System,
            Engine::Refused(why, _) => refusal(why),
            Engine::Member { peer, reason } => class(peer as usize, reason),
        };
        Error { kind, sentence }
    }
}

/// The kind for why the launcher does not do something.
fn refusal(why: RequestError) -> ErrorKind {
    match why {
        RequestError::Argument => ErrorKind::Argument,
        RequestError::Task => ErrorKind::Task(-1),
        RequestError::Memory => ErrorKind::Memory,
        RequestError::System => ErrorKind::System,
        RequestError::Program => ErrorKind::Program,
        RequestError::Host => ErrorKind::Host,
        RequestError::Name => ErrorKind::Name,
        RequestError::Exists => ErrorKind::Exists,
        RequestError::Denied => ErrorKind::Denied,
        RequestError::State => ErrorKind::State,
    }
}

/// The kind for the class of the error of another member, of which numbers are not known.
fn class(peer: usize, reason: Reason) -> ErrorKind {
    match reason {
        Reason::Argument => ErrorKind::Argument,
        Reason::Task => ErrorKind::Task(-1),
        Reason::Tag => ErrorKind::Tag(-1),
        Reason::Handle => ErrorKind::Handle,
        Reason::Truncated => ErrorKind::Truncated {
            length: 0,
            capacity: 0,
        },
        Reason::Dead => ErrorKind::Dead(peer),
        Reason::Left => ErrorKind::Left(peer),
        Reason::Memory => ErrorKind::Memory,
        Reason::Cycle => ErrorKind::Cycle(Vec::new()),
        Reason::Cancelled => ErrorKind::Cancelled,
        Reason::Corrupt => ErrorKind::Corrupt(peer),
        Reason::State => ErrorKind::State,
        Reason::Launcher => ErrorKind::Launcher,
        Reason::Version => ErrorKind::Version,
        Reason::System => ErrorKind::System,
        Reason::Refused(why) => refusal(why),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.sentence, self.kind)
    }
}

impl std::error::Error for Error {}

/// A result of the engine as one of ours.
pub(crate) fn ours<T>(result: process::Result<T>) -> Result<T> {
    result.map_err(Error::of)
}
