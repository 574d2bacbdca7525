//! `regatta reach`: a shell on a host of the virtual machine, as ssh would be; what `regatta run` uses there.

use std::process::ExitCode;

use clap::Args;
use regatta_daemon::{DEFAULT, Place, Tenure, commands};

use crate::machine;

/// A shell on a host of the virtual machine, through the daemons; used by `regatta run`.
#[derive(Args)]
pub struct Arguments {
    /// The name of the virtual machine
    #[arg(long = "vm", value_name = "NAME", env = "REGATTA_VM", default_value = DEFAULT)]
    machine: String,

    /// The job it is for
    #[arg(long)]
    job: String,

    /// If this host is lost, what runs there may go on with another launcher
    #[arg(long)]
    lasting: bool,

    /// Take over what has lost its launcher with a host
    #[arg(long, conflicts_with = "lasting")]
    inherit: bool,

    /// The host
    host: String,

    /// The program to run there
    #[arg(value_parser = ["sh"])]
    program: String,
}

/// Carries standard input and output; the status is the shell's.
pub fn run(arguments: &Arguments) -> ExitCode {
    let _ = &arguments.program;
    let tenure = match (arguments.lasting, arguments.inherit) {
        (_, true) => Tenure::Inherited,
        (true, false) => Tenure::Lasting,
        (false, false) => Tenure::Passing,
    };
    let done = Place::of(&arguments.machine)
        .and_then(|place| commands::shell(&place, &arguments.host, &arguments.job, tenure));
    match done {
        Ok(status) => ExitCode::from(status),
        Err(refusal) => machine::finish(Err(refusal)),
    }
}
