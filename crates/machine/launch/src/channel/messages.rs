//! The messages of launcher and agent.
//!
//! ```text
//! launcher                              agent
//!                                     < Hello          who I am, where I may be reached
//! Probe       reach these hosts       >
//!                                     < Probed         whom I reached, and under which address
//! Prepare     the job, your ranks     >
//!                                     < Prepared       where your ranks listen (or Refused)
//! Start       where all ranks listen  >
//!                                     < Started, Output, Ended, ... Settled
//! Gone, Signal, Credit, Input         >
//!
//!                                     < Asked          a task asks the launcher something
//! Tell        what to say to it       >
//! PrepareSpawn  tasks for a task      >
//!                                     < SpawnPrepared  where they will listen, or why not
//! Enter       new tasks of any host   >                into the table
//!                                     < Entered        or why not
//! StartSpawn  start what is prepared  >
//!                                     < SpawnStarted   for each: its process, or why not
//!                                     < Caught         what it wrote, if that is for another task
//! Taken       that has received it    >
//!
//!                                     < JoinRequested  who runs here already and wants to be a task
//! Admit       it is this task         >                answered as StartSpawn is
//! TurnAway    it is none              >
//!
//! Clock       what time is it?        >
//!                                     < Clock
//!
//!                                     < Farewell       why this agent gives up
//!
//! Will        for who comes after us  >                before Start
//! Line        who that is             >
//! Copy        what the registry knows     >
//!                                     < Heard          so much a task has been told
//! Confirm     how much is that?       >
//!                                     < Copied
//! Lead        I come after another    >
//!                                     < Copy           of the registry, if it is a later one
//!                                     < State          what runs here, and what that one may not have known
//! ```
//!
//! Either side sends `Beat` when it has said nothing for a while. The end of the channel is the end of the job on that
//! host: the agent then kills what is left of it. Where the launcher's host may be outlived, its loss is not the end
//! of the channel (`crate::succession`).

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
use regatta_wire::control::{Route, Spawn, Why};
use regatta_wire::world::World;

/// Raised when a message changes: launcher and agent must agree.
pub(crate) const VERSION: u32 = 14;

