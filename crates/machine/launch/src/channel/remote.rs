//! A host of the job, as the launcher sees it: a channel, and the state of the tasks at its other end.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use regatta_program::Refusal;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};
use rustix::time::Timespec;

use regatta_job::Credits;
use regatta_wire::control::StreamState;
use regatta_wire::session::FromJob;

use crate::channel::Link;
use crate::channel::daemon_channel::DaemonChannel;
use crate::channel::end::{ChannelEnd, SEVERED};
use crate::channel::messages::{Hello, Order, Report};
use crate::hosts::host_starter::HostSettings;
use crate::hosts::rsh;
use crate::plan::Across;
use crate::sys;
use crate::system::signals::Signals;

/// Interval between two keepalive messages of either side of a channel.
pub(crate) const BEAT_INTERVAL: Duration = Duration::from_millis(500);
/// Time limit for the end of the commands that carried the channels.
const COMMAND_END_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that the command of an ended channel has to end and to write its error message.
const LAST_WORD_TIMEOUT: Duration = Duration::from_secs(1);
/// The reason to give up a host whose reports are not expected.
pub(crate) const UNASKED: &str = "its agent sent an unexpected message";
/// Size of the tail of a channel command's output that is kept for error messages, in bytes.
const STDERR_TAIL_BYTES: usize = 4096;

/// A host, and the channel to its agent.
#[derive(Debug)]
pub(crate) struct Remote {
    pub name: String,
    /// The host's number in the job.
    pub number: u32,
    pub link: Link,
    pub hello: Option<Hello>,
    /// The host's tasks: all, those still to be started, and the pids of the running ones.
    pub ranks: HashSet<u32>,
    pub unstarted: Vec<u32>,
    pub running: BTreeMap<u32, u32>,
    /// The names of processes that its tasks have left behind.
    pub strays: String,
    /// Number of `StartSpawn` and `Admit` orders sent to it.
    pub starts: u32,
    /// Whether nothing of the job is left there.
    pub settled: bool,
    /// Whether nothing can be sent to it any more.
    pub lost: bool,
    /// The times of the last input and the last output.
    pub heard: Instant,
    spoken: Instant,
    /// The command that carries the channel, until it is reaped, and its status.
    command: Option<Pid>,
    status: Option<i32>,
    /// The time at which the end of the channel was noticed.
    ended: Option<Instant>,
    /// The time at which it was noticed that this host's daemon has closed the channel without a reason.
    severed: Option<Instant>,
    errors: Option<OwnedFd>,
    said: String,
    /// The host's settings from the request for it.
    pub settings: HostSettings,
    /// Whether the user has started its agent and the launcher has connected to it.
    pub called: bool,
}

impl Remote {
    /// Opens a channel to a host: through the daemons of the machine, or by the command that leads there.
    pub(crate) fn open(
        across: &Across,
        number: u32,
        name: &str,
        signals: &Signals,
    ) -> Result<Self, Refusal> {
        match across.machine() {
            None => Self::run(across, number, name, signals),
            Some((machine, job)) => {
                let (host, job) = (name.to_owned(), job.to_owned());
                let detachable = true;
                let request = FromJob::Open {
                    host,
                    job,
                    detachable,
                };
                Ok(Self::by_daemons(machine, number, name, &request))
            }
        }
    }

    /// Requests a channel from this host's daemon. If that is impossible, the returned host's channel has ended.
    pub(crate) fn by_daemons(machine: &str, number: u32, name: &str, request: &FromJob) -> Self {
        let link = Link::of_daemons(DaemonChannel::open(machine, request));
        let mut remote = Self::without_command(name, number, link);
        remote.called = false;
        remote
    }

