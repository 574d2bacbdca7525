//! The messages between a task and its launcher: starting, ending and watching tasks, names and groups.
//!
//! Each request of a task ([`Ask`]) is answered once by a [`Tell`] with the same `id`. Events are sent without a
//! request: those that the task watches, and the output of tasks that it has started. Both travel as frames
//! ([`crate::framing`]) on a socket that the task inherits.

use std::net::SocketAddr;

use crate::fields::{Bytes, Field};
use crate::{Malformed, choices, fields, messages};

mod hosting;
mod output;
pub use hosting::{HostStart, HostStarted};
pub use output::{Output, OutputFormat, Route, StreamState};

/// Reason for which a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The request is invalid.
    Argument = 1,
    /// No such task.
    Task,
    /// Memory or a limit is exhausted, for example the job's number of tasks.
    Memory,
    /// The operating system refused.
    System,
    /// The program is missing or cannot be executed.
    Program,
    /// No such host.
    Host,
    /// No entry with this name.
    Name,
    /// An entry with this name exists already.
    Exists,
    /// The entry belongs to another task.
    Denied,
    /// The job, or the host, is ending.
    State,
}

impl RequestError {
    /// All reasons.
    pub const ALL: [RequestError; 10] = [
        RequestError::Argument,
        RequestError::Task,
        RequestError::Memory,
        RequestError::System,
        RequestError::Program,
        RequestError::Host,
        RequestError::Name,
        RequestError::Exists,
        RequestError::Denied,
        RequestError::State,
    ];
}

choices!(RequestError {
    1 Argument,
    2 Task,
    3 Memory,
    4 System,
    5 Program,
    6 Host,
    7 Name,
    8 Exists,
    9 Denied,
    10 State
});

messages! {
    /// From a task to its launcher. The answer carries the same `id`.
    pub Ask {
        /// Start tasks. Answered by `Spawned`.
        1 Spawn { id: u32, order: Spawn }
        /// Send a signal to a task. If `end` is set, a death by this signal is intended and is not a failure of the
        /// job.
        2 Signal { id: u32, task: u32, signal: i32, end: bool }
        /// List the tasks. Answered by `Tasks`.
        3 Tasks { id: u32 }
        /// List the hosts. Answered by `Hosts`.
        4 Hosts { id: u32 }
        /// Watch for events of kind `what` about `subject` (a task, a host, or unused). The answer comes first; each
        /// event then carries this `id` as `watch`.
        5 Watch { id: u32, what: WatchKind, subject: u32 }
        /// Cancel a watch. The value is 1 if the watch existed.
        6 Unwatch { id: u32, watch: u32 }
        /// Put an entry under a name. The value is its index.
        7 Put { id: u32, name: String, index: Option<u32>, flags: u32, value: Vec<u8> }
        /// Get the entry with this index or, with `FIRST` in the flags, the first entry at or after it. Answered by
        /// `Entry`.
        8 Get { id: u32, name: String, index: u32, flags: u32 }
        /// Delete an entry.
        9 Delete { id: u32, name: String, index: u32 }
        /// List the entries whose names match a pattern. Answered by `Names`.
        10 Names { id: u32, pattern: String }
        /// Become a member of a named group. The value is the member number: the lowest free one.
        11 Join { id: u32, group: String }
        /// Leave a named group.
        12 Leave { id: u32, group: String }
        /// List the members of a named group. Answered by `Members`.
        13 Members { id: u32, group: String }
        /// Wait until `count` members have sent this. Answered by `Met` if these are all members of the group,
        /// otherwise by `Done`.
        14 Meet { id: u32, group: String, count: u32 }
        /// This many more bytes of the output of `task` have been received. There is no reply.
        15 Taken { task: u32, bytes: u32 }
        /// End the job, and all its tasks.
        16 Halt { id: u32 }
        /// List the named groups. Answered by `Groups`.
        17 Groups { id: u32 }
        /// Get the time of a host. The value is in microseconds since 1970.
        18 Clock { id: u32, host: u32 }
        /// Add these hosts to the job; each is a line of a host file. `terminal` is the terminal at which a person can
        /// be asked, for example for a password. Answered by `Hosted`.
        20 AddHosts { id: u32, hosts: Vec<String>, terminal: Option<String> }
        /// Remove these hosts from the job and end what runs there. Answered by `Hosted`.
        21 RemoveHosts { id: u32, hosts: Vec<String> }
        /// Add the hosts of a host file. Its defaults and its other lines also apply to hosts that are added later.
        /// Answered by `Hosted`.
        22 HostFile { id: u32, text: String, terminal: Option<String> }
        /// Register the asker as the starter for its host. From now on it receives a `Start` for each task to be
        /// started there.
        23 Starter { id: u32 }
        /// Sent by a starter: this task could not be started, or its process has ended. `status` is a wait status.
        24 Ended { id: u32, task: u32, status: i32 }
        /// Register (`on`) or unregister the asker as the hoster. A hoster receives `StartHosts` for the hosts to be
        /// added, and starts their agents.
        25 Hoster { id: u32, on: bool }
        /// The results for the hosts of a `StartHosts`. Hosts that are not named have not been started.
        26 HostsStarted { id: u32, request: u32, hosts: Vec<HostStarted> }
        /// Report that a task on another host, which listens at `address`, has been silent for `silent` milliseconds;
        /// with `None`, that it answers again. There is no reply.
        27 Reach { task: u32, address: Option<SocketAddr>, silent: Option<u32> }
        /// End the job, and all its tasks, with this exit status.
        28 Abort { id: u32, status: u32 }
        /// Add `amount` to an entry that holds a number. The value is the previous number.
        29 Add { id: u32, name: String, index: u32, amount: u64 }
    }
}

