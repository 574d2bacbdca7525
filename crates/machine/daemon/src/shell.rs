//! A shell on this host for a launcher elsewhere: `sh`, with its input and output on one side and messages on the
//! other.
//!
//! To the launcher the daemon is what sshd is: it runs `sh` and carries bytes in both directions. When the channel
//! ends, the shell's input ends, and the agent in it ends everything that it started. An agent that another launcher
//! takes over gets a socket to replace its input and output.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use regatta_launch::{CONNECTION, OWN_PROGRAM, Refusal, SESSION};
use regatta_wire::framing::FrameReader;
use regatta_wire::session::{self, ChannelEnd, ChannelMessage, Stream};
use rustix::event::{PollFd, PollFlags};
use rustix::net::Shutdown;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions};

use crate::budget::{OVER, Share};
use crate::channels::Cut;
use crate::dead_connection::DeathWatch;
use crate::detached_session::{DetachedSession, LauncherLink};
use crate::last_words::LastWords;
use crate::talk::{Wire, wait};
use crate::tasks;

/// Backlog per direction from which on no more is read, in bytes; exceeded by one chunk at most.
const BACKLOG_LIMIT_BYTES: usize = 256 << 10;
/// Time in which a shell whose channel has ended must end what it started, before it is killed.
const SHELL_END_TIMEOUT: Duration = Duration::from_secs(8);
/// Size of one read, in bytes.
const READ_BYTES: usize = 32 << 10;
/// Maximum number of bytes read from a connection that has ended: more than the kernels buffer for one.
const MAX_DRAIN_BYTES: usize = 16 << 20;
/// Time for which a shell may read none of its remaining input before the rest is dropped.
const DRAIN_STALL_TIMEOUT: Duration = Duration::from_secs(2);

/// A running shell.
pub(crate) struct Shell {
    child: Child,
    input: Option<OwnedFd>,
    output: [Option<OwnedFd>; 2],
    /// The agent's previous input and output, kept open until it has certainly let go of them, since it takes their end
    /// for the end of its job.
    former: [Option<OwnedFd>; 2],
}

