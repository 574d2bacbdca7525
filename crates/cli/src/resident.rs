//! `regatta resident`: a job that stays, entered by programs that were started by hand.

use std::process::ExitCode;

use clap::Args;
use regatta_daemon::Place;
use regatta_launch::Refusal;
use regatta_launch::resident::{self, Stays};

/// Begin a job that stays, unless it is there; started by the first program that wants to enter it.
#[derive(Args)]
pub struct Arguments {
    /// The job's name
    name: String,
    /// End when standard input is closed, and write to standard error; fails if the job is there already
    #[arg(long)]
    leash: bool,
}

/// Returns when the job can be entered.
pub fn run(arguments: &Arguments) -> ExitCode {
    let status = begin(&arguments.name, arguments.leash).unwrap_or_else(|refusal| {
        eprintln!("regatta: {refusal}");
        refusal.status
    });
    ExitCode::from(status)
}

fn begin(name: &str, leash: bool) -> Result<u8, Refusal> {
    let place = Place::of_job(name)?;
    let claimed = match place.claim() {
        Ok(claimed) => claimed,
        // Somebody was faster.
        Err(_) if !leash && place.connect()?.is_some() => return Ok(0),
        Err(refusal) => return Err(refusal),
    };
    let door = claimed.listener.try_clone().map_err(|error| {
        Refusal::of_regatta(format!("the job {name} cannot have a door: {error}"))
    })?;
    let log = place.log();
    let stays = match leash {
        true => Stays::OnLeash,
        false => Stays::UntilTold(&log),
    };
    resident::run(door, &stays, claimed)
}
