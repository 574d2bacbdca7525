//! The processes below this one: tasks, and whatever they started.
//!
//! The launcher is a *subreaper*: a process below it that loses its parent becomes the launcher's own child. So nothing
//! below can hide from a walk over `/proc`, whatever session or process group it moved to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regatta_program::Refusal;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use crate::system::inherited;

/// Makes processes that lose their parent below us ours.
pub(crate) fn adopt_orphans() -> Result<(), Refusal> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(|errno| {
        Refusal::of_regatta(format!("the launcher cannot become a subreaper: {errno}"))
    })
}

/// A process, as `/proc` shows it.
///
/// The kernel shows the state of its first thread alone. That one is a zombie (Z) from the moment it leaves by `pthread_exit`,
/// however long the others go on, and has no memory, files or program any more: whoever looks at a process asks [`Self::has_ended`]
/// about its end, and reads what it has from the folder of a thread that lives ([`living_thread`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: Pid,
    /// Its name.
    pub name: String,
    /// Whose child it is.
    pub parent: i32,
    /// The kernel's letter for its first thread: R, S, D, Z, ...
    state: char,
    /// How many threads it has, the first one counted until the process is reaped.
    threads: u32,
}

impl Process {
    /// Whether nothing of it runs any more: it waits for its parent to reap it.
    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }

    /// Why a process that was sent SIGKILL is still there, as the kernel shows it now.
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

/// Why a process that was sent SIGKILL is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It belongs to another user.
    Permission,
    /// A thread of it is in a system call that no signal interrupts (state D).
    Kernel,
    /// It has not got far enough to be seen as ended.
    Unknown,
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Obstacle::Permission => "of another user, who alone may end it",
            Obstacle::Kernel => "held by the kernel in a system call, state D",
            Obstacle::Unknown => "killed and still there",
        })
    }
}

/// The kernel's letters for the threads of a process.
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

/// The folder of `/proc` that has the memory, the files and the program of a process: that of its first thread or, where that has
/// left before others, of one that lives.
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

/// All processes below this one that are not dead yet, but for the children `spared` and what is below them.
pub(crate) fn descendants(spared: &[Pid]) -> Vec<Process> {
    below(rustix::process::getpid(), spared)
}

/// All processes below any other, likewise.
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

/// A process by its number.
pub fn read(pid: &str) -> Option<Process> {
    let number = pid.parse().ok()?;
    parse(
        number,
        &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?,
    )
}

/// Index of the number of threads, counted from behind the parent.
const THREADS_AT: usize = 15;

/// `PID (NAME) STATE PARENT ...`, where the name may hold spaces and parentheses.
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

/// Sends a signal to everything below this process, but for `spared` and what is below them.
pub(crate) fn signal_all(signal: Signal, spared: &[Pid]) {
    for process in descendants(spared) {
        let _ = rustix::process::kill_process(process.pid, signal);
    }
}

/// Ends everything below this process at once, and returns when nothing is left, or when `patience` is over because the
/// kernel keeps something from dying. Children that this process had before it was this program are let be.
pub(crate) fn kill_all(patience: Duration) {
    let spared = inherited::spared();
    let started = Instant::now();
    let mut pause = Duration::from_micros(50);
    let is_left = || reap() && (spared.is_empty() || !descendants(spared).is_empty());
    while is_left() && started.elapsed() < patience {
        signal_all(Signal::KILL, spared);
        // A killed process needs a moment to die; its children then become ours and are found by the next round.
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
