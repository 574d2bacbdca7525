//! All processes that a command has started, and how they are ended.
//!
//! Each command gets a *mark*: an environment variable that all its processes inherit. So its processes are found even
//! if their parents have ended, or if they have a session of their own. Processes whose variables cannot be read
//! (programs of other users) are found as descendants of the command.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::PollFlags;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid,
};

use crate::stop::{Stop, Woken, poll_until};

/// The variable that carries the mark.
pub const MARK: &str = "RACE_MARK";
/// Time limit for a launcher to end its tasks after SIGTERM.
pub const TERM_TIMEOUT: Duration = Duration::from_secs(2);
/// As [`TERM_TIMEOUT`], when the race is to stop.
pub const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// Time limit for the kernel to end a killed process.
const KILL_TIMEOUT: Duration = Duration::from_millis(200);
/// Time limit for killing processes with a mark until none is left.
const MARK_SEARCH_TIMEOUT: Duration = Duration::from_secs(1);

/// A running command, with all processes that it has started.
pub struct Tree {
    child: Child,
    mark: String,
    stop: Arc<Stop>,
}

impl Tree {
    /// Starts a command with this mark.
    pub fn start(command: &mut Command, mark: String, stop: &Arc<Stop>) -> Result<Tree> {
        let child = command
            .env(MARK, &mark)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        Ok(Tree {
            child,
            mark,
            stop: Arc::clone(stop),
        })
    }

    /// Returns the process that was started.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns the id of the process that was started.
    pub fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns the race's request to stop.
    pub fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// Returns a descriptor that is readable once the started process has ended.
    pub fn watch(&self) -> Result<OwnedFd> {
        pidfd_open(self.id(), PidfdFlags::empty()).context("cannot watch a process")
    }

    /// Waits until the started process has ended, the deadline has passed or the race is to stop.
    pub fn await_end(&self, deadline: Instant) -> Result<Woken> {
        let ended = self.watch()?;
        Ok(self
            .stop
            .await_ready(&[(ended.as_fd(), PollFlags::IN)], deadline)?)
    }

    /// Waits for the end of the started process, even if the race is to stop. Returns false if the deadline passes
    /// first.
    pub fn ends_by(&self, deadline: Instant) -> bool {
        self.watch().is_ok_and(|ended| ends_by(&ended, deadline))
    }

    /// Sends SIGTERM to the started process, waits a little, then kills it and all processes that it has started.
    pub fn end(&mut self) {
        end_together(&mut [self]);
    }

