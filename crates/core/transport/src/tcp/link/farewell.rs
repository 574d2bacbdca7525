//! The time to wait for more from a peer that the table calls gone (see [`crate::tcp::ending`]).

use std::time::{Duration, Instant};

/// Time without new bytes after which a connection to a peer that is gone is no longer drained.
pub(in crate::tcp) const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum time for which such a connection is drained.
pub(in crate::tcp) const MAX_DRAIN_TIME: Duration = Duration::from_secs(2);

/// The deadlines for draining the connection to a peer that the table calls gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Farewell {
    /// Time at which draining ends if no byte is received before.
    quiet: Instant,
    /// Time at which draining ends even if bytes still arrive.
    over: Instant,
    /// Number of bytes that had been received when `quiet` was last set.
    heard: u64,
}

impl Farewell {
    /// Returns the deadlines for a peer that the table has just called gone. `heard` bytes have been received from it
    /// so far.
    pub(super) fn begin(now: Instant, heard: u64) -> Farewell {
        Farewell {
            quiet: now + DRAIN_IDLE_TIMEOUT,
            over: now + MAX_DRAIN_TIME,
            heard,
        }
    }

    /// Returns whether to wait for more. `heard` bytes have been received so far.
    pub(super) fn has_time(&mut self, now: Instant, heard: u64) -> bool {
        if self.heard != heard {
            (self.quiet, self.heard) = (now + DRAIN_IDLE_TIMEOUT, heard);
        }
        now < self.quiet.min(self.over)
    }
}
