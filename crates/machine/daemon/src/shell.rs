//! A shell of this host for a launcher elsewhere: `sh`, its input and output at one end, frames at the other.
//!
//! To the launcher the daemon is what sshd is: it runs `sh`, and bytes go both ways. When the channel ends the shell's input
//! does, and the agent in it ends everything that it started.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use regatta_launch::{CONNECTION, OWN_PROGRAM, Refusal, gives_up, owner_lost_line};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};

use crate::channels::Cut;
use crate::detached_session::{DetachedSession, Way};
use crate::frames::{self, Kind};
use crate::relay;
use crate::talk::{Wire, wait};
use crate::tasks;

/// Waits on its way to either side, at most about that much.
const FULL: usize = 256 << 10;
/// Of what a shell without a launcher says so many bytes are looked through for the word of an agent.
const KEPT: usize = 16 << 10;
/// How long a shell whose channel has ended may take to end what it started.
const PATIENCE: Duration = Duration::from_secs(8);

/// A shell that runs.
pub(crate) struct Shell {
    child: Child,
    input: Option<OwnedFd>,
    output: [Option<OwnedFd>; 2],
}

impl Shell {
    /// Starts it. `connection` is how the launcher's host and this one see each other.
    pub(crate) fn start(connection: &str) -> Result<Shell, Refusal> {
        let refused = |error: std::io::Error| {
            Refusal::of_regatta(format!("no shell can be started: {error}"))
        };
        let own = format!("/proc/{}/exe", std::process::id());
        let mut command = Command::new("/bin/sh");
        command
            .env(OWN_PROGRAM, own)
            .env(CONNECTION, connection)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(home) =
            std::env::var_os("HOME").filter(|home| std::path::Path::new(home).is_dir())
        {
            command.current_dir(home);
        }
        let mut child = command.spawn().map_err(refused)?;
        let input = child.stdin.take().map(OwnedFd::from);
        let output = [
            child.stdout.take().map(OwnedFd::from),
            child.stderr.take().map(OwnedFd::from),
        ];
        for fd in input.iter().chain(output.iter().flatten()) {
            rustix::io::ioctl_fionbio(fd, true).map_err(|errno| refused(errno.into()))?;
        }
        Ok(Shell {
            child,
            input,
            output,
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Serves the channel to the end of either side, and returns when nothing of the shell is left. With a detached session it
    /// outlives the host of its launcher.
    pub(crate) fn serve(
        mut self,
        wire: Wire,
        arrived: Vec<u8>,
        cut: &Cut,
        session: Option<&DetachedSession>,
    ) {
        let mut pump = Pump::new(wire, arrived);
        loop {
            match self.carry(&mut pump, cut, session) {
                Parting::Finished => return,
                Parting::Ended => break,
                Parting::Lost => {
                    // Bytes on their way to the shell are the beginning of something whose end will never come.
                    let next = session.and_then(|session| self.wait_for_another(session, cut));
                    let Some((way, line)) = next else { break };
                    pump = Pump::claimed(way, &line);
                }
            }
        }
        // Processes that read see the end; processes that write get an error.
        self.input = None;
        self.output = [None, None];
        drop(pump);
        if !self.await_end(PATIENCE) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }

    /// Carries bytes while both sides are there.
    fn carry(&mut self, pump: &mut Pump, cut: &Cut, session: Option<&DetachedSession>) -> Parting {
        while !pump.over && cut.why().is_none() {
            if let Some(session) = session {
                // Before the look at what it is rung for.
                session.hush();
                if session.has_lost_owner() && !pump.ended {
                    return Parting::Lost;
                }
            }
            if pump.is_withdrawn() {
                break;
            }
            match pump.turn(self) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    return Parting::Ended;
                }
                Err(_) => break,
            }
            let silent = self.output.iter().all(Option::is_none);
            if silent && self.await_end(Duration::ZERO) {
                let status = self
                    .child
                    .wait()
                    .map_or(1, |status| status.code().unwrap_or(1));
                frames::put(&mut pump.out, Kind::Status, &status.to_le_bytes());
                pump.finish();
                return Parting::Finished;
            }
            pump.wait(self, cut, session);
        }
        // A claim that was taken back changes nothing.
        if let Some(session) = session.filter(|_| !pump.used && cut.why().is_none()) {
            session.owner_is_lost();
            return Parting::Lost;
        }
        // A launcher on this host has no daemon between that could tell it why.
        if let Some(why) = cut.why().filter(|_| !matches!(pump.wire, Wire::Far(_))) {
            relay::excuse(&mut pump.out, &why);
            pump.finish();
        }
        // A launcher that has ended has said so, or its daemon has.
        let lost = cut.why().is_none() && session.is_some() && !pump.has_said_end();
        match lost {
            true => Parting::Lost,
            false => Parting::Ended,
        }
    }

    /// The launcher's host is lost, or its connection has broken. Another launcher, if one comes, and the line in which the agent has said
    /// that its owner is lost.
    fn wait_for_another(&mut self, session: &DetachedSession, cut: &Cut) -> Option<(Way, Vec<u8>)> {
        let unsure = Instant::now() + session.patience;
        let (mut said, mut latest) = (Vec::new(), Vec::new());
        if !tasks::has_agent(self.pid()) {
            return None;
        }
        while cut.why().is_none() {
            session.hush();
            self.listen(&mut said);
            if let Some(line) = owner_lost_line(&said) {
                latest = line.to_vec();
                said.clear();
                session.agent_knows();
            }
            if let Some(next) = session.next() {
                return Some((next, latest));
            }
            let silent = self.output.iter().all(Option::is_none);
            let until = (!session.has_lost_owner()).then_some(unsure);
            let over = until.is_some_and(|until| Instant::now() >= until);
            if over || silent && self.await_end(Duration::ZERO) {
                return None;
            }
            let pidfd = rustix::process::pidfd_open(self.pid(), PidfdFlags::empty()).ok()?;
            let mut fds = vec![
                PollFd::new(cut, PollFlags::IN),
                PollFd::new(session, PollFlags::IN),
            ];
            match silent {
                true => fds.push(PollFd::new(&pidfd, PollFlags::IN)),
                false => {
                    let open = self.output.iter().flatten();
                    fds.extend(open.map(|fd| PollFd::new(fd, PollFlags::IN)));
                }
            }
            wait(&mut fds, until);
        }
        None
    }

    /// Reads what there is of the shell's output, of which only the last words count.
    fn listen(&mut self, said: &mut Vec<u8>) {
        let mut piece = [0; 32 << 10];
        for (number, stream) in self.output.iter_mut().enumerate() {
            while let Some(fd) = &stream {
                match rustix::io::read(fd, &mut piece) {
                    Ok(0) => *stream = None,
                    Ok(count) if number == 0 => said.extend_from_slice(&piece[..count]),
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(rustix::io::Errno::AGAIN) => break,
                    Err(_) => *stream = None,
                }
            }
        }
        said.drain(..said.len().saturating_sub(KEPT));
    }

    /// Whether it ends within this time.
    fn await_end(&self, limit: Duration) -> bool {
        let Ok(fd) = rustix::process::pidfd_open(self.pid(), PidfdFlags::empty()) else {
            return true;
        };
        wait(
            &mut [PollFd::new(&fd, PollFlags::IN)],
            Some(Instant::now() + limit),
        )
    }
}

/// How a channel ended.
enum Parting {
    /// The shell has, and it was said.
    Finished,
    /// Its launcher has ended it, or whoever cut it.
    Ended,
    /// Its other end is gone without a word.
    Lost,
}

/// Bytes between a wire and a shell.
struct Pump {
    wire: Wire,
    /// From the wire, not looked at; for the shell; for the wire.
    arrived: Vec<u8>,
    input: Vec<u8>,
    out: Vec<u8>,
    /// No more input comes.
    ended: bool,
    /// A launcher speaks on the channel. One that has claimed it, and sent nothing or that it gives up, has withdrawn when it ends.
    used: bool,
    /// The first bytes of a launcher that has claimed the channel, until it is known which word they begin.
    first: Vec<u8>,
    /// The channel has ended.
    over: bool,
}

impl Pump {
    fn new(wire: Wire, arrived: Vec<u8>) -> Pump {
        Pump {
            wire,
            arrived,
            input: Vec::new(),
            out: Vec::new(),
            ended: false,
            used: true,
            first: Vec::new(),
            over: false,
        }
    }

