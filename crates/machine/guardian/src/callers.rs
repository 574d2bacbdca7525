//! Callers at a listening socket that have not proved who they are, within limits.
//!
//! * *Time.* A caller has a time limit for all that it sends, counted from when it was accepted, however its bytes are
//!   spread.
//! * *Number.* The number of callers at a time is limited. When one more calls, the oldest one is dropped: it had the
//!   most time.
//! * *Memory.* All callers together may occupy [`MAX_UNPROVED_BYTES`] bytes. When that is exceeded, the one that has
//!   sent the most is dropped.
//!
//! One thread reads from all callers. Checking a proof can take long, so a few other threads do that.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::{Duration, Instant};

use regatta_connection::ready;
use regatta_wire::guardian::Secret;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// Maximum number of bytes held for all callers that have not proved anything yet.
const MAX_UNPROVED_BYTES: usize = 32 << 20;
/// Size of one read from a caller, in bytes.
const READ_BYTES: usize = 64 << 10;
/// Number of threads that check proofs.
const CHECKER_THREADS: usize = 4;
/// Pause before the next accept after there was no free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Sends a caller that was just accepted a random nonce that its proof must match, drawn for this caller alone. Returns
/// the nonce, or `None` if the caller cannot be served.
pub(crate) type Challenge = fn(&TcpStream) -> Option<Secret>;

/// Sends nothing to the caller, for messages that cannot be replayed anyway.
pub(crate) fn no_challenge(_: &TcpStream) -> Option<Secret> {
    Some(Secret::default())
}

/// Returns how many bytes must follow these: 0 if the message is complete, `None` if it is invalid.
pub(crate) type Need = fn(&[u8]) -> Option<usize>;

/// Limits of one socket.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Maximum number of callers at a time.
    pub places: usize,
    /// Time in which an accepted caller must send its whole message.
    pub limit: Duration,
}

/// The callers that have proved who they are. Dropping this closes the socket.
pub(crate) struct Callers<T> {
    pub heard: Receiver<T>,
    listener: Arc<TcpListener>,
}

impl<T> Drop for Callers<T> {
    fn drop(&mut self) {
        // Also ends the wait of the thread that holds the socket.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
    }
}

/// A caller that has not sent its whole message.
struct Caller {
    stream: TcpStream,
    challenge: Secret,
    said: Vec<u8>,
    until: Instant,
}

/// The whole message of a caller, for the threads that check it.
pub(crate) struct Claim {
    pub stream: TcpStream,
    pub challenge: Secret,
    pub said: Vec<u8>,
}

/// Accepts callers, challenges them, passes those whose message is complete (`need`) to `prove`, and its results to the
/// receiver.
pub(crate) fn listen<T: Send + 'static>(
    listener: TcpListener,
    bounds: Bounds,
    challenge: Challenge,
    need: Need,
    prove: impl Fn(Claim) -> Option<T> + Send + Sync + 'static,
) -> std::io::Result<Callers<T>> {
    listener.set_nonblocking(true)?;
    let listener = Arc::new(listener);
    let (sender, heard) = mpsc::channel();
    let (claims, claimed) = mpsc::sync_channel(bounds.places);
    let held = Arc::new(AtomicUsize::new(0));
    let (claimed, prove) = (Arc::new(Mutex::new(claimed)), Arc::new(prove));
    for _ in 0..CHECKER_THREADS {
        let (claimed, prove) = (claimed.clone(), prove.clone());
        let (sender, held) = (sender.clone(), held.clone());
        Builder::new().spawn(move || check(&claimed, &held, &*prove, &sender))?;
    }
    let reception = Reception {
        listener: listener.clone(),
        bounds,
        challenge,
        need,
        callers: Vec::new(),
        claims,
        held,
        closed: None,
    };
    Builder::new().spawn(move || reception.serve())?;
    Ok(Callers { heard, listener })
}

fn check<T>(
    claimed: &Mutex<Receiver<Claim>>,
    held: &AtomicUsize,
    prove: &(impl Fn(Claim) -> Option<T> + ?Sized),
    sender: &Sender<T>,
) {
    loop {
        let claim = match claimed.lock() {
            Ok(claimed) => claimed.recv(),
            Err(_) => return,
        };
        let Ok(claim) = claim else { return };
        let length = claim.said.len();
        // There may be no receiver any more.
        let _ = prove(claim).map(|heard| sender.send(heard));
        held.fetch_sub(length, Ordering::Relaxed);
    }
}

/// The thread that accepts callers and reads from them.
struct Reception {
    listener: Arc<TcpListener>,
    bounds: Bounds,
    challenge: Challenge,
    need: Need,
    /// Oldest first.
    callers: Vec<Caller>,
    claims: SyncSender<Claim>,
    /// Number of bytes that are being checked.
    held: Arc<AtomicUsize>,
    /// Until when no caller is accepted, because there are no free descriptors.
    closed: Option<Instant>,
}

