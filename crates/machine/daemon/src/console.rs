//! The near end of a shell on another host: carries standard input and output as messages.

use std::os::fd::{AsFd, BorrowedFd};

use regatta_launch::Refusal;
use regatta_wire::framing::FrameReader;
use regatta_wire::session::{self, ChannelEnd, ChannelMessage, Stream};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::talk::{Wire, wait};

/// Backlog toward the daemon from which on no more input is read, in bytes.
const BACKLOG_LIMIT_BYTES: usize = 256 << 10;

/// Carries the shell on `host` to its end, and returns its status.
pub(crate) fn run(host: &str, mut wire: Wire, bytes: Vec<u8>) -> Result<u8, Refusal> {
    let mut arrived = FrameReader::default();
    arrived.push(&bytes);
    let (input, output, errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let mut out = Vec::new();
    let mut open = true;
    let mut piece = vec![0; 32 << 10];
    loop {
        if let Some(status) = deliver(host, &mut arrived, output.as_fd(), errors.as_fd())? {
            return Ok(status);
        }
        while !out.is_empty() {
            match wire.send(&out) {
                Ok(0) => break,
                Ok(count) => _ = out.drain(..count),
                // The daemon may have sent a reason before it closed the connection.
                Err(_) => out.clear(),
            }
        }
        let mut fds = vec![PollFd::new(&wire, PollFlags::IN)];
        if !out.is_empty() {
            fds[0] = PollFd::new(&wire, PollFlags::IN | PollFlags::OUT);
        }
        if open && out.len() < BACKLOG_LIMIT_BYTES {
            fds.push(PollFd::new(&input, PollFlags::IN));
        }
        wait(&mut fds, None);
        let said = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if said {
            match rustix::io::read(&input, &mut piece[..]) {
                Ok(count @ 1..) => _ = session::put_piece(Stream::Data, &piece[..count], &mut out),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Ok(_) | Err(_) => {
                    open = false;
                    session::put(&ChannelMessage::EndOfInput {}, &mut out);
                }
            }
        }
        match wire.recv(&mut piece) {
            Ok(Some(count)) => arrived.push(&piece[..count]),
            Ok(None) => {}
            Err(_) => {
                return Err(Refusal::of_regatta(
                    "the daemon of this host has ended, which closed the channels to all other hosts",
                ));
            }
        }
    }
}

/// Writes what was received, and returns the status if the shell has ended.
fn deliver(
    host: &str,
    arrived: &mut FrameReader,
    output: BorrowedFd<'_>,
    errors: BorrowedFd<'_>,
) -> Result<Option<u8>, Refusal> {
    let nonsense = || Refusal::of_regatta("the daemon sent an invalid message");
    loop {
        let next = arrived.next_message_within(session::MAX_MESSAGE_BYTES);
        match next.map_err(|_| nonsense())? {
            None => return Ok(None),
            Some(ChannelMessage::Data { bytes }) => write_all(output, &bytes)?,
            Some(ChannelMessage::Errors { bytes }) => write_all(errors, &bytes)?,
            Some(ChannelMessage::Closed { end }) => return closed(host, end).map(Some),
            Some(_) => return Err(nonsense()),
        }
    }
}

fn closed(host: &str, end: ChannelEnd) -> Result<u8, Refusal> {
    Err(Refusal::of_regatta(match end {
        ChannelEnd::ShellEnded { status } => return Ok(status as u8),
        ChannelEnd::HostLost { cause } => {
            format!("the host {host} is lost, and so is the shell there: {cause}")
        }
        ChannelEnd::HostGone { sentence } | ChannelEnd::Cut { sentence } => sentence,
        ChannelEnd::Renewed { why } => format!("{why}; this host rejoins as a new host"),
    }))
}

fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Refusal> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                _ = wait(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None)
            }
            Err(_) => return Err(Refusal::of_regatta("the launcher has ended")),
        }
    }
    Ok(())
}
