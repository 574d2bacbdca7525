//! How a job in a virtual machine outlives the host of its launcher.
//!
//! # The promise
//!
//! A launcher that ends, or is ended, ends its job: it says so, or the daemon of its host does. A launcher whose *host* is lost
//! says nothing. Then the first host of the *line* that is left goes on in its place: its agent becomes the launcher, with the
//! tasks that are left, and what the registry knew (names, groups, watches). The same happens when that host is lost.
//!
//! # Who
//!
//! The line is the launcher's host and behind it all others in the order of their numbers; the launcher tells every agent
//! ([`Line`]). Who of it is left is the verdict of the daemons, which only a majority passes and nobody takes back (a host
//! that returns is another one). So all agree in the end, and no two lead: whoever sees no majority leads nobody, and a launcher
//! whose host is cut off from a majority, has lost its daemon, or was declared dead ends its tasks and says why
//! (`supervise/lineage.rs`). For about as long as a verdict takes both may run.
//!
//! # What is kept
//!
//! - The first few of the line have a *copy* of the registry: a snapshot once, then each change before anybody is told what came of
//!   it. Half as many as there are hosts, so that every majority without the launcher has one; but eight at most. In it is all that
//!   each task was told and may not have heard: agents say how much has come.
//! - Every agent keeps what only it knows: what its tasks have asked and not been answered, how much each of them has been
//!   told, how its tasks ended, which worlds it has entered into its table.
//!
//! # How
//!
//! ```text
//! agents                              next launcher (an agent itself)
//! the daemons say that the launcher's host is lost;
//! each says on its channel that it is an orphan, takes nothing but the word LEAD from it, and reports nothing
//!                                   < LEAD       through the daemons, on the channel that the old launcher had
//! READY, as at the beginning        >
//!                                   < Lead       so many tasks are in my table, so many changes in my copy of the registry
//! a later copy, if it has one       >
//! State, and what is unanswered     >
//! ```
//!
//! The copies are not alike: the old launcher sent each change to all of them before it answered, but a host may be cut off
//! while some have arrived and others not. The latest of them knows all that the others know. Since what a host is sent
//! arrives in order, a host with a copy has every change before its tasks hear what came of it; so the latest copy knows what the
//! tasks of all such hosts have heard. The next launcher goes on with that one.
//!
//! The next launcher compares: it enters worlds into the tables that lack them, tells all of them which tasks are gone by what any
//! host or the copy knows (`gone.rs`), tells of the ends it had not heard of, says to
//! each task what it has been told in the copy and has not heard, and hears the questions that the copy does not know. Tasks
//! notice that an answer takes a second longer. Then it is a launcher like any other (`supervise.rs`).
//!
//! A word for a task on a host without a copy waits until a host with one says that it has the changes before it
//! (`unconfirmed.rs`). So the next launcher knows what any task has heard, unless that host is lost at the same time.
//!
//! Output that tasks had written and nobody had shown yet may be lost. Standard input ends.

use std::time::Duration;

use regatta_wire::fields;

use crate::plan::{Across, Form, OnFailure, Plan};

#[cfg(test)]
mod cuts;
pub(crate) mod gone;
pub(crate) mod heritage;
pub(crate) mod lead;
pub(crate) mod rally;
pub(crate) mod unconfirmed;

/// What an agent says on its channel when its launcher's host is lost, for the daemon that holds the other end.
pub const ORPHAN: &str = "\nregatta-orphan\n";
/// The first word of the next launcher on it; its identity follows, and the run of its host.
pub(crate) const LEAD: &str = "regatta-lead";
/// What a process is called that has become the launcher of a job.
pub(crate) const LEADER: &std::ffi::CStr = c"regatta-leader";
/// The sentence that the command of a channel says when the daemon of the launcher's host has ended, after `regatta: `.
pub const DAEMON_ENDED: &str =
    "the daemon of this host has ended, and with it the channels to all others";
/// How the reason ends why a channel has ended, when this host was declared dead and goes on as another one.
pub const GOES_ON_AS_ANOTHER: &str = ", and this host goes on as another one";
/// Why a host of the job is lost of which the daemons say nothing any more.
pub(crate) const NO_MORE: &str = "it is not one of the machine any more";
/// At most so many hosts have a copy of the registry.
const COPIES: usize = 8;
/// Bytes of a copy that are sent at once.
pub(crate) const PIECE: usize = 1 << 20;

/// A host that may go on with the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heir {
    /// Its number in the job, its name, and what the machine calls this run of it.
    pub number: u32,
    pub name: String,
    pub run: String,
}
fields!(Heir { number, name, run });

/// Who leads the job, and who will when that host is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The run of the launcher's host.
    pub launcher: String,
    /// The same for people.
    pub name: String,
    /// All other hosts that are left, in order.
    pub heirs: Vec<Heir>,
}
fields!(Line {
    launcher,
    name,
    heirs
});

/// What a launcher knows from its command line, for those who may come after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Will {
    /// The job's name.
    pub job: String,
    /// What, behind the name of this program, leads to a host, and what tells of hosts.
    pub reach: Vec<String>,
    pub tell: Vec<String>,
    /// What becomes of the others when a task has failed, and after how many milliseconds.
    pub goes_on: bool,
    pub grace: u32,
    /// After so many milliseconds from now the job is ended.
    pub timeout: Option<u64>,
    /// How output looks: as it comes, labelled, JSON.
    pub form: u32,
    /// How long a host may take to answer, in milliseconds.
    pub connect: u32,
    pub interface: Option<String>,
    pub verbose: bool,
}
fields!(Will {
    job,
    reach,
    tell,
    goes_on,
    grace,
    timeout,
    form,
    connect,
    interface,
    verbose
});

/// This program, wherever it runs.
pub(crate) const OWN: &str = "/proc/self/exe";

impl Will {
    /// Of a job that can outlive the host of its launcher.
    pub(crate) fn of(plan: &Plan, across: &Across) -> Option<Will> {
        let (growth, reach) = (across.growth.as_ref()?, across.rsh.as_ref()?);
        // Only a machine can say that a host is lost.
        if growth.command.is_empty() {
            return None;
        }
        let behind = |words: &[String]| words.get(1..).unwrap_or_default().to_vec();
        Some(Will {
            job: growth.job.clone(),
            reach: behind(reach),
            tell: behind(&growth.command),
            goes_on: plan.on_failure == OnFailure::Continue,
            grace: milliseconds(plan.grace),
            timeout: plan.timeout.map(|limit| limit.as_millis() as u64),
            form: match plan.form {
                Form::Inherit => 0,
                Form::Labelled => 1,
                Form::Json => 2,
                Form::Journal => 3,
            },
            connect: milliseconds(across.connect),
            interface: across.interface.as_ref().map(ToString::to_string),
            verbose: across.verbose,
        })
    }

    pub(crate) fn form(&self) -> Form {
        match self.form {
            1 => Form::Labelled,
            2 => Form::Json,
            3 => Form::Journal,
            _ => Form::Inherit,
        }
    }
}

fn milliseconds(time: Duration) -> u32 {
    time.as_millis().try_into().unwrap_or(u32::MAX)
}

/// How many of so many hosts have a copy of the registry.
pub(crate) fn copies(hosts: usize) -> usize {
    (hosts / 2).clamp(2, COPIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_majority_without_the_launcher_has_a_copy() {
        for hosts in 3..=16 {
            let without = hosts - 1 - copies(hosts).min(hosts - 1);
            assert!(without < hosts / 2 + 1, "{hosts} hosts");
        }
    }
}
