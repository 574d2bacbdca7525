//! Starts programs, reads their output, and ends all their processes when they take too long or the race is to stop.

use std::io::{BufRead, BufReader, ErrorKind, Read, copy, sink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::stop::{Stop, Woken};
use crate::tree::{self, STOP_TIMEOUT, TERM_TIMEOUT, Tree};

/// Maximum size of a program's output that is kept, in bytes. A program may print without end.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;
/// Size of the tail of a program's standard error that is kept, in bytes.
const STDERR_TAIL_BYTES: usize = 1 << 20;
/// Interval at which a wait for a line checks whether the race is to stop.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Starts the programs of a race. It marks all their processes so that they can be found, and has the request to stop.
pub struct Supervisor {
    stop: Arc<Stop>,
    /// The prefix of the marks of all its programs.
    beginning: String,
    next: AtomicU32,
}

impl Supervisor {
    /// Creates a supervisor for a race with this request to stop.
    pub fn new(stop: &Arc<Stop>) -> Supervisor {
        Supervisor {
            stop: Arc::clone(stop),
            beginning: format!("{}-{:016x}.", std::process::id(), fastrand::u64(..)),
            next: AtomicU32::new(0),
        }
    }

    /// Returns the race's request to stop.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Returns the prefix of its programs' marks, which no other race has.
    pub fn beginning(&self) -> &str {
        &self.beginning
    }

    /// Starts a command without redirecting its input and output.
    pub fn spawn(&self, command: &mut Command) -> Result<Tree> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}{number}", self.beginning);
        Tree::start(command, mark, &self.stop)
    }

    /// Starts a command with empty input, and captures its output.
    pub fn start(&self, command: &mut Command) -> Result<Running> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        Running::of(self.spawn(command)?, started)
    }

    /// Runs a command to its end and returns its output.
    pub fn run(&self, command: &mut Command, limit: Duration) -> Result<Finished> {
        self.start(command)?.finish(limit)
    }

    /// Ends the processes that are left of programs that have ended.
    pub fn end_leftovers(&self) {
        let patience = if self.stop.is_asked() {
            STOP_TIMEOUT
        } else {
            TERM_TIMEOUT
        };
        tree::end_leftovers(&self.beginning, patience);
    }

    /// Returns the process ids of all running processes that its programs have started.
    pub fn processes(&self) -> Vec<i32> {
        tree::with_mark(&self.beginning)
    }
}

/// A running program.
pub struct Running {
    tree: Tree,
    started: Instant,
    lines: Receiver<String>,
    /// Closed once the program's standard error is closed.
    errors: Receiver<()>,
    /// The tail of its standard error so far.
    last_words: Arc<Mutex<Vec<u8>>>,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Whether it ended by itself with status 0.
    pub success: bool,
    /// Whether it took too long and was ended.
    pub timed_out: bool,
    /// Whether it was ended because the race is to stop.
    pub interrupted: bool,
    /// Time from its start to its end, s.
    pub seconds: f64,
}

