//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the microseconds since 1970, or 0 if the clock is before that.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
