//! Common parts of the command's tests: starting it, reading its output, and looking for processes that it has left.
#![allow(dead_code, reason = "each test program uses a part of this")]

pub mod lan;
#[path = "../../../../../tests/src/looks.rs"]
mod looks;
#[path = "../../../../../tests/src/needs.rs"]
pub mod needs;
#[path = "../../../../../tests/src/skipped.rs"]
pub mod skipped;

#[allow(unused_imports, reason = "each test program uses a part of this")]
pub use looks::{look_until, slowness};

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::time::Timespec;

/// Time limit for an operation that takes milliseconds, after which a test fails.
const AWAIT_TIMEOUT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};
/// The variable that marks every process of one test's job.
const MARK: &str = "REGATTA_TEST_MARK";

pub const REGATTA: &str = env!("CARGO_BIN_EXE_regatta");

/// Runs `regatta run` with `arguments` to its end.
pub fn run(arguments: &[&str]) -> Output {
    Command::new(REGATTA)
        .arg("run")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("regatta")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the status of a finished command, its output and its errors.
pub fn told(output: &Output) -> (i32, String, String) {
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A running job for a test.
pub struct Running {
    pub child: Child,
    lines: Option<BufReader<ChildStdout>>,
    errors: Option<BufReader<ChildStderr>>,
    /// The standard error that has been read.
    said: String,
    mark: String,
}

impl Running {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_command(Command::new(REGATTA).arg("run").args(arguments))
    }

    /// Like `start`, in a process group that a process outside of it can continue, whatever group the tests run in. In
    /// an orphaned group, nothing stops by the terminal's signal, and all are hung up when something has been stopped.
    pub fn start_apart(arguments: &[&str]) -> Self {
        let mut command = Command::new(REGATTA);
        Self::start_command(command.arg("run").args(arguments).process_group(0))
    }

    /// Starts a command that runs regatta in some way. A mark in its environment is kept.
    pub fn start_command(command: &mut Command) -> Self {
        let given = command
            .get_envs()
            .find(|(name, _)| *name == MARK)
            .and_then(|(_, mark)| mark?.to_str().map(str::to_owned));
        let mark = given.unwrap_or_else(fresh_mark);
        command
            .env(MARK, &mark)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("a started command");
        let lines = child.stdout.take().map(BufReader::new);
        let errors = child.stderr.take().map(BufReader::new);
        Self {
            child,
            lines,
            errors,
            said: String::new(),
            mark,
        }
    }

    /// Waits until the command has written a line with `part` to its standard error.
    pub fn await_error(&mut self, part: &str) {
        while !self.said.contains(part) {
            let errors = self.errors.as_mut().expect("piped errors");
            let length = errors.read_line(&mut self.said).expect("errors");
            assert!(length > 0, "it never said {part:?}: {}", self.said);
        }
    }

    /// Waits for `count` lines that contain `part`, and returns them.
    pub fn read_lines(&mut self, count: usize, part: &str) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.len() < count {
            let mut line = String::new();
            let lines = self
                .lines
                .as_mut()
                .expect("a job that is still listened to");
            let length = lines.read_line(&mut line).expect("output");
            assert!(
                length > 0,
                "the job ended before it had said {part:?} {count} times: {heard:?}"
            );
            if line.contains(part) {
                heard.push(line.trim_end().to_owned());
            }
        }
        heard
    }

    /// Closes this process's end of the job's output.
    pub fn stop_reading(&mut self) {
        self.lines = None;
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a living launcher");
    }

    /// Waits for the command's end. Returns its status (128 + signal if it was killed) and its standard error.
    pub fn end(mut self) -> (i32, String) {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.wait().expect("the command's end");
        let mut said = std::mem::take(&mut self.said);
        if let Some(errors) = self.errors.take() {
            for line in errors.lines().map_while(Result::ok) {
                said += &line;
                said.push('\n');
            }
        }
        (
            status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
            said,
        )
    }

    /// Returns every process of this job: all that have its mark in their environment.
    pub fn processes(&self) -> Vec<Process> {
        marked(&self.mark)
    }

    /// Returns the only process of the job with this name.
    pub fn named(&self, name: &str) -> Process {
        let mut found: Vec<Process> = self
            .processes()
            .into_iter()
            .filter(|process| process.name == name)
            .collect();
        assert_eq!(found.len(), 1, "processes named {name}: {found:?}");
        found.remove(0)
    }
}

/// Returns a mark that no other test of this program has.
pub fn fresh_mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Returns every process that has this mark in its environment.
pub fn marked(mark: &str) -> Vec<Process> {
    let mark = format!("{MARK}={mark}");
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            // Open the pidfd first: it stays with the process whose environment is then read.
            let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let name = std::fs::read_to_string(entry.path().join("comm"))
                .ok()?
                .trim()
                .to_owned();
            let marked = environment
                .split(|&byte| byte == 0)
                .any(|entry| entry == mark.as_bytes());
            marked.then_some(Process { pid, name, fd })
        })
        .collect()
}

#[derive(Debug)]
pub struct Process {
    pub pid: Pid,
    pub name: String,
    fd: OwnedFd,
}

impl Process {
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&now)).expect("poll") == 1
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("a living process");
    }
}

/// Waits for the end of each of these processes.
pub fn await_ends(processes: &[Process]) {
    for process in processes {
        let ready = poll(
            &mut [PollFd::new(&process.fd, PollFlags::IN)],
            Some(&AWAIT_TIMEOUT),
        )
        .expect("poll");
        assert_eq!(ready, 1, "{process:?} has outlived its job");
    }
}

/// A new directory, which is removed on drop.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("regatta-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary directory");
        Self(folder)
    }

    /// Writes a file with this mode and returns its path.
    pub fn file(&self, name: &str, mode: u32, content: &[u8]) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode");
        path.to_str().expect("a plain path").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
