//! The command `regatta`.

#![forbid(unsafe_code)]

mod agent;
mod askpass;
mod attend;
mod console;
mod daemon;
mod doctor;
mod generate;
mod guardian;
mod hosts;
mod listing;
mod machine;
mod mpiexec;
mod np;
mod profile;
mod reach;
mod resident;
mod run;
mod say;
mod tasks;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Message passing on one machine or many: run programs as tasks, race libraries, examine this host.
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
    Profile(profile::Arguments),
    Up(machine::Up),
    Add(machine::Add),
    Remove(machine::Remove),
    Hosts(listing::Arguments),
    Ps(tasks::List),
    Kill(tasks::Kill),
    Vouch(machine::Vouch),
    Down(machine::Down),
    Console(console::Arguments),
    Mpiexec(mpiexec::Arguments),
    Doctor(doctor::Arguments),
    Race(regatta_race::cli::Race),
    #[command(hide = true)]
    Agent(agent::Arguments),
    #[command(hide = true)]
    Attend(attend::Arguments),
    #[command(hide = true)]
    Daemon(daemon::Arguments),
    #[command(hide = true)]
    Generate(generate::Arguments),
    #[command(hide = true)]
    Guardian(guardian::Arguments),
    #[command(hide = true)]
    Pvmd(console::Daemon),
    #[command(hide = true)]
    Reach(reach::Arguments),
    #[command(hide = true)]
    Resident(resident::Arguments),
}

fn main() -> ExitCode {
    regatta_launch::inherited::normalize();
    if let Some(status) = askpass::if_asked() {
        return status;
    }
    if let Some(status) = console::under_another_name() {
        return status;
    }
    if let Some(status) = mpiexec::under_another_name() {
        return status;
    }
    let cli = match Cli::try_parse_from(np::as_ours(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return say::usage(&error),
    };
    match cli.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Up(arguments) => machine::finish(machine::up(&arguments)),
        Command::Add(arguments) => machine::finish(machine::add(&arguments)),
        Command::Remove(arguments) => machine::finish(machine::remove(&arguments)),
        Command::Vouch(arguments) => machine::finish(machine::vouch(&arguments)),
        Command::Down(arguments) => machine::finish(machine::down(&arguments)),
        Command::Hosts(arguments) => machine::finish(listing::hosts(&arguments)),
        Command::Ps(arguments) => machine::finish(tasks::list(&arguments)),
        Command::Kill(arguments) => machine::finish(tasks::kill(&arguments)),
        Command::Console(arguments) => console::run(&arguments),
        Command::Mpiexec(arguments) => mpiexec::run(arguments),
        Command::Pvmd(arguments) => console::daemon(&arguments),
        Command::Daemon(arguments) => daemon::run(&arguments),
        Command::Reach(arguments) => reach::run(&arguments),
        Command::Resident(arguments) => resident::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Agent(arguments) => agent::run(&arguments),
        Command::Attend(arguments) => attend::run(&arguments),
        Command::Generate(arguments) => machine::finish(generate::run(&arguments)),
        Command::Guardian(arguments) => guardian::run(&arguments),
        Command::Race(race) => race.run().unwrap_or_else(|error| {
            if regatta_race::say::is_unread(&error) {
                return ExitCode::from(say::BROKEN_PIPE);
            }
            regatta_launch::warn(&format!("race: {error:#}"));
            ExitCode::FAILURE
        }),
    }
}
