//! The messages between launcher and agent.
//!
//! ```text
//! launcher                              agent
//!                                     < Hello          the host, and where it may be reached
//! Probe       hosts to reach          >
//!                                     < Probed         the hosts reached, and the addresses
//! Prepare     the job, and its ranks  >
//!                                     < Prepared       where its ranks listen (or Refused)
//! Start       where all ranks listen  >
//!                                     < Started, Output, Ended, ... Settled
//! Gone, Signal, Credit, Input         >
//!
//!                                     < Asked          a task's request
//! Tell        a message to a task     >
//! PrepareSpawn  tasks for a task      >
//!                                     < SpawnPrepared  where they will listen, or why not
//! Enter       new tasks of any host   >                for the table
//!                                     < Entered        or why not
//! StartSpawn  start prepared tasks    >
//!                                     < SpawnStarted   for each: its pid, or why not
//!                                     < Caught         output of a task for another task
//! Taken       output was received     >
//!
//!                                     < JoinRequested  a running process wants to be a task
//! Admit       it is this task         >                answered like StartSpawn
//! TurnAway    it cannot be a task     >
//!
//! Clock       what time is it?        >
//!                                     < Clock
//!
//!                                     < Farewell       why this agent gives up
//!
//! Failover    for the next launcher   >                before Start
//! Succession  who may lead next       >
//! Copy        the registry, a change  >
//!                                     < Heard          number of messages a task has received
//! Confirm     how many changes?       >
//!                                     < Copied
//! Lead        by a new launcher       >
//!                                     < Copy           of the registry, if it is a later one
//!                                     < State          what runs, and what the new one may not know
//! ```
//!
//! Either side sends `Beat` if it has sent nothing for a while. The end of the channel ends the job on that host: the
//! agent kills what is left of it. If the job can outlive the launcher's host, the loss of that host is not treated as
//! the end of the channel (`crate::succession`).

use std::net::{IpAddr, SocketAddr};

use regatta_job::Ended;
use regatta_job::failover::{FailoverPlan, Handover, SuccessionOrder};
pub(crate) use regatta_job::hosts::{Hello, Sight, Target, Token};
use regatta_job::registry::Piece;
use regatta_job::spawn::SpawnedTasks;
pub(crate) use regatta_wire::fields::Message;
use regatta_wire::fields::{Bytes, Field};
use regatta_wire::{Malformed, fields, messages};

use crate::plan::Bind;
use crate::tasks::bind::Share;
use regatta_segment::job::Cause;
use regatta_segment::place::{Key, Places};
use regatta_wire::control::{RequestError, Route, Spawn};
use regatta_wire::world::World;

/// Incremented when a message changes: launcher and agent must have the same version.
pub(crate) const VERSION: u32 = 14;

messages! {
    /// From the launcher to an agent.
    pub(crate) Order {
        /// Try to reach these hosts.
        1 Probe { targets: Vec<Target> }
        /// Prepare for the job, and start nothing.
        2 Prepare { job: Preparation }
        /// Start the tasks. The addresses at which each rank of the job listens.
        3 Start { addresses: Vec<SocketAddr> }
        /// A task on another host is gone. Without a cause it left in good order.
        4 Gone { rank: u32, cause: Option<Cause> }
        /// Send a signal to everything that belongs to the job.
        5 Signal { signal: i32 }
        /// This many bytes of output have been consumed.
        6 Credit { bytes: u32 }
        /// Standard input for task 0. An empty piece is its end.
        7 Input { bytes: Vec<u8> }
        /// Keepalive of the launcher.
        8 Beat {}
        /// Start no more tasks.
        9 Stop {}
        /// What a task writes to this stream is not read any more.
        10 Deaf { rank: u32, stream: u32 }
        /// Pass this message to a task.
        11 Tell { task: u32, bytes: Vec<u8> }
        /// Send a signal to one task.
        12 SignalTask { task: u32, signal: i32 }
        /// Prepare tasks that a task has requested.
        13 PrepareSpawn { spawn: u32, count: u32, order: Spawn, route: Option<Route> }
        /// Enter these tasks, of any hosts, into the table.
        14 Enter { world: World }
        /// Start the tasks that are prepared, or forget them if the count is 0.
        15 StartSpawn { share: SpawnedTasks }
        /// This many bytes of output for task `by` have been received, or will not be.
        16 Taken { by: u32, bytes: u32 }
        /// The settings for the next launcher, if the launcher's host is lost.
        17 Failover { plan: FailoverPlan }
        /// The hosts that may lead next, in order.
        18 Succession { order: SuccessionOrder }
        /// A piece of a copy of the registry, or of a change to it. `last` marks the last piece.
        19 Copy { change: bool, bytes: Vec<u8>, last: bool }
        /// The sender is the launcher from now on. It knows of this many tasks and changes of the registry.
        21 Lead { tasks: u32, changes: u64 }
        /// The process that has requested to join is this task.
        22 Admit { caller: u32, task: u32 }
        /// The process that has requested to join cannot become a task.
        23 TurnAway { caller: u32, sentence: String }
        /// Requests the time, on behalf of task `by` and its request `id`.
        24 Clock { by: u32, id: u32 }
        /// Requests the number of registry changes that the agent's copy has applied.
        25 Confirm {}
        /// For the starter of a daemon, in the caller's format.
        20 Charge { bytes: Vec<u8> }
    }
}

