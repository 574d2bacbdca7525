//! Progress on stderr: a bar in a terminal, a line per group of launches elsewhere.

use std::collections::BTreeSet;
use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressStyle};

use crate::say;

/// Shows the progress of the race.
pub struct Progress {
    bar: Option<ProgressBar>,
    groups_seen: BTreeSet<usize>,
    quiet: bool,
}

impl Progress {
    /// Creates a display for this many launches.
    pub fn new(launches: usize, quiet: bool) -> Progress {
        let bar = (!quiet && stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template(
                "{bar:30} {pos}/{len} launches, {elapsed} elapsed, {eta} left  {msg}",
            );
            let bar = ProgressBar::new(launches as u64);
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Progress {
            bar,
            groups_seen: BTreeSet::new(),
            quiet,
        }
    }

    /// Prints a sentence between launches.
    pub fn print(&self, sentence: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say::aside(sentence)),
            None if self.quiet => {}
            None => say::aside(sentence),
        }
    }

    /// Shows that a launch begins.
    pub fn begin(&self, name: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(name.to_owned());
        }
    }

    /// Shows that a launch has ended.
    pub fn end(&mut self, group: usize, name: &str, launches: u32, seconds: f64) {
        match &self.bar {
            Some(bar) => bar.inc(1),
            None if self.quiet => {}
            None if self.groups_seen.insert(group) => {
                say::aside(format_args!(
                    "{name}: first of {launches} launches took {seconds:.2} s"
                ));
            }
            None => {}
        }
    }

    /// Adds this many launches to those planned.
    pub fn more(&self, launches: usize) {
        if let Some(bar) = &self.bar {
            bar.inc_length(launches as u64);
        }
    }

    /// Removes the bar at the end of the race.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
