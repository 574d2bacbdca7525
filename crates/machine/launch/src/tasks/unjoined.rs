//! Tasks that have loaded another PVM's library, and therefore never join this job.
//!
//! Such a task uses that PVM's daemon, if there is one, and the task that has started it waits for messages that never
//! come. Nothing ends, so nothing else reveals this. A spawned task that has not joined after a while is therefore
//! checked, with its descendants: the kernel lists the libraries that they have loaded. The result is a line on the
//! task's standard error, so it reaches the reader of the task's output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regatta_job::registry::Piece;
use regatta_program::stranger;
use regatta_segment::job::TaskState;
use regatta_wire::control::StreamState;
use rustix::process::Pid;

use crate::system::tree;
use crate::tasks::{Started, Tasks};

/// Time that a task has to join before it is first checked. The delay doubles with each further check.
const FIRST_CHECK_DELAY: Duration = Duration::from_secs(2);
/// Maximum number of tasks checked before the loop checks other events.
const MAX_BATCH: usize = 16;
/// Delay of the last check. A program that takes longer to load its libraries does not use PVM.
const MAX_CHECK_DELAY: Duration = Duration::from_secs(64);

/// The tasks that are still to be checked.
#[derive(Debug, Default)]
pub(crate) struct Unjoined {
    /// The pid and the delay of each check, by its time and the task.
    looks: BTreeMap<(Instant, u32), (Pid, Duration)>,
}

impl Unjoined {
    /// Adds a task that has been started.
    pub(crate) fn started(&mut self, rank: u32, pid: Pid, now: Instant) {
        self.looks
            .insert((now + FIRST_CHECK_DELAY, rank), (pid, FIRST_CHECK_DELAY));
    }

    /// Returns the time until the next check, or `None` if there is none.
    pub(crate) fn until_look(&self, now: Instant) -> Option<Duration> {
        let (&(at, _), _) = self.looks.first_key_value()?;
        Some(at.saturating_duration_since(now))
    }

    /// Removes and returns a task that is due for a check.
    fn due(&mut self, now: Instant) -> Option<(u32, Pid, Duration)> {
        let first = self.looks.first_entry()?;
        let &(at, rank) = first.key();
        (at <= now).then(|| {
            let (pid, waited) = first.remove();
            (rank, pid, waited)
        })
    }

    /// Schedules another check of a task that has not loaded a PVM library yet.
    fn look_again(&mut self, rank: u32, pid: Pid, waited: Duration, now: Instant) {
        let waited = waited * 2;
        if waited <= MAX_CHECK_DELAY {
            self.looks.insert((now + waited, rank), (pid, waited));
        }
    }
}

impl Tasks {
    /// Schedules a check of a task of this host that another task has started.
    pub(crate) fn expect_to_join(&mut self, started: Started) {
        if let Some(pid) = Pid::from_raw(started.pid as i32) {
            self.unjoined.started(started.rank, pid, Instant::now());
        }
    }

    /// Returns the time until the next check of a task that does not join.
    pub(crate) fn until_look(&self) -> Option<Duration> {
        self.unjoined.until_look(Instant::now())
    }

    /// Reads what some of the tasks have written for others, and reports tasks that will never join.
    pub(crate) fn pump_caught(&mut self, hear: &mut impl FnMut(Piece)) {
        self.caught.pump(hear);
        let now = Instant::now();
        for _ in 0..MAX_BATCH {
            let Some((rank, pid, waited)) = self.unjoined.due(now) else {
                break;
            };
            if !self.runs(rank, pid) || self.job().state(rank) != TaskState::Expected {
                continue;
            }
            match foreign_library(pid) {
                Some(library) => hear(self.complaint(rank, &library)),
                None => self.unjoined.look_again(rank, pid, waited, now),
            }
        }
    }

    fn complaint(&mut self, task: u32, library: &Path) -> Piece {
        let bytes = stranger::sentence(library).into_bytes();
        Piece {
            task,
            stream: 1,
            route: self.caught.on_behalf_of(task, bytes.len()),
            bytes,
            then: StreamState::More,
        }
    }
}

/// Returns the library of another PVM that this process or a descendant has loaded instead of ours.
fn foreign_library(pid: Pid) -> Option<PathBuf> {
    let below = tree::below(pid, &[]).into_iter().map(|process| process.pid);
    let library = |pid: Pid| {
        let folder = tree::living_thread(pid.as_raw_nonzero().get() as u32);
        stranger::other_pvm(&std::fs::read_to_string(folder.join("maps")).ok()?)
    };
    std::iter::once(pid).chain(below).find_map(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_after_twice_the_time_each_and_end() {
        let begin = Instant::now();
        let me = rustix::process::getpid();
        let mut unjoined = Unjoined::default();
        unjoined.started(7, me, begin);
        let mut now = begin;
        let mut times = Vec::new();
        while let Some(wait) = unjoined.until_look(now) {
            assert_eq!(unjoined.due(now), None, "too early");
            now += wait;
            let (rank, pid, waited) = unjoined.due(now).expect("a look");
            assert_eq!((rank, pid), (7, me));
            times.push((now - begin).as_secs());
            unjoined.look_again(rank, pid, waited, now);
        }
        assert_eq!(times, [2, 6, 14, 30, 62, 126]);
    }
}