impl Shell {
    /// Starts a shell. `connection` has the addresses by which the launcher's host and this one reach each other, and
    /// `session` is its number here.
    pub(crate) fn start(connection: &str, session: u64) -> Result<Shell, Refusal> {
        let refused = |error: std::io::Error| {
            Refusal::of_regatta(format!("the shell cannot be started: {error}"))
        };
        let own = format!("/proc/{}/exe", std::process::id());
        let mut command = Command::new("/bin/sh");
        command
            .env(OWN_PROGRAM, own)
            .env(CONNECTION, connection)
            .env(SESSION, session.to_string())
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
            former: [None, None],
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Serves the channel until either side ends, and returns when the shell has ended. With a detached session the
    /// shell outlives the host of its launcher. Returns the last words for a launcher of this host, which may not have
    /// read them yet.
    ///
    /// The process has ended then and is reaped when this is dropped: a channel in the list refers to it by its process
    /// id, which must not be reused before.
    pub(crate) fn serve(
        &mut self,
        (wire, arrived): LauncherLink,
        cut: &Cut,
        session: Option<&DetachedSession>,
        watch: &mut DeathWatch,
    ) -> Option<LastWords> {
        let mut pump = Pump::new(wire, arrived);
        loop {
            match self.carry(&mut pump, cut, session) {
                Parting::Finished(end) => {
                    return pump.finish(end, cut, session, watch);
                }
                Parting::Ended => break,
                Parting::Lost => {
                    // Bytes on their way to the shell are the beginning of a message whose end will never be received.
                    pump.forget();
                    let next = session.and_then(|session| self.await_launcher(session, cut));
                    let Some((wire, arrived)) = next else { break };
                    pump = Pump::new(wire, arrived);
                }
            }
        }
        // Processes that read see the end; processes that write get an error.
        self.input = None;
        (self.output, self.former) = ([None, None], [None, None]);
        // A launcher on this host has no other daemon that could tell it the reason.
        let end = cut.why().filter(|_| pump.is_local());
        let mut last = end.map(|end| pump.conclude(end));
        // The launcher may not read for a long time, but its shell ends now.
        let now = Instant::now();
        last.iter_mut()
            .for_each(|last| last.deliver_until(Some(now)));
        if !self.await_end(SHELL_END_TIMEOUT) {
            let _ = self.child.kill();
        }
        self.status();
        last.iter_mut().for_each(LastWords::try_deliver);
        last
    }

    /// Carries bytes while both sides exist.
    fn carry(&mut self, pump: &mut Pump, cut: &Cut, session: Option<&DetachedSession>) -> Parting {
        while !pump.over && cut.why().is_none() {
            if let Some(session) = session {
                // Reset the bell before checking the state for which it rings.
                session.hush();
                if session.has_lost_owner() && !pump.ended {
                    return Parting::Lost;
                }
            }
            match pump.turn(self) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    pump.feed_rest(self, cut);
                    return Parting::Ended;
                }
                Err(_) => break,
            }
            let silent = self.output.iter().all(Option::is_none);
            if silent && self.await_end(Duration::ZERO) {
                let status = self.status();
                return Parting::Finished(ChannelEnd::ShellEnded { status });
            }
            pump.wait(self, cut, session);
        }
        if cut.why().is_some() {
            return Parting::Ended;
        }
        // A launcher that has ended has said so, or its daemon has.
        if !pump.has_said_end() && session.is_some() {
            return Parting::Lost;
        }
        pump.feed_rest(self, cut);
        Parting::Ended
    }

    /// Waits for another launcher after the launcher's host is lost or its connection has broken. Returns the
    /// connection to a launcher that leads, or `None` if there is none.
    fn await_launcher(&mut self, session: &DetachedSession, cut: &Cut) -> Option<LauncherLink> {
        let unsure = Instant::now() + session.patience;
        let mut claim: Option<Claim> = None;
        if !tasks::has_agent(self.pid()) {
            return None;
        }
        while cut.why().is_none() {
            session.hush();
            self.discard();
            claim = claim.or_else(|| session.next().map(Claim::new));
            if let Some(mut claimed) = claim.take() {
                match claimed.next_message() {
                    ClaimMessage::None if !session.is_claimer_lost() => claim = Some(claimed),
                    ClaimMessage::Leads(run) => match session.lead(&run) {
                        Some(socket) => {
                            self.replace(socket).ok()?;
                            return Some(claimed.into_link());
                        }
                        None => claimed.end(),
                    },
                    ClaimMessage::GivesUp(run) => {
                        session.give_up(&run);
                        claimed.end();
                    }
                    ClaimMessage::None | ClaimMessage::Ended => session.withdraw(),
                }
                if claim.is_none() {
                    continue;
                }
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
            fds.extend(claim.iter().map(|it| PollFd::new(&it.wire, PollFlags::IN)));
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

    /// Reads and discards the shell's output.
    fn discard(&mut self) {
        let mut piece = [0; READ_BYTES];
        for stream in &mut self.output {
            while let Some(fd) = &stream {
                match rustix::io::read(fd, &mut piece) {
                    Ok(1..) | Err(rustix::io::Errno::INTR) => {}
                    Err(rustix::io::Errno::AGAIN) => break,
                    Ok(0) | Err(_) => *stream = None,
                }
            }
        }
    }

    /// Replaces the agent's input and output by this socket.
    fn replace(&mut self, socket: OwnedFd) -> std::io::Result<()> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let input = self.input.replace(socket.try_clone()?);
        let output = self.output[0].replace(socket);
        self.former = [input, output];
        Ok(())
    }

    /// Ends the shell's input. Of a socket only this direction is shut down.
    fn end_input(&mut self) {
        if let Some(input) = self.input.take() {
            let _ = rustix::net::shutdown(&input, Shutdown::Write);
        }
    }

    /// Waits for the shell's end and returns its status.
    fn status(&self) -> i32 {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let ended = rustix::process::waitid(WaitId::Pid(self.pid()), options);
        let status = ended.ok().flatten().and_then(|ended| ended.exit_status());
        status.unwrap_or(1)
    }

    /// Waits at most for `limit`. Returns whether the shell has ended.
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

impl Drop for Shell {
    fn drop(&mut self) {
        // It has ended, unless it was never served.
        let _ = self.child.try_wait();
    }
}

/// How the carrying of a channel ended.
enum Parting {
    /// The shell has ended.
    Finished(ChannelEnd),
    /// The launcher has ended the channel, or it was cut.
    Ended,
    /// The other end is gone without a message.
    Lost,
}

/// A launcher that has claimed the session, and has not said whether it leads.
struct Claim {
    wire: Wire,
    arrived: FrameReader,
}

/// The next message of that launcher.
enum ClaimMessage {
    None,
    /// It leads; the run of its host.
    Leads(String),
    GivesUp(String),
    Ended,
}

impl Claim {
    fn new((wire, bytes): LauncherLink) -> Claim {
        let mut arrived = FrameReader::default();
        arrived.push(&bytes);
        Claim { wire, arrived }
    }

    fn next_message(&mut self) -> ClaimMessage {
        let mut piece = [0; 4096];
        loop {
            match self.arrived.next_message_within(session::MAX_MESSAGE_BYTES) {
                Ok(Some(ChannelMessage::Lead { run })) => return ClaimMessage::Leads(run),
                Ok(Some(ChannelMessage::GiveUp { run })) => return ClaimMessage::GivesUp(run),
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return ClaimMessage::Ended,
            }
            match self.wire.recv(&mut piece) {
                Ok(Some(count)) => self.arrived.push(&piece[..count]),
                Ok(None) => return ClaimMessage::None,
                Err(_) => return ClaimMessage::Ended,
            }
        }
    }

    /// Returns the connection, with what the launcher has sent after its message.
    fn into_link(self) -> LauncherLink {
        (self.wire, self.arrived.unread().to_vec())
    }

    /// Tells the launcher that it does not have the session.
    fn end(self) {
        let sentence = "its agent does not follow this launcher now".to_owned();
        let end = ChannelEnd::HostGone { sentence };
        Pump::new(self.wire, Vec::new()).conclude(end).try_deliver();
    }
}

/// Carries bytes between a wire and a shell.
struct Pump {
    wire: Wire,
    /// Bytes received on the wire and not decoded; input for the shell; messages for the wire.
    arrived: FrameReader,
    input: Vec<u8>,
    out: Vec<u8>,
    /// Share of the budget for bytes of a connection that has ended.
    rest: Share,
    /// Whether the input has ended.
    ended: bool,
    /// Whether the channel has ended.
    over: bool,
}

impl Pump {
    fn new(wire: Wire, bytes: Vec<u8>) -> Pump {
        let mut arrived = FrameReader::default();
        arrived.push(&bytes);
        Pump {
            wire,
            arrived,
            input: Vec::new(),
            out: Vec::new(),
            rest: Share::none(&OVER),
            ended: false,
            over: false,
        }
    }

    /// Returns whether more input of the launcher may be read.
    fn has_room(&self) -> bool {
        self.input.len() + self.arrived.unread().len() < BACKLOG_LIMIT_BYTES
    }

    fn is_local(&self) -> bool {
        matches!(self.wire, Wire::Local(_))
    }

    /// Discards all bytes that are on their way.
    fn forget(&mut self) {
        (self.input, self.out, self.arrived) = Default::default();
        self.rest = Share::none(&OVER);
    }

    /// Reads everything that is left. Returns whether the launcher's side has ended the input, which is the last
    /// message.
    fn has_said_end(&mut self) -> bool {
        let mut piece = [0; READ_BYTES];
        while self.input.len() < MAX_DRAIN_BYTES
            && self.rest.grow(READ_BYTES)
            && let Ok(Some(count)) = self.wire.recv(&mut piece)
        {
            self.rest.shrink(READ_BYTES - count);
            self.arrived.push(&piece[..count]);
            if self.unpack().is_err() {
                return true;
            }
        }
        self.unpack().is_err() || self.ended
    }

    /// Passes the shell what its launcher sent before it ended, as long as the shell reads some of it.
    fn feed_rest(&mut self, shell: &mut Shell, cut: &Cut) {
        let mut until = Instant::now() + DRAIN_STALL_TIMEOUT;
        loop {
            let before = self.input.len();
            self.feed(shell);
            // A shell that cannot write may not read either.
            shell.discard();
            let Some(input) = shell.input.as_ref().filter(|_| !self.input.is_empty()) else {
                return;
            };
            if self.input.len() < before {
                until = Instant::now() + DRAIN_STALL_TIMEOUT;
            }
            let mut fds = vec![
                PollFd::new(cut, PollFlags::IN),
                PollFd::new(input, PollFlags::OUT),
            ];
            let open = shell.output.iter().flatten();
            fds.extend(open.map(|fd| PollFd::new(fd, PollFlags::IN)));
            if !wait(&mut fds, Some(until)) || cut.why().is_some() {
                return;
            }
        }
    }

    /// Moves the bytes that can be moved now. Fails if the channel has ended, or has received an invalid message.
    fn turn(&mut self, shell: &mut Shell) -> std::io::Result<()> {
        let mut piece = [0; READ_BYTES];
        while self.has_room() {
            match self.wire.recv(&mut piece) {
                Ok(Some(count)) => self.arrived.push(&piece[..count]),
                Ok(None) => break,
                Err(_) => {
                    self.over = true;
                    break;
                }
            }
        }
        self.unpack()?;
        self.feed(shell);
        for (stream, kind) in shell.output.iter_mut().zip([Stream::Data, Stream::Errors]) {
            while let Some(fd) = stream
                .as_ref()
                .filter(|_| self.out.len() < BACKLOG_LIMIT_BYTES)
            {
                match rustix::io::read(fd, &mut piece) {
                    Ok(0) => *stream = None,
                    Ok(count) => _ = session::put_piece(kind, &piece[..count], &mut self.out),
                    Err(rustix::io::Errno::AGAIN) => break,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => *stream = None,
                }
            }
        }
        self.send()
    }

    /// Decodes received messages into input for the shell.
    fn unpack(&mut self) -> std::io::Result<()> {
        let nonsense = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        loop {
            let next = self.arrived.next_message_within(session::MAX_MESSAGE_BYTES);
            match next.map_err(|_| nonsense())? {
                None => return Ok(()),
                Some(ChannelMessage::EndOfInput {}) => self.ended = true,
                Some(ChannelMessage::Data { mut bytes }) => self.input.append(&mut bytes),
                Some(_) => return Err(nonsense()),
            }
        }
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
        if self.ended && self.input.is_empty() {
            shell.end_input();
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
        if self.has_room() {
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
        if self.out.len() < BACKLOG_LIMIT_BYTES {
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
        // Checked even when nothing is to be read at the moment.
        let gone = fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
        drop(fds);
        self.over |= gone;
    }

    /// Sends what is left, and the reason for the end. Returns what a launcher of this host has not read yet.
    fn finish(
        mut self,
        end: ChannelEnd,
        cut: &Cut,
        session: Option<&DetachedSession>,
        watch: &mut DeathWatch,
    ) -> Option<LastWords> {
        if !self.is_local() {
            session::put(&ChannelMessage::Closed { end }, &mut self.out);
            self.hand_over(cut, session, watch);
            return None;
        }
        let mut last = self.conclude(end);
        last.try_deliver();
        Some(last)
    }

    /// Sends the last messages to the daemon of the launcher's host, and returns when it has closed the connection,
    /// which it does when it has received them all. Closing the connection with unread bytes, or after the peer has
    /// sent more, would lose what is still on its way. A host may be suspended for long, so there is no time limit:
    /// this ends with the verdict of the machine, the end of this daemon, or the finding that the host answers and only
    /// this connection does not.
    fn hand_over(&mut self, cut: &Cut, session: Option<&DetachedSession>, watch: &mut DeathWatch) {
        self.wire.enable_keepalive();
        let mut piece = [0; READ_BYTES];
        loop {
            session.iter().for_each(|session| session.hush());
            // Even if the channel has been cut: what the kernel takes at once may still be delivered.
            if self.send().is_err() {
                return;
            }
            let is_sent = self.out.is_empty() && self.wire.is_flushed();
            if is_sent {
                let _ = rustix::net::shutdown(&self.wire, Shutdown::Write);
            }
            let is_lost = session.is_some_and(DetachedSession::has_lost_owner);
            if is_lost || cut.why().is_some() {
                return;
            }
            match self.wire.recv(&mut piece) {
                // What the other side still sends is not needed any more.
                Ok(Some(_)) => continue,
                Ok(None) => {}
                Err(_) => return,
            }
            let now = Instant::now();
            if watch.is_dead(&self.wire, now) {
                return;
            }
            let flags = match is_sent {
                true => PollFlags::IN,
                false => PollFlags::IN | PollFlags::OUT,
            };
            let mut fds = vec![
                PollFd::new(&self.wire, flags),
                PollFd::new(cut, PollFlags::IN),
            ];
            fds.extend(session.map(|session| PollFd::new(session, PollFlags::IN)));
            wait(&mut fds, Some(watch.next_look(now)));
        }
    }

    fn conclude(mut self, end: ChannelEnd) -> LastWords {
        session::put(&ChannelMessage::Closed { end }, &mut self.out);
        LastWords::new(self.wire, self.out, self.rest)
    }
}

#[cfg(test)]
mod tests;
