//! How a job in a virtual machine outlives the host of its launcher: the processes and channels.
//!
//! `regatta_job::failover` decides which host leads next, and with what state; its module explains why that works. This
//! is how the next launcher (itself an agent) reaches the agents of the other hosts:
//!
//! ```text
//! agents                              next launcher
//! the daemons report that the launcher's host is lost;
//! each agent tells its daemon, with the hosts that may take it over, and sends no reports
//!                                   claims the old launcher's channels through the daemons, which report the hosts that each agent names
//!                                   < gives up   if some agent has not named it; the agents and their daemons go on waiting
//!                                   < leads      when every channel has been claimed, or its host is lost
//! each gets a new channel from its daemon, without data of the old launcher
//!                                   < Lead       the number of tasks in its table, and of changes in its replica of the registry
//! a later snapshot, if it has one   >
//! State, and unanswered requests    >
//! ```
//!
//! The next launcher compares the states: it enters worlds into the tables that lack them, tells all hosts which tasks
//! are gone, handles the ends that its replica does not have, sends each task the messages that it has not received,
//! and handles the requests that its replica does not have. Tasks only notice that an answer takes a second longer.
//! Then it is a launcher like any other (`supervise.rs`).
//!
//! Output that tasks had written and that was not shown yet may be lost. Standard input ends.

use std::time::Duration;

use regatta_job::failover::{FailoverPlan, Handover, LocalRecord};

use crate::plan::{Across, Form, OnFailure, Plan};
use crate::tasks::Tasks;

pub(crate) mod claim;
pub(crate) mod following;
pub(crate) mod lead;
pub(crate) mod rally;

/// The name of a process that has become the launcher of a job.
pub(crate) const LEADER: &std::ffi::CStr = c"regatta-leader";
/// The path of this program, wherever it is.
pub(crate) const OWN: &str = "/proc/self/exe";

/// Returns the settings for the next launcher, if the job can outlive its launcher's host.
pub(crate) fn failover_plan(plan: &Plan, across: &Across) -> Option<FailoverPlan> {
    // Only a machine can report that a host is lost.
    let (machine, job) = across.machine()?;
    Some(FailoverPlan {
        job: job.to_owned(),
        machine: machine.to_owned(),
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

/// Returns the form in which the next launcher writes output.
pub(crate) fn form(plan: &FailoverPlan) -> Form {
    match plan.form {
        1 => Form::Labelled,
        2 => Form::Json,
        3 => Form::Journal,
        _ => Form::Inherit,
    }
}

/// Returns the facts of this host for the next launcher. What the last launcher had prepared is dropped.
pub(crate) fn handover(tasks: &mut Tasks, local: &LocalRecord) -> Handover {
    tasks.forget_all_prepared();
    tasks.caught.all_taken();
    Handover {
        tasks: tasks.job().tasks(),
        unstarted: tasks.unstarted(),
        running: tasks.processes(),
        open_streams: tasks.caught.open_streams(),
        silent: tasks.silent(),
        ..local.handover()
    }
}

fn milliseconds(time: Duration) -> u32 {
    time.as_millis().try_into().unwrap_or(u32::MAX)
}
