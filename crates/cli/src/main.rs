//! The command `regatta`.

#![forbid(unsafe_code)]

mod agent;
mod attend;
mod doctor;
mod hosts;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Message passing on one machine or many: run programs as tasks, race libraries, see what is here.
#[derive(Parser)]
#[command(
    name = "regatta",
    version,
    arg_required_else_help = true,
    infer_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Doctor(doctor::Arguments),
    Race(regatta_race::cli::Race),
    #[command(hide = true)]
    Agent(agent::Arguments),
    #[command(hide = true)]
    Attend(attend::Arguments),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Agent(arguments) => agent::run(&arguments),
        Command::Attend(arguments) => attend::run(&arguments),
        Command::Race(race) => race.run().unwrap_or_else(|error| {
            eprintln!("regatta race: {error:#}");
            ExitCode::FAILURE
        }),
    }
}