    /// To a launcher that has claimed the channel of a waiting agent: it gets the agent's latest line.
    fn claimed((wire, arrived): Way, line: &[u8]) -> Pump {
        let mut pump = Pump::new(wire, arrived);
        pump.used = false;
        frames::put(&mut pump.out, Kind::Data, line);
        pump
    }

    /// Whether the channel was claimed, and the claim has been taken back.
    fn is_withdrawn(&self) -> bool {
        self.ended && !self.used && self.input.is_empty()
    }

    /// Whether the launcher's side has said that it ends: the last thing that comes.
    fn has_said_end(&mut self) -> bool {
        let mut piece = [0; 32 << 10];
        while let Ok(Some(count)) = self.wire.recv(&mut piece) {
            self.arrived.extend_from_slice(&piece[..count]);
            if self.unpack().is_err() {
                return true;
            }
            self.input.clear();
        }
        self.unpack().is_err() || self.ended
    }

    /// Moves what can be moved. An error: the channel has ended, or says nonsense.
    fn turn(&mut self, shell: &mut Shell) -> std::io::Result<()> {
        let mut piece = [0; 32 << 10];
        while self.input.len() + self.arrived.len() < FULL {
            match self.wire.recv(&mut piece) {
                Ok(Some(count)) => self.arrived.extend_from_slice(&piece[..count]),
                Ok(None) => break,
                Err(_) => {
                    self.over = true;
                    break;
                }
            }
        }
        self.unpack()?;
        self.feed(shell);
        for (stream, kind) in shell.output.iter_mut().zip([Kind::Data, Kind::Error]) {
            while let Some(fd) = stream.as_ref().filter(|_| self.out.len() < FULL) {
                match rustix::io::read(fd, &mut piece) {
                    Ok(0) => *stream = None,
                    Ok(count) => frames::put(&mut self.out, kind, &piece[..count]),
                    Err(rustix::io::Errno::AGAIN) => break,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => *stream = None,
                }
            }
        }
        self.send()
    }

