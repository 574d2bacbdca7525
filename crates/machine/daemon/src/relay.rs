//! A channel through this daemon, between a process of this host and a shell of another daemon.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use regatta_membership::HostId;
use regatta_wire::Malformed;
use regatta_wire::session::{self, ChannelEnd, ChannelMessage};
use rustix::event::{PollFd, PollFlags};

use crate::budget::{Budget, OVER, Share};
use crate::channels::Cut;
use crate::last_words::LastWords;
use crate::talk::{self, Wire, wait};
use crate::witness;

/// Backlog per direction from which on no more is read, in bytes; complete frames fit.
const BACKLOG_LIMIT_BYTES: usize = 256 << 10;
/// Maximum number of bytes read from a connection that has ended: more than the kernels buffer for one.
const MAX_DRAIN_BYTES: usize = 16 << 20;
/// Size of one read, in bytes.
const READ_BYTES: usize = 32 << 10;
/// Time for which the other daemon may take none of the remaining bytes, or may take to close the connection after the
/// last message.
const DRAIN_STALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for learning why a live daemon has closed the connection: it may have declared this host dead.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(2);

/// Moves bytes until either side ends, or the channel is cut. `arrived` has the bytes already received from each side.
/// Returns the last words for a launcher that has to be told the reason and may not have read it yet.
pub(crate) fn run(
    mut near: Wire,
    mut far: Wire,
    arrived: [Vec<u8>; 2],
    (host, peer): (&str, HostId),
    cut: &Cut,
) -> Option<LastWords> {
    let [mut up, mut down] = arrived.map(|waiting| Direction::new(waiting, &OVER));
    let why = loop {
        up.pull(&mut near);
        let sent_up = up.push(&mut far);
        down.pull(&mut far);
        let sent_down = down.push(&mut near);
        if sent_down == Err(Broken::Receiver) || down.is_done() || up.ended {
            break None;
        }
        if let Some(why) = cut.why() {
            break Some(why);
        }
        if sent_down == Err(Broken::Sender) {
            break Some(ChannelEnd::HostGone {
                sentence: talk::explain(host, &std::io::ErrorKind::InvalidData.into()).sentence,
            });
        }
        if sent_up == Err(Broken::Sender) {
            break Some(ChannelEnd::Cut {
                sentence: "the launcher sent an invalid message".to_owned(),
            });
        }
        if down.ended || sent_up == Err(Broken::Receiver) {
            down.pull_rest(&mut far);
            break Some(why_hung_up(&near, &down, (host, peer), cut));
        }
        let mut fds = polls(cut, (&near, &up), (&far, &down));
        wait(&mut fds, None);
        // Checked even when nothing is to be read from the launcher at the moment.
        if fds[1].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            break None;
        }
    };
    let Some(why) = why else {
        up.pass_rest(&mut near, &mut far);
        up.end(&mut far);
        return None;
    };
    down.pull_rest(&mut far);
    let mut last = down.conclude(near, why);
    last.try_deliver();
    up.end(&mut far);
    Some(last)
}

/// Returns the descriptors to poll. The launcher's is the second one.
fn polls<'a>(
    cut: &'a Cut,
    (near, up): (&'a Wire, &Direction),
    (far, down): (&'a Wire, &Direction),
) -> Vec<PollFd<'a>> {
    let mut fds = vec![
        PollFd::new(cut, PollFlags::IN),
        PollFd::new(near, up.reads() | down.writes(near)),
    ];
    // A hang-up of the other side is reported immediately and repeatedly, even if no events are requested.
    let flags = down.reads() | up.writes(far);
    if !flags.is_empty() {
        fds.push(PollFd::new(far, flags));
    }
    fds
}

