//! `regatta agent`: what `regatta run --host` starts on other hosts.

use std::process::ExitCode;

use clap::Args;

/// The part of a launcher on another host; started by `regatta run --host`.
#[derive(Args)]
pub struct Arguments {
    /// Say only what this program is
    #[arg(long)]
    identity: bool,

    /// This program is a copy made for one job: remove it
    #[arg(long)]
    temporary: bool,
}

/// Serves a launcher on standard input and output.
pub fn run(arguments: &Arguments) -> ExitCode {
    if arguments.identity {
        println!("{}", regatta_launch::identity());
        return ExitCode::SUCCESS;
    }
    let status = regatta_launch::agent::run(arguments.temporary).unwrap_or_else(|refusal| {
        eprintln!("regatta: {refusal}");
        refusal.status
    });
    ExitCode::from(status)
}