messages! {
    /// From the launcher to an agent.
    pub(crate) Order {
        /// Try to reach these hosts.
        1 Probe { targets: Vec<Target> }
        /// Make everything ready, and start nothing.
        2 Prepare { job: Preparation }
        /// Start the tasks. Where each rank of the job listens.
        3 Start { addresses: Vec<SocketAddr> }
        /// A task on another host is no more; without a cause it left in good order.
        4 Gone { rank: u32, cause: Option<Cause> }
        /// Send a signal to everything that belongs to the job.
        5 Signal { signal: i32 }
        /// This many bytes of output have been dealt with.
        6 Credit { bytes: u32 }
        /// Standard input for task 0; none: its end.
        7 Input { bytes: Vec<u8> }
        /// The launcher is there.
        8 Beat {}
        /// Start no more tasks.
        9 Stop {}
        /// Nobody reads what a task writes to this stream.
        10 Deaf { rank: u32, stream: u32 }
        /// Say this to a task.
        11 Tell { task: u32, bytes: Vec<u8> }
        /// Send a signal to one task.
        12 SignalTask { task: u32, signal: i32 }
        /// Prepare tasks that a task has requested.
        13 PrepareSpawn { spawn: u32, count: u32, order: Spawn, route: Option<Route> }
        /// Enter these tasks, of whatever hosts, into the table.
        14 Enter { world: World }
        /// Start the tasks that are prepared; a count of 0: forget them.
        15 StartSpawn { share: SpawnedTasks }
        /// This many bytes that tasks wrote for this one have been received, or will not be.
        16 Taken { by: u32, bytes: u32 }
        /// The knowledge of the next launcher, should the launcher's host be lost.
        17 Failover { plan: FailoverPlan }
        /// The hosts that may lead next, in order.
        18 Succession { order: SuccessionOrder }
        /// A piece of a copy of the registry, or of a change to it; the last one of it, or not.
        19 Copy { change: bool, bytes: Vec<u8>, last: bool }
        /// I am the launcher from now on, and know of this many tasks.
        21 Lead { tasks: u32, changes: u64 }
        /// The process that has asked to join is this task.
        22 Admit { caller: u32, task: u32 }
        /// The process that has asked to join cannot be one.
        23 TurnAway { caller: u32, sentence: String }
        /// Asks for the time. A task has asked, under this number.
        24 Clock { by: u32, id: u32 }
        /// How much do you know of the registry?
        25 Confirm {}
        /// For the starter of a daemon, in its own words.
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
        /// The answer to `Prepare`: where each rank of this host listens.
        3 Prepared { addresses: Vec<(u32, SocketAddr)> }
        /// It cannot be done: the status to exit with, and why.
        4 Refused { status: u32, sentence: String }
        /// A task runs.
        5 Started { rank: u32, pid: u32 }
        /// Bytes that a task wrote to its standard output (0) or error (1); none: it has closed it.
        6 Output { rank: u32, stream: u32, bytes: Vec<u8> }
        /// A task has ended.
        7 Ended { task: Ended }
        /// All tasks have ended, but not these processes which they started.
        8 Strays { names: String }
        /// Nothing of the job is left here, and everything it wrote has been sent. So often `StartSpawn` or `Admit` has come before.
        9 Settled { starts: u32 }
        /// This many bytes of input have been dealt with.
        10 Taken { bytes: u32 }
        /// The agent is there.
        11 Beat {}
        /// A task asks something.
        12 Asked { task: u32, bytes: Vec<u8> }
        /// The answer to `PrepareSpawn`.
        13 SpawnPrepared { spawn: u32, addresses: Vec<Option<SocketAddr>>, refused: Option<(Why, String)> }
        /// The answer to `Enter`.
        14 Entered { first: u32, refused: Option<(Why, String)> }
        /// The answer to `StartSpawn` and `Admit`, for each task.
        15 SpawnStarted { task: u32, pid: u32, refused: Option<(Why, String)> }
        /// Something that a task wrote for another one.
        16 Caught { piece: Piece }
        /// A task has closed its socket: it hears nothing more.
        17 Hushed { task: u32 }
        /// The answer to `Lead`. So many messages `Asked` follow, of what has not been answered.
        18 State { state: AgentState, asked: u32 }
        /// A process asks to join as a task, and will listen there.
        21 JoinRequested { caller: u32, program: Vec<u8>, address: Option<SocketAddr> }
        /// Before `State`, from an agent whose copy of the registry has seen more changes: the copy, in pieces.
        23 Copy { bytes: Vec<u8> }
        /// The answer to `Clock`: microseconds since 1970.
        22 Clock { by: u32, id: u32, time: u64 }
        /// The agent gives the job up and ends its tasks, for this reason: the last that is heard of it.
        24 Farewell { why: String }
        /// A task has been told so many words of those that are kept for it. Not said of each.
        25 Heard { task: u32, count: u32 }
        /// The answer to `Confirm`: the copy of the registry has seen so many changes.
        26 Copied { changes: u64 }
        /// The answer of the starter of a daemon, in its own words.
        20 Answer { bytes: Vec<u8> }
    }
}

/// A job, as one of its hosts needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Preparation {
    /// The number of this host, and that of each rank's.
    pub here: u32,
    pub host_of: Vec<u32>,
    pub key: Key,
    pub trusted: bool,
    /// Where the tasks are to listen.
    pub address: IpAddr,
    pub program: Vec<u8>,
    pub arguments: Vec<Vec<u8>>,
    /// The launcher's environment.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    pub directory: Vec<u8>,
    pub bind: Bind,
    /// The tasks of other hosts that may use the same cores.
    pub share: Share,
    /// This many bytes of output may be on their way.
    pub window: u32,
    /// How many tasks the job may have from its first to its last.
    pub most: u32,
    /// A launcher that is silent for this many milliseconds is gone.
    pub silence: u32,
    /// Tasks that cannot reach each other for this many milliseconds are dead to each other; none: they wait. For a launcher that
    /// comes after this one.
    pub unreachable: Option<u32>,
    /// By this name programs enter the job that were started by hand; empty: they cannot.
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
    /// Where the tasks of the job are, for the table of this host.
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

/// An agent's knowledge that another launcher may lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentState {
    pub hello: Hello,
    /// How often `StartSpawn` or `Admit` has come.
    pub starts: u32,
    /// Without the requests, which follow.
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
