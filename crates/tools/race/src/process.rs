//! Starting a program, reading its lines, and getting rid of all of it when it takes too long.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};

/// How long a launcher may take to end its tasks after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// A program under way.
pub struct Running {
    child: Child,
    started: Instant,
    lines: Receiver<String>,
    errors: JoinHandle<String>,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// It ended by itself with status 0.
    pub success: bool,
    /// It took too long and was ended.
    pub timed_out: bool,
    /// From its start to its end.
    pub seconds: f64,
}

impl Running {
    /// Start a command with its output captured and nothing to read.
    pub fn start(command: &mut Command) -> Result<Running> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        let stdout = child.stdout.take().context("no pipe")?;
        let mut stderr = child.stderr.take().context("no pipe")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender
                    .send(String::from_utf8_lossy(&line).into_owned())
                    .is_err()
                {
                    break;
                }
            }
        });
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Ok(Running {
            child,
            started,
            lines,
            errors,
        })
    }

    /// Wait for the line `wanted`; false if the program ends or the time is up before.
    pub fn await_line(&self, wanted: &str, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) if line == wanted => return true,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Process id of the program itself.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Wait for the end, at most so long after the start; then everything it started is ended.
    pub fn finish(self, limit: Duration) -> Result<Finished> {
        let rest = limit.saturating_sub(self.started.elapsed());
        self.finish_within(rest)
    }

    /// As [`Running::finish`], counted from now.
    pub fn finish_within(mut self, rest: Duration) -> Result<Finished> {
        let timed_out = !await_end(Pid::from_child(&self.child), rest)?;
        let seconds = self.started.elapsed().as_secs_f64();
        if timed_out {
            end_tree(&mut self.child);
        }
        let status = self.child.wait()?;
        let mut stdout = String::new();
        for line in self.lines.iter() {
            stdout.push_str(&line);
            stdout.push('\n');
        }
        let stderr = self.errors.join().unwrap_or_default();
        Ok(Finished {
            stdout,
            stderr,
            success: status.success() && !timed_out,
            timed_out,
            seconds,
        })
    }

    /// End the program and everything it started.
    pub fn end(mut self) {
        end_tree(&mut self.child);
        let _ = self.child.wait();
    }
}

/// Ties a program to who starts it: it is asked to end, by SIGTERM, when the thread that starts it has ended, so also when the race is
/// killed. A task that hangs in its library would not notice that itself. Where there is no `setpriv` (package util-linux), the command as it is.
///
/// The program begins some milliseconds later, so it does not suit a launch whose time is taken from outside.
pub fn tied(command: Command) -> Command {
    static SETPRIV: OnceLock<Option<PathBuf>> = OnceLock::new();
    let Some(setpriv) = SETPRIV.get_or_init(setpriv) else {
        return command;
    };
    let mut tied = Command::new(setpriv);
    tied.args(ASK).arg(command.get_program());
    tied.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => tied.env(name, value),
            None => tied.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        tied.current_dir(folder);
    }
    tied
}

/// The arguments of `setpriv` before those of the command.
const ASK: [&str; 3] = ["--pdeathsig", "TERM", "--"];

/// A `setpriv` that can do this, by its path: a command's variables may have another PATH.
fn setpriv() -> Option<PathBuf> {
    let all = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&all).map(|folder| folder.join("setpriv"));
    let found = all.find(|path| path.is_file())?;
    let mut trial = Command::new(&found);
    trial.args(ASK).arg("true").stdin(Stdio::null());
    let tried = trial.stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success()).then_some(found)
}

/// Start, wait, and give back everything.
pub fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
    Running::start(command)?.finish(limit)
}

/// Wait for the end of a child; false when the time is up before.
pub fn await_end(child: Pid, limit: Duration) -> Result<bool> {
    let descriptor = pidfd_open(child, PidfdFlags::empty()).context("cannot watch a process")?;
    let deadline = Instant::now() + limit;
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: rest.as_secs() as i64,
            tv_nsec: i64::from(rest.subsec_nanos()),
        };
        let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut watched, Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Ask, wait a little, then kill; the tasks too, wherever their launcher left them.
fn end_tree(child: &mut Child) {
    let pid = Pid::from_child(child);
    let mut tree = descendants(pid.as_raw_nonzero().get());
    let _ = kill_process(pid, Signal::TERM);
    if !await_end(pid, GRACE).unwrap_or(false) {
        tree.extend(descendants(pid.as_raw_nonzero().get()));
        let _ = kill_process(pid, Signal::KILL);
    }
    // Once it is reaped its children are this process's.
    let _ = child.wait();
    end_all(&tree);
}

/// Kill processes whose launcher has ended, and reap those that have become children of this process.
pub fn end_all(pids: &BTreeSet<i32>) {
    let me = std::process::id() as i32;
    for &raw in pids {
        let Some(pid) = Pid::from_raw(raw) else {
            continue;
        };
        // A process that has another parent by now was taken over by init, and may have ended since: then
        // its number may belong to somebody else. Only our own descendants are ended.
        let parent = parent_of(raw);
        if parent.is_some_and(|parent| parent == me || pids.contains(&parent)) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    for &raw in pids {
        if let Some(pid) = Pid::from_raw(raw).filter(|_| parent_of(raw) == Some(me)) {
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

/// Every process with its parent, by the kernel's table.
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

/// The children of this process.
pub fn children() -> BTreeSet<i32> {
    let me = std::process::id() as i32;
    let mine = parents().into_iter().filter(|(_, parent)| *parent == me);
    mine.map(|(pid, _)| pid).collect()
}

/// All processes below one.
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

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the parent is the second word after it.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Orphans of launchers shall become children of this process, so that they can be found and reaped.
pub fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_success_are_reported() {
        let finished = run(
            &mut shell("echo out; echo err >&2"),
            Duration::from_secs(10),
        )
        .unwrap();
        assert_eq!(
            (finished.stdout.as_str(), finished.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert!(finished.success);
        assert!(
            !run(&mut shell("exit 3"), Duration::from_secs(10))
                .unwrap()
                .success
        );
    }

    #[test]
    fn what_takes_too_long_is_ended_with_all_its_children() {
        adopt_orphans();
        let mut command = shell("sleep 1000 & echo $!; trap '' TERM; sleep 1000; sleep 1000");
        let finished = run(&mut command, Duration::from_millis(300)).unwrap();
        assert!(finished.timed_out);
        let child: i32 = finished.stdout.trim().parse().unwrap();
        assert!(parent_of(child).is_none(), "process {child} is still there");
    }

    #[test]
    fn a_program_that_is_tied_to_its_starter_ends_with_it() {
        let mut command = shell("echo $VARIABLE; pwd; echo up; exec sleep 1000");
        command.env("VARIABLE", "value").current_dir("/");
        let starter = std::thread::spawn(move || {
            let running = Running::start(&mut tied(command)).unwrap();
            assert!(running.await_line("value", Duration::from_secs(10)));
            assert!(running.await_line("/", Duration::from_secs(10)));
            assert!(running.await_line("up", Duration::from_secs(10)));
            running
        });
        let running = starter.join().unwrap();
        let finished = running.finish_within(Duration::from_secs(10)).unwrap();
        assert!(!finished.timed_out && !finished.success);
    }

    #[test]
    fn a_line_is_awaited() {
        let running = Running::start(&mut shell("echo a; echo b")).unwrap();
        assert!(running.await_line("b", Duration::from_secs(10)));
        assert!(!running.await_line("c", Duration::from_secs(10)));
        assert!(running.finish(Duration::from_secs(10)).unwrap().success);
    }
}
