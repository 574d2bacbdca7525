//! The early end of a race: requested by a signal, and noticed in every wait.
//!
//! A signal stores its number and writes a byte to a socket that is never read. A wait for a descriptor also polls the
//! other end of that socket, so every wait ends once the race is to stop.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// The reason why a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The descriptor of this index is ready.
    Ready(usize),
    /// The deadline has passed.
    Late,
    /// The race is to stop.
    Stopped,
}

/// The request to stop, with the socket that wakes waiting threads.
#[derive(Debug)]
pub struct Stop {
    /// The signal that made the request, or 0 if none has.
    signal: Arc<AtomicUsize>,
    /// Readable once the request is made.
    asked: UnixStream,
    ask: UnixStream,
}

impl Stop {
    /// Creates a request that has not been made yet.
    pub fn new() -> Result<Arc<Stop>> {
        let (asked, ask) = UnixStream::pair().context("cannot make a pair of sockets")?;
        ask.set_nonblocking(true)?;
        Ok(Arc::new(Stop {
            signal: Arc::new(AtomicUsize::new(0)),
            asked,
            ask,
        }))
    }

    /// As [`Stop::new`], but the first SIGINT or SIGTERM makes the request, and the second ends this process at once.
    pub fn on_signals() -> Result<Arc<Stop>> {
        let stop = Stop::new()?;
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
            flag::register_usize(signal, Arc::clone(&stop.signal), signal as usize)?;
            low_level::pipe::register(signal, stop.ask.try_clone()?)?;
        }
        Ok(stop)
    }

    /// Makes the request, as this signal would.
    pub fn ask(&self, signal: i32) {
        self.signal.store(signal as usize, Ordering::SeqCst);
        // The write fails if the socket's buffer is full, and the other end is then readable as well.
        let _ = (&self.ask).write(&[0]);
    }

    /// Returns the signal that made the request, if any.
    pub fn asked(&self) -> Option<i32> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    /// Returns whether the race is to stop.
    pub fn is_asked(&self) -> bool {
        self.asked().is_some()
    }

    /// Waits until one of these descriptors is ready, the deadline has passed or the race is to stop. The request to
    /// stop has priority.
    pub fn await_ready(
        &self,
        fds: &[(BorrowedFd<'_>, PollFlags)],
        deadline: Instant,
    ) -> io::Result<Woken> {
        let own = (self.asked.as_fd(), PollFlags::IN);
        let all: Vec<_> = std::iter::once(own).chain(fds.iter().copied()).collect();
        let ready = poll_until(&all, deadline)?;
        Ok(match ready {
            _ if self.is_asked() => Woken::Stopped,
            Some(index) if index > 0 => Woken::Ready(index - 1),
            _ => Woken::Late,
        })
    }

    /// Waits for `time`. Returns true at once when the race is to stop.
    pub fn wait(&self, time: Duration) -> bool {
        matches!(
            self.await_ready(&[], Instant::now() + time),
            Ok(Woken::Stopped)
        )
    }
}

/// Waits until one of these descriptors is ready and returns its index, or `None` if the deadline has passed.
pub fn poll_until(
    fds: &[(BorrowedFd<'_>, PollFlags)],
    deadline: Instant,
) -> io::Result<Option<usize>> {
    loop {
        let rest = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: rest.as_secs().min(i64::MAX as u64) as i64,
            tv_nsec: i64::from(rest.subsec_nanos()),
        };
        let mut watched: Vec<PollFd<'_>> = fds
            .iter()
            .map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
            .collect();
        match poll(&mut watched, Some(&timeout)) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(watched.iter().position(|fd| !fd.revents().is_empty())),
            // A signal handler has run. If it made the request, the caller's socket is readable.
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_TIMEOUT: Duration = Duration::from_secs(100);

    #[test]
    fn a_request_ends_a_wait_and_every_later_one() {
        let stop = Stop::new().unwrap();
        let began = Instant::now();
        let waiting = Arc::clone(&stop);
        let wait = std::thread::spawn(move || waiting.wait(TEST_TIMEOUT));
        assert_eq!(stop.asked(), None);
        stop.ask(SIGTERM);
        assert!(wait.join().unwrap());
        assert!(stop.wait(TEST_TIMEOUT));
        assert_eq!(stop.asked(), Some(SIGTERM));
        assert!(began.elapsed() < TEST_TIMEOUT / 2);
    }

    #[test]
    fn a_request_goes_before_a_descriptor_that_is_ready() {
        let stop = Stop::new().unwrap();
        let (one, mut other) = UnixStream::pair().unwrap();
        let fds = [(one.as_fd(), PollFlags::IN)];
        let woken = |time| stop.await_ready(&fds, Instant::now() + time).unwrap();
        assert_eq!(woken(Duration::ZERO), Woken::Late);
        other.write_all(b"x").unwrap();
        assert_eq!(woken(TEST_TIMEOUT), Woken::Ready(0));
        stop.ask(SIGINT);
        assert_eq!(woken(TEST_TIMEOUT), Woken::Stopped);
    }
}
