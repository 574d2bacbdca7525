//! How long to wait for more from a peer that the table calls gone (see [`crate::tcp::ending`]).

use std::time::{Duration, Instant};

/// Time without new bytes after which the connection of a peer that is gone is not waited for any more.
pub(in crate::tcp) const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum time for which more is awaited from such a peer.
pub(in crate::tcp) const MAX_DRAIN_TIME: Duration = Duration::from_secs(2);

/// How long to wait for more from a peer that the table calls gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Farewell {
    /// Draining ends at this time if no byte has come since it was set.
    quiet: Instant,
    /// Draining ends at this time at the latest, even if bytes still come.
    over: Instant,
    /// Bytes that had come when `quiet` was last set.
    heard: u64,
}

impl Farewell {
    /// Begins when the table has just called the peer gone; `heard` bytes have come.
    pub(super) fn begin(now: Instant, heard: u64) -> Farewell {
        Farewell {
            quiet: now + DRAIN_IDLE_TIMEOUT,
            over: now + MAX_DRAIN_TIME,
            heard,
        }
    }

    /// Returns whether more may come; `heard` bytes have come.
    pub(super) fn has_time(&mut self, now: Instant, heard: u64) -> bool {
        if self.heard != heard {
            (self.quiet, self.heard) = (now + DRAIN_IDLE_TIMEOUT, heard);
        }
        now < self.quiet.min(self.over)
    }
}
