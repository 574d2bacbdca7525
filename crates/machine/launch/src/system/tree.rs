//! The descendants of this process: tasks, and the processes that they started.
//!
//! The launcher is a *subreaper*: a descendant that loses its parent becomes the launcher's own child. So no descendant
//! can hide from a walk over `/proc`, whatever its session or process group.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regatta_program::Refusal;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use crate::system::inherited;

/// Makes this process adopt descendants that lose their parent.
pub(crate) fn adopt_orphans() -> Result<(), Refusal> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(|errno| {
        Refusal::of_regatta(format!("the launcher cannot become a subreaper: {errno}"))
    })
}

/// A process, as shown in `/proc`.
///
/// The kernel shows only the state of its first thread. That thread is a zombie (Z) once it has left by `pthread_exit`,
/// however long the other threads go on, and then has no memory, files or program. So [`Self::has_ended`] also checks
/// the number of threads, and the files in `/proc` are read from the folder of a living thread ([`living_thread`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The pid.
    pub pid: Pid,
    /// Its name.
    pub name: String,
    /// The pid of its parent.
    pub parent: i32,
    /// The kernel's state letter for its first thread: R, S, D, Z, ...
    state: char,
    /// The number of its threads. The first one counts until the process is reaped.
    threads: u32,
}

impl Process {
    /// Returns whether all its threads have ended and it only waits to be reaped.
    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }

    /// Returns why a process that was sent SIGKILL still exists, as far as the kernel shows it now.
    pub(crate) fn obstacle(&self) -> Obstacle {
        if rustix::process::test_kill_process(self.pid) == Err(Errno::PERM) {
            return Obstacle::Permission;
        }
        match thread_states(self.pid).contains(&'D') {
            true => Obstacle::Kernel,
            false => Obstacle::Unknown,
        }
    }
}

/// The reason why a process that was sent SIGKILL still exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The process belongs to another user.
    Permission,
    /// A thread of the process is in an uninterruptible system call (state D).
    Kernel,
    /// The end of the process is not visible yet.
    Unknown,
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Obstacle::Permission => "belongs to another user",
            Obstacle::Kernel => "in an uninterruptible system call, state D",
            Obstacle::Unknown => "killed, but still exists",
        })
    }
}

/// Returns the state letters of the threads of a process.
fn thread_states(pid: Pid) -> Vec<char> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let threads = threads.into_iter().flatten().flatten();
    let state = |thread: std::fs::DirEntry| state_in(&thread.path());
    threads.filter_map(state).collect()
}

fn state_in(folder: &Path) -> Option<char> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    parse(1, &stat).map(|thread| thread.state)
}

/// Returns the folder in `/proc` with the memory, the files and the program of a process: that of its first thread or,
/// if that has left before the others, that of a living thread.
pub fn living_thread(pid: u32) -> PathBuf {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let lives = |folder: &Path| !matches!(state_in(folder), None | Some('Z' | 'X'));
    if lives(&process) {
        return process;
    }
    let threads = std::fs::read_dir(process.join("task"));
    let mut threads = threads.into_iter().flatten().flatten();
    let other = threads.find_map(|thread| Some(thread.path()).filter(|folder| lives(folder)));
    other.unwrap_or(process)
}

/// Returns all descendants of this process that have not ended, except the children `spared` and their descendants.
pub(crate) fn descendants(spared: &[Pid]) -> Vec<Process> {
    below(rustix::process::getpid(), spared)
}

/// Returns all descendants of the process `root` that have not ended, except the children `spared` and their
/// descendants.
pub fn below(root: Pid, spared: &[Pid]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in entries.filter_map(|entry| read(entry.file_name().to_str()?)) {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut next = vec![root.as_raw_nonzero().get()];
    while let Some(parent) = next.pop() {
        let mut below = children.remove(&parent).unwrap_or_default();
        below.retain(|process| !spared.contains(&process.pid));
        for process in below {
            next.push(process.pid.as_raw_nonzero().get());
            found.push(process);
        }
    }
    found.retain(|process| !process.has_ended());
    found
}

/// Reads a process by its pid.
pub fn read(pid: &str) -> Option<Process> {
    let number = pid.parse().ok()?;
    parse(
        number,
        &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?,
    )
}

/// Index of the number of threads in the fields after the parent.
const THREADS_AT: usize = 15;

/// Parses `PID (NAME) STATE PARENT ...`, where the name may contain spaces and parentheses.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (name, rest) = (stat.split_once('(')?.1).rsplit_once(')')?;
    let mut rest = rest.split_whitespace();
    let state = rest.next()?.chars().next()?;
    let parent = rest.next()?.parse().ok()?;
    let threads = rest.nth(THREADS_AT)?.parse().ok()?;
    Some(Process {
        pid: Pid::from_raw(pid)?,
        name: name.to_owned(),
        parent,
        state,
        threads,
    })
}

/// Sends a signal to all descendants of this process, except `spared` and their descendants.
pub(crate) fn signal_all(signal: Signal, spared: &[Pid]) {
    for process in descendants(spared) {
        let _ = rustix::process::kill_process(process.pid, signal);
    }
}

/// Kills all descendants of this process. Returns when none is left, or after `patience` if the kernel keeps one from
/// dying. Children that this process had before it executed this program are spared.
pub(crate) fn kill_all(patience: Duration) {
    let spared = inherited::spared();
    let started = Instant::now();
    let mut pause = Duration::from_micros(50);
    let is_left = || reap() && (spared.is_empty() || !descendants(spared).is_empty());
    while is_left() && started.elapsed() < patience {
        signal_all(Signal::KILL, spared);
        // A killed process takes a moment to die. Its children are then adopted and found in the next round.
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Reaps all children that have ended. Returns whether there are others.
fn reap() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_is_read_whole() {
        let line = "7 (a) (b c) S 3 7 7 0 -1 4194304 92 0 0 0 0 0 0 0 20 0 2 0 100";
        let process = parse(7, line).expect("a process");
        assert_eq!(
            (process.name.as_str(), process.parent, process.state),
            ("a) (b c", 3, 'S')
        );
        assert_eq!(process.threads, 2);
    }

    #[test]
    fn a_process_whose_first_thread_has_left_has_ended_when_the_others_have() {
        let process = |state: char, threads: u32| Process {
            pid: rustix::process::getpid(),
            name: String::new(),
            parent: 1,
            state,
            threads,
        };
        assert!(process('Z', 1).has_ended() && process('X', 0).has_ended());
        assert!(!process('Z', 2).has_ended() && !process('S', 1).has_ended());
    }

    #[test]
    fn this_process_is_read_by_its_first_thread() {
        let pid = std::process::id();
        assert_eq!(living_thread(pid), Path::new(&format!("/proc/{pid}")));
    }

    #[test]
    fn a_child_is_a_descendant() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("sleep");
        let pids: Vec<i32> = descendants(&[])
            .iter()
            .map(|process| process.pid.as_raw_nonzero().get())
            .collect();
        assert!(pids.contains(&(child.id() as i32)));
        let spared = Pid::from_child(&child);
        assert!(
            descendants(&[spared])
                .iter()
                .all(|process| process.pid != spared)
        );
        child.kill().expect("a living child");
        child.wait().expect("its end");
    }
}
