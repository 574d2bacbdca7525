//! The messages between a task and its launcher: starting, ending and watching tasks, names and groups.
//!
//! A task asks ([`Ask`]), and each question is answered once by a [`Tell`] with the same `id`. Events come unasked: what a
//! task has said it wants to hear of, and the output of tasks that it has started. Both travel as frames ([`crate::framing`]) on a socket that the task inherits.

use std::net::SocketAddr;

use crate::fields::{Bytes, Field};
use crate::{Malformed, choices, fields, messages};

mod hosting;
mod output;
pub use hosting::{HostStart, HostStarted};
pub use output::{Manner, Output, Route, Then};

/// Why something that was asked for is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The request makes no sense.
    Argument = 1,
    /// No such task.
    Task,
    /// Memory, or a limit, is used up: also the job's number of tasks.
    Memory,
    /// The operating system refused.
    System,
    /// The program is missing or cannot be executed.
    Program,
    /// No such host.
    Host,
    /// Nothing of this name.
    Name,
    /// There is something of this name already.
    Exists,
    /// It belongs to another task.
    Denied,
    /// The job, or the host, is being ended.
    State,
}

impl Why {
    /// All there are.
    pub const ALL: [Why; 10] = [
        Why::Argument,
        Why::Task,
        Why::Memory,
        Why::System,
        Why::Program,
        Why::Host,
        Why::Name,
        Why::Exists,
        Why::Denied,
        Why::State,
    ];
}