/// Returns why the other side has closed the connection. If its daemon still listens, this waits for the reason, but at
/// most while the launcher is connected, and not if the other side has already given a reason.
fn why_hung_up(
    near: &Wire,
    down: &Direction,
    (host, peer): (&str, HostId),
    cut: &Cut,
) -> ChannelEnd {
    let is_unknown = !down.closed && cut.why().is_none();
    let ended = is_unknown && witness::is_daemon_gone(peer);
    if is_unknown && !ended {
        let until = Instant::now() + VERDICT_TIMEOUT;
        let near = PollFd::from_borrowed_fd(near.as_fd(), PollFlags::empty());
        wait(&mut [PollFd::new(cut, PollFlags::IN), near], Some(until));
    }
    let known = || ChannelEnd::HostGone {
        sentence: match ended {
            true => format!("the host {host} closed the connection: its daemon has ended"),
            false => format!("the host {host} closed the connection; its daemon may have ended"),
        },
    };
    cut.why().unwrap_or_else(known)
}

/// Reason why nothing more can be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// The sender has sent something that is not a message.
    Sender,
    /// The receiver accepts nothing more.
    Receiver,
}

/// One direction.
struct Direction {
    waiting: Vec<u8>,
    /// Number of waiting bytes that belong to complete frames: an incomplete frame is not sent.
    whole: usize,
    ended: bool,
    /// Whether the last frame has been received.
    closed: bool,
    /// Share of the budget for bytes of a connection that has ended.
    rest: Share,
}

impl Direction {
    fn new(waiting: Vec<u8>, budget: &'static Budget) -> Direction {
        Direction {
            waiting,
            whole: 0,
            ended: false,
            closed: false,
            rest: Share::none(budget),
        }
    }

    fn is_done(&self) -> bool {
        self.closed && self.whole == 0
    }

