//! Detection of times in which this process did not run.
//!
//! If a machine was stopped for some seconds, or a process got no processor, it received nothing in that time. That
//! does not mean that the other hosts were silent: time by which a loop overslept does not count against them.

use std::time::{Duration, Instant};

use crate::channel::remote::BEAT_INTERVAL;

/// Minimum length of a pause that is reported. A busy machine makes shorter ones.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// Time after a pause during which it is a likely cause of a loss.
const PAUSE_RELEVANCE: Duration = Duration::from_secs(5);

/// The turns of a loop that sleeps for at most one keepalive interval.
#[derive(Debug)]
pub(crate) struct Wakes {
    last: Instant,
    /// The end of the last long pause, and its length.
    pause: Option<(Instant, Duration)>,
}

impl Wakes {
    pub(crate) fn new() -> Self {
        Self {
            last: Instant::now(),
            pause: None,
        }
    }

    /// Returns the length of a long pause that ended a moment ago, if there was one.
    pub(crate) fn paused_lately(&self) -> Option<Duration> {
        let pause = self
            .pause
            .filter(|(end, _)| end.elapsed() < PAUSE_RELEVANCE);
        pause.map(|(_, length)| length)
    }

    /// Returns how much longer this turn took than intended, minus what is usual on a busy machine. To be called once
    /// in each turn.
    pub(crate) fn away(&mut self) -> Duration {
        let now = Instant::now();
        let turn = now - std::mem::replace(&mut self.last, now);
        let away = turn.saturating_sub(2 * BEAT_INTERVAL);
        if away >= MIN_PAUSE {
            self.pause = Some((now, turn));
        }
        away
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_longer_than_a_beat_counts() {
        let long = 10 * BEAT_INTERVAL;
        let mut wakes = Wakes::new();
        assert_eq!(wakes.away(), Duration::ZERO);
        assert_eq!(wakes.paused_lately(), None);
        wakes.last = Instant::now().checked_sub(long).expect("a clock that runs");
        assert!(wakes.away() >= long - 2 * BEAT_INTERVAL);
        assert_eq!(wakes.away(), Duration::ZERO);
        assert!(wakes.paused_lately().is_some_and(|pause| pause >= long));
    }
}
