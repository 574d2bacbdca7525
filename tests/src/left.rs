//! Finds processes that a job has left behind, by a mark in their environment.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::time::Timespec;

/// The variable that every process of a job inherits.
pub(crate) const MARK: &str = "REGATTA_TEST_MARK";

/// Time limit for the exit of a job's last processes, on a busy machine.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

struct Process {
    pid: Pid,
    line: String,
    fd: OwnedFd,
}

/// Returns the environment of a process, given its folder in `/proc`. If its first thread has ended, reads it from
/// another thread.
fn environment(process: &Path) -> Vec<u8> {
    let threads = std::fs::read_dir(process.join("task"))
        .into_iter()
        .flatten();
    let threads = threads.flatten().map(|thread| thread.path());
    let mut folders = std::iter::once(process.to_owned()).chain(threads);
    let read = |folder: PathBuf| std::fs::read(folder.join("environ")).ok();
    let found = folders.find_map(|folder| read(folder).filter(|it| !it.is_empty()));
    found.unwrap_or_default()
}

fn marked(mark: &str) -> Vec<Process> {
    let wanted = format!("{MARK}={mark}");
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            // Opens the descriptor first, so that the environment read next belongs to the process that the descriptor
            // names.
            let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            let environment = environment(&entry.path());
            let found = environment
                .split(|&byte| byte == 0)
                .any(|variable| variable == wanted.as_bytes());
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.then_some(Process { pid, line, fd })
        })
        .collect()
}

/// Returns the command lines of the job's processes.
pub(crate) fn lines(mark: &str) -> Vec<String> {
    marked(mark)
        .into_iter()
        .map(|process| process.line)
        .collect()
}

/// Returns the kernel functions in which the job's processes are blocked.
pub(crate) fn waiting(mark: &str) -> String {
    let line = |process: Process| {
        let pid = process.pid.as_raw_nonzero();
        let told = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
        let waits = told("wchan").unwrap_or_default();
        let state = told("stat").unwrap_or_default();
        let state = state.rsplit(')').next().unwrap_or_default();
        let state = state.split_whitespace().next().unwrap_or_default();
        format!("{pid} {state} in {waits}: {}\n", process.line)
    };
    marked(mark).into_iter().map(line).collect()
}

/// Kills every process of the job.
pub(crate) fn kill(mark: &str) {
    kill_those(mark, "");
}

/// Kills the processes of the job whose command line contains `part`.
pub(crate) fn kill_those(mark: &str, part: &str) {
    let all = marked(mark).into_iter();
    for process in all.filter(|process| process.line.contains(part)) {
        // The process may have ended in the meantime.
        let _ = kill_process(process.pid, Signal::KILL);
    }
}

/// Waits for the end of a process. Returns `false` if it still runs at the deadline.
fn ends_by(process: &OwnedFd, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).expect("a short time");
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)) == Ok(1)
}

/// Waits for the end of a child that has not been reaped. Returns `false` if it still runs at the deadline.
pub(crate) fn child_ends_by(child: &Child, deadline: Instant) -> bool {
    let fd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("a child");
    ends_by(&fd, deadline)
}

/// Waits for the end of every process with this mark, including those that start meanwhile. Returns `false` if some
/// still run at the deadline.
pub(crate) fn all_end_by(mark: &str, deadline: Instant) -> bool {
    loop {
        let processes = marked(mark);
        if processes.is_empty() {
            return true;
        }
        if !processes.iter().all(|one| ends_by(&one.fd, deadline)) {
            return false;
        }
    }
}

/// Waits for the end of every process of the job. Returns the command lines of those that still run after the time
/// limit, and kills them.
pub(crate) fn behind(mark: &str) -> Vec<String> {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    let mut outlived = Vec::new();
    for process in marked(mark) {
        if !ends_by(&process.fd, deadline) {
            outlived.push(format!("{} {}", process.pid.as_raw_nonzero(), process.line));
            let _ = kill_process(process.pid, Signal::KILL);
        }
    }
    outlived
}
