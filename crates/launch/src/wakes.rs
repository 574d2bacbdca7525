//! Whether this process ran at all.
//!
//! A machine that was stopped for some seconds, or a process that got no processor, has heard nobody in that time. That says
//! nothing of the others: time that a loop was away for longer than it meant to sleep does not count against them.

use std::time::{Duration, Instant};

use crate::remote::BEAT;

/// The turns of a loop that sleeps for a beat at most.
#[derive(Debug)]
pub(crate) struct Wakes(Instant);

impl Wakes {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// Called once in each turn: how much longer this one took than it was meant to, leaving aside what is usual on a
    /// machine with much to do.
    pub(crate) fn away(&mut self) -> Duration {
        let now = Instant::now();
        let turn = now - std::mem::replace(&mut self.0, now);
        turn.saturating_sub(2 * BEAT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_longer_than_a_beat_counts() {
        let long = 10 * BEAT;
        let mut wakes = Wakes(Instant::now().checked_sub(long).expect("a clock that runs"));
        assert!(wakes.away() >= long - 2 * BEAT);
        assert_eq!(wakes.away(), Duration::ZERO);
    }
}