    /// Runs the command that leads to a host.
    fn run(across: &Across, number: u32, name: &str, signals: &Signals) -> Result<Self, Refusal> {
        let mut command = rsh::command(across, name);
        // Signals that this process blocks would stay blocked in the agent's tasks, if the agent is on this machine.
        sys::start_with(&mut command, signals.before());
        let refused = |error: String| {
            let program = command_name(across);
            Refusal::of_regatta(format!(
                "the host {name} cannot be reached: {program} {error}"
            ))
        };
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => refused(
                "was not found; install it (openssh-client), or name another command with --rsh"
                    .to_owned(),
            ),
            _ => refused(format!("cannot be started: {error}")),
        })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(refused("has no input or output".to_owned()));
        };
        let errors = OwnedFd::from(errors);
        let link = Link::new(output.into(), input.into())
            .and_then(|link| rustix::io::ioctl_fionbio(&errors, true).map(|()| link))
            .map_err(|errno| refused(format!("cannot be read: {errno}")))?;
        let mut remote = Self::without_command(name, number, link);
        remote.command = Some(Pid::from_child(&child));
        remote.errors = Some(errors);
        remote.called = false;
        Ok(remote)
    }

    /// Returns a host of the job without a channel, because it is lost.
    pub(crate) fn absent(number: u32, name: &str) -> Result<Self, Refusal> {
        let nothing = || File::open("/dev/null").map(OwnedFd::from);
        let link = || -> std::io::Result<Link> { Ok(Link::new(nothing()?, nothing()?)?) };
        let link = link()
            .map_err(|error| Refusal::of_regatta(format!("/dev/null cannot be opened: {error}")))?;
        let mut remote = Self::without_command(name, number, link);
        remote.settled = true;
        Ok(remote)
    }

    /// Returns a host whose channel is not carried by a command of this process.
    pub(crate) fn without_command(name: &str, number: u32, link: Link) -> Self {
        Self {
            name: name.to_owned(),
            number,
            link,
            hello: None,
            ranks: HashSet::new(),
            unstarted: Vec::new(),
            running: BTreeMap::new(),
            strays: String::new(),
            starts: 0,
            settled: false,
            lost: false,
            heard: Instant::now(),
            spoken: Instant::now(),
            command: None,
            status: None,
            ended: None,
            severed: None,
            errors: None,
            said: String::new(),
            settings: HostSettings::default(),
            called: true,
        }
    }

    /// Returns whether a task is on this host.
    pub(crate) fn has(&self, rank: u32) -> bool {
        self.ranks.contains(&rank)
    }

    /// Updates the state of the host's tasks from a report. Fails with the reason if the host must be given up.
    pub(crate) fn note(&mut self, report: &Report, credits: &mut Credits) -> Result<(), String> {
        match report {
            &Report::Started { rank, pid } => self.note_started(rank, Some(pid))?,
            Report::SpawnStarted { task, pid, refused } => {
                self.note_started(*task, refused.is_none().then_some(*pid))?;
            }
            Report::Ended { task } => {
                let running = self.running.remove(&task.rank);
                running.ok_or_else(|| no_such_task(task.rank))?;
            }
            Report::Output {
                rank,
                stream,
                bytes,
            } if self.has(*rank) && *stream < 2 => credits.host_sent(self.number, bytes.len()),
            Report::Caught { piece }
                if self.has(piece.task)
                    && piece.stream < 2
                    && (piece.then != StreamState::Closed || piece.bytes.is_empty()) =>
            {
                let shown = piece.route.is_none().then_some(piece.bytes.len());
                credits.host_sent(self.number, shown.unwrap_or_default());
            }
            Report::Asked { task, .. } | Report::Heard { task, .. } | Report::Hushed { task }
                if self.has(*task) => {}
            Report::Output { .. }
            | Report::Caught { .. }
            | Report::Asked { .. }
            | Report::Heard { .. }
            | Report::Hushed { .. } => return Err(UNASKED.to_owned()),
            Report::Strays { names } => self.strays.clone_from(names),
            Report::Settled { starts } => self.settled = *starts == self.starts,
            _ => {}
        }
        Ok(())
    }

    /// Records that one of the tasks to be started runs with this pid, or will not start (`None`).
    fn note_started(&mut self, rank: u32, pid: Option<u32>) -> Result<(), String> {
        let at = self.unstarted.iter().position(|&task| task == rank);
        self.unstarted
            .swap_remove(at.ok_or_else(|| no_such_task(rank))?);
        self.running.extend(pid.map(|pid| (rank, pid)));
        Ok(())
    }

    /// Sends an order to the agent, unless it is lost.
    pub(crate) fn send(&mut self, order: &Order) -> Result<(), Refusal> {
        if self.lost {
            return Ok(());
        }
        self.spoken = Instant::now();
        self.link.send(order).map(|_| ()).map_err(|_| {
            Refusal::of_regatta(format!(
                "the arguments and the environment of the program are too long to be sent to the host {}",
                self.name
            ))
        })
    }

    /// Sends a keepalive if nothing has been sent for a while.
    pub(crate) fn beat(&mut self) {
        if !self.lost && self.spoken.elapsed() >= BEAT_INTERVAL {
            // A keepalive fits into every frame.
            let _ = self.send(&Order::Beat {});
        }
    }

    /// Sends a keepalive like [`Remote::beat`], but only if there is an agent and not just a shell.
    pub(crate) fn beat_if_greeted(&mut self) {
        if self.hello.is_some() {
            self.beat();
        }
    }

    /// Returns the time until the next keepalive.
    pub(crate) fn until_beat(&self) -> Duration {
        BEAT_INTERVAL.saturating_sub(self.spoken.elapsed())
    }

    /// Reads what has arrived. Returns whether there may be more.
    pub(crate) fn read(&mut self) -> bool {
        let count = self.link.read();
        if count > 0 {
            self.heard = Instant::now();
        }
        count > 0
    }

    /// Keeps the channel of an agent alive whose reports cannot be handled now. Its input must still be read: while it
    /// is not, the command of the channel may block on it and not pass on the keepalives to the agent. Everything that
    /// an agent sends without request is limited by a window, so it can be buffered.
    pub(crate) fn keep_up(&mut self) {
        self.link.flush();
        while self.read() {}
        self.read_errors();
        self.beat();
    }

    /// Returns whether nothing has been received for this long. Unread input counts as received: a launcher that was
    /// busy must not judge a host by the time of its own last read.
    pub(crate) fn is_silent(&mut self, silence: Duration) -> bool {
        self.heard.elapsed() >= silence && !self.read()
    }

    /// Records the agent's greeting. The output of the command before it is discarded.
    pub(crate) fn greeted(&mut self, hello: Hello) {
        self.errors();
        self.said.clear();
        self.hello = Some(hello);
    }

    /// Returns the descriptors to poll.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let errors = self
            .errors
            .iter()
            .map(|errors| PollFd::new(errors, PollFlags::IN));
        self.link.polls().filter(|_| !self.lost).chain(errors)
    }

    /// Reads the standard error of the command.
    pub(crate) fn read_errors(&mut self) {
        if let Some(channel) = self.link.daemons() {
            self.said += &String::from_utf8_lossy(&channel.take_errors());
        }
        let mut bytes = [0_u8; 1024];
        while let Some(errors) = &self.errors {
            match rustix::io::read(errors, &mut bytes) {
                Ok(0) => self.errors = None,
                Ok(count) => self.said += &String::from_utf8_lossy(&bytes[..count]),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(_) => self.errors = None,
            }
        }
        let excess = self.said.len().saturating_sub(STDERR_TAIL_BYTES);
        let cut = (excess..self.said.len()).find(|&at| self.said.is_char_boundary(at));
        self.said.drain(..cut.unwrap_or_default());
    }

    /// Takes the complete lines of the standard error, if the host has an agent.
    pub(crate) fn errors(&mut self) -> Vec<String> {
        self.read_errors();
        let end = self.said.rfind('\n').map_or(0, |end| end + 1);
        self.hand_out(end)
    }

    /// Takes all lines of the standard error, at the end of the job.
    pub(crate) fn last_errors(&mut self) -> Vec<String> {
        self.read_errors();
        self.hand_out(self.said.len())
    }

    fn hand_out(&mut self, end: usize) -> Vec<String> {
        if self.hello.is_none() || end == 0 {
            return Vec::new();
        }
        let lines = self.said.drain(..end).collect::<String>();
        let lines = lines.lines().map(str::trim_end);
        let lines = lines.filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    }

    /// Returns all text of the standard error that has not been taken.
    fn said(&mut self) -> String {
        let mut said = self.errors().join("\n");
        said.push('\n');
        said + &self.said
    }

    /// Records the end of a child, if it is this host's command.
    pub(crate) fn reaped(&mut self, pid: Pid, status: WaitStatus) {
        if self.command == Some(pid) {
            self.command = None;
            self.status = status
                .exit_status()
                .or(status.terminating_signal().map(|signal| 128 + signal));
        }
    }

    /// Returns the pid of the channel's command, while it runs.
    pub(crate) fn command(&self) -> Option<Pid> {
        self.command
    }

    /// Returns why the channel has ended. `None` if it has not, or if its command may still end soon and give a reason.
    /// Never blocks.
    pub(crate) fn end(&mut self) -> Option<ChannelEnd> {
        if !self.link.is_ended() {
            return None;
        }
        let end = self
            .link
            .daemons()
            .and_then(|channel| channel.end().cloned());
        let status = match end {
            Some(ChannelEnd::Command { status, .. }) => status,
            Some(end) => return Some(end),
            None if self.called => return Some(ChannelEnd::HungUp),
            None => {
                let since = *self.ended.get_or_insert_with(Instant::now);
                if !self.has_ended() && since.elapsed() < LAST_WORD_TIMEOUT {
                    return None;
                }
                self.status
            }
        };
        self.read_errors();
        let said = self.said();
        Some(ChannelEnd::Command { status, said })
    }

    /// Returns why the host must be given up, if it must. If this host's daemon has closed the channel without a
    /// reason, `has_daemon_ended` gets the time since then, and returns whether the daemon has ended, or `None` if that
    /// is not known yet.
    pub(crate) fn loss(
        &mut self,
        silence: Duration,
        has_daemon_ended: impl FnOnce(Duration) -> Option<bool>,
    ) -> Option<Loss> {
        if !self.link.is_ended() {
            let seconds = silence.as_secs_f32();
            let why = || format!("it has been silent for {seconds} s (--host-timeout)");
            return self.is_silent(silence).then(why).map(Loss::OfHost);
        }
        // Do not block: the other hosts must not wait for the command of one channel.
        let end = self.end()?;
        if end == ChannelEnd::OwnDaemon {
            let since = *self.severed.get_or_insert_with(Instant::now);
            match has_daemon_ended(since.elapsed()) {
                Some(true) => {}
                None if !self.is_silent(silence) => return None,
                _ => return Some(Loss::OfHost(SEVERED.to_owned())),
            }
        }
        Some(match end.is_of_this_host() {
            true => Loss::OfThisHost(end.cause()),
            false => Loss::OfHost(end.cause()),
        })
    }

    /// Returns whether this host's daemon has closed the channel without a reason, and it is not known whether the
    /// daemon has ended.
    pub(crate) fn is_severed(&self) -> bool {
        self.severed.is_some() && !self.lost
    }

    /// Returns the time until a channel that has ended is given up.
    pub(crate) fn until_concluded(&self) -> Option<Duration> {
        let since = self.ended.filter(|_| !self.lost)?;
        Some(LAST_WORD_TIMEOUT.saturating_sub(since.elapsed()))
    }

    /// Gives the host up: closes the channel and kills its command.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
        self.link.cut();
        if let Some(pid) = self.command {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }

    /// Returns whether the channel's command or daemons' channel has ended. Reaps the command, so it also works where
    /// no other code waits for children.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.await_end(Instant::now());
        let daemons = self.link.daemons();
        let carried = daemons.is_some_and(|channel| channel.end().is_none());
        self.command.is_none() && !carried
    }

    /// Waits until the carrier of the channel has ended, or until the given time.
    pub(crate) fn await_end(&mut self, until: Instant) {
        loop {
            let daemons = self.link.daemons();
            if daemons.is_none_or(|channel| channel.end().is_some()) {
                break;
            }
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
            let mut fds: Vec<PollFd> = self.link.polls().collect();
            let _ = regatta_connection::ready::poll(&mut fds, left.as_ref());
            drop(fds);
            self.link.flush();
            self.link.read();
            if Instant::now() >= until {
                break;
            }
        }
        let Some(pid) = self.command else { return };
        let Ok(fd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        let _ =
            regatta_connection::ready::poll(&mut [PollFd::new(&fd, PollFlags::IN)], left.as_ref());
        if let Ok(Some((_, status))) = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG) {
            self.reaped(pid, status);
        }
    }
}