messages! {
    /// From a launcher to one of its tasks.
    pub Tell {
        /// The request is refused.
        1 Refused { id: u32, why: RequestError, sentence: String }
        /// The request has been carried out.
        2 Done { id: u32, value: u64 }
        /// The number of each task, or the reason why it was not started; `sentence` explains the first reason.
        3 Spawned { id: u32, tasks: Vec<Result<u32, RequestError>>, sentence: String }
        /// The tasks of the job.
        4 Tasks { id: u32, tasks: Vec<TaskInfo> }
        /// The hosts.
        5 Hosts { id: u32, hosts: Vec<HostInfo> }
        /// An entry.
        6 Entry { id: u32, index: u32, value: Vec<u8> }
        /// The entries whose names match.
        7 Names { id: u32, names: Vec<NameInfo> }
        /// The members of a group, indexed by member number; `None` where a number is free.
        8 Members { id: u32, tasks: Vec<Option<u32>> }
        /// All members of a group have met: the members, and the shared barrier that is lent to them (0 if there is
        /// none).
        13 Met { id: u32, tasks: Vec<Option<u32>>, barrier: u64 }
        /// The named groups.
        14 Groups { id: u32, groups: Vec<GroupInfo> }
        /// The number of each host, or the reason why it was not added or removed; `sentence` explains the first
        /// reason.
        20 Hosted { id: u32, hosts: Vec<Result<u32, RequestError>>, sentence: String }
        /// An event of the watch that was requested with `id` `watch`.
        9 Event { watch: u32, event: Event }
        /// A task whose output this task receives has been numbered. `parent` is the task that started it, if known.
        11 Born { task: u32, parent: Option<u32>, manner: OutputFormat }
        /// For the starter registered by request `watch`: start this program. It becomes `task` when it enters the job
        /// with `ticket`.
        12 Start { watch: u32, task: u32, ticket: u32, program: Vec<u8>, arguments: Vec<Vec<u8>>, environment: Vec<(Vec<u8>, Vec<u8>)> }
        /// For the hoster registered by request `watch`: run these commands, one for each host, and answer with
        /// `HostsStarted`.
        15 StartHosts { watch: u32, request: u32, hosts: Vec<HostStart> }
        /// A task wrote these bytes to its standard output (0) or error (1).
        10 Output { task: u32, stream: u32, manner: OutputFormat, bytes: Vec<u8>, then: StreamState }
        /// The receiver and this task have not reached each other for too long. Each counts as dead to the other;
        /// `sentence` says why.
        16 GiveUp { task: u32, sentence: String }
    }
}

/// Encodes an [`Ask::Abort`] with `id` 0 without allocating, for use in signal handlers.
pub fn abort_frame(status: u32) -> [u8; 13] {
    let mut frame = [0; 13];
    frame[0] = 9;
    frame[4] = 28;
    frame[9..].copy_from_slice(&status.to_le_bytes());
    frame
}

/// Maximum size of a request of a task, and of a message to one, in bytes. Both also have to fit into a frame between
/// launcher and agent together with the task's number.
pub const MAX_REQUEST_BYTES: usize = crate::framing::MAX_FRAME_BYTES - 64;

