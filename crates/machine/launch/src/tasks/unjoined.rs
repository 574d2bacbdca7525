//! Tasks that have loaded another PVM's library, and so never join this job.
//!
//! Such a task speaks with that PVM's daemon, if there is one, and whoever has started it waits for messages that never
//! come. Nothing ends, so nothing else tells of it. A task that was started by another task and has not joined after a
//! while is therefore looked at, with the processes below it: the kernel lists the libraries that they have loaded. All that
//! there is to say comes as a line of the task's standard error, so it reaches whoever reads the task's output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regatta_job::registry::Piece;
use regatta_program::stranger;
use regatta_segment::job::TaskState;
use regatta_wire::control::Then;
use rustix::process::Pid;

use crate::system::tree;
use crate::tasks::{Started, Tasks};

/// Time a task has to join before it is checked first; the delay doubles with each further check.
const FIRST_CHECK_DELAY: Duration = Duration::from_secs(2);
/// Number of tasks checked before the loop looks at what else has happened.
const MAX_BATCH: usize = 16;
/// Delay of the last check: a program that takes longer to load its libraries is none of PVM's.
const MAX_CHECK_DELAY: Duration = Duration::from_secs(64);

/// The tasks that are still to be looked at.
#[derive(Debug, Default)]
pub(crate) struct Unjoined {
    /// By the time of the next look: the process, and how long it has been waited for.
    looks: BTreeMap<(Instant, u32), (Pid, Duration)>,
}

impl Unjoined {
    /// A task has been started.
    pub(crate) fn started(&mut self, rank: u32, pid: Pid, now: Instant) {
        self.looks
            .insert((now + FIRST_CHECK_DELAY, rank), (pid, FIRST_CHECK_DELAY));
    }

    /// The time until the next look; none, if there is none.
    pub(crate) fn until_look(&self, now: Instant) -> Option<Duration> {
        let (&(at, _), _) = self.looks.first_key_value()?;
        Some(at.saturating_duration_since(now))
    }

    /// A task that is to be looked at now.
    fn due(&mut self, now: Instant) -> Option<(u32, Pid, Duration)> {
        let first = self.looks.first_entry()?;
        let &(at, rank) = first.key();
        (at <= now).then(|| {
            let (pid, waited) = first.remove();
            (rank, pid, waited)
        })
    }

    /// It had nothing of PVM's yet.
    fn look_again(&mut self, rank: u32, pid: Pid, waited: Duration, now: Instant) {
        let waited = waited * 2;
        if waited <= MAX_CHECK_DELAY {
            self.looks.insert((now + waited, rank), (pid, waited));
        }
    }
}

impl Tasks {
    /// A task of this host has been started by another task.
    pub(crate) fn expect_to_join(&mut self, started: Started) {
        if let Some(pid) = Pid::from_raw(started.pid as i32) {
            self.unjoined.started(started.rank, pid, Instant::now());
        }
    }

    /// The time until a task that does not join is looked at.
    pub(crate) fn until_look(&self) -> Option<Duration> {
        self.unjoined.until_look(Instant::now())
    }

    /// Reads what some of the tasks have written for others, and says of tasks that do not join why they never will.
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
            then: Then::More,
        }
    }
}

/// The library of another PVM that this process, or one below it, has loaded in place of ours.
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
