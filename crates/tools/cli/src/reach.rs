//! `regatta reach`: a shell on a host of the virtual machine, like that of ssh but through the daemons, as launchers
//! reach their agents.

use std::process::ExitCode;

use clap::Args;
use regatta_daemon::{DEFAULT, MachinePlace, commands};

use crate::machine;

/// A shell on a host of the virtual machine, through the daemons.
#[derive(Args)]
pub struct Arguments {
    /// The name of the virtual machine
    #[arg(long = "vm", value_name = "NAME", env = "REGATTA_VM", default_value = DEFAULT)]
    machine: String,

    /// The job it is for
    #[arg(long)]
    job: String,

    /// The host
    host: String,

    /// The program to run there
    #[arg(value_parser = ["sh"])]
    program: String,
}

/// Carries standard input and output. The exit status is the shell's.
pub fn run(arguments: &Arguments) -> ExitCode {
    let _ = &arguments.program;
    let done = MachinePlace::of(&arguments.machine)
        .and_then(|place| commands::shell(&place, &arguments.host, &arguments.job));
    match done {
        Ok(status) => ExitCode::from(status),
        Err(refusal) => machine::finish(Err(refusal)),
    }
}