/// The reason why a host is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The host is lost, for this cause.
    OfHost(String),
    /// This host is lost to the others, for this cause.
    OfThisHost(String),
}

/// Closes all channels, which ends what their agents still hold. Returns when their commands have ended.
pub(crate) fn part(remotes: &mut [Remote]) {
    let until = Instant::now() + COMMAND_END_TIMEOUT;
    for remote in remotes.iter_mut() {
        // An agent ends with its channel. Another process at its end may not notice that.
        if remote.hello.is_some() {
            remote.link.close();
            continue;
        }
        remote.link.cut();
        if let Some(pid) = remote.command {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }
    for remote in remotes.iter_mut() {
        remote.await_end(until);
        if !remote.has_ended() {
            remote.lose();
            remote.await_end(Instant::now() + COMMAND_END_TIMEOUT);
        }
    }
}

fn no_such_task(rank: u32) -> String {
    format!("its agent reported about task {rank}, which does not exist")
}

fn command_name(across: &Across) -> &str {
    across.rsh.as_ref().map_or("ssh", |words| &words[0])
}

#[cfg(test)]
mod tests {
    use regatta_job::registry::Piece;
    use regatta_job::{End, Ended};
    use regatta_segment::job::TaskState;
    use regatta_wire::control::RequestError;

    use super::*;
    use crate::channel::daemon_channel;

    fn open(script: &str) -> Remote {
        let across = Across {
            rsh: Some(["sh", "-c", script].map(str::to_owned).into()),
            ..Across::new(Vec::new())
        };
        let signals = Signals::catch().expect("signals");
        Remote::open(&across, 1, "beta", &signals).expect("a command")
    }

    fn await_end_of_channel(remote: &mut Remote, mut each: impl FnMut(&mut Remote)) {
        while !remote.link.is_ended() {
            rustix::event::poll(&mut remote.polls().collect::<Vec<_>>(), None).expect("a poll");
            remote.read();
            each(remote);
        }
    }

    #[test]
    fn a_host_is_not_silent_of_which_something_waits_to_be_read() {
        let (ours, theirs) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
        let nobody = File::options().write(true).open("/dev/null");
        let link = Link::new(ours, nobody.expect("/dev/null").into()).expect("a channel");
        let mut remote = Remote::without_command("beta", 1, link);
        let silence = Duration::from_secs(1);
        let long_ago = Instant::now().checked_sub(2 * silence);
        remote.heard = long_ago.expect("a clock that runs");
        rustix::io::write(&theirs, b"a beat").expect("room");
        assert!(!remote.is_silent(silence), "its beat was not read");
        assert!(!remote.is_silent(silence), "it has been heard now");
        remote.heard = long_ago.expect("a clock that runs");
        assert!(remote.is_silent(silence), "nothing has come");
    }

    /// Returns a host on which tasks 2 and 3 are to start.
    fn host() -> Remote {
        let mut remote = Remote::absent(1, "beta").expect("/dev/null");
        remote.unstarted = vec![2, 3];
        remote.ranks = [2, 3].into();
        remote
    }

    #[test]
    fn a_host_speaks_of_each_of_its_tasks_in_turn() {
        let (mut remote, mut credits) = (host(), Credits::default());
        let started = Report::Started { rank: 2, pid: 77 };
        let task = Ended {
            rank: 2,
            pid: 77,
            end: End::Exited(0),
            state: TaskState::Left,
        };
        let ended = Report::Ended { task };
        let unknown = Err(no_such_task(2));
        assert_eq!(
            remote.note(&ended, &mut credits),
            unknown,
            "it has not started"
        );
        assert_eq!(remote.note(&started, &mut credits), Ok(()));
        assert_eq!(
            remote.note(&started, &mut credits),
            unknown,
            "it has started before"
        );
        assert_eq!(remote.running, [(2, 77)].into());
        assert_eq!(remote.note(&ended, &mut credits), Ok(()));
        assert_eq!(
            remote.note(&ended, &mut credits),
            unknown,
            "it has ended before"
        );
        let refused = Report::SpawnStarted {
            task: 3,
            pid: 0,
            refused: Some((RequestError::System, String::new())),
        };
        assert_eq!(remote.note(&refused, &mut credits), Ok(()));
        assert!(remote.unstarted.is_empty() && remote.running.is_empty());
    }

    #[test]
    fn a_host_has_no_word_for_tasks_of_others_and_for_streams_that_there_are_not() {
        let (mut remote, mut credits) = (host(), Credits::default());
        let output = |rank: u32, stream: u32| Report::Output {
            rank,
            stream,
            bytes: vec![0; 9],
        };
        assert_eq!(remote.note(&output(2, 1), &mut credits), Ok(()));
        let caught = |then: StreamState| Report::Caught {
            piece: Piece {
                task: 3,
                stream: 0,
                route: None,
                bytes: vec![0; 2],
                then,
            },
        };
        assert_eq!(
            remote.note(&caught(StreamState::Ended), &mut credits),
            Ok(())
        );
        let unasked = [
            output(0, 1),
            output(2, 2),
            caught(StreamState::Closed),
            Report::Asked {
                task: 1,
                bytes: Vec::new(),
            },
            Report::Heard { task: 1, count: 1 },
            Report::Hushed { task: 1 },
        ];
        for report in unasked {
            assert_eq!(
                remote.note(&report, &mut credits),
                Err(UNASKED.to_owned()),
                "{report:?}"
            );
        }
        assert_eq!(credits.owed(1), 11);
    }

    #[test]
    fn a_host_that_has_started_less_than_it_was_told_is_not_settled() {
        let (mut remote, mut credits) = (host(), Credits::default());
        remote.starts = 2;
        for (starts, settled) in [(1, false), (2, true)] {
            assert_eq!(
                remote.note(&Report::Settled { starts }, &mut credits),
                Ok(())
            );
            assert_eq!(remote.settled, settled);
        }
    }

    #[test]
    fn one_channel_that_its_daemon_has_ended_without_a_word_is_the_loss_of_one_host() {
        let (channel, daemon) = daemon_channel::tests::opened();
        let mut remote = Remote::without_command("beta", 1, Link::of_daemons(channel));
        let silence = Duration::from_secs(10);
        assert_eq!(remote.loss(silence, |_| Some(true)), None);
        drop(daemon);
        while remote.read() {}
        assert_eq!(remote.loss(silence, |_| None), None);
        assert!(remote.is_severed());
        let own = Loss::OfThisHost(ChannelEnd::OwnDaemon.cause());
        assert_eq!(remote.loss(silence, |_| Some(true)), Some(own));
        let one = Some(Loss::OfHost(SEVERED.to_owned()));
        assert_eq!(remote.loss(silence, |_| Some(false)), one);
        assert_eq!(remote.loss(Duration::ZERO, |_| None), one);
    }

    #[test]
    fn nobody_waits_for_a_command_that_has_closed_its_channel_and_stays() {
        let mut remote = open("exec >&- 2>&-; read -r line; exit 3");
        await_end_of_channel(&mut remote, Remote::read_errors);
        let before = Instant::now();
        assert_eq!(remote.end(), None);
        assert!(
            before.elapsed() < LAST_WORD_TIMEOUT / 2,
            "it was waited for"
        );
        assert!(
            remote
                .until_concluded()
                .is_some_and(|left| left <= LAST_WORD_TIMEOUT)
        );
        remote.link.close();
        remote.await_end(Instant::now() + COMMAND_END_TIMEOUT);
        let end = remote.end();
        assert!(
            matches!(
                end,
                Some(ChannelEnd::Command {
                    status: Some(3),
                    ..
                })
            ),
            "{end:?}"
        );
    }
}
