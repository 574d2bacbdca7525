//! How a job in a virtual machine outlives the host of its launcher, as far as processes and channels are concerned.
//!
//! `regatta_job::failover` decides who leads next, and with what state; its module says why that works. Here is how the next launcher
//! (an agent itself) reaches the agents of the others:
//!
//! ```text
//! agents                              next launcher
//! the daemons say that the launcher's host is lost;
//! each tells its daemon so, and which hosts may take it over; it reports nothing
//!                                   claims the channels that the old launcher had, through the daemons, which say whom each agent names
//!                                   < gives up   if some agent has not named it there; the agents and their daemons go on waiting
//!                                   < leads      when every channel has been claimed, or its host is lost
//! each gets a new channel of its daemon, on which nothing of the old launcher is left
//!                                   < Lead       so many tasks are in my table, so many changes in my replica of the registry
//! a later snapshot, if it has one   >
//! State, and unanswered requests    >
//! ```
//!
//! The next launcher compares: it enters worlds into the tables that lack them, tells all of them which tasks are gone, handles the ends
//! that it had not heard of, sends each task the messages that it has not received, and handles the requests that its replica does not know.
//! Tasks notice that an answer takes a second longer. Then it is a launcher like any other (`supervise.rs`).
//!
//! Output that tasks had written and nobody had shown yet may be lost. Standard input ends.

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
/// This program, wherever it runs.
pub(crate) const OWN: &str = "/proc/self/exe";

/// The settings that the next launcher needs of this one's plan, if the job can outlive its launcher's host.
pub(crate) fn failover_plan(plan: &Plan, across: &Across) -> Option<FailoverPlan> {
    // Only a machine can say that a host is lost.
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

/// How the next launcher writes output.
pub(crate) fn form(plan: &FailoverPlan) -> Form {
    match plan.form {
        1 => Form::Labelled,
        2 => Form::Json,
        3 => Form::Journal,
        _ => Form::Inherit,
    }
}

/// Facts of this host for the next launcher. Nothing is left of what the last one had prepared.
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