    /// Frames that have come, as input of the shell.
    fn unpack(&mut self) -> std::io::Result<()> {
        let mut taken = 0;
        loop {
            let frame = frames::take(&self.arrived[taken..]);
            let frame = frame.map_err(|_| std::io::Error::from(std::io::ErrorKind::InvalidData))?;
            let Some((kind, bytes, length)) = frame else {
                break;
            };
            match (kind, bytes) {
                (Kind::Data, []) => self.ended = true,
                (Kind::Data, bytes) => {
                    if !self.used {
                        self.first.extend_from_slice(bytes);
                        self.used = !gives_up(&self.first);
                    }
                    self.input.extend_from_slice(bytes);
                }
                _ => return Err(std::io::ErrorKind::InvalidData.into()),
            }
            taken += length;
        }
        self.arrived.drain(..taken);
        Ok(())
    }

    fn feed(&mut self, shell: &mut Shell) {
        let mut taken = 0;
        while let Some(fd) = shell.input.as_ref().filter(|_| taken < self.input.len()) {
            match rustix::io::write(fd, &self.input[taken..]) {
                Ok(count) => taken += count,
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => shell.input = None,
            }
        }
        self.input.drain(..taken);
        if self.ended && self.used && self.input.is_empty() {
            shell.input = None;
        }
        if shell.input.is_none() {
            self.input.clear();
        }
    }

    fn send(&mut self) -> std::io::Result<()> {
        let mut sent = 0;
        while sent < self.out.len() {
            match self.wire.send(&self.out[sent..])? {
                0 => break,
                count => sent += count,
            }
        }
        self.out.drain(..sent);
        self.wire.flush()
    }

    fn wait(&mut self, shell: &Shell, cut: &Cut, session: Option<&DetachedSession>) {
        let mut flags = PollFlags::empty();
        if self.input.len() + self.arrived.len() < FULL {
            flags |= PollFlags::IN;
        }
        if !self.out.is_empty() || !self.wire.is_flushed() {
            flags |= PollFlags::OUT;
        }
        let mut fds = vec![
            PollFd::new(&self.wire, flags),
            PollFd::new(cut, PollFlags::IN),
        ];
        fds.extend(session.map(|session| PollFd::new(session, PollFlags::IN)));
        if self.out.len() < FULL {
            let open = shell.output.iter().flatten();
            fds.extend(open.map(|fd| PollFd::new(fd, PollFlags::IN)));
        }
        let feeding = shell.input.as_ref().filter(|_| !self.input.is_empty());
        fds.extend(feeding.map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::OUT)));
        let ended = shell.output.iter().all(Option::is_none);
        let pidfd = rustix::process::pidfd_open(shell.pid(), PidfdFlags::empty());
        if let Some(fd) = pidfd.as_ref().ok().filter(|_| ended) {
            fds.push(PollFd::new(fd, PollFlags::IN));
        }
        wait(&mut fds, None);
        // Also when nothing is to be read at the moment.
        let gone = fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
        drop(fds);
        self.over |= gone;
    }

    /// Sends what is left, to somebody who listens.
    fn finish(&mut self) {
        let until = Instant::now() + PATIENCE;
        while self.send().is_ok() && (!self.out.is_empty() || !self.wire.is_flushed()) {
            if !wait(&mut [PollFd::new(&self.wire, PollFlags::OUT)], Some(until)) {
                return;
            }
        }
    }
}
