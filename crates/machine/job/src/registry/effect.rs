//! Effects: work that a task has requested and that the registry leaves to the launcher.

use std::net::SocketAddr;

use regatta_wire::control::{HostStarted, Spawn};

/// A task that requests a change of the job's hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The task.
    pub by: u32,
    /// The number of its request.
    pub id: u32,
    /// The terminal at which a person can be asked for a password; None: nobody can.
    pub terminal: Option<String>,
}

/// A request that the registry cannot fulfil itself: it needs processes, hosts or a clock.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start tasks.
    Spawn {
        /// The task that requests it.
        by: u32,
        /// The number of its request.
        id: u32,
        /// Which program, how many, where.
        order: Spawn,
    },
    /// Send a signal to a task.
    Signal {
        /// The task.
        task: u32,
        /// The signal's number.
        signal: i32,
    },
    /// End the job.
    Halt,
    /// End the job with this exit status.
    Abort {
        /// The task that requests it.
        by: u32,
        /// The status.
        status: u8,
    },
    /// Add hosts to the job, or give hosts back.
    Hosts {
        /// The task that requests it.
        requester: Requester,
        /// The request.
        change: HostChange,
    },
    /// All members of a group have met, so they may share a barrier in sent (see [`super::Registry::share_barrier`]).
    ShareBarrier {
        /// The group's name.
        group: String,
        /// Its members, by their numbers in the group.
        members: Vec<u32>,
    },
    /// Let this task start the tasks of its host.
    Starter {
        /// The task.
        by: u32,
        /// The number of its request.
        id: u32,
    },
    /// Let this task start the agents of hosts that are to come, or no more.
    Hoster {
        /// The task.
        by: u32,
        /// The number of its request.
        id: u32,
        /// False: no more.
        on: bool,
    },
    /// A task that starts the agents of hosts reports the results.
    HostsStarted {
        /// That task.
        by: u32,
        /// The number of its report.
        id: u32,
        /// The number under which it was asked to start them.
        request: u32,
        /// The result for each host.
        hosts: Vec<HostStarted>,
    },
    /// The task that starts tasks in the launcher's place reports the end of one that never joined.
    StartedTaskEnded {
        /// The reporting task.
        by: u32,
        /// The number of its report.
        id: u32,
        /// The task that has ended.
        task: u32,
        /// Its status as `wait` gives it.
        status: i32,
    },
    /// Excuse the death of a task that had ended before its starter watched for it.
    Excused {
        /// The task that has ended.
        task: u32,
    },
    /// Read the clock of a host.
    ReadClock {
        /// The task that requests it.
        by: u32,
        /// The number of its request.
        id: u32,
        /// The host.
        host: u32,
    },
    /// A task has received output of another one, so as much may be sent again.
    OutputReceived {
        /// The receiver.
        by: u32,
        /// The task that wrote it.
        task: u32,
        /// How many bytes.
        bytes: u32,
    },
    /// A task cannot reach another one, or can again.
    Reachability {
        /// The task that reports it.
        by: u32,
        /// The other one.
        task: u32,
        /// Where the other one listens.
        address: Option<SocketAddr>,
        /// For how many milliseconds it has not answered; None: it answers again.
        silent: Option<u32>,
    },
}

/// A change of the job's hosts that a task requests.
#[derive(Debug, PartialEq, Eq)]
pub enum HostChange {
    /// Add these, each a line of a host file.
    Add(Vec<String>),
    /// Give these back.
    Remove(Vec<String>),
    /// Add all hosts of this host file.
    File(String),
}
