//! Errors: a kind for programs, and a sentence for people.

use std::fmt;

use regatta_process::control::RequestError;
use regatta_process::{self as process, Reason};

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a failed call. A failed call has had no effect, unless its documentation says otherwise.
///
/// `Display` gives a sentence that says what happened, what it means, and what to do next. So does `Debug`, which
/// `fn main() -> regatta::Result<()>` prints. Programs use [`Error::kind`].
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
    /// The text for people. Made together with the error, while the names and numbers in it are available.
    sentence: Box<str>,
}

/// The kind of failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is not valid. The sentence says which.
    Argument,
    /// The call was made inside an operator of a reduction, or while the task is not in a job.
    State,
    /// There is no task with this rank or id. -1 if the launcher or another member of the group reported the error; the
    /// sentence then names the task if it is known.
    Task(i64),
    /// This is not a valid tag: tags are 0 to 2147483647. -1 if another member of the group passed the invalid tag.
    Tag(i64),
    /// The group or request no longer exists.
    Handle,
    /// The message was longer than the memory for it, which holds its first bytes; the rest is lost. Both lengths are 0 if
    /// this happened to another member of the group, in a collective.
    Truncated {
        /// Length of the message in bytes.
        length: usize,
        /// Length of the memory in bytes.
        capacity: usize,
    },
    /// The task with this id, on which the call depends, has died.
    Dead(usize),
    /// The task with this id, on which the call depends, has left.
    Left(usize),
    /// Memory, or a limit on it, is exhausted.
    Memory,
    /// Blocked senders wait for each other in a cycle, and all buffers are full. The ids are those of the senders; there are
    /// none if another member of the group reported the error, in a collective. The message was not sent.
    Cycle(Vec<usize>),
    /// A member has revoked the group.
    Revoked,
    /// The receive was cancelled.
    Cancelled,
    /// Shared memory holds data that no task of this version writes. The id is that of the task with which the memory is
    /// shared. This task treats that one as dead from now on.
    Corrupt(usize),
    /// The launcher is one that Regatta does not support, cannot be reached, or has ended.
    Launcher,
    /// Launcher and library have incompatible versions.
    Version,
    /// A system call failed. The sentence has the system's message.
    System,
    /// A program to be started is missing, or cannot be executed.
    Program,
    /// There is no such host in the job.
    Host,
    /// No entry or named group has this name.
    Name,
    /// The name, host or role is already taken.
    Exists,
    /// The entry belongs to another task.
    Denied,
}

impl Error {
    /// Returns the kind of failure.
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

    /// Makes the error of a call inside an operator. Does not use the engine, which is locked there.
    #[cold]
    pub(crate) fn inside_operator() -> Error {
        let sentence = "an operator of a reduction called Regatta during that reduction; operators must only compute";
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

/// Returns the kind of an error reported by the launcher.
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

/// Returns the kind of an error that another member has reported, without the numbers of the original error.
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

/// Converts a result of the engine to one of this crate.
pub(crate) fn ours<T>(result: process::Result<T>) -> Result<T> {
    result.map_err(Error::of)
}
