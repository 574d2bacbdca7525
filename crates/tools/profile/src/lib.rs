//! Profiles of the tasks of a job: collects, sums up and shows their records.
//!
//! The tasks write the records (`crates/interfaces/recorder`). [`Session`] is the job's part, [`Profile`] has the
//! numbers, and the other modules show them: as tables, as JSON, as a page.

#![forbid(unsafe_code)]

mod collect;
mod folder;
mod functions;
mod json;
mod messages;
mod page;
mod profile;
mod symbols;
mod table;
mod units;
mod unrecorded;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regatta_launch::Across;
use regatta_record::MAX_EVENTS;

use folder::Folder;
use profile::{Began, Profile};

/// The user's settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file for the page.
    pub report: PathBuf,
    /// The directory in which the records are kept, or `None` to discard them.
    pub records: Option<PathBuf>,
    /// Maximum number of events kept for each task. The newest are kept.
    pub events: u32,
    /// Samples per second of processor time, or 0 for none.
    pub rate: u32,
}

/// A job that is profiled.
pub struct Session {
    options: Options,
    folder: Folder,
    /// The time at which it began, from [`now`].
    began: Duration,
}

/// Returns the time of this host since boot, including suspended time.
fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Time added to the duration of a job, since the clocks of other hosts run a little faster or slower.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// The result of a profile, to be shown.
pub struct Shown {
    /// Tables for a terminal.
    pub text: String,
    /// All numbers as JSON.
    pub json: serde_json::Value,
}

impl Session {
    /// Creates a folder for the records. Other hosts create theirs with the same name.
    pub fn begin(options: Options, several_hosts: bool) -> Result<Session, String> {
        let place = match several_hosts {
            true => PathBuf::from("/tmp"),
            false => std::env::temp_dir(),
        };
        let folder = Folder::make(&place)?;
        Ok(Session {
            options,
            folder,
            began: now(),
        })
    }

    /// Returns the variable that makes the tasks record.
    pub fn variable(&self) -> (OsString, OsString) {
        let events = (self.options.events as usize).clamp(1, MAX_EVENTS);
        let events = events.next_power_of_two();
        let second = Duration::from_secs(1).as_nanos() as u64;
        let period = second.checked_div(self.options.rate.into()).unwrap_or(0);
        let mut value = OsString::from(format!("{events}:{period}:"));
        value.push(self.folder.path());
        (regatta_launch::PROFILE.into(), value)
    }

    /// Collects the records after the job is over, writes the page, and returns the tables and numbers. `tasks` is the
    /// number of tasks that the job began with.
    pub fn finish(self, across: Option<&Across>, tasks: Option<u32>, status: u8) -> Shown {
        let mut problems = Vec::new();
        let mut records = self.folder.records(&mut problems);
        if let Some(across) = across {
            collect::from_hosts(across, self.folder.path(), &mut records, &mut problems);
        }
        if let Some(kept) = &self.options.records
            && let Err(problem) = folder::keep(&records, kept)
        {
            problems.push(problem);
        }
        let began = Began {
            tasks,
            status,
            folder: self.folder.path().to_owned(),
            longest: (now().saturating_sub(self.began) + CLOCK_SLACK).as_nanos() as u64,
        };
        let profile = Profile::of(records, &began, problems);
        self.show(profile)
    }

    fn show(&self, mut profile: Profile) -> Shown {
        let functions = functions::of(&profile);
        let messages = messages::of(&profile);
        let page = page::page(&profile, &functions, &messages);
        let report = match profile.tasks.is_empty() && functions.rows.is_empty() {
            true => None,
            false => write(&self.options.report, &page, &mut profile.problems),
        };
        Shown {
            text: table::text(&profile, &functions, &messages, report),
            json: json::value(&profile, &functions, &messages, report),
        }
    }
}

/// Writes the page. Returns its path if it could be written.
fn write<'a>(path: &'a Path, page: &str, problems: &mut Vec<String>) -> Option<&'a Path> {
    match std::fs::write(path, page) {
        Ok(()) => Some(path),
        Err(error) => {
            let path = path.display();
            problems.push(format!("the page {path} could not be written: {error}"));
            None
        }
    }
}