impl Running {
    fn of(mut tree: Tree, started: Instant) -> Result<Running> {
        let stdout = tree.child().stdout.take().context("no pipe")?;
        let stderr = tree.child().stderr.take().context("no pipe")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut first = BufReader::new(stdout.take(MAX_OUTPUT_BYTES));
            for line in first.by_ref().split(b'\n').map_while(Result::ok) {
                if sender
                    .send(String::from_utf8_lossy(&line).into_owned())
                    .is_err()
                {
                    break;
                }
            }
            // More output is discarded, so that the program does not block.
            let _ = copy(&mut first.into_inner().into_inner(), &mut sink());
        });
        let last_words = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&last_words);
        let (open, errors) = channel();
        std::thread::spawn(move || {
            keep_last(stderr, &kept);
            drop(open);
        });
        Ok(Running {
            tree,
            started,
            lines,
            errors,
            last_words,
        })
    }

    /// Waits for the line `wanted`. Returns false if the program ends, the time is up or the race is to stop before the
    /// line is printed.
    pub fn await_line(&self, wanted: &str, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(rest.min(STOP_CHECK_INTERVAL)) {
                Ok(line) if line == wanted => return true,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout)
                    if rest > STOP_CHECK_INTERVAL && !self.stop().is_asked() => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Returns the program's process with all processes that it has started.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the race's request to stop.
    pub fn stop(&self) -> &Stop {
        self.tree.stop()
    }

    /// Waits until the program ends, at most until `limit` after its start. Then ends everything that it has started.
    pub fn finish(self, limit: Duration) -> Result<Finished> {
        let rest = limit.saturating_sub(self.started.elapsed());
        self.finish_within(rest)
    }

    /// As [`Running::finish`], with a limit counted from now.
    pub fn finish_within(mut self, rest: Duration) -> Result<Finished> {
        let woken = self.tree.await_end(Instant::now() + rest)?;
        let seconds = self.started.elapsed().as_secs_f64();
        if !matches!(woken, Woken::Ready(_)) {
            self.tree.end();
        }
        Ok(self.finished(woken, seconds))
    }

    /// Waits until programs end by themselves, at most for `patience`, although the race is to stop. Then ends the
    /// others, all at once.
    pub fn finish_together(mut all: Vec<Running>, patience: Duration) -> Vec<Finished> {
        let deadline = Instant::now() + patience;
        let end_of = |one: &Running| match one.tree.ends_by(deadline) {
            true => Woken::Ready(0),
            false => Woken::Stopped,
        };
        let ends: Vec<Woken> = all.iter().map(end_of).collect();
        let mut left: Vec<&mut Tree> = all
            .iter_mut()
            .zip(&ends)
            .filter(|(_, end)| **end == Woken::Stopped)
            .map(|(one, _)| &mut one.tree)
            .collect();
        tree::end_together(&mut left);
        let finished = |(mut one, end): (Running, Woken)| {
            let seconds = one.started.elapsed().as_secs_f64();
            one.finished(end, seconds)
        };
        all.into_iter().zip(ends).map(finished).collect()
    }

    /// Returns the output of a program that has ended, with the reason of its end.
    fn finished(&mut self, woken: Woken, seconds: f64) -> Finished {
        let status = self.tree.child().try_wait().ok().flatten();
        let mut stdout = String::new();
        let patience = if self.stop().is_asked() {
            STOP_TIMEOUT
        } else {
            TERM_TIMEOUT
        };
        if !self.hear(&mut stdout, patience) {
            // A process that has outlived the program keeps a pipe open.
            self.tree.end_rest();
            self.hear(&mut stdout, STOP_TIMEOUT);
        }
        let stderr = self.last_words.lock().map(|text| text.clone());
        Finished {
            stdout,
            stderr: String::from_utf8_lossy(&stderr.unwrap_or_default()).into_owned(),
            success: matches!(woken, Woken::Ready(_))
                && status.is_some_and(|status| status.success()),
            timed_out: woken == Woken::Late,
            interrupted: woken == Woken::Stopped,
            seconds,
        }
    }

    /// Reads the output until its end. Returns false if a pipe is still open when the time is up.
    fn hear(&self, stdout: &mut String, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let rest = || deadline.saturating_duration_since(Instant::now());
        let error = loop {
            match self.lines.recv_timeout(rest()) {
                Ok(line) => {
                    stdout.push_str(&line);
                    stdout.push('\n');
                }
                Err(error) => break error,
            }
        };
        error == RecvTimeoutError::Disconnected
            && self.errors.recv_timeout(rest()) == Err(RecvTimeoutError::Disconnected)
    }

    /// Ends the program and everything that it has started.
    pub fn end(mut self) {
        self.tree.end();
    }
}

/// Reads to the end and keeps the last [`STDERR_TAIL_BYTES`] bytes, at most twice as many.
fn keep_last(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut piece = [0; 4096];
    loop {
        let bytes = match from.read(&mut piece) {
            Ok(bytes @ 1..) => bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            _ => return,
        };
        let Ok(mut kept) = kept.lock() else {
            return;
        };
        kept.extend_from_slice(&piece[..bytes]);
        if kept.len() > 2 * STDERR_TAIL_BYTES {
            let surplus = kept.len() - STDERR_TAIL_BYTES;
            kept.drain(..surplus);
        }
    }
}

