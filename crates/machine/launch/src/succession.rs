//! How a job in a virtual machine outlives the host of its launcher, as far as processes and channels are concerned.
//!
//! `regatta_job::failover` decides who leads next, and with what state; its module says why that works. Here is how the next launcher
//! (an agent itself) reaches the agents of the others:
//!
//! ```text
//! agents                              next launcher
//! the daemons say that the launcher's host is lost;
//! each says on its channel that its owner is lost, and which hosts may take it over; it takes nothing but the word LEAD from it,
//! and reports nothing
//!                                   claims the channels that the old launcher had, through the daemons
//! OWNER_LOST, by the daemon         >
//!                                   < GAVE_UP    if some agent has not named it there; the agents and their daemons go on waiting
//!                                   < LEAD       when every channel has been claimed, or its host is lost
//! READY, as at the beginning        >
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

use regatta_job::failover::FailoverPlan;

use crate::plan::{Across, Form, OnFailure, Plan};

pub(crate) mod claim;
pub(crate) mod following;
pub(crate) mod lead;
pub(crate) mod rally;

/// The first word of what an agent says on its channel while its owner is lost; the runs of the hosts that may take it over follow. The
/// daemon that holds the other end passes the latest line of this kind on to a launcher that claims the channel.
pub(crate) const OWNER_LOST: &str = "regatta-owner-lost";
/// The first word of the next launcher on it; its identity follows, and the run of its host.
pub(crate) const LEAD: &str = "regatta-lead";
/// The first word of a host on it that may not lead after all; the run of that host follows.
pub const GAVE_UP: &str = "regatta-gave-up";
/// The name of a process that has become the launcher of a job.
pub(crate) const LEADER: &std::ffi::CStr = c"regatta-leader";
/// The sentence that the command of a channel says when the daemon of the launcher's host has ended, after `regatta: `.
pub const DAEMON_ENDED: &str =
    "the daemon of this host has ended, and with it the channels to all others";
/// How the reason ends why a channel has ended, when this host was declared dead and goes on as another one.
pub const GOES_ON_AS_ANOTHER: &str = ", and this host goes on as another one";
/// Why a host of the job is lost of which the daemons say nothing any more.
pub(crate) const NO_MORE: &str = "it is not one of the machine any more";
/// This program, wherever it runs.
pub(crate) const OWN: &str = "/proc/self/exe";

/// The settings that the next launcher needs of this one's plan, if the job can outlive its launcher's host.
pub(crate) fn failover_plan(plan: &Plan, across: &Across) -> Option<FailoverPlan> {
    let (growth, reach) = (across.growth.as_ref()?, across.rsh.as_ref()?);
    // Only a machine can say that a host is lost.
    if growth.command.is_empty() {
        return None;
    }
    let behind = |words: &[String]| words.get(1..).unwrap_or_default().to_vec();
    Some(FailoverPlan {
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

/// How the next launcher writes output.
pub(crate) fn form(plan: &FailoverPlan) -> Form {
    match plan.form {
        1 => Form::Labelled,
        2 => Form::Json,
        3 => Form::Journal,
        _ => Form::Inherit,
    }
}

/// The line of an agent whose owner is lost. These runs may take it over.
pub(crate) fn owner_lost<'a>(successors: impl Iterator<Item = &'a str>) -> String {
    let runs: String = successors.map(|run| format!(" {run}")).collect();
    format!("\n{OWNER_LOST}{runs}\n")
}

/// The last whole line in these bytes in which an agent says that its owner is lost, with the ends of the lines before and after it.
pub fn owner_lost_line(said: &[u8]) -> Option<&[u8]> {
    let begin = format!("\n{OWNER_LOST}");
    let starts = said.windows(begin.len()).enumerate();
    let starts = starts.filter(|(_, part)| *part == begin.as_bytes());
    let whole = |(start, _): (usize, &[u8])| {
        let length = said[start + 1..].iter().position(|byte| *byte == b'\n')?;
        Some(&said[start..start + length + 2])
    };
    starts.filter_map(whole).next_back()
}

/// Whether these first bytes for an agent whose channel is claimed are, as far as they go, the word that the host will not lead.
pub fn gives_up(first: &[u8]) -> bool {
    let word = format!("\n{GAVE_UP} ");
    first
        .iter()
        .zip(word.as_bytes())
        .all(|(byte, of)| byte == of)
}

/// Whether this run of a host may take over an agent that has said this line.
pub(crate) fn is_named(line: &str, run: &str) -> bool {
    line.split_whitespace().skip(1).any(|named| named == run)
}

fn milliseconds(time: Duration) -> u32 {
    time.as_millis().try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_says_who_may_take_over() {
        let first = owner_lost(["r1", "r2"].into_iter());
        let second = owner_lost(["r2"].into_iter());
        let said = format!("noise{first}more{second}\n{OWNER_LOST} r7");
        let line = owner_lost_line(said.as_bytes()).expect("a line");
        assert_eq!(line, second.as_bytes());
        assert_eq!(owner_lost_line(&said.as_bytes()[..10]), None);
        assert!(is_named(first.trim(), "r1") && !is_named(second.trim(), "r1"));
        assert!(!is_named(second.trim(), OWNER_LOST) && !is_named("", ""));
        let leads = format!("\n{LEAD} 7 r1\n");
        assert!(gives_up(b"\nregatta-gave-up r1\n") && gives_up(b"\nrega") && gives_up(b""));
        assert!(!gives_up(leads.as_bytes()));
    }
}
