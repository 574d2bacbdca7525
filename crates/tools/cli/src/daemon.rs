//! `regatta daemon`: the program that `regatta up` and `regatta add` start.

use std::process::ExitCode;

use clap::Args;

use crate::machine;

/// The daemon of a host in a virtual machine, or its starter; started by `regatta up` and `regatta add`.
#[derive(Args)]
pub struct Arguments {
    /// Be the daemon; without it, its starter at the far end of a shell
    #[arg(long)]
    serve: bool,

    /// This program is a copy made for one machine: remove it
    #[arg(long)]
    temporary: bool,
}

/// Runs the daemon or its starter on standard input.
pub fn run(arguments: &Arguments) -> ExitCode {
    // The daemon goes on after the command that has started it has returned.
    regatta_launch::close_inherited();
    machine::finish(match arguments.serve {
        true => regatta_daemon::live(),
        false => regatta_daemon::starter::run(arguments.temporary),
    })
}
