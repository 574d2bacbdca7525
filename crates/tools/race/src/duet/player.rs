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

#[cfg(test)]
mod tests {
    use super::*;

    /// A job of `tasks` tasks which are threads of this test, each doing `act`; the process that was launched only waits.
    fn play(name: &str, tasks: u32, act: fn(UnixStream)) -> Result<Player> {
        let folder = std::env::temp_dir().join(format!("regatta-player-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let socket = folder.join(name);
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket)?;
        for _ in 0..tasks {
            let path = socket.clone();
            std::thread::spawn(move || act(UnixStream::connect(path).expect("it listens")));
        }
        let mut command = Command::new("sleep");
        command.arg("1000");
        Player::start(
            &mut command,
            listener,
            &socket,
            tasks,
            Duration::from_secs(5),
        )
    }

    /// A task that does what it is told in so many microseconds.
    fn obedient(mut stream: UnixStream) {
        let mut lines = BufReader::new(stream.try_clone().expect("a second handle"));
        let _ = stream.write_all(b"task 0 of 2\n");
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            let answer: &[u8] = match line.split(' ').next() {
                Some("prepare") => b"ready 70\n",
                Some("slice") => b"took 2.5\n",
                _ => return,
            };
            let _ = stream.write_all(answer);
            line.clear();
        }
    }

    fn point() -> Point {
        Point {
            operation: "ring".to_owned(),
            bytes: 8,
        }
    }

    #[test]
    fn a_job_takes_its_turns() {
        let mut player = play("turns", 2, obedient).expect("both come");
        assert_eq!(player.prepare(&point(), 0.004).expect("it answers"), 70);
        assert_eq!(player.slice(&point(), 70).expect("it answers"), 2.5);
    }

    #[test]
    fn a_task_that_ends_or_talks_nonsense_is_an_error() {
        let silent = |mut stream: UnixStream| {
            let _ = stream.write_all(b"task 0 of 1\n");
        };
        let mut player = play("silent", 1, silent).expect("it comes");
        assert!(player.slice(&point(), 1).is_err());
        let babbling = |mut stream: UnixStream| {
            let _ = stream.write_all(b"task 0 of 1\ntook forever\ntook -1\n");
            let _ = stream.read_to_end_of_words();
        };
        let mut player = play("babbling", 1, babbling).expect("it comes");
        assert!(player.slice(&point(), 1).is_err());
        assert!(
            player.slice(&point(), 1).is_err(),
            "a negative time is none"
        );
    }

    #[test]
    fn single_tasks_of_many_jobs_are_no_job() {
        let alone = |mut stream: UnixStream| {
            let _ = stream.write_all(b"task 0 of 1\n");
        };
        let refused = play("alone", 2, alone).err().expect("it is refused");
        assert!(
            refused.to_string().contains("something else than 2 tasks"),
            "{refused}"
        );
    }

    #[test]
    fn a_job_that_ends_before_it_has_come_is_not_waited_for() {
        let socket =
            std::env::temp_dir().join(format!("regatta-player-gone-{}", std::process::id()));
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).expect("a place");
        let mut command = Command::new("true");
        let limit = Duration::from_secs(100);
        let began = Instant::now();
        let refused = Player::start(&mut command, listener, &socket, 1, limit).err();
        assert!(refused.is_some_and(|error| error.to_string().contains("ended before")));
        assert!(began.elapsed() < limit / 2);
        assert!(!socket.exists(), "it leaves nothing");
    }

    /// Keeps the connection open until the other side closes it.
    trait UntilClosed {
        fn read_to_end_of_words(&mut self) -> std::io::Result<usize>;
    }

    impl UntilClosed for UnixStream {
        fn read_to_end_of_words(&mut self) -> std::io::Result<usize> {
            let mut words = Vec::new();
            std::io::Read::read_to_end(self, &mut words)
        }
    }
}
