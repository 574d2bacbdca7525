//! The processes below this one: tasks, and whatever they started.
//!
//! The launcher is a *subreaper*: a process below it that loses its parent becomes the launcher's own child. So nothing
//! below can hide from a walk over `/proc`, whatever session or process group it moved to.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

/// A process, as `/proc` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: Pid,
    /// Its name.
    pub name: String,
    /// Whose child it is.
    pub parent: i32,
    /// The kernel's letter: R, S, D, Z, ...
    state: char,
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
    found.retain(|process| process.state != 'Z');
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

/// `PID (NAME) STATE PARENT ...`, where the name may hold spaces and parentheses.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (name, rest) = (stat.split_once('(')?.1).rsplit_once(')')?;
    let mut rest = rest.split_whitespace();
    let state = rest.next()?.chars().next()?;
    let parent = rest.next()?.parse().ok()?;
    Some(Process {
        pid: Pid::from_raw(pid)?,
        name: name.to_owned(),
        parent,
        state,
    })
}

/// Sends a signal to everything below this process, but for `spared` and what is below them.
pub(crate) fn signal_all(signal: Signal, spared: &[Pid]) {
    for process in descendants(spared) {
        let _ = rustix::process::kill_process(process.pid, signal);
    }
}

/// Ends everything below this process at once, and returns when nothing is left, or when `patience` is over because the
/// kernel keeps something from dying.
pub(crate) fn kill_all(patience: Duration) {
    let started = Instant::now();
    let mut pause = Duration::from_micros(50);
    while reap() && started.elapsed() < patience {
        signal_all(Signal::KILL, &[]);
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
        let process = parse(7, "7 (a) (b c) S 3 7 7 0 -1").expect("a process");
        assert_eq!(
            (process.name.as_str(), process.parent, process.state),
            ("a) (b c", 3, 'S')
        );
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
