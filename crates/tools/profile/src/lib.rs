//! Profiles of the tasks of a job: their records brought together, summed up and shown.
//!
//! The tasks write the records (`crates/interfaces/recorder`). [`Session`] has the job's part, [`Profile`] the numbers, and the other
//! modules show them: as tables, as JSON, as a page.

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

/// The user's wishes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the page goes.
    pub report: PathBuf,
    /// Where the records are kept; none: nowhere.
    pub records: Option<PathBuf>,
    /// Newest events of each task that are kept.
    pub events: u32,
    /// Samples in a second of processor time; 0: none.
    pub rate: u32,
}

/// A job that is profiled.
pub struct Session {
    options: Options,
    folder: Folder,
    /// When it began, of [`now`].
    began: Duration,
}

/// Time of this host, in which it may have slept.
fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Time added to the duration of a job: clocks of other hosts run a little faster or slower.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// A profile that was shown, or why there is none.
pub struct Shown {
    /// Tables for a terminal.
    pub text: String,
    /// All numbers as JSON.
    pub json: serde_json::Value,
}

impl Session {
    /// Makes a folder for the records. Hosts other than this one make theirs under the same name.
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

    /// The variable that has the tasks record.
    pub fn variable(&self) -> (OsString, OsString) {
        let events = (self.options.events as usize).clamp(1, MAX_EVENTS);
        let events = events.next_power_of_two();
        let second = Duration::from_secs(1).as_nanos() as u64;
        let period = second.checked_div(self.options.rate.into()).unwrap_or(0);
        let mut value = OsString::from(format!("{events}:{period}:"));
        value.push(self.folder.path());
        (regatta_launch::PROFILE.into(), value)
    }

    /// The job is over: brings the records together, writes the page, and has the numbers shown. `tasks` is how many began.
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

/// Writes the page; where it is, if it could be written.
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
