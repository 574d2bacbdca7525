//! One job of a test: starts it, reads its output, enforces its time limit, checks its result.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::left::{self, MARK};
use crate::programs;
use crate::skipped::skip;

/// A job to start, with its environment and time limit.
pub struct Job {
    /// Command that the whole command line is appended to, such as `sh -c 'ulimit ...; exec "$@"' sh`.
    around: Vec<String>,
    /// `regatta run -n N`; empty for a program without a launcher.
    launcher: Vec<String>,
    program: Vec<String>,
    environment: Vec<(String, String)>,
    limit: Duration,
}

impl Job {
    /// Creates a job of `tasks` tasks of a C program in `tests/programs`.
    pub fn new(tasks: u32, program: &str, arguments: &[&str]) -> Job {
        Job::of(tasks, &programs::program(program), arguments)
    }

    /// Creates a job of `tasks` tasks of the program at this path.
    pub fn of(tasks: u32, program: &Path, arguments: &[&str]) -> Job {
        let command = programs::command().display().to_string();
        let mut job = Job::at(program, arguments);
        job.launcher = [&command, "run", "-n", &tasks.to_string()]
            .map(str::to_owned)
            .into();
        job
    }

    /// Creates a job of a C program in `tests/programs` that runs without a launcher.
    pub fn alone(program: &str, arguments: &[&str]) -> Job {
        Job::at(&programs::program(program), arguments)
    }

    /// Creates a job of the program at this path that runs without a launcher.
    pub fn at(program: &Path, arguments: &[&str]) -> Job {
        let mut program = vec![program.display().to_string()];
        program.extend(arguments.iter().map(|&argument| argument.to_owned()));
        Job {
            around: Vec::new(),
            launcher: Vec::new(),
            program,
            environment: Vec::new(),
            limit: Duration::from_secs(120),
        }
    }

    /// Creates a job that runs the command `regatta` with these arguments.
    pub fn command(arguments: &[&str]) -> Job {
        let mut program = vec![programs::command().display().to_string()];
        program.extend(arguments.iter().map(|&argument| argument.to_owned()));
        Job {
            around: Vec::new(),
            launcher: Vec::new(),
            program,
            environment: Vec::new(),
            limit: Duration::from_secs(40),
        }
    }

    /// Replaces the subcommand `run` by one that takes the same options.
    pub fn subcommand(mut self, name: &str) -> Job {
        if let Some(run) = self.launcher.get_mut(1) {
            *run = name.to_owned();
        }
        self
    }

