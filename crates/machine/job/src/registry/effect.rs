//! Effects: work that a task has requested and that the registry leaves to the launcher.

use std::net::SocketAddr;

use regatta_wire::control::{HostStarted, Spawn};

/// A task that requests a change of the job's hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The requesting task.
    pub by: u32,
    /// The number of its request.
    pub id: u32,
    /// The terminal at which the user can be asked for a password, or `None` if there is none.
    pub terminal: Option<String>,
}

/// A request that the registry cannot fulfil itself: it needs processes, hosts or a clock.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start tasks.
    Spawn {
        /// The requesting task.
        by: u32,
        /// The number of its request.
        id: u32,
        /// The program, the number of tasks, and their placement.
        order: Spawn,
    },
    /// Send a signal to a task.
    Signal {
        /// The receiving task.
        task: u32,
        /// The signal's number.
        signal: i32,
    },
    /// End the job.
    Halt,
    /// End the job with this exit status.
    Abort {
        /// The requesting task.
        by: u32,
        /// The exit status.
        status: u8,
    },
    /// Add hosts to the job, or give hosts back.
    Hosts {
        /// The request and its task.
        requester: Requester,
        /// The change.
        change: HostChange,
    },
    /// Let a group share a barrier in shared memory, since all its members have met (see
    /// [`super::Registry::share_barrier`]).
    ShareBarrier {
        /// The group's name.
        group: String,
        /// The members, indexed by their numbers in the group.
        members: Vec<u32>,
    },
    /// Let this task start the tasks of its host.
    Starter {
        /// The task.
        by: u32,
        /// The number of its request.
        id: u32,
    },
    /// Let this task start the agents of hosts to be added, or stop doing so.
    Hoster {
        /// The task.
        by: u32,
        /// The number of its request.
        id: u32,
        /// False to stop.
        on: bool,
    },
    /// Handle the results of a task that has started the agents of hosts.
    HostsStarted {
        /// The reporting task.
        by: u32,
        /// The number of its report.
        id: u32,
        /// The number of the launcher's order to start them.
        request: u32,
        /// The result for each host.
        hosts: Vec<HostStarted>,
    },
    /// Handle the end of a process that never joined, reported by the task that starts tasks in the launcher's place.
    StartedTaskEnded {
        /// The reporting task.
        by: u32,
        /// The number of its report.
        id: u32,
        /// The task that has ended.
        task: u32,
        /// Its wait status.
        status: i32,
    },
    /// Excuse the death of a task that had ended before its starter watched for it.
    Excused {
        /// The task that has ended.
        task: u32,
    },
    /// Read the clock of a host.
    ReadClock {
        /// The requesting task.
        by: u32,
        /// The number of its request.
        id: u32,
        /// The host's number.
        host: u32,
    },
    /// Repay credit: a task has received output of another one.
    OutputReceived {
        /// The receiver.
        by: u32,
        /// The task that wrote it.
        task: u32,
        /// The number of bytes.
        bytes: u32,
    },
    /// Record that a task cannot reach another one, or can again.
    Reachability {
        /// The reporting task.
        by: u32,
        /// The other task.
        task: u32,
        /// The address at which the other task listens.
        address: Option<SocketAddr>,
        /// The silence in milliseconds, or `None` if the task answers again.
        silent: Option<u32>,
    },
}

/// A change of the job's hosts that a task requests.
#[derive(Debug, PartialEq, Eq)]
pub enum HostChange {
    /// Add these hosts, each given as a line of a host file.
    Add(Vec<String>),
    /// Give these hosts back.
    Remove(Vec<String>),
    /// Add all hosts of this host file.
    File(String),
}
