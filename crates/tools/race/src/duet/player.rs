//! One environment's job in a duet. The job runs all the time, and sleeps outside its library while others have their
//! turns.
//!
//! Each task connects to a socket of the driver. `programs/primitives/duet.h` has the protocol. A job that does not
//! answer in time is ended with all its processes.

use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::PollFlags;

use super::task::Task;
use crate::process::{Finished, Running, Supervisor};
use crate::stats::median;
use crate::stop::Woken;

/// Time for the tasks of all jobs to end once the race is to stop.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(200);

/// A point, named as in the program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// Name of the operation.
    pub operation: String,
    /// Size of a message in bytes.
    pub bytes: u64,
}

/// A job that waits for its turns.
pub struct Player {
    running: Option<Running>,
    tasks: Vec<Task>,
    limit: Duration,
    /// Path of the job's socket, which is removed when this is dropped.
    socket: PathBuf,
}

impl Player {
    /// Starts the job and waits until all its tasks have connected. `command` already contains the path of `socket`.
    pub fn start(
        supervisor: &Supervisor,
        command: &mut Command,
        listener: UnixListener,
        socket: &Path,
        tasks: u32,
        limit: Duration,
    ) -> Result<Player> {
        let mut player = Player {
            running: Some(supervisor.start(command)?),
            tasks: Vec::new(),
            limit,
            socket: socket.to_owned(),
        };
        let deadline = Instant::now() + limit;
        // A task may close its connection between the poll and the accept.
        listener.set_nonblocking(true)?;
        while player.tasks.len() < tasks as usize {
            player.await_task(&listener, deadline)?;
            match listener.accept() {
                Ok((task, _)) => player.tasks.push(Task::new(task)?),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        for words in player.answers("task")? {
            let all = words.rsplit(' ').next().and_then(|n| n.parse().ok());
            if all != Some(tasks) {
                bail!("its launcher did not start {tasks} tasks of one job: {words}");
            }
        }
        Ok(player)
    }

    fn running(&self) -> Result<&Running> {
        self.running.as_ref().context("it has ended")
    }

    /// Waits until a task connects to the listener. Fails if the job ends first, the time is up or the race is to stop.
    fn await_task(&self, listener: &UnixListener, deadline: Instant) -> Result<()> {
        let running = self.running()?;
        let ended = running.tree().watch()?;
        let fds = [
            (listener.as_fd(), PollFlags::IN),
            (ended.as_fd(), PollFlags::IN),
        ];
        let woken = running.stop().await_ready(&fds, deadline);
        match woken.context("cannot wait for the tasks of a job")? {
            Woken::Ready(0) => Ok(()),
            Woken::Ready(_) => bail!("it ended before all its tasks had started"),
            Woken::Late => bail!("not all of its tasks started in time"),
            Woken::Stopped => bail!("the race was interrupted"),
        }
    }

    /// Checks a point, and returns how many operations of it take `seconds`. With 0 seconds the point is only checked.
    /// Returns `None` if the program cannot run the point; its output then has the reason.
    pub fn prepare(&mut self, point: &Point, seconds: f64) -> Result<Option<u64>> {
        self.say("prepare", point, seconds)?;
        let answers = self.answers("")?;
        if answers.iter().all(|answer| answer == "cannot") {
            return Ok(None);
        }
        let mut longest = 0.0;
        for answer in answers {
            let number = answer
                .strip_prefix("ready ")
                .and_then(|text| text.parse().ok());
            let number = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
            longest = number
                .with_context(|| format!("a task answered {answer:?}"))?
                .max(longest);
        }
        Ok(Some(longest as u64))
    }

    /// Runs a turn of `number` operations. Returns the microseconds of one operation in the slowest task. Tasks time
    /// the parts of a turn, and the result is the median of the parts: a task that loses its processor for a moment
    /// lengthens one or two parts, which would change the mean.
    pub fn slice(&mut self, point: &Point, number: u64) -> Result<f64> {
        self.say("slice", point, number as f64)?;
        let tasks = self.lists("took")?;
        let parts = tasks.first().map_or(0, Vec::len);
        if tasks.iter().any(|times| times.len() != parts) {
            bail!("its tasks have timed different numbers of parts");
        }
        let slowest = |part: usize| tasks.iter().map(|times| times[part]).fold(0.0, f64::max);
        let middle = median(&(0..parts).map(slowest).collect::<Vec<_>>());
        match middle > 0.0 && middle.is_finite() {
            true => Ok(middle),
            false => bail!("its tasks measured a time of zero"),
        }
    }

    fn say(&mut self, what: &str, point: &Point, number: f64) -> Result<()> {
        let line = format!("{what} {} {} {number}\n", point.operation, point.bytes);
        let deadline = Instant::now() + self.limit;
        let running = self.running.as_ref().context("it has ended")?;
        for task in &mut self.tasks {
            task.say(&line, deadline, running.stop())?;
        }
        Ok(())
    }

    /// Reads a line from each task. Returns the rest of each line after `word`, with which it must begin.
    fn answers(&mut self, word: &str) -> Result<Vec<String>> {
        let mut all = Vec::with_capacity(self.tasks.len());
        let deadline = Instant::now() + self.limit;
        let running = self.running.as_ref().context("it has ended")?;
        for task in &mut self.tasks {
            let line = task.line(deadline, running.stop()).map_err(|error| {
                let seconds = self.limit.as_secs_f64();
                match Instant::now() < deadline {
                    true => error,
                    false => error.context(format!("no answer within {seconds:.0} s")),
                }
            })?;
            match line.strip_prefix(word) {
                Some(rest) => all.push(rest.trim_start().to_owned()),
                None => bail!("a task answered {line:?}"),
            }
        }
        Ok(all)
    }

    /// Reads a list of numbers from each task, after `word`.
    fn lists(&mut self, word: &str) -> Result<Vec<Vec<f64>>> {
        let parse = |text: &str| {
            let number = text.parse::<f64>().ok();
            let number = number.filter(|number| number.is_finite() && *number >= 0.0);
            number.with_context(|| format!("a task answered {text:?}"))
        };
        let list = |line: String| line.split_ascii_whitespace().map(parse).collect();
        self.answers(word)?.into_iter().map(list).collect()
    }

    fn say_end(&mut self) {
        for task in &mut self.tasks {
            task.say_now("end\n");
        }
    }

    /// Asks the job to end, waits for that, and returns its output.
    pub fn finish(mut self) -> Result<Finished> {
        self.say_end();
        let running = self.running.take().context("it has ended")?;
        running.finish_within(self.limit)
    }

    /// Asks several jobs to end because the race is to stop. Jobs that do not end within `LEAVE_TIMEOUT` are killed,
    /// all within the time for one.
    pub fn leave_together(mut players: Vec<Player>) -> Vec<Finished> {
        players.iter_mut().for_each(Player::say_end);
        let all = players.iter_mut().filter_map(|one| one.running.take());
        Running::finish_together(all.collect(), LEAVE_TIMEOUT)
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
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::stop::Stop;

    fn supervisor() -> Supervisor {
        Supervisor::new(&Stop::new().expect("a pair of sockets"))
    }

    /// Starts a job of `tasks` tasks, which are threads of this test that each run `act`. The launched process only
    /// sleeps.
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
            &supervisor(),
            &mut command,
            listener,
            &socket,
            tasks,
            Duration::from_secs(5),
        )
    }

    /// Acts as a task that answers each request, and reports 2.5 us for an operation.
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
        assert_eq!(
            player.prepare(&point(), 0.004).expect("it answers"),
            Some(70)
        );
        assert_eq!(player.slice(&point(), 70).expect("it answers"), 2.5);
    }

