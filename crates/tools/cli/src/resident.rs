//! `regatta resident`: a resident job, which programs join that were started by hand.
//!
//! In a virtual machine the job has all its hosts, and programs may be started on all of them at the same time. So that
//! they start one job and not several, the first available host of the machine starts it for all. The others ask that
//! host, through the daemons.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use regatta_daemon::MachinePlace;
use regatta_launch::resident::{self, Beginning, Stays};
use regatta_launch::{OWN_PROGRAM, Refusal};

use crate::hosts::{self, Site};
use crate::say;

/// Start a resident job, unless it exists; the first program that wants to join it runs this.
#[derive(Args)]
pub struct Arguments {
    /// The job's name
    name: String,
    /// End when standard input is closed, and write to standard error; fails if the job already exists
    #[arg(long)]
    leash: bool,
    /// Start it for a program on another host, whose environment is read from standard input
    #[arg(long, conflicts_with = "leash")]
    asked: bool,
}

/// The line that tells a caller on another host to send its environment.
const READY: &str = "regatta-ready";

/// Starts the job, and returns when processes can join it.
pub fn run(arguments: &Arguments) -> ExitCode {
    let status = begin(arguments).unwrap_or_else(|refusal| {
        regatta_launch::warn(&refusal.sentence);
        refusal.status
    });
    ExitCode::from(status)
}

fn begin(arguments: &Arguments) -> Result<u8, Refusal> {
    // The job goes on after this command has returned.
    regatta_launch::close_inherited();
    let (name, leash) = (&arguments.name, arguments.leash);
    let place = MachinePlace::of_job(name)?;
    if !leash && let Some(stream) = place.connect()? {
        if arguments.asked {
            resident::await_ready(stream)?;
        }
        return Ok(0);
    }
    let site = match leash {
        true => None,
        false => hosts::site()?,
    };
    if !arguments.asked
        && let Some(site) = &site
        && ask_others(site, name)
    {
        return Ok(0);
    }
    let environment = match arguments.asked {
        true => Some(read_environment()?),
        false => None,
    };
    let claimed = match place.claim() {
        Ok(claimed) => claimed,
        Err(refusal) => {
            let stream = place.connect()?.filter(|_| !leash);
            // Another process was faster.
            return stream
                .ok_or(refusal)
                .and_then(resident::await_ready)
                .map(|()| 0);
        }
    };
    let log = place.log();
    resident::run(Beginning {
        name,
        socket: claimed,
        stays: match leash {
            true => Stays::OnLeash,
            false => Stays::UntilTold(&log),
        },
        machine: site.map(|site| site.machine),
        shell: regatta_hosting::shell(),
        starter: regatta_hosting::starter,
        environment,
    })
}

/// Asks the hosts that come before this one to start the job. Returns false if none of them can.
fn ask_others(site: &Site, name: &str) -> bool {
    // A host that cannot is not asked again: the next one starts the job.
    site.before
        .iter()
        .any(|host| ask(site, host, name).is_some())
}

fn ask(site: &Site, host: &str, name: &str) -> Option<()> {
    let mut command = Command::new(regatta_trust::own_command());
    command.args(["reach", "--vm", &site.name, "--job", &site.job, host, "sh"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut reach = command.stderr(Stdio::null()).spawn().ok()?;
    let (mut to, from) = (reach.stdin.take()?, reach.stdout.take()?);
    let machine = &site.name;
    let script = format!(
        "{{ REGATTA_VM='{machine}'; export REGATTA_VM; exec \"${OWN_PROGRAM}\" resident --asked '{name}'; }}\n"
    );
    let _ = to.write_all(script.as_bytes());
    let mut lines = BufReader::new(from).lines().map_while(Result::ok);
    if lines.any(|line| line == READY) {
        // Variables that are not UTF-8 are not passed on.
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: Vec<(String, String)> = std::env::vars_os().filter_map(text).collect();
        let _ = serde_json::to_writer(&mut to, &variables);
    }
    drop(to);
    reach.wait().ok()?.success().then_some(())
}

/// Reads the environment at the other end of [`ask`].
fn read_environment() -> Result<Vec<(OsString, OsString)>, Refusal> {
    say::line(format_args!("\n{READY}"))?;
    let mut said = Vec::new();
    let heard = std::io::stdin().read_to_end(&mut said);
    let strange = || {
        Refusal::usage(
            "`regatta resident --asked` is called by `regatta resident` on another host, not by hand",
        )
    };
    heard.map_err(|_| strange())?;
    let variables: Vec<(String, String)> = serde_json::from_slice(&said).map_err(|_| strange())?;
    let sound = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
    let variables = variables.into_iter();
    let variables = variables.filter(|(name, value)| sound(name) && !value.contains('\0'));
    Ok(variables
        .map(|(name, value)| (name.into(), value.into()))
        .collect())
}