impl Ask {
    /// Returns the number of the request, or `None` if it has no reply.
    pub fn id(&self) -> Option<u32> {
        match self {
            Ask::Spawn { id, .. }
            | Ask::Signal { id, .. }
            | Ask::Tasks { id }
            | Ask::Hosts { id }
            | Ask::Watch { id, .. }
            | Ask::Unwatch { id, .. }
            | Ask::Put { id, .. }
            | Ask::Get { id, .. }
            | Ask::Delete { id, .. }
            | Ask::Add { id, .. }
            | Ask::Names { id, .. }
            | Ask::Join { id, .. }
            | Ask::Leave { id, .. }
            | Ask::Members { id, .. }
            | Ask::Meet { id, .. }
            | Ask::Halt { id }
            | Ask::Abort { id, .. }
            | Ask::Groups { id }
            | Ask::Clock { id, .. }
            | Ask::AddHosts { id, .. }
            | Ask::RemoveHosts { id, .. }
            | Ask::HostFile { id, .. }
            | Ask::Starter { id }
            | Ask::Ended { id, .. }
            | Ask::Hoster { id, .. }
            | Ask::HostsStarted { id, .. } => Some(*id),
            Ask::Taken { .. } | Ask::Reach { .. } => None,
        }
    }
}

/// Flags of named entries, for `Put` and `Get`.
pub mod flags {
    /// Keep the entry when its owner is gone.
    pub const PERSISTENT: u32 = 1;
    /// Allow several entries with this name.
    pub const SEVERAL: u32 = 2;
    /// Allow every task to overwrite and delete the entry.
    pub const OVERWRITABLE: u32 = 4;
    /// Get the first entry at or after the index.
    pub const FIRST: u32 = 8;
    /// Read and delete the entry atomically.
    pub const DELETE: u32 = 16;
    /// Wait until there is such an entry.
    pub const WAIT: u32 = 32;
}

/// Tasks to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// The program as the user named it.
    pub program: Vec<u8>,
    /// The arguments, without the program's name.
    pub arguments: Vec<Vec<u8>>,
    /// Number of tasks.
    pub count: u32,
    /// The hosts on which they are started.
    pub place: Place,
    /// The directories in which the program is searched, separated by `:`; `None` for those of PATH.
    pub search: Option<Vec<u8>>,
    /// Their working directory; `None` for the job's.
    pub directory: Option<Vec<u8>>,
    /// Variables added to the job's environment.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// Destination of their output.
    pub output: Output,
    /// Whether the asker does not want to be their parent.
    pub orphans: bool,
    /// A program, such as a debugger, that is started instead and gets the path of the task's program as its first
    /// argument.
    pub through: Option<Vec<u8>>,
    /// The task that becomes their parent, if the asker starts them for another task; `None` for the asker itself.
    pub on_behalf: Option<u32>,
}

impl Spawn {
    /// Returns an order for one task of a program on the asker's host, without arguments, whose output is the job's.
    pub fn one_here(program: Vec<u8>) -> Spawn {
        Spawn {
            program,
            arguments: Vec::new(),
            count: 1,
            place: Place::Here,
            search: None,
            directory: None,
            environment: Vec::new(),
            output: Output::Job,
            orphans: false,
            through: None,
            on_behalf: None,
        }
    }
}

fields!(Spawn {
    program,
    arguments,
    count,
    place,
    search,
    directory,
    environment,
    output,
    orphans,
    through,
    on_behalf
});

/// On which hosts tasks are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the hosts with the most free capacity.
    Any,
    /// On this host. For the asker's host there is `Here`.
    Host(String),
    /// On the asker's host.
    Here,
    /// On hosts of this architecture.
    Architecture(String),
    /// On hosts other than this one.
    Elsewhere(String),
}

impl Field for Place {
    fn put(&self, to: &mut Vec<u8>) {
        let none = String::new();
        let (kind, name) = match self {
            Place::Any => (0, &none),
            Place::Host(name) => (1, name),
            Place::Here => (2, &none),
            Place::Architecture(name) => (3, name),
            Place::Elsewhere(name) => (4, name),
        };
        to.push(kind);
        name.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let [kind] = <[u8; 1]>::take(from)?;
        let name = String::take(from)?;
        Ok(match kind {
            0 if name.is_empty() => Place::Any,
            1 => Place::Host(name),
            2 if name.is_empty() => Place::Here,
            3 => Place::Architecture(name),
            4 => Place::Elsewhere(name),
            _ => return Err(Malformed),
        })
    }
}

/// Events that can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchKind {
    /// The end of a task.
    TaskEnds = 1,
    /// The loss of a host.
    HostLost,
    /// Hosts being added. Repeats until cancelled.
    HostAdded,
    /// Tasks that start and end. Repeats until cancelled.
    Tasks,
}

choices!(WatchKind {
    1 TaskEnds,
    2 HostLost,
    3 HostAdded,
    4 Tasks
});

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// It was killed by this signal.
    Signalled(i32),
    /// It was lost with its host.
    Lost,
    /// It was gone before it was watched, or never existed, and its end is not recorded.
    Unknown,
}