impl Reception {
    fn serve(mut self) {
        loop {
            let (called, spoken) = self.wait();
            let now = Instant::now();
            let mut at = 0;
            self.callers.retain_mut(|caller| {
                at += 1;
                let goes_on =
                    !spoken[at - 1] || read_caller(caller, self.need, &self.claims, &self.held);
                goes_on && now < caller.until
            });
            self.make_room();
            if called && !self.let_in() {
                return;
            }
        }
    }

    /// Waits until there is something to do. Returns whether a caller waits to be accepted, and for each caller whether
    /// it has sent something.
    fn wait(&mut self) -> (bool, Vec<bool>) {
        let now = Instant::now();
        self.closed = self.closed.filter(|&until| now < until);
        let deadlines = self.callers.iter().map(|caller| caller.until);
        let first = deadlines.chain(self.closed).min();
        let left =
            first.map(|until| until.saturating_duration_since(now) + Duration::from_millis(1));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let outside = match self.closed {
            Some(_) => PollFlags::empty(),
            None => PollFlags::IN,
        };
        let mut fds = vec![PollFd::from_borrowed_fd(self.listener.as_fd(), outside)];
        let streams = self.callers.iter().map(|caller| caller.stream.as_fd());
        fds.extend(streams.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let _ = ready::poll(&mut fds, timeout.as_ref());
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        (ready.next().unwrap_or_default(), ready.collect())
    }

    /// Accepts one caller. Returns `false` if the socket is closed.
    fn let_in(&mut self) -> bool {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => return self.wait_or_close(&error),
        };
        let challenged = stream.set_nonblocking(true).ok();
        if let Some(challenge) = challenged.and_then(|()| (self.challenge)(&stream)) {
            if self.callers.len() >= self.bounds.places {
                self.callers.remove(0);
            }
            let until = Instant::now() + self.bounds.limit;
            self.callers.push(Caller {
                stream,
                challenge,
                said: Vec::new(),
                until,
            });
        }
        true
    }

    /// Handles an error of accept. Pauses if there are no descriptors. Returns `false` if the socket is closed.
    fn wait_or_close(&mut self, error: &std::io::Error) -> bool {
        match Errno::from_io_error(error) {
            Some(Errno::WOULDBLOCK | Errno::CONNABORTED | Errno::INTR) => true,
            // The socket does not listen any more.
            Some(Errno::INVAL | Errno::BADF) => false,
            // No descriptors, no memory, or an error that belongs to one connection (accept(2)).
            _ => {
                self.closed = Some(Instant::now() + ACCEPT_PAUSE);
                true
            }
        }
    }

    fn make_room(&mut self) {
        loop {
            let said: usize = self.callers.iter().map(|caller| caller.said.len()).sum();
            if said + self.held.load(Ordering::Relaxed) <= MAX_UNPROVED_BYTES {
                return;
            }
            let most = (0..self.callers.len()).max_by_key(|&at| self.callers[at].said.len());
            let Some(most) = most else { return };
            self.callers.remove(most);
        }
    }
}