    /// Kills the processes that have outlived the started process.
    pub fn end_rest(&self) {
        end_marked(&|mark| mark == self.mark);
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

/// Ends several commands and all processes that they have started, within the time limit for one.
pub fn end_together(trees: &mut [&mut Tree]) {
    let mut patience = Patience::of(TERM_TIMEOUT);
    let mut below = BTreeSet::new();
    let mut running = Vec::new();
    for tree in &mut *trees {
        // The id of a process that was reaped may have been reused.
        if let Ok(None) = tree.child.try_wait()
            && let Ok(process) = tree.watch()
        {
            below.extend(descendants(tree.id().as_raw_nonzero().get()));
            let _ = pidfd_send_signal(&process, Signal::TERM);
            running.push((tree, process));
        }
    }
    for (tree, process) in running {
        if !patience.await_end(&process, &tree.stop) {
            below.extend(descendants(tree.id().as_raw_nonzero().get()));
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
        // Reaps the process. Its children are now children of this process.
        if ends_by(&process, Instant::now() + KILL_TIMEOUT) {
            let _ = tree.child.try_wait();
        }
    }
    end_all(&below);
    end_marked(&|mark| trees.iter().any(|tree| tree.mark == mark));
}

/// Waits for the end of a process that has become a child of this one, and kills it after `grace`.
pub fn end_adopted(pid: Pid, grace: Duration, stop: &Stop) {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if !Patience::of(grace).await_end(&process, stop) {
        let _ = pidfd_send_signal(&process, Signal::KILL);
    }
    if ends_by(&process, Instant::now() + KILL_TIMEOUT) {
        reap(pid);
    }
}

/// The time that several processes have to end, which becomes short once the race is to stop.
struct Patience {
    deadline: Instant,
    hasty: bool,
}

impl Patience {
    fn of(time: Duration) -> Patience {
        Patience {
            deadline: Instant::now() + time,
            hasty: false,
        }
    }

    /// Waits for the end of a process. Returns false if it does not end in time.
    fn await_end(&mut self, process: &OwnedFd, stop: &Stop) -> bool {
        let watched = [(process.as_fd(), PollFlags::IN)];
        if !self.hasty
            && stop
                .await_ready(&watched, self.deadline)
                .is_ok_and(|woken| woken == Woken::Stopped)
        {
            self.hasty = true;
            self.deadline = self.deadline.min(Instant::now() + STOP_TIMEOUT);
        }
        ends_by(process, self.deadline)
    }
}

/// Waits for the end of a process. Returns false if the deadline passes first.
fn ends_by(process: &OwnedFd, deadline: Instant) -> bool {
    let watched = [(process.as_fd(), PollFlags::IN)];
    poll_until(&watched, deadline).is_ok_and(|ready| ready.is_some())
}

/// A process with a mark.
struct Marked {
    pid: Pid,
    process: OwnedFd,
}

/// Returns the environment of a process, given by its folder in `/proc`. If the main thread has exited before others,
/// it is read from those.
fn variables_of(process: &Path) -> Vec<u8> {
    let threads = fs::read_dir(process.join("task"));
    let threads = threads.into_iter().flatten().flatten();
    let folders = std::iter::once(process.to_owned()).chain(threads.map(|it| it.path()));
    let mut variables = folders.filter_map(|folder| fs::read(folder.join("environ")).ok());
    variables.find(|it| !it.is_empty()).unwrap_or_default()
}

/// Returns the processes with a mark that `wanted` accepts.
fn marked(wanted: &dyn Fn(&str) -> bool) -> Vec<Marked> {
    let name = format!("{MARK}=");
    let of_entry = |entry: fs::DirEntry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        // The descriptor is opened first, so that it refers to the process whose variables are then read.
        let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let variables = variables_of(&entry.path());
        let found = variables.split(|&byte| byte == 0).any(|variable| {
            let mark = variable.strip_prefix(name.as_bytes());
            mark.is_some_and(|mark| std::str::from_utf8(mark).is_ok_and(wanted))
        });
        found.then_some(Marked { pid, process })
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(of_entry).collect()
}

/// Kills all processes with a mark that `wanted` accepts, including those that they start meanwhile.
fn end_marked(wanted: &dyn Fn(&str) -> bool) {
    let late = Instant::now() + MARK_SEARCH_TIMEOUT;
    while Instant::now() < late {
        let found = marked(wanted);
        if found.is_empty() {
            return;
        }
        for one in &found {
            let _ = pidfd_send_signal(&one.process, Signal::KILL);
        }
        let deadline = Instant::now() + KILL_TIMEOUT;
        for one in &found {
            if ends_by(&one.process, deadline) {
                reap(one.pid);
            }
        }
    }
}

/// Waits until all processes whose mark begins with `beginning` have ended, at most for `patience`, and kills the
/// others.
pub fn end_leftovers(beginning: &str, patience: Duration) {
    let wanted = |mark: &str| mark.starts_with(beginning);
    let deadline = Instant::now() + patience;
    for one in marked(&wanted) {
        ends_by(&one.process, deadline);
    }
    end_marked(&wanted);
}

/// Returns the ids of the processes whose mark begins with `beginning`.
pub fn with_mark(beginning: &str) -> Vec<i32> {
    let found = marked(&|mark| mark.starts_with(beginning));
    let number = |one: Marked| one.pid.as_raw_nonzero().get();
    found.into_iter().map(number).collect()
}

/// Reaps a process that has become a child of this one.
fn reap(pid: Pid) {
    if parent_of(pid.as_raw_nonzero().get()) == Some(std::process::id() as i32) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Kills processes whose launcher has ended, and reaps those that have become children of this process.
pub fn end_all(pids: &BTreeSet<i32>) {
    let me = std::process::id() as i32;
    let mut killed = Vec::new();
    for &raw in pids {
        let Some(pid) = Pid::from_raw(raw) else {
            continue;
        };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        // A process whose parent is not in the list was adopted by init. It may have ended since, and its id may belong to
        // an unrelated process by now. So only processes whose parent is in the list are killed.
        let parent = parent_of(raw);
        if parent.is_some_and(|parent| parent == me || pids.contains(&parent)) {
            let _ = pidfd_send_signal(&process, Signal::KILL);
            killed.push(Marked { pid, process });
        }
    }
    let deadline = Instant::now() + KILL_TIMEOUT;
    for one in killed {
        if ends_by(&one.process, deadline) {
            reap(one.pid);
        }
    }
}

/// Returns every process with its parent, from `/proc`.
fn parents() -> Vec<(i32, i32)> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok());
        parents.extend(pid.and_then(|pid| Some((pid, parent_of(pid)?))));
    }
    parents
}

/// Returns the children of this process.
pub fn children() -> BTreeSet<i32> {
    let me = std::process::id() as i32;
    let mine = parents().into_iter().filter(|(_, parent)| *parent == me);
    mine.map(|(pid, _)| pid).collect()
}

/// Returns all descendants of a process.
pub fn descendants(root: i32) -> BTreeSet<i32> {
    let parents = parents();
    let mut found = BTreeSet::new();
    let mut frontier = vec![root];
    while let Some(parent) = frontier.pop() {
        let children = parents
            .iter()
            .filter(|(_, p)| *p == parent)
            .map(|(pid, _)| *pid);
        frontier.extend(children.filter(|pid| found.insert(*pid)));
    }
    found
}

/// Returns the parent of a process, or `None` if there is no such process.
pub fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything. The parent is the second word after it.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Makes this process adopt the orphans of launchers, so that they can be found and reaped.
pub fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}
