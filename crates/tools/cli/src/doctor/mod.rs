//! `regatta doctor`: what this host has, what is missing and how to get it, and which path messages would take.
//!
//! Each area of the report is a file in this folder that returns [`Finding`]s. Whatever can be tried is tried, not
//! looked up.

mod algorithms;
mod cores;
mod finding;
mod hosts;
mod kernel;
mod layout;
mod memory;
mod paths;
mod peers;
mod single_copy;
mod surroundings;
mod tools;

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::{machine, say};
use finding::Finding;
use layout::Look;

/// Show what this host provides, what is missing and how to get it, and the paths of messages.
#[derive(Args)]
pub struct Arguments {
    /// Write the report as one JSON object
    #[arg(long)]
    json: bool,

    /// Show the algorithms of collectives instead, by kind, members and bytes
    #[arg(long, conflicts_with_all = ["json", "host"])]
    algorithms: bool,

    #[command(flatten)]
    hosts: crate::hosts::Hosts,

    /// The role of one of two processes in a probe
    #[arg(long = "single-copy-probe", hide = true)]
    probe: Option<String>,
}

/// Examines this host. The exit code is 1 if Regatta cannot work on it.
pub fn run(arguments: &Arguments) -> ExitCode {
    if let Some(part) = &arguments.probe {
        return single_copy::play(part);
    }
    if arguments.algorithms {
        return machine::finish(say::text(algorithms::table()));
    }
    let across = match arguments.hosts.across() {
        Ok(across) => across,
        Err(refusal) => {
            regatta_launch::warn(&refusal.sentence);
            return ExitCode::from(refusal.status);
        }
    };
    let mut findings = examine();
    findings.extend(across.iter().flat_map(hosts::findings));
    let shown = if arguments.json {
        let report = json!({
            "schema": "regatta-doctor/1",
            "version": env!("CARGO_PKG_VERSION"),
            "host": host(),
            "works": !findings.iter().any(Finding::stops_us),
            "findings": findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        });
        say::text(format_args!("{report:#}\n"))
    } else {
        let title = format!("regatta {} on {}", env!("CARGO_PKG_VERSION"), host());
        say::styled(&layout::report(&title, &findings, Look::of_stdout()))
    };
    if shown.is_err() {
        return machine::finish(shown);
    }
    ExitCode::from(u8::from(findings.iter().any(Finding::stops_us)))
}

fn examine() -> Vec<Finding> {
    let single_copy = single_copy::finding();
    [
        kernel::findings(&single_copy),
        cores::findings(),
        memory::findings(),
        paths::findings(&single_copy),
        surroundings::findings(),
        tools::findings(),
        peers::findings(),
    ]
    .concat()
}

fn host() -> String {
    let name = rustix::system::uname();
    let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    format!(
        "{}: {} {} {}",
        part(name.nodename()),
        part(name.sysname()),
        part(name.release()),
        part(name.machine())
    )
}

/// Returns the text of a small file, without the newline.
fn file(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

/// Returns a number of bytes in readable form.
fn bytes(number: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = number as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 10.0 && unit > 0 && value.fract() > 0.05 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn bytes_for_eyes() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(64 << 20), "64 MiB");
        assert_eq!(bytes(1536 << 20), "1.5 GiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
    }
}