    fn reads(&self) -> PollFlags {
        match self.waiting.len() < BACKLOG_LIMIT_BYTES {
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
        while self.waiting.len() < BACKLOG_LIMIT_BYTES && self.pull_some(from) > 0 {}
    }

    /// Reads everything that was received on a connection that has ended, even if the launcher has not read the earlier
    /// bytes. The budget limits how much all channels together keep.
    fn pull_rest(&mut self, from: &mut Wire) {
        while self.waiting.len() < MAX_DRAIN_BYTES && self.rest.grow(READ_BYTES) {
            let count = self.pull_some(from);
            self.rest.shrink(READ_BYTES - count);
            if count == 0 {
                break;
            }
        }
        // Bytes that are not a message are not forwarded.
        let _ = self.count_whole();
    }

    /// Reads up to [`READ_BYTES`] available bytes. Returns how many.
    fn pull_some(&mut self, from: &mut Wire) -> usize {
        let mut piece = [0; READ_BYTES];
        if self.ended {
            return 0;
        }
        match from.recv(&mut piece) {
            Ok(count) => {
                let count = count.unwrap_or(0);
                self.waiting.extend_from_slice(&piece[..count]);
                count
            }
            Err(_) => {
                self.ended = true;
                0
            }
        }
    }

    fn push(&mut self, to: &mut Wire) -> Result<(), Broken> {
        self.count_whole().map_err(|_| Broken::Sender)?;
        self.send(to).map_err(|_| Broken::Receiver)
    }

    /// Counts the complete frames. Fails if invalid bytes follow them.
    fn count_whole(&mut self) -> Result<(), Malformed> {
        if self.closed {
            return Ok(());
        }
        let more = session::whole_frames(&self.waiting[self.whole..]);
        self.whole += more.bytes;
        self.closed |= more.closes;
        match more.then_nonsense {
            true => Err(Malformed),
            false => Ok(()),
        }
    }

    fn send(&mut self, to: &mut Wire) -> std::io::Result<()> {
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

    /// Forwards what a launcher had sent before it closed the connection, as long as the other side takes some of it.
    fn pass_rest(&mut self, from: &mut Wire, to: &mut Wire) {
        let mut piece = [0; READ_BYTES];
        loop {
            self.pull(from);
            let before = self.waiting.len();
            if self.push(to).is_err() || self.whole == 0 && before < BACKLOG_LIMIT_BYTES {
                return;
            }
            // What the other side sends is not needed any more, but must not block this direction.
            let _ = to.recv(&mut piece);
            let until = Instant::now() + DRAIN_STALL_TIMEOUT;
            if self.waiting.len() == before
                && !wait(&mut [PollFd::new(to, PollFlags::OUT)], Some(until))
            {
                return;
            }
        }
    }

    /// Tells the other side that the launcher is gone, for whatever reason: only the loss of a host ends a channel
    /// without a message. Returns when the other side has noticed.
    fn end(&mut self, to: &mut Wire) {
        self.waiting.truncate(self.whole);
        session::put(&ChannelMessage::EndOfInput {}, &mut self.waiting);
        self.whole = self.waiting.len();
        let until = Instant::now() + DRAIN_STALL_TIMEOUT;
        let mut piece = [0; READ_BYTES];
        while Instant::now() < until {
            if self.push(to).is_err() {
                return;
            }
            // Closing a connection with unread bytes would discard what was sent last.
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

    /// Ends the direction with this reason, unless the other side has given one.
    fn conclude(mut self, to: Wire, end: ChannelEnd) -> LastWords {
        self.waiting.truncate(self.whole);
        if !self.closed {
            session::put(&ChannelMessage::Closed { end }, &mut self.waiting);
        }
        LastWords::new(to, self.waiting, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use regatta_wire::framing::FrameReader;
    use regatta_wire::session::Stream;

    use super::*;

    /// Returns a wire and its other end.
    fn wire() -> (Wire, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        (Wire::local(ours).expect("a wire"), theirs)
    }

    fn beta() -> (&'static str, HostId) {
        let address = "127.0.0.1:9".parse().expect("an address");
        ("beta", HostId::new(address, 1, 1))
    }

    /// Returns frames with this many bytes of data.
    fn frames(count: usize) -> Vec<u8> {
        let mut frames = Vec::new();
        for piece in vec![7; count].chunks(session::MAX_PIECE_BYTES) {
            session::put_piece(Stream::Data, piece, &mut frames);
        }
        frames
    }

    /// Number of bytes that exceed what a socket and either direction hold.
    const OVERFLOWING_BYTES: usize = 4 << 20;

    /// Reads a channel to its last message, if there is one. Returns the number of data bytes before it, and the
    /// message.
    fn hear(mut from: UnixStream) -> (usize, Option<ChannelMessage>) {
        let (mut frames, mut piece, mut all) = (FrameReader::default(), [0; 32 << 10], 0);
        while let Ok(count @ 1..) = from.read(&mut piece) {
            frames.push(&piece[..count]);
            while let Some(message) = frames.next_message().expect("messages") {
                match message {
                    ChannelMessage::Data { bytes } => all += bytes.len(),
                    last => return (all, Some(last)),
                }
            }
        }
        (all, None)
    }

    #[test]
    fn a_launcher_that_does_not_read_for_long_is_told_why_when_it_reads() {
        let ((near, launcher), (far, shell)) = (wire(), wire());
        let cut = Cut::new().expect("a cut");
        let cause = "it has been silent".to_owned();
        let end = ChannelEnd::HostLost { cause };
        cut.cut(&end);
        drop(shell);
        let last = run(
            near,
            far,
            [Vec::new(), frames(OVERFLOWING_BYTES)],
            beta(),
            &cut,
        );
        let launcher = std::thread::spawn(|| hear(launcher));
        last.expect("last words").deliver();
        let heard = launcher.join().expect("a launcher");
        assert_eq!(heard.1, Some(ChannelMessage::Closed { end }));
    }

    #[test]
    fn a_launcher_is_told_that_the_other_host_says_nonsense() {
        let ((near, launcher), (far, mut shell)) = (wire(), wire());
        let cut = Cut::new().expect("a cut");
        shell.write_all(&[0xff; 4]).expect("room");
        drop(shell);
        run(near, far, [Vec::new(), Vec::new()], beta(), &cut);
        let sentence = "the host beta sent an invalid message".to_owned();
        let end = ChannelEnd::HostGone { sentence };
        assert_eq!(hear(launcher), (0, Some(ChannelMessage::Closed { end })));
    }

    #[test]
    fn a_launcher_that_says_nonsense_is_told_so_and_its_shell_that_it_is_gone() {
        let ((near, mut launcher), (far, shell)) = (wire(), wire());
        let cut = Cut::new().expect("a cut");
        launcher.write_all(&[0xff; 4]).expect("room");
        let shell = std::thread::spawn(|| hear(shell));
        run(near, far, [Vec::new(), Vec::new()], beta(), &cut);
        let (_, last) = hear(launcher);
        let end = |last| {
            matches!(
                last,
                Some(ChannelMessage::Closed {
                    end: ChannelEnd::Cut { .. }
                })
            )
        };
        assert!(end(last.clone()), "{last:?}");
        let heard = shell.join().expect("a shell");
        assert_eq!(heard, (0, Some(ChannelMessage::EndOfInput {})));
    }

    #[test]
    fn frames_that_come_together_with_nonsense_are_passed_on_before_the_reason() {
        let said = [&frames(9)[..], &[0xff; 4]].concat();
        let cut = Cut::new().expect("a cut");
        let ((near, launcher), (far, mut shell)) = (wire(), wire());
        shell.write_all(&said).expect("room");
        let shell = std::thread::spawn(|| hear(shell));
        run(near, far, [Vec::new(), Vec::new()], beta(), &cut);
        let sentence = "the host beta sent an invalid message".to_owned();
        let end = ChannelEnd::HostGone { sentence };
        assert_eq!(hear(launcher), (9, Some(ChannelMessage::Closed { end })));
        let heard = shell.join().expect("a shell");
        assert_eq!(heard, (0, Some(ChannelMessage::EndOfInput {})));

        let ((near, mut launcher), (far, shell)) = (wire(), wire());
        launcher.write_all(&said).expect("room");
        let shell = std::thread::spawn(|| hear(shell));
        run(near, far, [Vec::new(), Vec::new()], beta(), &cut);
        let heard = shell.join().expect("a shell");
        assert_eq!(heard, (9, Some(ChannelMessage::EndOfInput {})));
    }

    #[test]
    fn all_that_a_launcher_said_before_it_hung_up_is_passed_on() {
        let ((near, mut launcher), (far, shell)) = (wire(), wire());
        let cut = Cut::new().expect("a cut");
        let said = frames(session::MAX_PIECE_BYTES);
        launcher.write_all(&said).expect("room");
        drop(launcher);
        let shell = std::thread::spawn(|| hear(shell));
        run(
            near,
            far,
            [frames(OVERFLOWING_BYTES), Vec::new()],
            beta(),
            &cut,
        );
        let heard = shell.join().expect("a shell");
        let all = OVERFLOWING_BYTES + session::MAX_PIECE_BYTES;
        assert_eq!(heard, (all, Some(ChannelMessage::EndOfInput {})));
    }

    #[test]
    fn a_reason_that_the_other_side_has_given_is_the_last_message() {
        let ((near, launcher), (far, shell)) = (wire(), wire());
        let cut = Cut::new().expect("a cut");
        let end = ChannelEnd::ShellEnded { status: 3 };
        let mut said = frames(OVERFLOWING_BYTES);
        session::put(&ChannelMessage::Closed { end: end.clone() }, &mut said);
        cut.cut(&ChannelEnd::Cut {
            sentence: "the end".to_owned(),
        });
        drop(shell);
        let last = run(near, far, [Vec::new(), said], beta(), &cut);
        let launcher = std::thread::spawn(|| hear(launcher));
        last.expect("last words").deliver();
        let heard = launcher.join().expect("a launcher");
        assert_eq!(
            heard,
            (OVERFLOWING_BYTES, Some(ChannelMessage::Closed { end }))
        );
    }

    /// Runs a channel whose launcher has read almost nothing, while the other side has sent more and then closed the
    /// connection. Returns what the launcher finally receives.
    fn hear_after_hang_up(
        last: Option<ChannelEnd>,
        before: impl FnOnce(&mut UnixStream, &Cut),
    ) -> (usize, Option<ChannelMessage>) {
        let ((near, mut launcher), (far, mut shell)) = (wire(), wire());
        let cut = Cut::new().expect("a cut");
        let mut said = frames(session::MAX_PIECE_BYTES);
        let closed = last.map(|end| ChannelMessage::Closed { end });
        closed.iter().for_each(|end| session::put(end, &mut said));
        shell.write_all(&said).expect("room");
        drop(shell);
        before(&mut launcher, &cut);
        let last = run(
            near,
            far,
            [Vec::new(), frames(OVERFLOWING_BYTES)],
            beta(),
            &cut,
        );
        let launcher = std::thread::spawn(|| hear(launcher));
        last.expect("last words").deliver();
        launcher.join().expect("a launcher")
    }

    #[test]
    fn bytes_that_came_before_a_host_took_no_more_come_before_the_reason() {
        let say = |launcher: &mut UnixStream, _: &Cut| {
            launcher.write_all(&frames(9)).expect("room");
        };
        let heard = hear_after_hang_up(None, say);
        let sentence = "the host beta closed the connection: its daemon has ended".to_owned();
        let end = ChannelEnd::HostGone { sentence };
        let all = OVERFLOWING_BYTES + session::MAX_PIECE_BYTES;
        assert_eq!(heard, (all, Some(ChannelMessage::Closed { end })));
    }

    #[test]
    fn the_end_of_a_shell_whose_host_takes_no_more_is_told_and_not_that_it_has_hung_up() {
        let say = |launcher: &mut UnixStream, _: &Cut| {
            launcher.write_all(&frames(9)).expect("room");
        };
        let end = ChannelEnd::ShellEnded { status: 3 };
        let heard = hear_after_hang_up(Some(end.clone()), say);
        let all = OVERFLOWING_BYTES + session::MAX_PIECE_BYTES;
        assert_eq!(heard, (all, Some(ChannelMessage::Closed { end })));
    }

    #[test]
    fn bytes_that_came_before_a_host_was_lost_come_before_its_loss() {
        let cause = "it has been silent".to_owned();
        let end = ChannelEnd::HostLost { cause };
        let heard = hear_after_hang_up(None, |_, cut| cut.cut(&end));
        let all = OVERFLOWING_BYTES + session::MAX_PIECE_BYTES;
        assert_eq!(heard, (all, Some(ChannelMessage::Closed { end })));
    }

    #[test]
    fn what_channels_keep_of_connections_that_are_over_is_bounded_for_all_together() {
        static SMALL: Budget = Budget::new(3 * READ_BYTES);
        let mut launchers = Vec::new();
        let mut last_words = Vec::new();
        let mut kept = 0;
        for _ in 0..3 {
            let ((near, launcher), (mut far, mut shell)) = (wire(), wire());
            shell.write_all(&frames(2 * READ_BYTES)).expect("room");
            drop(shell);
            let mut down = Direction::new(Vec::new(), &SMALL);
            down.pull_rest(&mut far);
            kept += down.waiting.len();
            let end = ChannelEnd::ShellEnded { status: 3 };
            last_words.push(down.conclude(near, end));
            launchers.push(launcher);
        }
        assert!(kept <= 3 * READ_BYTES, "{kept}");
        assert!(kept > READ_BYTES && SMALL.left() < READ_BYTES);
        // Each launcher gets its last message in any case, and what it has read no longer counts.
        for (last, launcher) in last_words.into_iter().zip(launchers) {
            last.deliver();
            let (_, heard) = hear(launcher);
            assert!(matches!(heard, Some(ChannelMessage::Closed { .. })));
        }
        assert_eq!(SMALL.left(), 3 * READ_BYTES);
    }

    #[test]
    fn a_side_that_has_hung_up_wakes_nobody_while_the_launcher_does_not_read() {
        let ((mut near, _launcher), (far, shell)) = (wire(), wire());
        let cut = Cut::new().expect("a cut");
        let way = |waiting| Direction::new(waiting, &OVER);
        let (up, mut down) = (way(Vec::new()), way(frames(OVERFLOWING_BYTES)));
        assert_eq!(down.push(&mut near), Ok(()));
        drop(shell);
        let mut fds = polls(&cut, (&near, &up), (&far, &down));
        assert!(!wait(&mut fds, Some(Instant::now())), "{fds:?}");
    }
}
