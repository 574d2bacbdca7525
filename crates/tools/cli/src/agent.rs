//! `regatta agent`: the program that `regatta run --host` starts on other hosts.

use std::process::ExitCode;

use clap::Args;

use crate::{machine, say};

/// The part of a launcher on another host; started by `regatta run --host`, or by the program that starts hosts for a
/// job.
#[derive(Args)]
pub struct Arguments {
    /// Only print the identity of this program
    #[arg(long)]
    identity: bool,

    /// Print the address at which it can be called, and go on in the background, if it is the program that is meant
    #[arg(long, value_name = "IDENTITY", conflicts_with = "temporary")]
    apart: Option<String>,

    /// This program is a copy made for one job: remove it
    #[arg(long)]
    temporary: bool,
}

/// Serves a launcher on standard input and output.
pub fn run(arguments: &Arguments) -> ExitCode {
    if arguments.identity {
        return machine::finish(say::line(regatta_launch::identity()));
    }
    if arguments.apart.is_none() {
        regatta_launch::close_inherited();
    }
    let outcome = match &arguments.apart {
        Some(wanted) => regatta_hosting::called_agent::run(wanted),
        None => regatta_launch::agent::run(arguments.temporary, regatta_hosting::starter),
    };
    let status = outcome.unwrap_or_else(|refusal| {
        regatta_launch::warn(&refusal.sentence);
        refusal.status
    });
    ExitCode::from(status)
}