    #[test]
    fn a_job_that_cannot_run_a_point_goes_on_with_the_others() {
        let refusing = |mut stream: UnixStream| {
            let _ = stream.write_all(b"task 0 of 2\ncannot\nready 70\nready 70\ncannot\n");
            let _ = stream.read_to_end_of_words();
        };
        let mut player = play("refusing", 2, refusing).expect("both come");
        assert_eq!(player.prepare(&point(), 0.004).expect("it answers"), None);
        assert_eq!(
            player.prepare(&point(), 0.004).expect("it answers"),
            Some(70)
        );
    }

    #[test]
    fn a_part_in_which_a_task_had_no_processor_does_not_count() {
        let disturbed = |mut stream: UnixStream| {
            let _ = stream.write_all(b"task 0 of 2\ntook 2.5 2.5 4000 2.6 2.4\n");
            let _ = stream.read_to_end_of_words();
        };
        let mut player = play("disturbed", 2, disturbed).expect("both come");
        assert_eq!(player.slice(&point(), 70).expect("it answers"), 2.5);
    }

    #[test]
    fn tasks_that_time_different_numbers_of_parts_are_an_error() {
        let odd = |mut stream: UnixStream| {
            let _ = stream.write_all(b"task 0 of 1\ntook 1 2\ntook\nready 1 2\n");
            let _ = stream.read_to_end_of_words();
        };
        let mut player = play("odd", 1, odd).expect("it comes");
        assert_eq!(player.slice(&point(), 2).expect("it answers"), 1.5);
        assert!(player.slice(&point(), 2).is_err(), "no part is no time");
        assert!(player.prepare(&point(), 0.0).is_err(), "one number is due");
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
            refused.to_string().contains("did not start 2 tasks"),
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
        let refused = Player::start(&supervisor(), &mut command, listener, &socket, 1, limit).err();
        assert!(refused.is_some_and(|error| error.to_string().contains("ended before")));
        assert!(began.elapsed() < limit / 2);
        assert!(!socket.exists(), "it leaves nothing");
    }

    #[test]
    fn a_number_that_is_none_makes_the_others_worthless() {
        let lying = |mut stream: UnixStream| {
            let _ = stream.write_all(b"task 0 of 2\ntook nan\ntook inf\n");
            let _ = stream.read_to_end_of_words();
        };
        let mut player = play("lying", 2, lying).expect("it comes");
        assert!(player.slice(&point(), 1).is_err());
        assert!(player.slice(&point(), 1).is_err());
    }

    /// A heat whose race is to stop when its job has been launched and no task has sent anything.
    #[test]
    fn a_job_that_says_nothing_is_not_awaited_once_the_race_is_to_stop() {
        let socket =
            std::env::temp_dir().join(format!("regatta-player-mute-{}", std::process::id()));
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).expect("a place");
        let supervisor = supervisor();
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; sleep 1000; sleep 1000"]);
        let limit = Duration::from_secs(100);
        let began = Instant::now();
        let refused = std::thread::scope(|scope| {
            let start = || Player::start(&supervisor, &mut command, listener, &socket, 1, limit);
            let starting = scope.spawn(start);
            // The task connects and sends nothing, so its first line is awaited next.
            let task = UnixStream::connect(&socket).expect("it listens");
            supervisor.stop().ask(2);
            let refused = starting.join().expect("no panic").err();
            drop(task);
            refused
        });
        assert!(refused.is_some_and(|error| error.to_string().contains("was interrupted")));
        assert!(began.elapsed() < limit / 4, "{:?}", began.elapsed());
        assert!(supervisor.processes().is_empty());
    }

    /// Keeps a connection open until the other side closes it.
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
