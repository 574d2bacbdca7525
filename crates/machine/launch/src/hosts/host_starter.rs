//! The interface between a job's launcher and the library whose programs request hosts.
//!
//! A task may request hosts for its job. The launcher knows which ones it may have, and how a host joins a job
//! (`supervise/growing/`). A [`HostStarter`], which the command passes to the launcher ([`crate::Growth`]), knows how a
//! request names hosts, and which process starts the agent of a host that the launcher's own shell command does not
//! lead to.
//!
//! ```text
//! launcher                               host starter
//! read    a task's request         >     the hosts that it names, and how to reach each
//! start   these, by their numbers  >     starts their agents, however long that takes
//!                                  <     poll: a connection to an agent, or why there is none
//! ```
//!
//! Nothing here blocks. [`HostStarter::poll`] is called when one of the descriptors of [`HostStarter::polls`] is ready,
//! and after [`HostStarter::until`]. The outcome of each host that is to be started is reported once, unless
//! [`HostStarter::abandon`] is called before.

use std::time::Duration;

use regatta_connection::calls::Conversation;
pub use regatta_job::registry::{HostChange, Refused, Requester};
use regatta_wire::control::{HostStarted, Tell};
use rustix::event::PollFd;

/// How the launcher reaches the hosts of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// Through the daemons of a virtual machine, to its hosts only.
    pub in_machine: bool,
    /// By the user's ssh.
    pub by_ssh: bool,
}

/// Creates the host starter of a job.
pub type NewHostStarter = fn(Reached) -> Box<dyn HostStarter>;

/// How to reach a host that has no agent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// By the launcher's shell command.
    Shell {
        /// The terminal at which the command may ask for a password, or `None` if it must not ask.
        asks_at: Option<String>,
    },
    /// By its agent, which the host starter starts ([`HostStarter::start`]).
    Starter,
}

/// A host that a task requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedHost {
    /// The host's name.
    pub name: String,
    /// The name to connect to, if it differs.
    pub address: Option<String>,
    /// The user's login there, if it differs.
    pub login: Option<String>,
    /// The program to run as its agent, if the request names one.
    pub program: Option<String>,
    /// The directory in which its tasks run, with variables of that host, or `None` for the user's home.
    pub directory: Option<String>,
    /// Whether a second agent is wanted on a host that has one.
    pub again: bool,
    /// How its agent is started, as the request has it. Empty for the usual way.
    pub manner: String,
    /// How to reach it, or why that is impossible.
    pub way: Result<Way, Refused>,
    /// Settings for its tasks.
    pub settings: HostSettings,
}

impl WantedHost {
    /// Returns the name to connect to.
    pub fn target(&self) -> &str {
        self.address.as_ref().unwrap_or(&self.name)
    }
}

/// Settings of a host for its tasks. Settings that were not given are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSettings {
    /// Its speed relative to other hosts.
    pub speed: Option<u32>,
    /// The directories in which programs are searched, separated by colons.
    pub programs: Option<String>,
    /// The program that starts a debugger.
    pub debugger: Option<String>,
}

/// The outcome for hosts that were to be started.
#[derive(Debug)]
pub enum StartOutcome {
    /// An agent runs at the other end of the connection.
    Started {
        /// The number of its host.
        host: u32,
        /// The connection, with its handshake complete.
        agent: Conversation,
    },
    /// There is no agent.
    Failed {
        /// The number of the host.
        host: u32,
        /// The reason.
        refused: Refused,
    },
    /// A whole request has failed.
    RequestFailed {
        /// The hosts of the request that were not started yet.
        hosts: Vec<u32>,
        /// The reason.
        sentence: String,
    },
    /// The task that has requested the host is gone.
    Unwanted {
        /// The number of the host.
        host: u32,
    },
}

/// Reads requests for hosts, and starts the agents of some. Hosts are identified by their numbers in the job, which are
/// unique.
pub trait HostStarter {
    /// Parses a request that names hosts. Returns each host, or why it cannot be had.
    fn read(
        &mut self,
        requester: &Requester,
        change: HostChange,
    ) -> Result<Vec<Result<WantedHost, Refused>>, Refused>;

    /// Starts the agents of these hosts, which one request names. Returns a message if a task is to start them, with
    /// the number of that task.
    fn start(
        &mut self,
        requester: &Requester,
        hosts: Vec<(u32, WantedHost)>,
    ) -> Option<(u32, Tell)>;

    /// Registers a task of the launcher's host as the one that starts hosts. It gets its orders as events of its
    /// request `watch`. `None` unregisters it.
    fn register(&mut self, task: u32, watch: Option<u32>) -> Result<(), Refused>;

    /// Handles the report of such a task about the hosts that it was ordered to start under the number `request`.
    fn report(&mut self, task: u32, request: u32, hosts: Vec<HostStarted>) -> Result<(), Refused>;

    /// Makes progress without blocking. Returns the outcomes of hosts. `is_alive` returns whether a task lives.
    fn poll(&mut self, is_alive: &dyn Fn(u32) -> bool) -> Vec<StartOutcome>;

    /// Returns the descriptors to poll.
    fn polls(&self) -> Vec<PollFd<'_>>;

    /// Returns the time until `poll` must be called even if no descriptor is ready.
    fn until(&self) -> Option<Duration>;

    /// Gives up all hosts that are being started.
    fn abandon(&mut self);
}
