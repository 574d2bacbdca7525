//! The door of a job that stays: a socket at which processes that nobody of the job has started ask to become tasks of it.
//!
//! Who may knock is decided by who can reach the socket, which lies in a directory of its user's own, and by the user of
//! the knocking process, which the kernel tells. Nobody waits here: a caller that says nothing is kept until it hangs up.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use regatta_transport::job::VERSION;
use regatta_wire::door::{Knock, Welcome};
use regatta_wire::frames::{self, Frames};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, PidfdFlags};

use crate::attend::Guest;
use crate::place::Claimed;

/// What the names of sockets end with that are doors, behind the name of the job.
const DOOR: &str = ".job.socket";
/// Who has said so little by then does not mean us.
const MOST_SAID: usize = 64 << 10;
/// Callers that have not said yet what they want.
const MOST_CALLERS: usize = 256;

/// See the module.
pub(crate) struct Door {
    claimed: Claimed,
    callers: Vec<Caller>,
}

/// Somebody who has knocked.
struct Caller {
    stream: UnixStream,
    frames: Frames,
    said: usize,
}

/// A process that asks to become a task.
pub(crate) struct Arrival {
    stream: UnixStream,
    pub guest: Guest,
    pub program: Vec<u8>,
    /// What it shows, if it has a number already.
    pub ticket: Option<u32>,
}

impl Door {
    /// Its place is given up with it.
    pub(crate) fn new(claimed: Claimed) -> std::io::Result<Door> {
        claimed.listener.set_nonblocking(true)?;
        Ok(Door {
            claimed,
            callers: Vec::new(),
        })
    }

    /// The name of the job.
    pub(crate) fn name(&self) -> Option<String> {
        let address = self.claimed.listener.local_addr().ok()?;
        let file = address.as_pathname()?.file_name()?.to_str()?;
        file.strip_suffix(DOOR).map(str::to_owned)
    }

    /// What to wait for.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let callers = self.callers.iter().map(|caller| caller.stream.as_fd());
        std::iter::once(self.claimed.listener.as_fd())
            .chain(callers)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
    }

    /// Those who have said by now that they want to enter.
    pub(crate) fn heed(&mut self) -> Vec<Arrival> {
        while let Ok((stream, _)) = self.claimed.listener.accept() {
            if self.callers.len() < MOST_CALLERS && is_ours(&stream) {
                let frames = Frames::default();
                self.callers.push(Caller {
                    stream,
                    frames,
                    said: 0,
                });
            }
        }
        let mut arrivals = Vec::new();
        for mut caller in std::mem::take(&mut self.callers) {
            match caller.heed() {
                Heard::Nothing => self.callers.push(caller),
                Heard::Enter { program, ticket } => {
                    arrivals.extend(caller.arrive(program, ticket));
                }
                Heard::Nonsense => {}
            }
        }
        arrivals
    }
}

/// Whether the other end belongs to our user; it is then made ready.
fn is_ours(stream: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
        && stream.set_nonblocking(true).is_ok()
}

enum Heard {
    Nothing,
    Enter {
        program: Vec<u8>,
        ticket: Option<u32>,
    },
    Nonsense,
}

impl Caller {
    fn heed(&mut self) -> Heard {
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => return Heard::Nonsense,
            Ok(count) => {
                self.said += count;
                self.frames.push(&piece[..count]);
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Heard::Nonsense,
        }
        match self.frames.next_message() {
            Ok(Some(Knock::Enter {
                version,
                program,
                ticket,
            })) if version == VERSION => Heard::Enter { program, ticket },
            Ok(Some(Knock::Enter { version, .. })) => {
                let sentence = format!(
                    "the job's launcher speaks version {VERSION} of the job protocol and this program's library version \
                     {version}; end the job, and use both from the same release of Regatta"
                );
                refuse(&self.stream, sentence);
                Heard::Nonsense
            }
            // Whoever waits for the door to be open finds the connection closed.
            Ok(Some(Knock::Await {})) => Heard::Nonsense,
            Ok(None) if self.said < MOST_SAID => Heard::Nothing,
            _ => Heard::Nonsense,
        }
    }

    fn arrive(self, program: Vec<u8>, ticket: Option<u32>) -> Option<Arrival> {
        let peer = rustix::net::sockopt::socket_peercred(&self.stream).ok()?;
        let pid: Pid = peer.pid;
        let fd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let guest = Guest {
            pid: pid.as_raw_nonzero().get() as u32,
            fd,
        };
        Some(Arrival {
            stream: self.stream,
            guest,
            program,
            ticket,
        })
    }
}

/// Waits until the door at the other end is open, or is no more.
pub(crate) fn await_open(mut stream: UnixStream) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    frames::put(&Knock::Await {}, &mut bytes).map_err(|_| ErrorKind::InvalidData)?;
    stream.write_all(&bytes)?;
    std::io::copy(&mut stream, &mut std::io::sink()).map(drop)
}

fn refuse(mut stream: &UnixStream, sentence: String) {
    let mut bytes = Vec::new();
    if frames::put(&Welcome::Refused { sentence }, &mut bytes).is_ok() {
        // Who does not hear it finds the connection closed.
        let _ = stream.write_all(&bytes);
    }
}

impl Arrival {
    /// Tells it that it cannot be a task.
    pub(crate) fn refuse(self, sentence: String) {
        refuse(&self.stream, sentence);
    }

    /// Tells it that it is a task, and hands over what a task has. False: it is not there any more.
    pub(crate) fn welcome(
        &self,
        rank: u32,
        size: u32,
        segment: BorrowedFd,
        control: OwnedFd,
        listener: Option<BorrowedFd>,
    ) -> bool {
        let mut bytes = Vec::new();
        if frames::put(&Welcome::Task { rank, size }, &mut bytes).is_err() {
            return false;
        }
        let handed: Vec<BorrowedFd> = [segment, control.as_fd()]
            .into_iter()
            .chain(listener)
            .collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        let fits = with.push(SendAncillaryMessage::ScmRights(&handed));
        let slices = [IoSlice::new(&bytes)];
        let flags = SendFlags::NOSIGNAL;
        fits && rustix::net::sendmsg(&self.stream, &slices, &mut with, flags) == Ok(bytes.len())
    }
}