choices!(Why {
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
    /// From a task to its launcher. The `id` comes back with the answer.
    pub Ask {
        /// Start tasks. Answered by `Spawned`.
        1 Spawn { id: u32, order: Spawn }
        /// Send a signal to a task. `end`: its death by it is wanted, and no failure of the job.
        2 Signal { id: u32, task: u32, signal: i32, end: bool }
        /// Which tasks are there?
        3 Tasks { id: u32 }
        /// Which hosts are there?
        4 Hosts { id: u32 }
        /// Tell once when this happens: the events bear the number of the question. Their subject is a task, a
        /// host, or nothing. Answered before the first of them.
        5 Watch { id: u32, what: What, subject: u32 }
        /// Tell no more of what was to be watched. The value: 1 if there was something to forget.
        6 Unwatch { id: u32, watch: u32 }
        /// Put an entry under a name. The value: its index.
        7 Put { id: u32, name: String, index: Option<u32>, flags: u32, value: Vec<u8> }
        /// The entry of this index or, if `FIRST` is in the flags, the first from it on. Answered by `Entry`.
        8 Get { id: u32, name: String, index: u32, flags: u32 }
        /// Delete an entry.
        9 Delete { id: u32, name: String, index: u32 }
        /// The entries whose names match a pattern. Answered by `Names`.
        10 Names { id: u32, pattern: String }
        /// Become a member of a named group. The value: the number in it, the lowest that is free.
        11 Join { id: u32, group: String }
        /// Be a member no more.
        12 Leave { id: u32, group: String }
        /// Asks for the members. Answered by `Members`.
        13 Members { id: u32, group: String }
        /// Answered when so many members have asked: by `Met`, if they are all.
        14 Meet { id: u32, group: String, count: u32 }
        /// This many bytes of what this task wrote have been received. Not answered.
        15 Taken { task: u32, bytes: u32 }
        /// End the job, and all its tasks.
        16 Halt { id: u32 }
        /// Which named groups are there? Answered by `Groups`.
        17 Groups { id: u32 }
        /// Asks for the time on a host. The value: microseconds since 1970.
        18 Clock { id: u32, host: u32 }
        /// Take these hosts into the job, each a line of a host file. If a person has to be asked, it is at this terminal.
        /// Answered by `Hosted`.
        20 AddHosts { id: u32, hosts: Vec<String>, terminal: Option<String> }
        /// Give these hosts back; what runs there is ended. Answered by `Hosted`.
        21 RemoveHosts { id: u32, hosts: Vec<String> }
        /// Take in the hosts of a host file, whose defaults and other lines count for those that are added later. Answered by
        /// `Hosted`.
        22 HostFile { id: u32, text: String, terminal: Option<String> }
        /// From now on the asker starts the tasks of its host, of each of which it is told by a `Start`.
        23 Starter { id: u32 }
        /// The asker, which starts the tasks of its host, could not start this one, or it has ended: with this status, as
        /// `wait` tells it.
        24 Ended { id: u32, task: u32, status: i32 }
        /// From now on the asker starts the agents of hosts that are to come, which it is told by `StartHosts`; or no more.
        25 Hoster { id: u32, on: bool }
        /// The result for the hosts of a `StartHosts`. Hosts that are not named have not been started.
        26 HostsStarted { id: u32, request: u32, hosts: Vec<HostStarted> }
        /// A task of another host, which listens at this address, has not answered the asker for this many milliseconds; without a
        /// number: it answers again. Not answered.
        27 Reach { task: u32, address: Option<SocketAddr>, silent: Option<u32> }
        /// End the job, and all its tasks, with this exit status.
        28 Abort { id: u32, status: u32 }
        /// Add to the number that an entry is. The value: the number before.
        29 Add { id: u32, name: String, index: u32, amount: u64 }
    }
}

messages! {
    /// From a launcher to one of its tasks.
    pub Tell {
        /// It is not done.
        1 Refused { id: u32, why: Why, sentence: String }
        /// It is done.
        2 Done { id: u32, value: u64 }
        /// For each task its number, or why it was not started; and the first reason as a sentence.
        3 Spawned { id: u32, tasks: Vec<Result<u32, Why>>, sentence: String }
        /// The tasks that are there.
        4 Tasks { id: u32, tasks: Vec<TaskInfo> }
        /// The hosts.
        5 Hosts { id: u32, hosts: Vec<HostInfo> }
        /// An entry.
        6 Entry { id: u32, index: u32, value: Vec<u8> }
        /// Entries.
        7 Names { id: u32, names: Vec<NameInfo> }
        /// The members of a group by their numbers in it; none where a number is free.
        8 Members { id: u32, tasks: Vec<Option<u32>> }
        /// All members of a group have met: who they are, and the shared barrier that they are lent (0: none).
        13 Met { id: u32, tasks: Vec<Option<u32>>, barrier: u64 }
        /// The named groups.
        14 Groups { id: u32, groups: Vec<GroupInfo> }
        /// For each host its number, or why it was not taken in or given back; and the first reason as a sentence.
        20 Hosted { id: u32, hosts: Vec<Result<u32, Why>>, sentence: String }
        /// Something happened that the question `watch` was about.
        9 Event { watch: u32, event: Event }
        /// A task whose output comes to this one has a number, and who has started it, if that is known.
        11 Born { task: u32, parent: Option<u32>, manner: Manner }
        /// The task that asked `watch` is to start this program, which becomes the task if it enters the job with the ticket.
        12 Start { watch: u32, task: u32, ticket: u32, program: Vec<u8>, arguments: Vec<Vec<u8>>, environment: Vec<(Vec<u8>, Vec<u8>)> }
        /// The task that asked `watch` is to run these commands, each on its host, and to answer with `HostsStarted`.
        15 StartHosts { watch: u32, request: u32, hosts: Vec<HostStart> }
        /// A task wrote this to its standard output (0) or error (1).
        10 Output { task: u32, stream: u32, manner: Manner, bytes: Vec<u8>, then: Then }
        /// The asker and this task have not reached each other for too long: each is dead to the other, for this reason.
        16 GiveUp { task: u32, sentence: String }
    }
}

/// The frame of an [`Ask::Abort`] of this number 0, made without memory: for signal handlers.
pub fn abort_frame(status: u32) -> [u8; 13] {
    let mut frame = [0; 13];
    frame[0] = 9;
    frame[4] = 28;
    frame[9..].copy_from_slice(&status.to_le_bytes());
    frame
}

/// The longest request of a task, and the longest message to one, in bytes: both also have to fit a frame between launcher and agent, with the
/// task's number.
pub const MAX_REQUEST_BYTES: usize = crate::framing::MAX_FRAME_BYTES - 64;

impl Ask {
    /// The number of the question; none: it is not answered.
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

/// Entries of names: what `Put` and `Get` are to do.
pub mod flags {
    /// It stays when its owner is gone.
    pub const PERSISTENT: u32 = 1;
    /// There may be several entries of this name.
    pub const SEVERAL: u32 = 2;
    /// Anybody may overwrite and delete it.
    pub const OVERWRITABLE: u32 = 4;
    /// The first entry from the index on.
    pub const FIRST: u32 = 8;
    /// Read it and delete it, at once.
    pub const DELETE: u32 = 16;
    /// Wait until there is one.
    pub const WAIT: u32 = 32;
}

/// Tasks to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// As the user named it.
    pub program: Vec<u8>,
    /// Its arguments, without its name.
    pub arguments: Vec<Vec<u8>>,
    /// How many tasks.
    pub count: u32,
    /// On which hosts.
    pub place: Place,
    /// The directories in which the program is searched for, with `:` between them; none: those of PATH.
    pub search: Option<Vec<u8>>,
    /// Where they run; none: where the job runs.
    pub directory: Option<Vec<u8>>,
    /// Variables added to the job's environment.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where goes what they write.
    pub output: Output,
    /// The asker does not want to be their parent.
    pub orphans: bool,
    /// The program that is started in place of this one, whose path is the first of its arguments: a debugger.
    pub through: Option<Vec<u8>>,
    /// For whom the asker starts them, whose children they are; none: for itself.
    pub on_behalf: Option<u32>,
}

impl Spawn {
    /// One task of a program on the asker's host, without arguments, whose output is the job's.
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
    /// Where there is most room.
    Any,
    /// On this host; `Here` is the asker's.
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
pub enum What {
    /// The end of a task.
    TaskEnds = 1,
    /// The loss of a host.
    HostLost,
    /// Hosts that come, again and again.
    HostAdded,
    /// Tasks that come and go, again and again.
    Tasks,
}

choices!(What {
    1 TaskEnds,
    2 HostLost,
    3 HostAdded,
    4 Tasks
});

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// With its host.
    Lost,
    /// It was gone before it was watched, or never there, and nobody remembers how it ended.
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
        /// How.
        ending: Ending,
    },
    /// A host is lost, or has been given back.
    HostLost {
        /// Its number.
        host: u32,
        /// Its name.
        name: String,
    },
    /// A task has got its number.
    TaskCame {
        /// The task.
        task: u32,
        /// The number of its host.
        host: u32,
        /// The task that has started it; none: no task of the job.
        parent: Option<u32>,
        /// The program as it was named.
        program: Vec<u8>,
    },
    /// A host has come.
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

impl Field for Result<u32, Why> {
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
            _ => Ok(Err(Why::take(from)?)),
        }
    }
}

/// A task, as the launcher knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its number.
    pub task: u32,
    /// The task that started it; none: the launcher.
    pub parent: Option<u32>,
    /// The number of its host.
    pub host: u32,
    /// Its process.
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
    /// As the user named it.
    pub name: String,
    /// Its architecture.
    pub architecture: String,
    /// How many tasks can run at once.
    pub cores: u32,
    /// How many tasks run there.
    pub tasks: u32,
    /// How fast it is compared to others; 1000 where nobody has said anything.
    pub speed: u32,
    /// It is there.
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

/// Entries under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameInfo {
    /// The name.
    pub name: String,
    /// The index of the entry.
    pub index: u32,
    /// Whose it is; none: its owner is gone.
    pub owner: Option<u32>,
    /// How it was put.
    pub flags: u32,
    /// Bytes of its value.
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
    /// The members by their numbers in it; none where a number is free.
    pub members: Vec<Option<u32>>,
    /// The members that wait for others, in the order in which they have come.
    pub waiting: Vec<u32>,
    /// How many must come; 0 if nobody waits.
    pub wanted: u32,
}
fields!(GroupInfo {
    name,
    members,
    waiting,
    wanted
});

impl Tell {
    /// The question it answers; none: it comes unasked.
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
