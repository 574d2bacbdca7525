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

/// Where tasks run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Bind {
    /// Each task gets a core of its own when there are enough that no other job has taken; otherwise all are free.
    #[default]
    Auto,
    /// The kernel moves tasks as it likes.
    Free,
    /// Task i runs on the i-th core, beginning again when there are more tasks than cores.
    Core,
    /// Task i runs on the i-th core of this list, beginning again at its end.
    List(Vec<usize>),
}

/// How the tasks' output reaches the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Tasks write to our standard output and error themselves.
    #[default]
    Inherit,
    /// Whole lines, each with `[rank] ` before it.
    Labelled,
    /// Whole lines on standard error, each with the time and the task's number before it, up to a limit: for a job that stays.
    Journal,
    /// Everything, the tasks' lines included, is one JSON object per line on standard output.
    Json,
}

/// The hosts of a job that runs on several, and how they are reached.
#[derive(Debug, Clone)]
pub struct Across {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// How ranks are dealt to them.
    pub map: Map,
    /// The command that runs `sh` on a host, in words; `{host}` stands for its name. None: ssh.
    pub rsh: Option<Vec<String>>,
    /// The terminal at which ssh may ask what it has to; None: it asks nothing.
    pub asks_at: Option<String>,
    /// Where tasks listen; None: where the hosts reach each other.
    pub interface: Option<Choice>,
    /// Where the tasks of other hosts run; None: where we do.
    pub directory: Option<PathBuf>,
    /// The network is trusted: what travels between hosts is proved, but not encrypted.
    pub trusted: bool,
    /// Send this program to the hosts even when they have the right one.
    pub send: bool,
    /// How long a host may take to answer when the job is started.
    pub connect: Duration,
    /// A host that is silent for so long is lost.
    pub silence: Duration,
    /// Tasks that cannot reach each other for so long are dead to each other; none: they wait.
    pub unreachable: Option<Duration>,
    /// Say what was chosen and why.
    pub verbose: bool,
    /// How a running job hears of hosts that it can take in; None: it keeps those it has.
    pub growth: Option<Growth>,
}

/// Where a running job hears of hosts.
#[derive(Debug, Clone)]
pub struct Growth {
    /// Makes the host starter, which reads the requests of tasks for hosts.
    pub starter: NewHostStarter,
    /// The virtual machine whose daemons tell of them, and carry the channels to them; none: tasks may ask for hosts.
    pub machine: Option<String>,
    /// The runs of the hosts that the job begins with, in their order, and of hosts that it must not take.
    pub known: Vec<String>,
    /// The machine's name of this host, and in `run` of its run.
    pub host: String,
    /// The run of this host.
    pub run: String,
    /// The name of the job there.
    pub job: String,
}

impl Growth {
    /// Hosts come only when tasks request them.
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
    /// These hosts, everything else as it is by default.
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

    /// The virtual machine whose daemons carry the channels, and the name of the job there.
    pub(crate) fn machine(&self) -> Option<(&str, &str)> {
        let growth = self.growth.as_ref()?;
        Some((growth.machine.as_deref()?, &growth.job))
    }

    /// [`Across::unreachable`] in milliseconds.
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
    /// Variables that the tasks have beside those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// How many tasks; None: one for each slot of the hosts.
    pub tasks: Option<u32>,
    /// The hosts; None: this one.
    pub across: Option<Across>,
    /// Where they run.
    pub bind: Bind,
    /// How their output reaches the user.
    pub form: Form,
    /// After how long the job is ended.
    pub timeout: Option<Duration>,
    /// The fate of the other tasks when one has failed.
    pub on_failure: OnFailure,
    /// How long the others may go on after a failure, with [`OnFailure::Stop`].
    pub grace: Duration,
    /// How many tasks the job may have from its first to its last, when tasks start others.
    pub most_tasks: u32,
    /// It begins without a task and ends when it is told to, not with its last task.
    pub stays: bool,
}

impl Plan {
    /// `tasks` tasks of `program`, everything else as it is by default.
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

    /// The environment of its tasks, before each host adds its own.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let added = &self.environment;
        let kept = |(name, _): &(OsString, OsString)| added.iter().all(|(added, _)| added != name);
        std::env::vars_os()
            .filter(kept)
            .chain(added.iter().cloned())
            .collect()
    }

    /// When and how the job is ended.
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
        // Never is not the same as after the longest time.
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
