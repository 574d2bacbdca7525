//! The join socket of a resident job: processes that were not started by the job request there to become tasks of it.
//!
//! A process may join if it can reach the socket, which is in a directory of its user's own, and if the kernel reports
//! that it belongs to that user. Nothing here blocks. A caller that sends nothing is kept until it hangs up, or until
//! its slot or its descriptor is needed for another caller. If no descriptor is available at all, no connection is
//! accepted for [`ACCEPT_PAUSE`].

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use regatta_connection::local_socket;
use regatta_segment::job::VERSION;
use regatta_wire::framing::{self, FrameReader};
use regatta_wire::join_request::{JoinReply, JoinRequest};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::Resource;

use crate::resident::guest::Guest;
use crate::resident::place::{Claimed, MachinePlace};

/// Suffix of a join socket's name, after the name of the job.
const SUFFIX: &str = ".job.socket";
/// Maximum size of a request, in bytes. A caller that sends more is refused.
const MAX_REQUEST_BYTES: usize = 64 << 10;
/// Maximum number of callers that have not sent their request yet. Also limited to a quarter of the files that may be
/// open, because a task needs several.
const MAX_CALLERS: usize = 256;
/// Pause before the next accept when no descriptor is available. Processes that want to join wait meanwhile, and must
/// not wake the launcher all the time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Minimum interval between two warnings that no descriptor is available.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The listening socket of a resident job, and the processes that have connected to it.
pub(crate) struct JoinSocket {
    claimed: Claimed,
    /// The oldest first.
    callers: Vec<Caller>,
    most: usize,
    /// No connection is accepted before this time.
    paused: Option<Instant>,
    /// The time of the last warning that no descriptor is available, and a warning that is due now.
    said: Option<Instant>,
    mishap: Option<String>,
}

/// A process that has connected, and has not sent its request yet.
struct Caller {
    stream: UnixStream,
    frames: FrameReader,
    said: usize,
}

/// A process that requests to become a task.
pub(crate) struct Arrival {
    stream: UnixStream,
    pub guest: Guest,
    pub program: Vec<u8>,
    /// The ticket that it presents, if it has a task number already.
    pub ticket: Option<u32>,
}

impl JoinSocket {
    /// Wraps a claimed socket, which is removed when the join socket is dropped.
    pub(crate) fn new(claimed: Claimed) -> std::io::Result<JoinSocket> {
        claimed.listener.set_nonblocking(true)?;
        let files = rustix::process::getrlimit(Resource::Nofile).current;
        let files = files.map_or(usize::MAX, |files| files as usize);
        Ok(JoinSocket {
            claimed,
            callers: Vec::new(),
            most: (files / 4).clamp(1, MAX_CALLERS),
            paused: None,
            said: None,
            mishap: None,
        })
    }

    /// Returns the join socket of the job with this name on this host, or `None` if the name is in use on this host, or
    /// the socket cannot be made.
    pub(crate) fn of_job(name: &str) -> Option<JoinSocket> {
        let claimed = MachinePlace::of_job(name)
            .and_then(|place| place.claim())
            .ok()?;
        JoinSocket::new(claimed).ok()
    }

    /// Returns the name of the job.
    pub(crate) fn name(&self) -> Option<String> {
        let address = self.claimed.listener.local_addr().ok()?;
        let file = address.as_pathname()?.file_name()?.to_str()?;
        file.strip_suffix(SUFFIX).map(str::to_owned)
    }

    /// Returns the descriptors to poll.
    pub(crate) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        let callers = self.callers.iter().map(|caller| caller.stream.as_fd());
        let is_open = self.until_open().is_none_or(|left| left.is_zero());
        let open = is_open.then(|| self.claimed.listener.as_fd());
        open.into_iter()
            .chain(callers)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
    }

    /// Accepts no connections for this time, as if no descriptor were available.
    #[cfg(test)]
    pub(crate) fn pause_for(&mut self, time: Duration) {
        self.paused = Some(Instant::now() + time);
    }

    /// Returns the time until connections are accepted again, if they are not accepted now.
    pub(crate) fn until_open(&self) -> Option<Duration> {
        let paused = self.paused?;
        Some(paused.saturating_duration_since(Instant::now()))
    }

    /// Takes the warning that no connection can be accepted.
    pub(crate) fn take_mishap(&mut self) -> Option<String> {
        self.mishap.take()
    }

    /// Accepts and reads connections. Returns the callers that have requested to join.
    pub(crate) fn handle_callers(&mut self) -> Vec<Arrival> {
        // Read first: callers with a complete request do not count any more for slots and descriptors.
        let mut arrivals = self.read_callers();
        if self.until_open().is_none_or(|left| left.is_zero()) {
            self.paused = None;
            while let Some(stream) = self.accept(|listener| Ok(listener.accept()?.0)) {
                if !is_ours(&stream) {
                    continue;
                }
                if self.callers.len() == self.most {
                    self.callers.remove(0);
                }
                self.callers.push(Caller {
                    stream,
                    frames: FrameReader::default(),
                    said: 0,
                });
            }
        }
        arrivals.extend(self.read_callers());
        arrivals
    }

    /// Accepts the next connection. If no descriptor is available, the oldest caller is dropped. If there is none, no
    /// connection is accepted for a while.
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
                    self.pause(&error);
                    return None;
                }
            }
        }
    }

    fn pause(&mut self, error: &std::io::Error) {
        let now = Instant::now();
        self.paused = Some(now + ACCEPT_PAUSE);
        if self.said.is_none_or(|said| now - said >= WARNING_INTERVAL) {
            self.said = Some(now);
            self.mishap = Some(format!(
                "processes that want to join the job have to wait, because their connections cannot be accepted: {error}. They join when other processes have ended; start the job with a larger limit of open files (ulimit -n) to admit more"
            ));
        }
    }

    /// Returns the callers that have sent a request to join.
    fn read_callers(&mut self) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        for mut caller in std::mem::take(&mut self.callers) {
            match caller.read_request() {
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

/// Returns whether the other end belongs to this process's user, and makes the connection non-blocking.
fn is_ours(stream: &UnixStream) -> bool {
    local_socket::check_user(stream).is_ok() && stream.set_nonblocking(true).is_ok()
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
    fn read_request(&mut self) -> Heard {
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
            Ok(Some(JoinRequest::Enter {
                version,
                program,
                ticket,
            })) if version == VERSION => Heard::Enter { program, ticket },
            Ok(Some(JoinRequest::Enter { version, .. })) => {
                let sentence = format!(
                    "the job's launcher speaks version {VERSION} of the job protocol, and this program's library speaks version {version}; end the job, and use both from the same release of Regatta"
                );
                refuse(&self.stream, sentence);
                Heard::Nonsense
            }
            // Closing the connection answers a caller that waits until the job can be joined.
            Ok(Some(JoinRequest::Await {})) => Heard::Nonsense,
            Ok(None) if self.said < MAX_REQUEST_BYTES => Heard::Nothing,
            _ => Heard::Nonsense,
        }
    }

    fn arrive(self, program: Vec<u8>, ticket: Option<u32>) -> Option<Arrival> {
        let (pid, _) = local_socket::peer(&self.stream)?;
        let fd = local_socket::peer_process(&self.stream).ok()?;
        let guest = Guest { pid, fd };
        Some(Arrival {
            stream: self.stream,
            guest,
            program,
            ticket,
        })
    }
}

/// Waits until the job at the other end can be joined, or has ended.
pub(crate) fn await_open(mut stream: UnixStream) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    framing::put(&JoinRequest::Await {}, &mut bytes).map_err(|_| ErrorKind::InvalidData)?;
    stream.write_all(&bytes)?;
    std::io::copy(&mut stream, &mut std::io::sink()).map(drop)
}

