//! `regatta hosts`: the hosts of the virtual machine, as this host sees them.

use std::fmt::Write;

use clap::Args;
use regatta_daemon::{Host, Report, Unreached, commands};
use regatta_launch::Refusal;
use serde_json::json;

use crate::machine::Which;
use crate::say;

/// List the hosts of the virtual machine and those that do not answer, and whether this host accepts work.
#[derive(Args)]
pub struct Arguments {
    /// Keep running, and report changes as they happen
    #[arg(short, long)]
    watch: bool,

    #[command(flatten)]
    which: Which,
}

/// Runs `regatta hosts`.
pub fn hosts(arguments: &Arguments) -> Result<(), Refusal> {
    let place = arguments.which.place()?;
    if !arguments.watch {
        let report = commands::hosts(&place)?;
        match arguments.which.json {
            true => say::line(json!(report))?,
            false => say::text(table(&report))?,
        }
        return Ok(());
    }
    let mut next = None;
    let mut said = Ok(());
    commands::watch(&place, |report| {
        let mut text = String::new();
        match (arguments.which.json, next) {
            (true, _) => _ = writeln!(text, "{}", json!(report)),
            (false, None) => text = table(&report),
            (false, Some(next)) => {
                let fresh = report.events.iter().filter(|event| event.number >= next);
                fresh.for_each(|event| _ = writeln!(text, "{}", event.what));
            }
        }
        next = Some(report.events.last().map_or(0, |event| event.number + 1));
        said = say::text(text);
        said.is_ok()
    })?;
    said
}

/// Returns the report as a table.
fn table(report: &Report) -> String {
    let mut text = format!(
        "virtual machine {}, as {} sees it: ",
        report.machine, report.here
    );
    match &report.reason {
        Some(reason) => _ = writeln!(text, "{reason}"),
        None => _ = writeln!(text, "{} of {} hosts answer", report.seen, report.known),
    }
    let rows: Vec<[String; 4]> = report.hosts.iter().map(row).collect();
    let width = |column: usize, title: &str| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(title.len())
    };
    let titles = ["HOST", "ADDRESS", "TASKS", "STATE"].map(str::to_owned);
    let widths = [width(0, "HOST"), width(1, "ADDRESS"), width(2, "TASKS")];
    for [name, address, cores, state] in std::iter::once(&titles).chain(&rows) {
        let [a, b, c] = widths;
        let _ = writeln!(text, "{name:<a$}  {address:<b$}  {cores:<c$}  {state}");
    }
    for unreached in &report.unreached {
        let _ = writeln!(text, "{}", cut(unreached));
    }
    text
}

fn row(host: &Host) -> [String; 4] {
    let since = ago(host.since_ms);
    let cause = host.cause.as_deref().unwrap_or_default();
    let state = match host.state.as_str() {
        "here" => "this host".to_owned(),
        "up" => "up".to_owned(),
        "suspected" => format!("suspected for {since}: {cause}"),
        "left" => format!("left {since} ago"),
        state => format!("{state} for {since}: {cause}"),
    };
    let cores = host
        .cores
        .map_or_else(|| "-".to_owned(), |cores| cores.to_string());
    // A new host is known only by its address until it has reported its name.
    let name = match host.name.is_empty() {
        false => host.name.clone(),
        true => "(not known yet)".to_owned(),
    };
    [name, host.address.to_string(), cores, state]
}

/// Returns a sentence about tasks that cannot reach each other.
fn cut(unreached: &Unreached) -> String {
    let Unreached {
        job, host, peer, ..
    } = unreached;
    let (task, other) = (unreached.task, unreached.peer_task);
    let since = ago(unreached.since_ms);
    let what = match unreached.given_up {
        false => "cannot reach each other",
        true => "could not reach each other for too long, and treat each other as dead",
    };
    format!("job {job}: task {task} on {host} and task {other} on {peer} {what} (since {since})")
}

/// Returns an elapsed time in one unit.
fn ago(milliseconds: u64) -> String {
    match milliseconds {
        0..10_000 => format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
        10_000..120_000 => format!("{} s", milliseconds / 1000),
        120_000..7_200_000 => format!("{} min", milliseconds / 60_000),
        _ => format!("{} h", milliseconds / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (milliseconds, text) in [
            (0, "0.0 s"),
            (1_950, "1.9 s"),
            (59_000, "59 s"),
            (150_000, "2 min"),
            (9_000_000, "2 h"),
        ] {
            assert_eq!(ago(milliseconds), text);
        }
    }
}
