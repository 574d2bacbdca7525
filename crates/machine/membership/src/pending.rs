//! A timer that has been set, ordered by its due time.

use std::time::Duration;

use foca::Timer;

use crate::host::HostId;

/// A timer, in time that this process ran. Timers with the same due time fire in the order in which they were set.
pub(crate) struct Pending {
    pub due: Duration,
    pub order: u64,
    pub what: Option<Timer<HostId>>,
    /// Whether this is a verdict that has been put off once.
    pub put_off: bool,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Pending) -> bool {
        (self.due, self.order) == (other.due, other.order)
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}