fn refuse(mut stream: &UnixStream, sentence: String) {
    let mut bytes = Vec::new();
    if framing::put(&JoinReply::Refused { sentence }, &mut bytes).is_ok() {
        // A caller that does not get the message finds the connection closed.
        let _ = stream.write_all(&bytes);
    }
}

impl Arrival {
    /// Tells the process that it cannot become a task.
    pub(crate) fn refuse(self, sentence: String) {
        refuse(&self.stream, sentence);
    }

    /// Tells the process that it is a task, and passes on its descriptors. Returns false if the process is gone.
    pub(crate) fn welcome(
        &self,
        rank: u32,
        size: u32,
        segment: BorrowedFd,
        control: OwnedFd,
        listener: Option<BorrowedFd>,
    ) -> bool {
        let mut bytes = Vec::new();
        if framing::put(&JoinReply::Task { rank, size }, &mut bytes).is_err() {
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
        let mut send = || rustix::net::sendmsg(&self.stream, &slices, &mut with, flags);
        fits && rustix::io::retry_on_intr(&mut send) == Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::place::MachinePlace;

    fn join_socket(name: &str) -> (JoinSocket, MachinePlace) {
        let place = MachinePlace::scratch(&format!("join-{name}"));
        let claimed = place.claim().expect("the place");
        (JoinSocket::new(claimed).expect("a join socket"), place)
    }

    fn call(place: &MachinePlace) -> UnixStream {
        place.connect().expect("an answer").expect("a join socket")
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
        let (mut socket, place) = join_socket("way");
        let silent = [call(&place), call(&place)];
        assert!(socket.handle_callers().is_empty());
        let third = call(&place);
        let mut tries = 0;
        let let_in = socket.accept(|listener| {
            tries += 1;
            match tries {
                1 => Err(full()),
                _ => Ok(listener.accept()?.0),
            }
        });
        assert!(let_in.is_some() && socket.paused.is_none());
        assert!(hung_up_on(&silent[0]) && !hung_up_on(&silent[1]) && !hung_up_on(&third));
    }

    #[test]
    fn a_join_socket_that_gets_no_file_is_paused_for_a_while_and_says_so_once() {
        let (mut socket, place) = join_socket("paused");
        let _outside = call(&place);
        assert!(socket.accept(|_| Err(full())).is_none());
        // Only a timeout wakes the launcher.
        assert_eq!(socket.polls().count(), 0);
        assert!(socket.until_open().is_some());
        assert!(socket.handle_callers().is_empty() && socket.callers.is_empty());
        let said = socket.take_mishap();
        assert!(said.is_some_and(|said| said.contains("ulimit -n")));
        assert!(socket.accept(|_| Err(full())).is_none());
        assert_eq!(socket.take_mishap(), None);
        socket.paused = Some(Instant::now());
        assert_eq!(socket.polls().count(), 1);
        assert!(socket.handle_callers().is_empty());
        assert_eq!((socket.callers.len(), socket.until_open()), (1, None));
    }

    #[test]
    fn the_oldest_of_too_many_silent_callers_gives_way() {
        let (mut socket, place) = join_socket("many");
        assert!((1..=MAX_CALLERS).contains(&socket.most));
        socket.most = 3;
        let callers: Vec<UnixStream> = (0..4)
            .map(|_| {
                let caller = call(&place);
                assert!(socket.handle_callers().is_empty());
                caller
            })
            .collect();
        let gone: Vec<bool> = callers.iter().map(hung_up_on).collect();
        let gone = gone.iter().take_while(|gone| **gone).count();
        assert_eq!((gone, socket.callers.len()), (1, 3));
    }
}
