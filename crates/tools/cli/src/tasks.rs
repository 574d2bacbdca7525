//! `regatta ps` and `regatta kill`: the tasks of the virtual machine's jobs.

use std::fmt::Write;

use clap::Args;
use regatta_daemon::Leader;
use regatta_daemon::commands::{self, Running};
use regatta_launch::Refusal;
use rustix::process::Signal;
use serde_json::json;

use crate::machine::Which;
use crate::say;

/// List the jobs of the virtual machine and their tasks on all hosts.
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    which: Which,
}

/// Send a signal to a job of the virtual machine, or to one of its tasks.
#[derive(Args)]
#[command(after_help = "\
Examples:
  regatta kill alpha:1234           ends the job whose launcher is process 1234 on alpha
  regatta kill alpha:1234.3         ends its task 3, wherever it runs
  regatta kill -s USR1 alpha:1234   sends a signal to all its tasks")]
pub struct Kill {
    /// The signal, by its name or number
    #[arg(short, long, value_name = "SIGNAL", default_value = "TERM", value_parser = signal)]
    signal: i32,

    /// Jobs, or tasks as JOB.RANK, as `regatta ps` names them
    #[arg(value_name = "JOB|TASK", required = true)]
    targets: Vec<String>,

    #[command(flatten)]
    which: Which,
}

/// Runs `regatta ps`.
pub fn list(arguments: &List) -> Result<(), Refusal> {
    let Running {
        tasks,
        leaders,
        silent,
    } = commands::tasks(&arguments.which.place()?)?;
    if arguments.which.json {
        let all = json!({"tasks": tasks, "leaders": leaders, "silent": silent});
        return say::line(all);
    }
    let mut table = format!("{:<24} {:<16} {:>8}  PROGRAM\n", "TASK", "HOST", "PID");
    for task in tasks {
        let name = format!("{}.{}", task.job, task.rank);
        let _ = writeln!(
            table,
            "{name:<24} {:<16} {:>8}  {}",
            task.host, task.pid, task.program
        );
    }
    say::text(table)?;
    for Leader { job, host, output } in leaders {
        let output = output.map(|path| format!("; its output since then is in {path} there"));
        let output = output.unwrap_or_default();
        regatta_launch::warn(&format!(
            "the launcher of {job} is lost with its host, and {host} has taken over{output}"
        ));
    }
    for host in silent {
        regatta_launch::warn(&format!("the host {host} did not report what runs there"));
    }
    Ok(())
}

/// Runs `regatta kill`.
pub fn kill(arguments: &Kill) -> Result<(), Refusal> {
    let place = arguments.which.place()?;
    for target in &arguments.targets {
        commands::kill(&place, target, arguments.signal)?;
        let object = json!({"event": "signalled", "target": target, "signal": arguments.signal});
        if arguments.which.json {
            say::line(object)?;
        }
    }
    Ok(())
}

fn signal(text: &str) -> Result<i32, String> {
    const NAMES: [(&str, Signal); 12] = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("ABRT", Signal::ABORT),
        ("KILL", Signal::KILL),
        ("USR1", Signal::USR1),
        ("SEGV", Signal::SEGV),
        ("USR2", Signal::USR2),
        ("TERM", Signal::TERM),
        ("CONT", Signal::CONT),
        ("STOP", Signal::STOP),
        ("TSTP", Signal::TSTP),
    ];
    let upper = text.to_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let known = NAMES.iter().find(|(known, _)| *known == name);
    let number = text.parse().ok().and_then(Signal::from_named_raw);
    known
        .map(|(_, signal)| *signal)
        .or(number)
        .map(Signal::as_raw)
        .ok_or_else(|| format!("`{text}` is not a signal: write TERM, KILL, USR1 or a number"))
}