/// Reads from a caller. Returns `false` if the caller is to be removed: it is dropped, or its message is being checked.
fn read_caller(
    caller: &mut Caller,
    need: Need,
    claims: &SyncSender<Claim>,
    held: &AtomicUsize,
) -> bool {
    let mut piece = [0; READ_BYTES];
    let Some(more) = need(&caller.said) else {
        return false;
    };
    match caller.stream.read(&mut piece[..more.min(READ_BYTES)]) {
        Ok(0) => return false,
        Ok(count) => caller.said.extend_from_slice(&piece[..count]),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
        Err(_) => return false,
    }
    match need(&caller.said) {
        None => false,
        Some(0) => {
            // The checking thread uses the stream from here on, and blocks.
            if let Ok(stream) = caller.stream.try_clone()
                && stream.set_nonblocking(false).is_ok()
            {
                let said = std::mem::take(&mut caller.said);
                let (challenge, length) = (caller.challenge, said.len());
                held.fetch_add(length, Ordering::Relaxed);
                let claim = Claim {
                    stream,
                    challenge,
                    said,
                };
                // More claims wait than the queue holds: a caller sends invalid messages as fast as they can be
                // checked.
                if claims.try_send(claim).is_err() {
                    held.fetch_sub(length, Ordering::Relaxed);
                }
            }
            false
        }
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::SocketAddr;

    use super::*;

    /// The five bytes that count as a proof.
    const PROOF: &[u8] = b"proof";
    const NO_LIMIT: Duration = Duration::from_secs(600);

    fn five(said: &[u8]) -> Option<usize> {
        PROOF.len().checked_sub(said.len())
    }

    fn at_a_socket(bounds: Bounds, need: Need) -> (Callers<Vec<u8>>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let prove = |claim: Claim| (claim.said == PROOF).then_some(claim.said);
        let callers = listen(listener, bounds, no_challenge, need, prove).expect("callers");
        (callers, address)
    }

    /// Returns a reader, the address at which it listens, and the receiver of its claims.
    fn reception() -> (Reception, SocketAddr, Receiver<Claim>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        listener.set_nonblocking(true).expect("a listener");
        let (claims, claimed) = mpsc::sync_channel(8);
        let reception = Reception {
            listener: Arc::new(listener),
            bounds: Bounds {
                places: 8,
                limit: NO_LIMIT,
            },
            challenge: no_challenge,
            need: five,
            callers: Vec::new(),
            claims,
            held: Arc::default(),
            closed: None,
        };
        (reception, address, claimed)
    }

    fn call(address: SocketAddr, said: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(said).expect("room");
        stream
    }

    /// Returns whether the other end has been closed, or will be, before anything is read.
    fn is_sent_away(mut stream: &TcpStream) -> bool {
        let limit = stream.set_read_timeout(Some(Duration::from_secs(60)));
        limit.expect("a limit");
        !matches!(stream.read(&mut [0]), Ok(1))
    }

    #[test]
    fn callers_who_dribble_keep_nobody_out() {
        let bounds = Bounds {
            places: 8,
            limit: NO_LIMIT,
        };
        let (callers, address) = at_a_socket(bounds, five);
        let dribbling: Vec<TcpStream> = (0..8).map(|_| call(address, b"p")).collect();
        let _known = call(address, PROOF);
        let heard = callers.heard.recv_timeout(Duration::from_secs(60));
        assert_eq!(heard.expect("who knows the proof"), PROOF);
        // The oldest one had to be dropped.
        assert!(is_sent_away(&dribbling[0]));
    }

    #[test]
    fn a_callers_time_is_counted_from_when_it_came() {
        let limit = Duration::from_millis(300);
        let (_callers, address) = at_a_socket(Bounds { places: 8, limit }, |said| {
            Some(1_000_000 - said.len())
        });
        let mut stream = call(address, b"p");
        let pause = Some(limit / 10);
        stream.set_read_timeout(pause).expect("a limit");
        let begun = Instant::now();
        // One byte per tenth of the limit: no single read waits for long.
        while !matches!(stream.read(&mut [0]), Ok(0)) && stream.write_all(b"p").is_ok() {
            assert!(begun.elapsed() < 100 * limit, "it is still heard");
        }
        assert!(begun.elapsed() >= limit / 2);
    }

    #[test]
    fn endless_callers_hold_no_memory_and_keep_nobody_out() {
        fn endless(said: &[u8]) -> Option<usize> {
            if PROOF.starts_with(said) || said == PROOF {
                return five(said);
            }
            Some(READ_BYTES)
        }
        let bounds = Bounds {
            places: 8,
            limit: NO_LIMIT,
        };
        let (callers, address) = at_a_socket(bounds, endless);
        let mut stream = call(address, b"x");
        let piece = vec![b'x'; READ_BYTES];
        let mut sent = 0;
        while stream.write_all(&piece).is_ok() {
            sent += READ_BYTES;
            assert!(sent < 4 * MAX_UNPROVED_BYTES, "all of it is kept");
        }
        let _known = call(address, PROOF);
        let heard = callers.heard.recv_timeout(Duration::from_secs(60));
        assert_eq!(heard.expect("who knows the proof"), PROOF);
    }

    #[test]
    fn a_caller_that_cannot_be_let_in_is_no_reason_to_close_the_socket_unless_that_has_ended() {
        let (mut reception, _, _) = reception();
        let mut goes_on = |errno: Errno| {
            reception.closed = None;
            let goes_on = reception.wait_or_close(&errno.into());
            (goes_on, reception.closed.is_some())
        };
        for not_now in [Errno::WOULDBLOCK, Errno::CONNABORTED, Errno::INTR] {
            assert_eq!(goes_on(not_now), (true, false), "{not_now}");
        }
        let for_a_while = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::HOSTUNREACH,
        ];
        for errno in for_a_while {
            assert_eq!(goes_on(errno), (true, true), "{errno}");
        }
        for never_again in [Errno::INVAL, Errno::BADF] {
            assert_eq!(goes_on(never_again), (false, false), "{never_again}");
        }
        // For a socket that its owner has shut down, the kernel returns one of these errors.
        rustix::net::shutdown(&reception.listener, rustix::net::Shutdown::Both).expect("its end");
        assert!(!reception.let_in());
    }

    #[test]
    fn who_waits_while_there_are_no_descriptors_is_let_in_afterwards() {
        let (mut reception, address, claimed) = reception();
        assert!(reception.wait_or_close(&Errno::MFILE.into()));
        let waits = Instant::now();
        let _known = call(address, PROOF);
        // Nothing wakes it before the pause is over, even though a caller waits.
        assert_eq!(reception.wait(), (false, Vec::new()));
        assert!(
            waits.elapsed() >= ACCEPT_PAUSE / 2,
            "a loop that never sleeps"
        );
        std::thread::spawn(move || reception.serve());
        let heard = claimed.recv_timeout(Duration::from_secs(60));
        assert_eq!(heard.expect("who waited").said, PROOF);
    }

    #[test]
    fn the_socket_closes_with_its_owner() {
        let bounds = Bounds {
            places: 8,
            limit: NO_LIMIT,
        };
        let (callers, address) = at_a_socket(bounds, five);
        let waiting = call(address, b"p");
        drop(callers);
        assert!(is_sent_away(&waiting));
        assert!(TcpStream::connect(address).is_err());
    }
}
