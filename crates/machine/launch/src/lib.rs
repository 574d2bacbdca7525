//! Running a job of tasks on one or several hosts: starts the tasks, supervises them, and leaves nothing behind.
//!
//! [`run`] is `regatta run` without its command line. README.md in this folder describes the files.

#![deny(unsafe_code)]

pub mod agent;
pub mod bootstrap;
mod channel;
mod front_process;
#[cfg(test)]
mod hang_up;
pub mod hosts;
mod plan;
pub mod resident;
mod streams;
mod succession;
mod summary;
pub mod supervise;
mod sys;
mod system;
mod tasks;

use std::io::Write;

pub use front_process::{run, run_then};
pub use hosts::gather::CONNECTION;

pub use bootstrap::peer as bootstrap_peer;
pub use channel::keeper as channel_keeper;
pub use channel::session::{SESSION, hand, no_daemon};
pub use hosts::rsh::{ASK_AT, OWN_PROGRAM, command as host_shell, identity, reach_command};
pub use hosts::{examine, host_starter, slurm};
pub use plan::{Across, Bind, Form, Growth, OnFailure, Plan};
pub use regatta_job::hosts::Choice;
pub use regatta_job::words;
pub use regatta_job::{End, Failure};
pub use regatta_program::{
    PROFILE, RECORDER, Refusal, STATUS_NOT_EXECUTABLE, STATUS_NOT_FOUND, STATUS_REFUSED,
    STATUS_USAGE, variables_for_python,
};
pub use regatta_segment::job::MAX_TASKS;
pub use resident::{launcher_on_demand, place};
pub use sys::{io_uring_allowed, packet_socket_allowed, user_namespace_allowed};
pub use system::parallel::in_parallel;
pub use system::{cgroup, inherited, limits, tree};
pub use tasks::{cores, prepared};

/// Reports a refusal to the user, in the form that the plan asks for.
pub fn report_refusal(form: Form, refusal: &Refusal) {
    if form == Form::Json {
        let event = serde_json::json!({"event": "job", "schema": "regatta-run/1", "status": refusal.status, "error": refusal.sentence});
        // If the reader has gone, the exit status still reports the failure.
        let _ = writeln!(std::io::stdout(), "{event}");
    } else {
        warn(&refusal.sentence);
    }
}

/// Prints a sentence on standard error, with the command's name. Write errors are ignored.
pub fn warn(sentence: &str) {
    let sentence = words::printable(sentence);
    let _ = writeln!(std::io::stderr(), "regatta: {sentence}");
}

/// Closes all inherited descriptors except the standard streams, for a process that goes on after the command that
/// started it has returned: a process that waits for the end of a pipe, or for a lock, waits for all that have it open.
/// To be called before this program has opened any file.
pub fn close_inherited() {
    sys::close_inherited(&[]);
}
