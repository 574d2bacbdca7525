//! `regatta attend`: the launcher of a task that was started by hand.

use std::process::ExitCode;

use clap::Args;

/// Attend a task that was started by hand; started by the task itself when it needs a launcher.
#[derive(Args)]
pub struct Arguments {
    /// The task's process
    pid: u32,
}

/// Starts the launcher, and returns when it runs.
pub fn run(arguments: &Arguments) -> ExitCode {
    let status = regatta_launch::launcher_on_demand::run(arguments.pid).unwrap_or_else(|refusal| {
        regatta_launch::warn(&refusal.sentence);
        refusal.status
    });
    ExitCode::from(status)
}
