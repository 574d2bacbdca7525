//! One environment's job in a duet: it is up all the time, and asleep outside its library when others have their turn.
//!
//! Each task connects to a socket of the driver's; `programs/primitives/duet.h` has the words. A job that does not answer in time
//! is ended with all its processes.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::process::{Finished, Running};

/// A point as the program names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Name of the operation.
    pub operation: String,
    /// Bytes of a message.
    pub bytes: u64,
}

/// A job that waits for its turns.
pub struct Player {
    running: Option<Running>,
    tasks: Vec<BufReader<UnixStream>>,
    limit: Duration,
    /// Its socket, which goes with it.
    socket: PathBuf,
}

impl Player {
    /// Starts the job and waits until all its tasks have come. `command` gets the socket's path as its last argument but those of
    /// the program.
    pub fn start(
        command: &mut Command,
        listener: UnixListener,
        socket: &Path,
        tasks: u32,
        limit: Duration,
    ) -> Result<Player> {
        let mut player = Player {
            running: Some(Running::start(command)?),
            tasks: Vec::new(),
            limit,
            socket: socket.to_owned(),
        };
        let deadline = Instant::now() + limit;
        while player.tasks.len() < tasks as usize {
            player.await_task(&listener, deadline)?;
            let (task, _) = listener.accept()?;
            task.set_read_timeout(Some(limit))?;
            task.set_write_timeout(Some(limit))?;
            player.tasks.push(BufReader::new(task));
        }
        for words in player.answers("task")? {
            let all = words.rsplit(' ').next().and_then(|n| n.parse().ok());
            if all != Some(tasks) {
                bail!("its launcher started something else than {tasks} tasks of one job: {words}");
            }
        }
        Ok(player)
    }

    /// Waits for a task at the listener; an error if the job ends before, or the time is up.
    fn await_task(&self, listener: &UnixListener, deadline: Instant) -> Result<()> {
        let child = self.running.as_ref().map_or(0, Running::id);
        let child = Pid::from_raw(child as i32).context("no process")?;
        let ended = pidfd_open(child, PidfdFlags::empty()).context("cannot watch a process")?;
        let rest = deadline.saturating_duration_since(Instant::now());
        let rest = Timespec::try_from(rest).unwrap_or(Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        });
        let mut fds = [
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
        ];
        poll(&mut fds, Some(&rest)).context("cannot wait for the tasks of a job")?;
        match fds.map(|fd| !fd.revents().is_empty()) {
            [true, _] => Ok(()),
            [_, true] => bail!("it ended before all its tasks had come"),
            _ => bail!("not all of its tasks came in time"),
        }
    }

    /// Checks a point, and finds how many operations of it take so many seconds; 0 seconds: only checks it.
    pub fn prepare(&mut self, point: &Point, seconds: f64) -> Result<u64> {
        self.say("prepare", point, seconds)?;
        let numbers = self.numbers("ready")?;
        Ok(numbers.into_iter().fold(0.0, f64::max) as u64)
    }

    /// Has a turn of `number` operations; the microseconds of one, in the slowest task.
    pub fn slice(&mut self, point: &Point, number: u64) -> Result<f64> {
        self.say("slice", point, number as f64)?;
        let slowest = self.numbers("took")?.into_iter().fold(0.0, f64::max);
        match slowest > 0.0 && slowest.is_finite() {
            true => Ok(slowest),
            false => bail!("its tasks say that nothing took any time"),
        }
    }

    fn say(&mut self, what: &str, point: &Point, number: f64) -> Result<()> {
        let line = format!("{what} {} {} {number}\n", point.operation, point.bytes);
        for task in &mut self.tasks {
            task.get_mut()
                .write_all(line.as_bytes())
                .context("a task does not listen any more")?;
        }
        Ok(())
    }

    /// A line of each task; the words behind the first, which is `word`.
    fn answers(&mut self, word: &str) -> Result<Vec<String>> {
        let mut all = Vec::with_capacity(self.tasks.len());
        for task in &mut self.tasks {
            let mut line = String::new();
            task.read_line(&mut line)
                .with_context(|| format!("no answer within {:.0} s", self.limit.as_secs_f64()))?;
            match line.trim_end().strip_prefix(word) {
                Some(rest) => all.push(rest.trim_start().to_owned()),
                None if line.is_empty() => bail!("a task has ended"),
                None => bail!("a task said {:?}", line.trim_end()),
            }
        }
        Ok(all)
    }

    fn numbers(&mut self, word: &str) -> Result<Vec<f64>> {
        let parse = |text: String| {
            text.parse()
                .with_context(|| format!("a task said {text:?}"))
        };
        self.answers(word)?.into_iter().map(parse).collect()
    }

    /// Lets the job leave; all that it has printed.
    pub fn finish(mut self) -> Result<Finished> {
        for task in &mut self.tasks {
            // One that has ended says so in its status.
            let _ = task.get_mut().write_all(b"end\n");
        }
        let running = self.running.take().context("it has ended")?;
        running.finish_within(self.limit)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.end();
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}
