//! Detection of dead connections to hosts that live: a device between the hosts has forgotten the connection, and drops
//! its packets.
//!
//! A suspended host does not answer either, and continues later, so silence alone does not prove that a connection is
//! dead. But a connection that stays silent while its host answers other calls does not recover.

use std::time::{Duration, Instant};

use crate::talk::Wire;

/// Time without acknowledgement after which a connection to a live host counts as dead. It is longer than any kernel's
/// interval between two retransmissions (two minutes).
const UNANSWERED_TIMEOUT: Duration = Duration::from_secs(180);
/// Interval between two checks of a silent connection.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Checks a connection periodically while nothing is received on it.
pub(crate) struct DeathWatch {
    is_silent: fn(&Wire) -> bool,
    /// Whether the host at the other end answers a call.
    answers: Box<dyn Fn() -> bool>,
    patience: Duration,
    pause: Duration,
    /// Since when every check has found the connection silent and the host answering.
    since: Option<Instant>,
    next: Option<Instant>,
}

impl DeathWatch {
    /// Watches a connection to a host; `answers` returns whether the host answers a call.
    pub(crate) fn new(answers: impl Fn() -> bool + 'static) -> DeathWatch {
        DeathWatch {
            is_silent: Wire::is_unanswered,
            answers: Box::new(answers),
            patience: UNANSWERED_TIMEOUT,
            pause: CHECK_INTERVAL,
            since: None,
            next: None,
        }
    }

    /// Returns the time of the next check.
    pub(crate) fn next_look(&mut self, now: Instant) -> Instant {
        *self.next.get_or_insert(now + self.pause)
    }

    /// Returns whether the connection is dead. Checks it if it is time to.
    pub(crate) fn is_dead(&mut self, wire: &Wire, now: Instant) -> bool {
        if now < self.next_look(now) {
            return false;
        }
        self.next = Some(now + self.pause);
        if !(self.is_silent)(wire) || !(self.answers)() {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        now.saturating_duration_since(since) >= self.patience
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::os::unix::net::UnixStream;
    use std::rc::Rc;

    use super::*;

    /// Returns a watch that finds a connection dead at the second check, if it is silent and its host answers.
    pub(crate) fn watch(is_silent: fn(&Wire) -> bool, answers: bool) -> DeathWatch {
        let short = Duration::from_millis(1);
        DeathWatch {
            is_silent,
            patience: short,
            pause: short,
            ..DeathWatch::new(move || answers)
        }
    }

    #[test]
    fn a_silent_connection_is_dead_when_its_host_has_answered_other_calls_for_long_enough() {
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let wire = Wire::local(ours).expect("a wire");
        let answers = Rc::new(Cell::new(true));
        let (asked, begin) = (answers.clone(), Instant::now());
        let mut watch = DeathWatch {
            is_silent: |_| true,
            ..DeathWatch::new(move || asked.get())
        };
        let mut at = |seconds| watch.is_dead(&wire, begin + Duration::from_secs(seconds));
        // The host does not answer for a while, so the time starts again.
        for (seconds, host_answers) in [(0, true), (10, true), (150, true), (189, false)] {
            answers.set(host_answers);
            assert!(!at(seconds), "{seconds} s");
        }
        answers.set(true);
        assert!(!at(200) && !at(379));
        assert!(at(390));
    }

    #[test]
    fn a_connection_that_is_answered_is_not_dead() {
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let wire = Wire::local(ours).expect("a wire");
        let (mut watch, begin) = (DeathWatch::new(|| true), Instant::now());
        for minutes in 0..60 {
            assert!(!watch.is_dead(&wire, begin + Duration::from_secs(60 * minutes)));
        }
    }
}
