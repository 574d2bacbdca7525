//! The door of a job that stays: a socket at which processes that nobody of the job has started ask to become tasks of it.
//!
//! Who may knock is decided by who can reach the socket, which lies in a directory of its user's own, and by the user of
//! the knocking process, which the kernel tells. Nobody waits here: a caller that says nothing is kept until it hangs up, or until
//! its place or its file is wanted for another one. Where no file is to be had at all the door is closed for [`CLOSED`].

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use regatta_transport::job::VERSION;
use regatta_wire::door::{Knock, Welcome};
use regatta_wire::frames::{self, Frames};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, PidfdFlags, Resource};

use crate::attend::Guest;
use crate::place::Claimed;

/// What the names of sockets end with that are doors, behind the name of the job.
const DOOR: &str = ".job.socket";
/// Who has said so little by then does not mean us.
const MOST_SAID: usize = 64 << 10;
/// Callers that have not said yet what they want; no more than a quarter of the files that may be open. A task needs several.
const MOST_CALLERS: usize = 256;
/// How long nobody is let in when no file is to be had. Who knocks waits meanwhile, and must not wake us all the time.
const CLOSED: Duration = Duration::from_millis(100);
/// That no file is to be had is not said again before this time is over.
const QUIET: Duration = Duration::from_secs(60);

/// See the module.
pub(crate) struct Door {
    claimed: Claimed,
    /// Oldest first.
    callers: Vec<Caller>,
    most: usize,
    /// Nobody is let in before this time.
    closed: Option<Instant>,
    /// When it was last said that no file is to be had, and a sentence to be said now.
    said: Option<Instant>,
    mishap: Option<String>,
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
        let files = rustix::process::getrlimit(Resource::Nofile).current;
        let files = files.map_or(usize::MAX, |files| files as usize);
        Ok(Door {
            claimed,
            callers: Vec::new(),
            most: (files / 4).clamp(1, MOST_CALLERS),
            closed: None,
            said: None,
            mishap: None,
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
        let is_open = self.until_open().is_none_or(|left| left.is_zero());
        let open = is_open.then(|| self.claimed.listener.as_fd());
        open.into_iter()
            .chain(callers)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
    }

    /// Closes it as if there had been no file for a caller.
    #[cfg(test)]
    pub(crate) fn close_for(&mut self, time: Duration) {
        self.closed = Some(Instant::now() + time);
    }

    /// Until a door that is closed opens again.
    pub(crate) fn until_open(&self) -> Option<Duration> {
        let closed = self.closed?;
        Some(closed.saturating_duration_since(Instant::now()))
    }

    /// Why nobody is let in, once in a while.
    pub(crate) fn take_mishap(&mut self) -> Option<String> {
        self.mishap.take()
    }

    /// Those who have said by now that they want to enter.
    pub(crate) fn heed(&mut self) -> Vec<Arrival> {
        // Callers that have said all are no callers any more when places and files are counted.
        let mut arrivals = self.hear();
        if self.until_open().is_none_or(|left| left.is_zero()) {
            self.closed = None;
            while let Some(stream) = self.accept(|listener| Ok(listener.accept()?.0)) {
                if !is_ours(&stream) {
                    continue;
                }
                if self.callers.len() == self.most {
                    self.callers.remove(0);
                }
                self.callers.push(Caller {
                    stream,
                    frames: Frames::default(),
                    said: 0,
                });
            }
        }
        arrivals.extend(self.hear());
        arrivals
    }

    /// The next one who knocks. Where no file is to be had, the caller that came first gives way; where there is none, the door
    /// closes for a while.
    fn accept(
        &mut self,
        mut take: impl FnMut(&UnixListener) -> std::io::Result<UnixStream>,
    ) -> Option<UnixStream> {
        loop {
            let error = match take(&self.claimed.listener) {
                Ok(stream) => return Some(stream),
                Err(error) => error,
            };
            match Errno::from_io_error(&error) {
                Some(Errno::INTR | Errno::CONNABORTED) => {}
                Some(Errno::AGAIN) => return None,
                Some(Errno::MFILE) if !self.callers.is_empty() => drop(self.callers.remove(0)),
                _ => {
                    self.close(&error);
                    return None;
                }
            }
        }
    }

    fn close(&mut self, error: &std::io::Error) {
        let now = Instant::now();
        self.closed = Some(now + CLOSED);
        if self.said.is_none_or(|said| now - said >= QUIET) {
            self.said = Some(now);
            self.mishap = Some(format!(
                "processes that want to become tasks have to wait, because their connections cannot be accepted here: {error}. They \
                 are let in when others have ended; a larger limit of open files (ulimit -n) where the job is begun leaves room for more"
            ));
        }
    }

    /// The callers that have said that they want to enter.
    fn hear(&mut self) -> Vec<Arrival> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Place;

    fn door(name: &str) -> (Door, Place) {
        let place = Place::scratch(&format!("door-{name}"));
        let claimed = place.claim().expect("the place");
        (Door::new(claimed).expect("a door"), place)
    }

    fn knock(place: &Place) -> UnixStream {
        place.connect().expect("an answer").expect("a door")
    }

    fn hung_up_on(mut caller: &UnixStream) -> bool {
        caller.set_nonblocking(true).expect("a socket");
        caller.read(&mut [0]).is_ok_and(|count| count == 0)
    }

    fn full() -> std::io::Error {
        Errno::MFILE.into()
    }

    #[test]
    fn a_caller_that_says_nothing_gives_way_where_no_file_is_to_be_had() {
        let (mut door, place) = door("way");
        let silent = [knock(&place), knock(&place)];
        assert!(door.heed().is_empty());
        let third = knock(&place);
        let mut tries = 0;
        let let_in = door.accept(|listener| {
            tries += 1;
            match tries {
                1 => Err(full()),
                _ => Ok(listener.accept()?.0),
            }
        });
        assert!(let_in.is_some() && door.closed.is_none());
        assert!(hung_up_on(&silent[0]) && !hung_up_on(&silent[1]) && !hung_up_on(&third));
    }

    #[test]
    fn a_door_that_gets_no_file_is_closed_for_a_while_and_says_so_once() {
        let (mut door, place) = door("closed");
        let _outside = knock(&place);
        assert!(door.accept(|_| Err(full())).is_none());
        // Nothing wakes the launcher but time.
        assert_eq!(door.polls().count(), 0);
        assert!(door.until_open().is_some());
        assert!(door.heed().is_empty() && door.callers.is_empty());
        let said = door.take_mishap();
        assert!(said.is_some_and(|said| said.contains("ulimit -n")));
        assert!(door.accept(|_| Err(full())).is_none());
        assert_eq!(door.take_mishap(), None);
        door.closed = Some(Instant::now());
        assert_eq!(door.polls().count(), 1);
        assert!(door.heed().is_empty());
        assert_eq!((door.callers.len(), door.until_open()), (1, None));
    }

    #[test]
    fn the_oldest_of_too_many_silent_callers_gives_way() {
        let (mut door, place) = door("many");
        assert!((1..=MOST_CALLERS).contains(&door.most));
        door.most = 3;
        let callers: Vec<UnixStream> = (0..4)
            .map(|_| {
                let caller = knock(&place);
                assert!(door.heed().is_empty());
                caller
            })
            .collect();
        let gone: Vec<bool> = callers.iter().map(hung_up_on).collect();
        let gone = gone.iter().take_while(|gone| **gone).count();
        assert_eq!((gone, door.callers.len()), (1, 3));
    }
}
