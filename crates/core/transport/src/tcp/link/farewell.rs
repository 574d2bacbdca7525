//! How long more may come from a peer that the table calls gone (see [`crate::tcp::ending`]).

use std::time::{Duration, Instant};

/// Time without new bytes after which the connection of a peer that is gone is not waited for any more.
pub(in crate::tcp) const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum time for which more is awaited from such a peer.
pub(in crate::tcp) const MAX_DRAIN_TIME: Duration = Duration::from_secs(2);

/// How long more may come from a peer that the table calls gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Farewell {
    /// Draining ends then if no byte has come since it was last set.
    quiet: Instant,
    /// Draining ends then at the latest, even if bytes still come.
    over: Instant,
    /// Bytes that had come when that was last set.
    heard: u64,
}

impl Farewell {
    /// The table has just said so, when so many bytes had come.
    pub(super) fn begin(now: Instant, heard: u64) -> Farewell {
        Farewell {
            quiet: now + DRAIN_IDLE_TIMEOUT,
            over: now + MAX_DRAIN_TIME,
            heard,
        }
    }

    /// Whether more may come, when so many bytes have come.
    pub(super) fn has_time(&mut self, now: Instant, heard: u64) -> bool {
        if self.heard != heard {
            (self.quiet, self.heard) = (now + DRAIN_IDLE_TIMEOUT, heard);
        }
        now < self.quiet.min(self.over)
    }
}
