//! The contract between the launcher of a job and the interface whose programs request hosts.
//!
//! A task may request hosts for its job. The launcher knows which it may have, and the way of a host into the job
//! (`supervise/growing/`). How a request names hosts, and who starts the agent of one that the launcher's own shell command
//! does not lead to, is the affair of a [`HostStarter`], which the command hands to the launcher ([`crate::Growth`]).
//!
//! ```text
//! launcher                               host starter
//! read    what a task requests     >     the hosts it names, and for each the way there
//! start   these, by their numbers  >     has their agents started, however long that takes
//!                                  <     poll: a connection to an agent, or why there is none
//! ```
//!
//! Nothing here waits: [`HostStarter::poll`] is called whenever one of the descriptors of [`HostStarter::polls`] is ready, and after
//! [`HostStarter::until`]. Each host that is to be started is reported once, unless [`HostStarter::abandon`] comes before.

use std::time::Duration;

use regatta_connection::calls::Conversation;
pub use regatta_job::registry::{HostChange, Refused, Requester};
use regatta_wire::control::{HostStarted, Tell};
use rustix::event::PollFd;

/// How the launcher reaches the hosts of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// By the daemons of a virtual machine, which lead to its hosts.
    pub in_machine: bool,
    /// By the user's ssh.
    pub by_ssh: bool,
}

/// Makes the host starter of a job.
pub type NewHostStarter = fn(Reached) -> Box<dyn HostStarter>;

/// The way to a host that has no agent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// The launcher's shell command leads there.
    Shell {
        /// The terminal at which it may ask for a password; None: it asks nothing.
        asks_at: Option<String>,
    },
    /// Its agent is started by the host starter ([`HostStarter::start`]).
    Starter,
}

/// A host that a task requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedHost {
    /// Its name.
    pub name: String,
    /// The name that it is reached by, if that is another one.
    pub address: Option<String>,
    /// The user's login there, if it is another one.
    pub login: Option<String>,
    /// The program that is to be its agent, if the request names one.
    pub program: Option<String>,
    /// Where its tasks run, by variables of that host; None: in the user's home.
    pub directory: Option<String>,
    /// A second agent is wanted on a host that has one.
    pub again: bool,
    /// The request's words for how its agent is started; empty: as usual.
    pub manner: String,
    /// The way there, or why there is none.
    pub way: Result<Way, Refused>,
    /// Settings for its tasks.
    pub settings: HostSettings,
}

impl WantedHost {
    /// The name that it is reached by.
    pub fn target(&self) -> &str {
        self.address.as_ref().unwrap_or(&self.name)
    }
}

/// Settings of a host for its tasks. Fields that were not given stay empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSettings {
    /// Its speed relative to other hosts.
    pub speed: Option<u32>,
    /// The directories in which programs are looked for, separated by colons.
    pub programs: Option<String>,
    /// The program that starts a debugger.
    pub debugger: Option<String>,
}

/// The outcome for hosts that were to be started.
#[derive(Debug)]
pub enum StartOutcome {
    /// An agent runs, and is at the other end.
    Started {
        /// The number of its host.
        host: u32,
        /// The connection, whose handshake is over.
        agent: Conversation,
    },
    /// There is no agent.
    Failed {
        /// The number of the host.
        host: u32,
        /// The reason.
        refused: Refused,
    },
    /// Nothing comes of a whole request.
    RequestFailed {
        /// The hosts that were still to be started.
        hosts: Vec<u32>,
        /// The reason.
        sentence: String,
    },
    /// The task that has requested it is gone.
    Unwanted {
        /// The number of the host.
        host: u32,
    },
}

/// Reads requests for hosts, and starts the agents of some. Hosts are given by their numbers in the job, of which no two have one.
pub trait HostStarter {
    /// Reads a request that names hosts: each of them, or what is wrong about it.
    fn read(
        &mut self,
        requester: &Requester,
        change: HostChange,
    ) -> Result<Vec<Result<WantedHost, Refused>>, Refused>;

    /// Has the agents of these hosts started, which one request names. Returns a message to a task that is to start them, if it is
    /// one that does.
    fn start(
        &mut self,
        requester: &Requester,
        hosts: Vec<(u32, WantedHost)>,
    ) -> Option<(u32, Tell)>;

    /// A task of the launcher's host starts hosts from now on, and is told which by its request of this number; None: no more.
    fn register(&mut self, task: u32, watch: Option<u32>) -> Result<(), Refused>;

    /// Such a task reports what has become of the hosts that it was told to start under this number.
    fn report(&mut self, task: u32, request: u32, hosts: Vec<HostStarted>) -> Result<(), Refused>;

    /// Goes on as far as possible. Says what has become of hosts; `is_alive` says whether a task lives.
    fn poll(&mut self, is_alive: &dyn Fn(u32) -> bool) -> Vec<StartOutcome>;

    /// The descriptors to wait for.
    fn polls(&self) -> Vec<PollFd<'_>>;

    /// The time until it has to be polled whatever happens.
    fn until(&self) -> Option<Duration>;

    /// Nobody waits for hosts any more.
    fn abandon(&mut self);
}
