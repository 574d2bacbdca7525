//! The command `regatta race` alone, to work on the race itself: `cargo run --example race -- --quick`.

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    race: regatta_race::cli::Race,
}

fn main() -> ExitCode {
    Command::parse().race.run().unwrap_or_else(|error| {
        eprintln!("race: {error:#}");
        ExitCode::FAILURE
    })
}
