//! Ends a race's programs when the race is killed.
//!
//! A shell waits at a pipe whose other end only the race has. If that end closes while the shell runs, the race was
//! killed and has not ended its programs. The shell then ends them, by their marks ([`tree`](crate::tree)), and removes
//! the race's folder. A launcher that ignores SIGTERM is killed. Signals for the race's process group do not reach the
//! shell.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::tree::MARK;

const SCRIPT: &str = include_str!("watchdog.sh");

/// A shell that outlives the race if the race is killed. Dropping this ends the shell.
pub struct Watchdog {
    shell: Child,
    /// The end of the pipe that is open as long as the race runs.
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts the shell for all processes whose mark begins with `beginning`. Returns `None` if there is no shell.
    pub fn start(beginning: &str, folder: &Path) -> Option<Watchdog> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(format!("{MARK}={beginning}"))
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .ok()?;
        let pipe = shell.stdin.take();
        Some(Watchdog { shell, pipe })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The shell must be killed before its pipe closes, since it acts on that.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        drop(self.pipe.take());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::process::Supervisor;
    use crate::stop::Stop;

    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn programs_that_ignore_a_signal_end_when_the_race_is_killed() {
        let supervisor = Supervisor::new(&Stop::new().unwrap());
        let folder = std::env::temp_dir().join(format!("{}-watchdog", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut watchdog = Watchdog::start(supervisor.beginning(), &folder).expect("a shell");
        let mut command = Command::new("sh");
        // Its child and grandchild each have a session of their own.
        let script = "trap '' TERM; (setsid setsid sleep 1000 &); echo up; sleep 1000; sleep 1000";
        command.args(["-c", script]);
        let running = supervisor.start(&mut command).unwrap();
        assert!(running.await_line("up", TEST_TIMEOUT));
        drop(watchdog.pipe.take());
        let finished = running.finish_within(TEST_TIMEOUT).unwrap();
        assert!(!finished.timed_out && !finished.success);
        assert!(watchdog.shell.wait().unwrap().success());
        assert!(!folder.exists(), "the race's folder is left");
        assert!(supervisor.processes().is_empty());
    }
}