    /// Adds an option of `regatta run`.
    pub fn option(mut self, option: &str) -> Job {
        self.launcher.push(option.to_owned());
        self
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Job {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the job from a shell that runs `commands` first.
    pub fn after(self, commands: &str) -> Job {
        let script = format!("{commands}\nexec \"$@\"");
        self.around(&["sh", "-ec", &script, "sh"])
    }

    /// Starts the job through another command, which the job's command line is appended to.
    pub fn around(mut self, command: &[&str]) -> Job {
        let outer = command.iter().map(|&word| word.to_owned());
        self.around = outer.chain(self.around).collect();
        self
    }

    /// Sets the time limit of the whole run, in seconds.
    pub fn limit(mut self, seconds: u64) -> Job {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Runs the job to its end.
    pub fn run(self) -> Ended {
        self.start().end()
    }

    /// Runs the job on these simulated hosts. Each has an agent and a segment of its own on this machine, and messages
    /// between them take the network's path.
    pub fn across(self, hosts: &str) -> Job {
        self.option("--host")
            .option(hosts)
            .option("--rsh")
            .option("sh -c")
    }

    /// Starts the job. Its output can be read while it runs.
    pub fn start(self) -> Running {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        let words = [self.around, self.launcher, self.program].concat();
        let mut command = Command::new(&words[0]);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            // The tests themselves may run under a launcher or in a job.
            if name.starts_with("REGATTA_") || regatta_foreign::is_set_by_launcher(&name) {
                command.env_remove(&*name);
            }
        }
        let mut child = command
            .args(&words[1..])
            .envs(self.environment)
            .env(MARK, &mark)
            .env("LD_LIBRARY_PATH", programs::library())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("a started job");
        let (sender, lines) = channel();
        read(child.stdout.take(), sender.clone());
        read(child.stderr.take(), sender);
        Running {
            what: words.join(" "),
            child,
            lines,
            heard: Vec::new(),
            deadline: Instant::now() + self.limit,
            mark,
            ended: false,
        }
    }
}

/// Passes lines on until every process that holds the stream open has ended.
fn read(stream: Option<impl Read + Send + 'static>, to: Sender<String>) {
    let stream = BufReader::new(stream.expect("a pipe"));
    std::thread::spawn(move || {
        for line in stream.split(b'\n').map_while(Result::ok) {
            if to
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                break;
            }
        }
    });
}

/// A running job.
pub struct Running {
    what: String,
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
    deadline: Instant,
    mark: String,
    ended: bool,
}

impl Running {
    /// Waits for the next line. Returns `None` at the end of the job.
    fn next(&mut self) -> Option<String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => {
                self.heard.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                self.kill();
                panic!("the job has not ended in time\n{}", self.story());
            }
        }
    }

    /// Waits for the next line that begins with `start`. Returns the words that follow in this line.
    pub fn read_words(&mut self, start: &str) -> Vec<String> {
        self.read_one_of(&[start]).1
    }

    /// Waits for the next line that begins with one of `starts`. Returns the index of that start and the words that
    /// follow.
    pub fn read_one_of(&mut self, starts: &[&str]) -> (usize, Vec<String>) {
        while let Some(line) = self.next() {
            let mut rests = starts.iter().map(|start| line.strip_prefix(start));
            if let Some(which) = rests.position(|rest| rest.is_some()) {
                let rest = &line[starts[which].len()..];
                return (which, rest.split_whitespace().map(str::to_owned).collect());
            }
        }
        panic!("the job never said one of {starts:?}\n{}", self.story());
    }

    /// Returns the command lines of all processes of the job.
    pub fn processes(&self) -> Vec<String> {
        left::lines(&self.mark)
    }

    /// Sends a signal to the process that was started.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Returns the command and all its output.
    fn story(&self) -> String {
        format!("{}\n{}", self.what, self.heard.join("\n"))
    }

    /// Kills all processes of the job at once.
    fn kill(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        left::kill(&self.mark);
        let _ = self.child.wait();
        self.ended = true;
    }

    /// Waits for the end of the job, and checks that no process is left behind.
    pub fn end(mut self) -> Ended {
        while self.next().is_some() {}
        if !left::child_ends_by(&self.child, self.deadline) {
            self.kill();
            panic!("the job said its last and did not end\n{}", self.story());
        }
        let status = self.child.wait().expect("the job's end");
        self.ended = true;
        let behind = left::behind(&self.mark);
        assert!(
            behind.is_empty(),
            "left behind: {behind:?}\n{}",
            self.story()
        );
        let signal = || 128 + status.signal().unwrap_or_default();
        Ended {
            status: status.code().unwrap_or_else(signal),
            text: self.heard.join("\n"),
            story: self.story(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
        }
    }
}

/// A job that has ended and left no process behind.
pub struct Ended {
    /// Exit status, or 128 plus the signal number.
    pub status: i32,
    /// All lines of standard output and standard error.
    pub text: String,
    story: String,
}

impl Ended {
    /// Checks that no check has failed in any task and that the job has not run into its time limit. Records skipped
    /// checks.
    #[track_caller]
    pub fn sound(self) -> Ended {
        for word in ["FAIL", "HUNG", "panicked"] {
            assert!(!self.text.contains(word), "{}", self.story);
        }
        for line in self.text.lines() {
            if let Some(reason) = line.strip_prefix("skipped: ") {
                skip(reason);
            }
        }
        self
    }

    /// Checks that the job is sound and ended with status 0.
    #[track_caller]
    pub fn passed(self) -> Ended {
        let ended = self.sound();
        assert_eq!(ended.status, 0, "{}", ended.story);
        ended
    }

    /// Checks that the job is sound and ended with this status.
    #[track_caller]
    pub fn ended_with(self, status: i32) -> Ended {
        let ended = self.sound();
        assert_eq!(ended.status, status, "{}", ended.story);
        ended
    }

    /// Checks that the output contains `part`.
    #[track_caller]
    pub fn said(self, part: &str) -> Ended {
        assert!(self.text.contains(part), "no {part:?} in\n{}", self.story);
        self
    }

    /// Checks that the output contains one of `parts`; which one depends on timing.
    #[track_caller]
    pub fn said_one_of(self, parts: &[&str]) -> Ended {
        let said = parts.iter().any(|part| self.text.contains(part));
        assert!(said, "none of {parts:?} in\n{}", self.story);
        self
    }

    /// Checks the case that task 1 of `tasks` tasks is dead: each of the others was notified of it by name, and went
    /// on.
    #[track_caller]
    pub fn named_the_dead(&self, tasks: u32) {
        for rank in (0..tasks).filter(|&rank| rank != 1) {
            let named = format!("got {rank} -7 task 1");
            let last = format!("went on {rank}");
            assert!(
                self.text.contains(&named) && self.text.contains(&last),
                "no {named:?} or no {last:?} in\n{}",
                self.story
            );
        }
    }

    /// Returns the command and all its output, for failure messages.
    pub fn story(&self) -> &str {
        &self.story
    }
}
