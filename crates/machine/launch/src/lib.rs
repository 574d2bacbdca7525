//! Running a job of tasks, on this host or several: start them, stay with them, and leave nothing behind.
//!
//! [`run`] is `regatta run` without its command line. The guide of this folder (README.md) tells where what is.

#![deny(unsafe_code)]

pub mod agent;
mod arrivals;
mod bind;
pub mod bootstrap;
pub mod bootstrap_peer;
mod caught;
pub mod cgroup;
mod channel;
pub mod channel_keeper;
mod clock;
mod controls;
pub mod cores;
mod elf;
mod environment;
pub mod examine;
mod expand;
mod fleet;
mod foreign_mpi;
mod front_process;
mod gather;
mod guests;
#[cfg(test)]
mod hang_up;
pub mod host_starter;
pub mod hosts;
pub mod inherited;
mod input;
mod join_socket;
pub mod launcher_on_demand;
pub mod limits;
mod lines;
mod loaded;
mod membership_feed;
mod newcomers;
mod nonblocking_output;
mod output;
mod owner;
mod parallel;
pub mod place;
mod plan;
pub mod prepared;
mod profiled;
mod program;
pub mod python;
mod reach;
mod refusal;
mod remote;
pub mod resident;
mod rsh;
mod session;
mod signals;
pub mod slurm;
mod standard_input;
mod streams;
mod succession;
mod summary;
pub mod supervise;
mod sys;
mod tasks;
mod time_asleep;
pub mod tree;
mod unjoined;
mod worker;

use std::io::Write;

pub use front_process::{run, run_then};
pub use gather::CONNECTION;
pub use parallel::in_parallel;
pub use plan::{Across, Bind, Form, Growth, OnFailure, Plan};
pub use profiled::{FOLDER as PROFILE, RECORDER};
pub use reach::Choice;
pub use refusal::{Refusal, STATUS_NOT_EXECUTABLE, STATUS_NOT_FOUND, STATUS_REFUSED, STATUS_USAGE};
pub use regatta_job::words;
pub use regatta_job::{End, Failure};
pub use regatta_segment::job::MAX_TASKS;
pub use rsh::{ASK_AT, OWN_PROGRAM, command as host_shell, identity, reach_command};
pub use session::{SESSION, hand, no_daemon};
pub use sys::{io_uring_allowed, packet_socket_allowed, user_namespace_allowed};

/// Tells the user of a refusal, in the form that the plan asks for.
pub fn report_refusal(form: Form, refusal: &Refusal) {
    if form == Form::Json {
        let event = serde_json::json!({"event": "job", "schema": "regatta-run/1", "status": refusal.status, "error": refusal.sentence});
        // A reader that has gone still sees the status.
        let _ = writeln!(std::io::stdout(), "{event}");
    } else {
        warn(&refusal.sentence);
    }
}

/// A sentence on standard error, in the command's name. A reader who is not there misses it, and nothing else comes of that.
pub fn warn(sentence: &str) {
    let sentence = words::printable(sentence);
    let _ = writeln!(std::io::stderr(), "regatta: {sentence}");
}

/// Closes whatever this process was started with beside its standard streams, for one that goes on after the command that started
/// it has returned: whoever waits for the end of a pipe, or for a lock, waits for all who have it. To be called before this
/// program has opened anything.
pub fn close_inherited() {
    sys::close_inherited(&[]);
}
