//! Successive unsuccessful polls of nonblocking calls: tests, probes, and calls that make progress.
//!
//! A program that polls again and again is as good as blocked. So it is treated by the waiting policy ([`mod@crate::wait`]) like a blocked task: it
//! yields its core to the tasks for which it waits, and it receives large messages that it is offered. A program that computes between its polls
//! keeps its core: only polls in close succession count.
//!
//! A core is yielded before the next poll, not after the unsuccessful one. By then it is known that the program does poll again, and the poll that
//! follows finds what has arrived meanwhile.

use std::time::{Duration, Instant};

use regatta_engine::Handle;

/// Time of waiting, or of unsuccessful polling, after which a task receives large messages offered to it: it may depend on their senders.
pub(crate) const HELP_AFTER: Duration = Duration::from_millis(1);
/// Number of polls between two reads of the clock where a core is free. As many follow each yield there, which costs more than ten polls.
const POLLS_PER_CLOCK_READ: u32 = 64;
/// Maximum time between polls that are in close succession.
const MAX_POLL_GAP: Duration = Duration::from_micros(10);

/// The polls of a task since the last successful one.
#[derive(Debug, Default)]
pub(crate) struct InVain {
    looks: u32,
    /// The counter of arrivals at the last poll.
    moves: u64,
    /// Time of the last read of the clock.
    last: Option<Instant>,
    /// Time since which the polls have been in close succession.
    since: Option<Instant>,
    /// The first read of the clock since the task last received offered messages.
    unhelpful_since: Option<Instant>,
    /// Whether the task yields its core before the next poll.
    yields: bool,
    /// For polls of one request out of many: the request of the last poll that counted, and the number of polls of other requests since.
    request: Option<Handle>,
    others: u32,
}

