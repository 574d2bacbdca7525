//! A job to be run: its program, tasks, hosts and settings.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::hosts::host_starter::NewHostStarter;
use crate::hosts::{Host, Map};
pub use regatta_job::OnFailure;
use regatta_job::Policy;
use regatta_job::hosts::Choice;
use regatta_segment::job::MAX_TASKS;

/// The cores on which tasks run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Bind {
    /// Each task gets a core of its own if there are enough that no other job uses. Otherwise tasks are not bound.
    #[default]
    Auto,
    /// Tasks are not bound.
    Free,
    /// Task i runs on the i-th core, modulo the number of cores.
    Core,
    /// Task i runs on the i-th core of this list, modulo its length.
    List(Vec<usize>),
}

/// How the tasks' output reaches the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Tasks write directly to the command's standard output and error.
    #[default]
    Inherit,
    /// Complete lines, each with the prefix `[rank] `.
    Labelled,
    /// Complete lines on standard error, each with the time and the task's number, up to a size limit. For a resident
    /// job.
    Journal,
    /// One JSON object per line on standard output for everything, including the tasks' lines.
    Json,
}

/// The hosts of a job that runs on several, and how they are reached.
#[derive(Debug, Clone)]
pub struct Across {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// How ranks are distributed to the hosts.
    pub map: Map,
    /// The command that runs `sh` on a host, as words. `{host}` stands for its name. `None` for ssh.
    pub rsh: Option<Vec<String>>,
    /// The terminal at which ssh may ask for passwords, or `None` if it must not ask.
    pub asks_at: Option<String>,
    /// The interfaces on which tasks listen, or `None` for those at which the hosts reach each other.
    pub interface: Option<Choice>,
    /// The directory of tasks on other hosts, or `None` for that of the launcher.
    pub directory: Option<PathBuf>,
    /// Whether the network is trusted: messages between hosts are authenticated, but not encrypted.
    pub trusted: bool,
    /// Whether to send this program to the hosts even if they have the right one.
    pub send: bool,
    /// Time that a host may take to answer when the job is started.
    pub connect: Duration,
    /// Silence after which a host is lost.
    pub silence: Duration,
    /// Time after which tasks that cannot reach each other give each other up, or `None` if they wait.
    pub unreachable: Option<Duration>,
    /// Whether to report what was chosen and why.
    pub verbose: bool,
    /// How a running job gets more hosts, or `None` if it cannot.
    pub growth: Option<Growth>,
}

/// The sources of hosts for a running job.
#[derive(Debug, Clone)]
pub struct Growth {
    /// Creates the host starter, which reads the requests of tasks for hosts.
    pub starter: NewHostStarter,
    /// The virtual machine whose daemons report hosts and carry the channels to them, or `None` if hosts are added only
    /// at the request of tasks.
    pub machine: Option<String>,
    /// The runs of the hosts that the job begins with, in order, and of hosts that it must not add.
    pub known: Vec<String>,
    /// The machine's name of this host.
    pub host: String,
    /// The run of this host.
    pub run: String,
    /// The job's name in the machine.
    pub job: String,
}

impl Growth {
    /// Returns a growth in which hosts are added only at the request of tasks.
    pub fn new(starter: NewHostStarter) -> Self {
        Self {
            starter,
            machine: None,
            known: Vec::new(),
            host: String::new(),
            run: String::new(),
            job: String::new(),
        }
    }
}

impl Across {
    /// Returns these hosts with default settings.
    pub fn new(hosts: Vec<Host>) -> Self {
        Self {
            hosts,
            map: Map::Block,
            rsh: None,
            asks_at: None,
            interface: None,
            directory: None,
            trusted: false,
            send: false,
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(10),
            unreachable: None,
            verbose: false,
            growth: None,
        }
    }

    /// Returns the virtual machine whose daemons carry the channels, and the job's name there.
    pub(crate) fn machine(&self) -> Option<(&str, &str)> {
        let growth = self.growth.as_ref()?;
        Some((growth.machine.as_deref()?, &growth.job))
    }

    /// Returns [`Across::unreachable`] in milliseconds.
    pub(crate) fn unreachable_millis(&self) -> Option<u32> {
        let limit = self.unreachable?;
        Some(limit.as_millis().try_into().unwrap_or(u32::MAX))
    }
}

/// A job to be run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program, as the user named it.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables for the tasks in addition to those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// Number of tasks, or `None` for one for each slot of the hosts.
    pub tasks: Option<u32>,
    /// The hosts, or `None` for this one alone.
    pub across: Option<Across>,
    /// The cores on which they run.
    pub bind: Bind,
    /// How their output reaches the user.
    pub form: Form,
    /// Time after which the job is ended.
    pub timeout: Option<Duration>,
    /// What happens to the other tasks when one fails.
    pub on_failure: OnFailure,
    /// Time that the other tasks have after a failure, with [`OnFailure::Stop`].
    pub grace: Duration,
    /// Maximum number of tasks that the job may ever have, including spawned ones.
    pub most_tasks: u32,
    /// Whether the job begins without tasks and ends only on request, not with its last task.
    pub stays: bool,
}

impl Plan {
    /// Returns a plan for `tasks` tasks of `program` with default settings.
    pub fn new(program: impl Into<OsString>, tasks: u32) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            tasks: Some(tasks),
            across: None,
            bind: Bind::Auto,
            form: Form::Inherit,
            timeout: None,
            on_failure: OnFailure::Stop,
            grace: Duration::from_secs(10),
            most_tasks: MAX_TASKS,
            stays: false,
        }
    }

    /// Returns the environment of the tasks, before each host adds its own.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let added = &self.environment;
        let kept = |(name, _): &(OsString, OsString)| added.iter().all(|(added, _)| added != name);
        std::env::vars_os()
            .filter(kept)
            .chain(added.iter().cloned())
            .collect()
    }

    /// Returns when and how the job is ended.
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            on_failure: self.on_failure,
            grace: self.grace,
            timeout: self.timeout,
            resident: self.stays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_no_message_can_hold_is_the_longest_that_one_can() {
        let millis = |unreachable| {
            let across = Across {
                unreachable,
                ..Across::new(Vec::new())
            };
            across.unreachable_millis()
        };
        // No limit is not the same as the longest limit.
        assert_eq!(millis(None), None);
        assert_eq!(millis(Some(Duration::MAX)), Some(u32::MAX));
        assert_eq!(millis(Some(Duration::from_secs(5))), Some(5000));
    }

    #[test]
    fn a_job_that_stays_does_not_end_with_its_last_task() {
        let stays = Plan {
            stays: true,
            ..Plan::new("", 1)
        };
        assert!(stays.policy().resident);
        assert!(!Plan::new("", 1).policy().resident);
    }
}