/// Ties a program to the thread that starts it: it gets SIGTERM when that thread has ended, also if the race is killed.
/// A task that hangs in its library would not notice the end of the race itself. Returns `command` unchanged if there
/// is no `setpriv` (package util-linux).
///
/// The program starts some milliseconds later, so this must not be used for a launch whose time is measured from
/// outside.
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

/// Returns the path of a `setpriv` that supports this. The path is needed since a command's variables may have another
/// PATH.
fn setpriv() -> Option<PathBuf> {
    let all = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&all).map(|folder| folder.join("setpriv"));
    let found = all.find(|path| path.is_file())?;
    let mut trial = Command::new(&found);
    trial.args(ASK).arg("true").stdin(Stdio::null());
    let tried = trial.stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{adopt_orphans, parent_of};

    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn supervisor() -> Supervisor {
        Supervisor::new(&Stop::new().unwrap())
    }

    fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
        supervisor().run(command, limit)
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
        let supervisor = Arc::new(supervisor());
        let mut command = shell("echo $VARIABLE; pwd; echo up; exec sleep 1000");
        command.env("VARIABLE", "value").current_dir("/");
        let starter = std::thread::spawn(move || {
            let running = supervisor.start(&mut tied(command)).unwrap();
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
        let running = supervisor().start(&mut shell("echo a; echo b")).unwrap();
        assert!(running.await_line("b", Duration::from_secs(10)));
        assert!(!running.await_line("c", Duration::from_secs(10)));
        assert!(running.finish(Duration::from_secs(10)).unwrap().success);
    }

    #[test]
    fn a_program_that_hangs_ends_soon_once_the_race_is_to_stop() {
        adopt_orphans();
        let supervisor = supervisor();
        let deaf = "trap '' TERM; (setsid setsid sleep 1000 &); echo up; sleep 1000; sleep 1000";
        let (one, other) = (shell(deaf), shell(deaf));
        let all = [one, other].map(|mut command| supervisor.start(&mut command).unwrap());
        for one in &all {
            assert!(one.await_line("up", TEST_TIMEOUT));
        }
        let began = Instant::now();
        supervisor.stop().ask(2);
        assert!(
            !all[0].await_line("more", TEST_TIMEOUT),
            "a wait for a line goes on"
        );
        let [first, second] = all;
        let finished = first.finish_within(TEST_TIMEOUT).unwrap();
        assert!(finished.interrupted && !finished.timed_out && !finished.success);
        let finished = Running::finish_together(vec![second], Duration::from_millis(1));
        assert!(finished[0].interrupted);
        assert!(began.elapsed() < TEST_TIMEOUT / 4, "{:?}", began.elapsed());
        assert!(supervisor.processes().is_empty());
    }

    #[test]
    fn a_pipe_that_others_keep_open_holds_nobody_up() {
        adopt_orphans();
        let began = Instant::now();
        let supervisor = supervisor();
        let mut command = shell("echo whole; echo words >&2; setsid sleep 1000 &");
        let finished = supervisor.run(&mut command, TEST_TIMEOUT).unwrap();
        assert!(finished.success && began.elapsed() < TEST_TIMEOUT / 2);
        let said = (finished.stdout.as_str(), finished.stderr.as_str());
        assert_eq!(said, ("whole\n", "words\n"));
        assert!(supervisor.processes().is_empty());
    }

    #[test]
    fn errors_without_end_are_kept_by_their_last_words() {
        let long = std::iter::repeat_n(b'x', 5 * STDERR_TAIL_BYTES).chain(*b"the reason");
        let kept = Mutex::new(Vec::new());
        keep_last(&long.collect::<Vec<u8>>()[..], &kept);
        let kept = kept.into_inner().unwrap();
        assert!(kept.len() <= 2 * STDERR_TAIL_BYTES && kept.ends_with(b"xthe reason"));
    }
}