impl InVain {
    /// Records a successful poll.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        if self.looks > 0 {
            *self = InVain::default();
        }
    }

    /// Returns whether the core is to be yielded before the next poll.
    #[inline(always)]
    pub(crate) fn yields(&self) -> bool {
        self.yields
    }

    /// Returns whether a poll of this request counts. A caller polls many requests in turn: that counts as one poll, or as one for every few
    /// requests.
    pub(crate) fn comes_round(&mut self, request: Handle) -> bool {
        let counts =
            self.request.is_none_or(|last| last == request) || self.others >= POLLS_PER_CLOCK_READ;
        if counts {
            self.request = Some(request);
            self.others = 0;
        } else {
            self.others += 1;
        }
        counts
    }

    /// Records that the core was yielded and the task has it again, so that the time of other tasks does not count as its own.
    pub(crate) fn has_yielded(&mut self, now: Instant) {
        self.last = Some(now);
        self.yields = false;
    }

    /// Records an unsuccessful poll. `keeps` is the time for which the task keeps its core while it polls repeatedly; `moves` counts what any call
    /// has received. Returns true if it is time to receive what other tasks offer.
    pub(crate) fn looked(
        &mut self,
        keeps: Duration,
        moves: u64,
        clock: impl FnOnce() -> Instant,
    ) -> bool {
        // A blocking call has received something since.
        if moves != self.moves {
            *self = InVain {
                moves,
                ..InVain::default()
            };
        }
        self.looks = self.looks.saturating_add(1);
        let unclocked = !keeps.is_zero();
        if unclocked && !self.looks.is_multiple_of(POLLS_PER_CLOCK_READ) {
            return false;
        }
        let now = clock();
        let longest = MAX_POLL_GAP * if unclocked { POLLS_PER_CLOCK_READ } else { 1 };
        let close = self
            .last
            .is_some_and(|last| now.saturating_duration_since(last) <= longest);
        self.last = Some(now);
        if !close {
            self.since = None;
        }
        let since = *self.since.get_or_insert(now);
        self.yields = close && now.saturating_duration_since(since) >= keeps;
        let waits = close || self.looks >= POLLS_PER_CLOCK_READ;
        let unhelpful = *self.unhelpful_since.get_or_insert(now);
        let helps = waits && now.saturating_duration_since(unhelpful) >= HELP_AFTER;
        if helps {
            self.unhelpful_since = None;
        }
        helps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::SPIN;

    /// Oversubscribed; with a core of its own; and with a core that is assumed to be its own.
    const KEEPS: [Duration; 3] = [Duration::ZERO, SPIN, Duration::MAX];

    /// Polls without success at this interval until the core is yielded. Returns the number of polls, or `None` if it is never yielded.
    fn looks_until_it_yields(keeps: Duration, apart: Duration) -> Option<u32> {
        let (mut in_vain, mut now) = (InVain::default(), Instant::now());
        (1..10_000).find(|_| {
            now += apart;
            in_vain.looked(keeps, 0, || now);
            in_vain.yields()
        })
    }

    #[test]
    fn a_task_of_a_crowd_that_looks_again_at_once_gives_its_core_away() {
        assert_eq!(
            looks_until_it_yields(Duration::ZERO, MAX_POLL_GAP / 100),
            Some(2)
        );
    }

    #[test]
    fn a_task_with_a_core_of_its_own_looks_first_for_as_long_as_a_blocked_one() {
        let apart = MAX_POLL_GAP / 10;
        let looks = looks_until_it_yields(SPIN, apart).expect("it yields");
        assert!(apart * looks >= SPIN, "{looks}");
        assert!(apart * looks <= SPIN * 4, "{looks}");
    }

    #[test]
    fn a_task_with_a_core_of_its_own_yields_seldom() {
        let (mut in_vain, mut now) = (InVain::default(), Instant::now());
        let looks = 100 * POLLS_PER_CLOCK_READ;
        let yields = (0..looks).filter(|_| {
            now += MAX_POLL_GAP / 10;
            in_vain.looked(SPIN, 0, || now);
            let yields = in_vain.yields();
            if yields {
                in_vain.has_yielded(now);
            }
            yields
        });
        let yields = yields.count() as u32;
        assert!(
            (looks / POLLS_PER_CLOCK_READ / 2..=looks / POLLS_PER_CLOCK_READ).contains(&yields),
            "{yields}"
        );
    }

    #[test]
    fn a_program_that_computes_between_its_looks_keeps_its_core() {
        for keeps in KEEPS {
            assert_eq!(looks_until_it_yields(keeps, MAX_POLL_GAP * 2), None);
        }
        assert_eq!(
            looks_until_it_yields(Duration::MAX, MAX_POLL_GAP / 100),
            None
        );
    }

    #[test]
    fn the_time_of_others_does_not_make_looks_far_apart() {
        let (mut in_vain, mut now) = (InVain::default(), Instant::now());
        in_vain.looked(Duration::ZERO, 0, || now);
        for _ in 0..100 {
            in_vain.looked(Duration::ZERO, 0, || now);
            assert!(in_vain.yields());
            now += Duration::from_millis(4);
            in_vain.has_yielded(now);
        }
        in_vain.end();
        assert!(!in_vain.yields());
    }

    #[test]
    fn looks_between_which_something_has_come_keep_the_core() {
        let (mut in_vain, now) = (InVain::default(), Instant::now());
        for moves in 0..10 {
            in_vain.looked(Duration::ZERO, moves, || now);
            assert!(!in_vain.yields());
        }
        in_vain.looked(Duration::ZERO, 9, || now);
        assert!(in_vain.yields());
    }

    #[test]
    fn looks_at_many_requests_in_turn_count_once_a_turn() {
        let counted = |requests| {
            let mut in_vain = InVain::default();
            let looks = (0..10).flat_map(|_| (1..=requests).map(Handle));
            looks.filter(|&one| in_vain.comes_round(one)).count()
        };
        assert_eq!(counted(1), 10);
        assert_eq!(counted(POLLS_PER_CLOCK_READ as u64), 10);
        assert!(counted(10 * POLLS_PER_CLOCK_READ as u64) >= 90);
    }

    #[test]
    fn offers_are_taken_in_after_as_long_as_in_a_wait_and_then_again() {
        for keeps in KEEPS {
            let (mut in_vain, mut now) = (InVain::default(), Instant::now());
            let (start, mut helped) = (now, Vec::new());
            while helped.len() < 2 {
                now += MAX_POLL_GAP / 10;
                if in_vain.looked(keeps, 0, || now) {
                    helped.push(now - start);
                }
            }
            for (time, &took) in (1..).zip(&helped) {
                assert!(took >= HELP_AFTER * time && took <= HELP_AFTER * (time + 1));
            }
        }
    }
}
