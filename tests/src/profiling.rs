//! Profiles of jobs: runs `regatta profile` and reads the JSON that it writes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::job::{Ended, Job};
use crate::programs;

/// A job that was profiled, and its profile.
pub struct Profiled {
    /// The ended job.
    pub ended: Ended,
    /// The last line of the profile's JSON.
    pub profile: Value,
    folder: PathBuf,
}

/// A profile to record: the job and its files.
pub struct Profiling {
    job: Job,
    folder: PathBuf,
}

/// Prepares a profile of `tasks` tasks of a program. `words` are the program's arguments.
pub fn profile(tasks: u32, program: &Path, words: &[&str]) -> Profiling {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // The recorder must lie beside the command.
    programs::built("libregatta_recorder.so", "regatta-recorder");
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("profiled-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let report = folder.join("report.html").display().to_string();
    let job = Job::of(tasks, program, words)
        .subcommand("profile")
        .option("--json")
        .option("--report")
        .option(&report);
    Profiling { job, folder }
}

impl Profiling {
    /// Changes how the job is started.
    pub fn with(mut self, change: impl FnOnce(Job) -> Job) -> Profiling {
        self.job = change(self.job);
        self
    }

    /// Runs the job to its end and reads its profile.
    pub fn run(self) -> Profiled {
        let ended = self.job.run();
        let lines = ended.text.lines().rev();
        let mut values = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let profile = values.find(|value| value["event"] == "profile");
        Profiled {
            profile: profile.unwrap_or_else(|| panic!("no profile in\n{}", ended.story())),
            folder: self.folder,
            ended,
        }
    }
}

impl Profiled {
    /// Returns the text of the HTML report.
    pub fn page(&self) -> String {
        std::fs::read_to_string(self.folder.join("report.html")).expect("a page")
    }

    /// Returns the part of the profile about a task.
    #[track_caller]
    pub fn task(&self, number: u64) -> &Value {
        let mut tasks = self.profile["tasks"].as_array().expect("tasks").iter();
        let found = tasks.find(|task| task["task"] == number);
        found.unwrap_or_else(|| panic!("no task {number} in {}", self.profile))
    }

    /// Returns a number recorded for a call of a task, or 0 if the task has not made that call.
    pub fn of_call(&self, task: u64, call: &str, number: &str) -> f64 {
        let mut calls = self.task(task)["calls"].as_array().expect("calls").iter();
        let found = calls.find(|found| found["call"] == call);
        found.map_or(0.0, |found| found[number].as_f64().expect("a number"))
    }

    /// Returns the numbers of messages and bytes from one task to another.
    pub fn pair(&self, from: u64, to: u64) -> (u64, u64) {
        let mut pairs = self.profile["pairs"].as_array().expect("pairs").iter();
        let found = pairs.find(|pair| pair["from"] == from && pair["to"] == to);
        found.map_or((0, 0), |pair| {
            let number = |name: &str| pair[name].as_u64().expect("a number");
            (number("messages"), number("bytes"))
        })
    }

    /// Returns the profile's list of problems (missing data).
    pub fn problems(&self) -> String {
        self.profile["problems"].to_string()
    }
}

impl Drop for Profiled {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
