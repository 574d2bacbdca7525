//! The tasks of this host, as the system shows them: the processes whose parent is an agent in a shell of this daemon.

use regatta_launch::{Refusal, tree};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::ask::{Leader, Reply, Task};
use crate::channels::End;
use crate::daemon::Daemon;

/// The process names of agents, and of agents that have become launchers because their launcher's host was lost.
const AGENTS: [&str; 2] = ["regatta-agent", LEADER];
const LEADER: &str = "regatta-leader";
/// The variable that contains a task's rank.
const JOIN_TOKEN: &str = "REGATTA_JOB=";

/// Returns the jobs that have shells on this host, with the shells.
fn shells(daemon: &Daemon) -> Vec<(String, Pid)> {
    let state = daemon.lock();
    let agent = |channel: &crate::channels::Channel| match channel.end {
        End::Agent(pid) => Some((channel.job.clone(), pid)),
        End::Launcher(_) => None,
    };
    state.channels.all().filter_map(agent).collect()
}

/// Returns the tasks of this host that belong to jobs of the machine.
pub(crate) fn here(daemon: &Daemon) -> Vec<Task> {
    shells(daemon)
        .iter()
        .flat_map(|(job, shell)| below(daemon, job, *shell))
        .collect()
}

/// Returns whether an agent runs in a shell.
pub(crate) fn has_agent(shell: Pid) -> bool {
    let processes = tree::below(shell, &[]);
    processes
        .iter()
        .any(|process| AGENTS.contains(&process.name.as_str()))
}

/// Returns whether a process runs in a shell.
pub(crate) fn is_below(shell: Pid, pid: Pid) -> bool {
    let mut processes = tree::below(shell, &[]).into_iter();
    processes.any(|process| process.pid == pid)
}

/// Returns the jobs that are led from this host, because their launchers' hosts are lost.
pub(crate) fn leaders(daemon: &Daemon) -> Vec<Leader> {
    let leader = |(job, shell): &(String, Pid)| {
        let pid = leader_in(*shell)?.as_raw_nonzero();
        let output = std::fs::read_link(format!("/proc/{pid}/fd/1")).ok();
        let output = output.filter(|path| path.is_absolute());
        Some(Leader {
            job: job.clone(),
            host: daemon.charge.name.clone(),
            output: output.map(|path| path.to_string_lossy().into_owned()),
        })
    };
    shells(daemon).iter().filter_map(leader).collect()
}

fn leader_in(shell: Pid) -> Option<Pid> {
    let processes = tree::below(shell, &[]);
    let leader = processes.iter().find(|process| process.name == LEADER);
    leader.map(|process| process.pid)
}

fn below(daemon: &Daemon, job: &str, shell: Pid) -> Vec<Task> {
    let processes = tree::below(shell, &[]);
    let agents: Vec<i32> = processes
        .iter()
        .filter(|process| AGENTS.contains(&process.name.as_str()))
        .map(|process| process.pid.as_raw_nonzero().get())
        .collect();
    let tasks = processes
        .iter()
        .filter(|process| agents.contains(&process.parent));
    tasks
        .filter_map(|process| {
            let pid = process.pid.as_raw_nonzero().get();
            let environment =
                std::fs::read(tree::living_thread(pid as u32).join("environ")).ok()?;
            Some(Task {
                job: job.to_owned(),
                rank: rank(&environment)?,
                host: daemon.charge.name.clone(),
                pid: pid as u32,
                program: process.name.clone(),
            })
        })
        .collect()
}

/// Returns the rank in the join token of a task's environment.
fn rank(environment: &[u8]) -> Option<u32> {
    let entries = environment.split(|&byte| byte == 0);
    let token = entries
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix(JOIN_TOKEN))
        .next()?;
    regatta_segment::job::JoinToken::parse(token)
        .ok()
        .map(|token| token.rank)
}

/// Sends a signal to a task of this host or, without a rank, to the launcher of a job on this host.
pub(crate) fn kill(
    daemon: &Daemon,
    job: &str,
    rank: Option<u32>,
    signal: i32,
) -> Result<Reply, Refusal> {
    let signal = Signal::from_named_raw(signal)
        .ok_or_else(|| Refusal::usage(format!("{signal} is not the number of a signal")))?;
    let gone = || Refusal::of_regatta(format!("{job} has just ended"));
    let find = || match rank {
        Some(rank) => here(daemon)
            .into_iter()
            .find(|task| task.job == job && task.rank == rank)
            .and_then(|task| Pid::from_raw(task.pid as i32)),
        None => launcher(daemon, job),
    };
    let pid = find().ok_or_else(gone)?;
    let fd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(|_| gone())?;
    // The process id may have been reused before the pidfd was opened, but not since.
    if find() != Some(pid) {
        return Err(gone());
    }
    rustix::process::pidfd_send_signal(&fd, signal)
        .map(|()| Reply::Done)
        .map_err(|errno| Refusal::of_regatta(format!("the signal could not be sent: {errno}")))
}

/// Returns the process that represents a job to the user: the one that leads it instead of its launcher, or else the
/// one in the job's name, if that is a process of the job that is connected to this daemon, or an ancestor of one.
fn launcher(daemon: &Daemon, job: &str) -> Option<Pid> {
    let shells = shells(daemon);
    let mut ours = shells.iter().filter(|(of, _)| of == job);
    if let Some(leader) = ours.find_map(|(_, shell)| leader_in(*shell)) {
        return Some(leader);
    }
    let named: i32 = job.rsplit_once(':')?.1.parse().ok()?;
    let state = daemon.lock();
    let mut above: Vec<Pid> = state
        .channels
        .all()
        .filter(|channel| channel.job == job)
        .filter_map(|channel| channel.caller)
        .collect();
    drop(state);
    // The supervisor is connected to this daemon, or a command below it. Its parent is the watch, whose parent is the
    // front.
    for _ in 0..4 {
        if let Some(found) = above.iter().find(|pid| pid.as_raw_nonzero().get() == named) {
            return Some(*found);
        }
        above = above
            .iter()
            .filter_map(|pid| {
                let process = tree::read(&pid.as_raw_nonzero().to_string())?;
                Pid::from_raw(process.parent)
            })
            .collect();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_below_a_shell_are_of_it() {
        let mut command = std::process::Command::new("cat");
        let piped = std::process::Stdio::piped();
        let mut child = command.stdin(piped).spawn().expect("a process");
        let (own, pid) = (rustix::process::getpid(), Pid::from_child(&child));
        assert!(is_below(own, pid) && !is_below(pid, own) && !is_below(pid, pid));
        drop(child.stdin.take());
        child.wait().expect("its end");
    }

    #[test]
    fn a_rank_is_found_in_an_environment() {
        let entry = format!("{}:60:3:4", regatta_segment::job::VERSION);
        let environment = format!("HOME=/\0REGATTA_JOB={entry}\0X=\0");
        assert_eq!(rank(environment.as_bytes()), Some(3));
        assert_eq!(rank(b"HOME=/\0REGATTA_JOB=nonsense\0"), None);
        assert_eq!(rank(b""), None);
    }
}
