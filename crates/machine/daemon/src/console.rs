//! The near end of a shell on another host: standard input and output, as frames.

use std::os::fd::{AsFd, BorrowedFd};

use regatta_launch::{DAEMON_ENDED, Refusal};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::frames::{self, Kind};
use crate::talk::{Wire, wait};

/// Waits on its way to the daemon, at most about that much.
const FULL: usize = 256 << 10;

/// Until the shell's end; its status.
pub(crate) fn run(mut wire: Wire, mut arrived: Vec<u8>) -> Result<u8, Refusal> {
    let (input, output, errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let mut out = Vec::new();
    let mut open = true;
    let mut piece = vec![0; 32 << 10];
    loop {
        if let Some(status) = deliver(&mut arrived, output.as_fd(), errors.as_fd())? {
            return Ok(status);
        }
        while !out.is_empty() {
            match wire.send(&out) {
                Ok(0) => break,
                Ok(count) => _ = out.drain(..count),
                // The daemon may have said why before it hung up.
                Err(_) => out.clear(),
            }
        }
        let mut fds = vec![PollFd::new(&wire, PollFlags::IN)];
        if !out.is_empty() {
            fds[0] = PollFd::new(&wire, PollFlags::IN | PollFlags::OUT);
        }
        if open && out.len() < FULL {
            fds.push(PollFd::new(&input, PollFlags::IN));
        }
        wait(&mut fds, None);
        let said = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if said {
            match rustix::io::read(&input, &mut piece[..]) {
                Ok(count) => {
                    open = count > 0;
                    frames::put(&mut out, Kind::Data, &piece[..count]);
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => {
                    open = false;
                    frames::put(&mut out, Kind::Data, &[]);
                }
            }
        }
        match wire.recv(&mut piece) {
            Ok(Some(count)) => arrived.extend_from_slice(&piece[..count]),
            Ok(None) => {}
            Err(_) => {
                return Err(Refusal::of_regatta(DAEMON_ENDED));
            }
        }
    }
}

/// Writes what has come, and returns the status if the shell has ended.
fn deliver(
    arrived: &mut Vec<u8>,
    output: BorrowedFd<'_>,
    errors: BorrowedFd<'_>,
) -> Result<Option<u8>, Refusal> {
    let mut taken = 0;
    let nonsense = || Refusal::of_regatta("the daemon says what is not understood");
    while let Some((kind, bytes, length)) =
        frames::take(&arrived[taken..]).map_err(|_| nonsense())?
    {
        match kind {
            Kind::Data => write_all(output, bytes)?,
            Kind::Error => write_all(errors, bytes)?,
            Kind::Status => {
                let status = bytes.first_chunk::<4>().ok_or_else(nonsense)?;
                return Ok(Some(i32::from_le_bytes(*status) as u8));
            }
        }
        taken += length;
    }
    arrived.drain(..taken);
    Ok(None)
}

fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Refusal> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                _ = wait(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None)
            }
            Err(_) => return Err(Refusal::of_regatta("the launcher has gone")),
        }
    }
    Ok(())
}
