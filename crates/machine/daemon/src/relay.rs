//! A channel through this daemon: a process of this host at one end, another daemon's shell at the other.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use regatta_membership::HostId;
use regatta_wire::session::{self, ChannelEnd, ChannelMessage};
use rustix::event::{PollFd, PollFlags};

use crate::channels::Cut;
use crate::talk::{Wire, wait};
use crate::witness;

/// Waits in each direction, at most about that much. Whole frames fit.
const FULL: usize = 256 << 10;
/// How long a launcher may take to take the last word.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it may take until it is known why a daemon that lives has hung up: it may have declared this host dead.
const VERDICT: Duration = Duration::from_secs(2);

/// Moves bytes until either side ends, or the channel is cut; then the launcher is told why. `arrived` is what has come of
/// each side already.
pub(crate) fn run(
    mut near: Wire,
    mut far: Wire,
    arrived: [Vec<u8>; 2],
    (host, peer): (&str, HostId),
    cut: &Cut,
) {
    let [mut up, mut down] = arrived.map(Way::new);
    let why = loop {
        up.pull(&mut near);
        let broken = up.push(&mut far).is_err();
        down.pull(&mut far);
        if down.push(&mut near).is_err() || down.is_done() || up.ended {
            return up.end(&mut far);
        }
        if let Some(why) = cut.why() {
            break why;
        }
        if down.ended || broken {
            break why_hung_up(&near, (host, peer), cut);
        }
        let mut fds = [
            PollFd::new(cut, PollFlags::IN),
            PollFd::from_borrowed_fd(near.as_fd(), up.reads() | down.writes(&near)),
            PollFd::from_borrowed_fd(far.as_fd(), down.reads() | up.writes(&far)),
        ];
        wait(&mut fds, None);
        // Also when nothing is to be read from the launcher at the moment.
        if fds[1].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            return up.end(&mut far);
        }
    };
    down.conclude(&mut near, why);
    up.end(&mut far);
}

/// Why the other side has hung up. If its daemon still listens, the reason is about to come; but nobody waits for it longer than
/// the launcher listens.
fn why_hung_up(near: &Wire, (host, peer): (&str, HostId), cut: &Cut) -> ChannelEnd {
    let ended = cut.why().is_none() && witness::is_daemon_gone(peer);
    if !ended {
        let until = Instant::now() + VERDICT;
        let near = PollFd::from_borrowed_fd(near.as_fd(), PollFlags::empty());
        wait(&mut [PollFd::new(cut, PollFlags::IN), near], Some(until));
    }
    let known = || ChannelEnd::HostGone {
        sentence: match ended {
            true => format!("the host {host} has hung up: its daemon has ended"),
            false => format!("the host {host} has hung up (has its daemon ended?)"),
        },
    };
    cut.why().unwrap_or_else(known)
}

/// One direction.
struct Way {
    waiting: Vec<u8>,
    /// How many of the waiting bytes are the rest of whole frames: only whole ones are begun.
    whole: usize,
    ended: bool,
    /// The last frame has come.
    closed: bool,
}

impl Way {
    fn new(waiting: Vec<u8>) -> Way {
        Way {
            waiting,
            whole: 0,
            ended: false,
            closed: false,
        }
    }

    fn is_done(&self) -> bool {
        self.closed && self.whole == 0
    }

    fn reads(&self) -> PollFlags {
        match self.waiting.len() < FULL {
            true => PollFlags::IN,
            false => PollFlags::empty(),
        }
    }

    fn writes(&self, to: &Wire) -> PollFlags {
        match self.whole > 0 || !to.is_flushed() {
            true => PollFlags::OUT,
            false => PollFlags::empty(),
        }
    }

    fn pull(&mut self, from: &mut Wire) {
        let mut piece = [0; 32 << 10];
        while self.waiting.len() < FULL && !self.ended {
            match from.recv(&mut piece) {
                Ok(Some(count)) => self.waiting.extend_from_slice(&piece[..count]),
                Ok(None) => return,
                Err(_) => self.ended = true,
            }
        }
    }

    /// An error: the other side takes nothing any more, or this one says nonsense.
    fn push(&mut self, to: &mut Wire) -> std::io::Result<()> {
        let more = session::whole(&self.waiting[self.whole..]);
        let (more, closes) = more.map_err(|_| std::io::ErrorKind::InvalidData)?;
        self.whole += more;
        self.closed |= closes;
        while self.whole > 0 {
            let sent = to.send(&self.waiting[..self.whole])?;
            self.waiting.drain(..sent);
            self.whole -= sent;
            if sent == 0 {
                break;
            }
        }
        to.flush()
    }

    /// Says that the launcher is gone, whatever became of it: only a host that is lost ends without a word. Returns when
    /// the other side has taken note.
    fn end(&mut self, to: &mut Wire) {
        self.waiting.truncate(self.whole);
        session::put(&ChannelMessage::EndOfInput {}, &mut self.waiting);
        let until = Instant::now() + PATIENCE;
        let mut piece = [0; 32 << 10];
        while Instant::now() < until {
            if self.push(to).is_err() {
                return;
            }
            // Closed with something unread, a connection would not deliver what was said last.
            match to.recv(&mut piece) {
                Ok(Some(_)) => continue,
                Ok(None) => {}
                Err(_) => return,
            }
            let flags = PollFlags::IN | self.writes(to);
            if !wait(&mut [PollFd::new(to, flags)], Some(until)) {
                return;
            }
        }
    }

    /// Ends it with a reason of ours.
    fn conclude(&mut self, to: &mut Wire, end: ChannelEnd) {
        self.waiting.truncate(self.whole);
        session::put(&ChannelMessage::Closed { end }, &mut self.waiting);
        let until = Instant::now() + PATIENCE;
        while self.push(to).is_ok() && self.whole > 0 {
            if !wait(&mut [PollFd::new(to, PollFlags::OUT)], Some(until)) {
                return;
            }
        }
    }
}
