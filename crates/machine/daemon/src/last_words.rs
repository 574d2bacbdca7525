//! The last bytes of a channel, with the reason for its end, that are still to be sent to a launcher of this host.
//!
//! A launcher whose connection ends without a reason has to assume that the daemon of its host has died. A launcher
//! that is stopped or busy reads later, so the thread that serves a channel keeps these bytes until they are read or
//! the launcher has closed the connection.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::budget::Share;
use crate::talk::{Wire, wait};

/// Time for which an ended channel waits for a launcher that does not read, because a daemon that ends waits for its
/// channels.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(2);

/// The remaining bytes for the other end of an ended channel, with the reason at the end.
#[derive(Debug)]
pub(crate) struct LastWords {
    to: Wire,
    rest: Vec<u8>,
    /// The share of the budget for these bytes.
    _share: Share,
}

impl LastWords {
    /// Takes complete frames, the first of which may have been sent in part, and their share of the budget.
    pub(crate) fn new(to: Wire, rest: Vec<u8>, share: Share) -> LastWords {
        LastWords {
            to,
            rest,
            _share: share,
        }
    }

    /// Sends them, for a limited time.
    pub(crate) fn try_deliver(&mut self) {
        self.deliver_until(Some(Instant::now() + DELIVERY_TIMEOUT));
    }

    /// Sends them as long as the other side lives.
    pub(crate) fn deliver(mut self) {
        self.deliver_until(None);
    }

    /// Sends them until `until` at most.
    pub(crate) fn deliver_until(&mut self, until: Option<Instant>) {
        while self.send().is_ok() && !(self.rest.is_empty() && self.to.is_flushed()) {
            if !wait(&mut [PollFd::new(&self.to, PollFlags::OUT)], until) {
                return;
            }
        }
    }

    fn send(&mut self) -> std::io::Result<()> {
        while !self.rest.is_empty() {
            match self.to.send(&self.rest)? {
                0 => break,
                count => drop(self.rest.drain(..count)),
            }
        }
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::budget::OVER;

    fn last_words() -> (LastWords, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let wire = Wire::local(ours).expect("a wire");
        let share = Share::none(&OVER);
        (LastWords::new(wire, vec![7; 4 << 20], share), theirs)
    }

    #[test]
    fn who_reads_late_hears_all() {
        let (mut words, mut launcher) = last_words();
        words.deliver_until(Some(Instant::now()));
        let read = std::thread::spawn(move || {
            let mut all = Vec::new();
            launcher.read_to_end(&mut all).map(|_| all.len())
        });
        words.deliver();
        let read = read.join().expect("a reader").expect("bytes");
        assert_eq!(read, 4 << 20);
    }

    #[test]
    fn nobody_waits_for_a_launcher_that_has_hung_up() {
        let (mut words, launcher) = last_words();
        words.deliver_until(Some(Instant::now()));
        drop(launcher);
        words.deliver();
    }
}