messages! {
    /// From an agent to the launcher.
    pub(crate) Report {
        /// The first message of an agent.
        1 Hello { hello: Hello }
        /// The answer to `Probe`.
        2 Probed { seen: Vec<Sight> }
        /// The answer to `Prepare`: the address at which each rank of this host listens.
        3 Prepared { addresses: Vec<(u32, SocketAddr)> }
        /// The order cannot be carried out: the status to exit with, and the reason.
        4 Refused { status: u32, sentence: String }
        /// A task has been started.
        5 Started { rank: u32, pid: u32 }
        /// Bytes that a task wrote to its standard output (0) or error (1). None if the task has closed the stream.
        6 Output { rank: u32, stream: u32, bytes: Vec<u8> }
        /// A task has ended.
        7 Ended { task: Ended }
        /// All tasks have ended, but not these processes, which they started.
        8 Strays { names: String }
        /// Nothing of the job is left on this host, and all output has been sent. `starts` is the number of
        /// `StartSpawn` and `Admit` orders received before.
        9 Settled { starts: u32 }
        /// This many bytes of input have been consumed.
        10 Taken { bytes: u32 }
        /// Keepalive of the agent.
        11 Beat {}
        /// A request of a task.
        12 Asked { task: u32, bytes: Vec<u8> }
        /// The answer to `PrepareSpawn`.
        13 SpawnPrepared { spawn: u32, addresses: Vec<Option<SocketAddr>>, refused: Option<(RequestError, String)> }
        /// The answer to `Enter`.
        14 Entered { first: u32, refused: Option<(RequestError, String)> }
        /// The answer to `StartSpawn` and `Admit`, one for each task.
        15 SpawnStarted { task: u32, pid: u32, refused: Option<(RequestError, String)> }
        /// Output of a task for another task.
        16 Caught { piece: Piece }
        /// A task has closed its socket and receives no more messages.
        17 Hushed { task: u32 }
        /// The answer to `Lead`. This many `Asked` messages follow, with the unanswered requests.
        18 State { state: AgentState, asked: u32 }
        /// A process requests to join as a task, and will listen at this address.
        21 JoinRequested { caller: u32, program: Vec<u8>, address: Option<SocketAddr> }
        /// Sent before `State` by an agent whose copy of the registry has more changes: the copy, in pieces.
        23 Copy { bytes: Vec<u8> }
        /// The answer to `Clock`: microseconds since 1970.
        22 Clock { by: u32, id: u32, time: u64 }
        /// The agent gives the job up and ends its tasks, for this reason. This is its last message.
        24 Farewell { why: String }
        /// Number of kept messages that a task has received. Not sent for each of them.
        25 Heard { task: u32, count: u32 }
        /// The answer to `Confirm`: the number of changes that the agent's copy of the registry has applied.
        26 Copied { changes: u64 }
        /// The answer of the starter of a daemon, in the caller's format.
        20 Answer { bytes: Vec<u8> }
    }
}

/// A job, as described to one of its hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Preparation {
    /// The number of this host, and the number of each rank's host.
    pub here: u32,
    pub host_of: Vec<u32>,
    pub key: Key,
    pub trusted: bool,
    /// The address at which the tasks of this host listen.
    pub address: IpAddr,
    pub program: Vec<u8>,
    pub arguments: Vec<Vec<u8>>,
    /// The launcher's environment.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    pub directory: Vec<u8>,
    pub bind: Bind,
    /// The tasks of other hosts that may use the same cores.
    pub share: Share,
    /// Window for output to the launcher, in bytes.
    pub window: u32,
    /// Maximum number of tasks that the job may ever have.
    pub most: u32,
    /// Silence after which the launcher is considered gone, in milliseconds.
    pub silence: u32,
    /// Time after which tasks that cannot reach each other give up, in milliseconds, or `None` if they wait. For a
    /// launcher that comes after this one.
    pub unreachable: Option<u32>,
    /// The name by which programs that were started by hand join the job. Empty if they cannot.
    pub join_name: String,
}
fields!(Preparation {
    here,
    host_of,
    key,
    trusted,
    address,
    program,
    arguments,
    environment,
    directory,
    bind,
    share,
    window,
    most,
    silence,
    unreachable,
    join_name
});

impl Preparation {
    /// Returns the locations of the job's tasks, for this host's table.
    pub(crate) fn places(&self) -> Places {
        Places {
            here: self.here,
            host_of: self.host_of.clone(),
            key: self.key.clone(),
            trusted: self.trusted,
            most: self.most,
        }
    }
}

/// State of an agent that another launcher may not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentState {
    pub hello: Hello,
    /// Number of `StartSpawn` and `Admit` orders received.
    pub starts: u32,
    /// Without the requests, which follow in messages of their own.
    pub handover: Handover,
}
fields!(AgentState {
    hello,
    starts,
    handover
});

impl Field for Bind {
    fn put(&self, to: &mut Vec<u8>) {
        let (kind, list) = match self {
            Bind::Auto => (0, Vec::new()),
            Bind::Free => (1, Vec::new()),
            Bind::Core => (2, Vec::new()),
            Bind::List(list) => (3, list.iter().map(|&core| core as u32).collect()),
        };
        (kind, list).put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let (kind, list) = <(u32, Vec<u32>)>::take(from)?;
        Ok(match kind {
            0 => Bind::Auto,
            1 => Bind::Free,
            2 => Bind::Core,
            3 => Bind::List(list.into_iter().map(|core| core as usize).collect()),
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests;