impl Field for Ending {
    fn put(&self, to: &mut Vec<u8>) {
        let (kind, value) = match *self {
            Ending::Exited(status) => (1_u8, status),
            Ending::Signalled(signal) => (2, signal),
            Ending::Lost => (3, 0),
            Ending::Unknown => (4, 0),
        };
        to.push(kind);
        value.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let [kind] = <[u8; 1]>::take(from)?;
        Ok(match (kind, i32::take(from)?) {
            (1, status) => Ending::Exited(status),
            (2, signal) => Ending::Signalled(signal),
            (3, 0) => Ending::Lost,
            (4, 0) => Ending::Unknown,
            _ => return Err(Malformed),
        })
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task on this host has ended.
    TaskEnded {
        /// The task.
        task: u32,
        /// The number of its host.
        host: u32,
        /// How it ended.
        ending: Ending,
    },
    /// A host is lost, or has been given back.
    HostLost {
        /// Its number.
        host: u32,
        /// Its name.
        name: String,
    },
    /// A task has been numbered.
    TaskCame {
        /// The task.
        task: u32,
        /// The number of its host.
        host: u32,
        /// The task that started it; `None` if no task of the job did.
        parent: Option<u32>,
        /// The program as it was named.
        program: Vec<u8>,
    },
    /// A host has been added.
    HostAdded {
        /// Its number.
        host: u32,
        /// Its name.
        name: String,
    },
}

choices!(Event {
    1 TaskEnded { task, host, ending },
    2 HostLost { host, name },
    3 HostAdded { host, name },
    4 TaskCame { task, host, parent, program }
});

impl Field for Result<u32, RequestError> {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Ok(task) => {
                to.push(0);
                task.put(to);
            }
            Err(why) => why.put(to),
        }
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        match from.0.first() {
            Some(0) => {
                let [_] = <[u8; 1]>::take(from)?;
                Ok(Ok(u32::take(from)?))
            }
            _ => Ok(Err(RequestError::take(from)?)),
        }
    }
}

/// A task, as the launcher knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its number.
    pub task: u32,
    /// The task that started it; `None` for the launcher.
    pub parent: Option<u32>,
    /// The number of its host.
    pub host: u32,
    /// Process id.
    pub pid: u32,
    /// The program as it was named.
    pub program: Vec<u8>,
}
fields!(TaskInfo {
    task,
    parent,
    host,
    pid,
    program
});

/// A host, as the launcher knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostInfo {
    /// Its number.
    pub host: u32,
    /// The name, as the user gave it.
    pub name: String,
    /// Its architecture.
    pub architecture: String,
    /// Number of tasks that can run at the same time.
    pub cores: u32,
    /// Number of tasks that run there.
    pub tasks: u32,
    /// Relative speed; 1000 unless the user has set it.
    pub speed: u32,
    /// Whether the host is reachable (not lost, not given back).
    pub lives: bool,
}
fields!(HostInfo {
    host,
    name,
    architecture,
    cores,
    tasks,
    speed,
    lives
});

/// One entry under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameInfo {
    /// The name.
    pub name: String,
    /// The index of the entry.
    pub index: u32,
    /// The owner; `None` if it is gone.
    pub owner: Option<u32>,
    /// The flags with which the entry was put.
    pub flags: u32,
    /// Length of the value, in bytes.
    pub length: u32,
}
fields!(NameInfo {
    name,
    index,
    owner,
    flags,
    length
});

/// A named group, as the launcher knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// The members, indexed by member number; `None` where a number is free.
    pub members: Vec<Option<u32>>,
    /// The members that wait in `Meet`, in the order in which they began.
    pub waiting: Vec<u32>,
    /// Number of members that have to meet; 0 if none waits.
    pub wanted: u32,
}
fields!(GroupInfo {
    name,
    members,
    waiting,
    wanted
});

impl Tell {
    /// Returns the number of the request that this answers, or `None` if it is an event.
    pub fn id(&self) -> Option<u32> {
        match self {
            Tell::Refused { id, .. }
            | Tell::Done { id, .. }
            | Tell::Spawned { id, .. }
            | Tell::Tasks { id, .. }
            | Tell::Hosts { id, .. }
            | Tell::Entry { id, .. }
            | Tell::Names { id, .. }
            | Tell::Members { id, .. }
            | Tell::Met { id, .. }
            | Tell::Groups { id, .. }
            | Tell::Hosted { id, .. } => Some(*id),
            Tell::Event { .. }
            | Tell::Output { .. }
            | Tell::Born { .. }
            | Tell::Start { .. }
            | Tell::StartHosts { .. }
            | Tell::GiveUp { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
