//! Determines whether this task has its core to itself. That decides how the task waits, and is observed while it waits.
//!
//! The launcher knows how many tasks share the cores that it assigns. It does not know of a second job, of tasks that the user has bound to one
//! core, or of a program that computes there. A task that spins on a shared core keeps the core from the task it waits for; a task that yields gives
//! the core away for a whole time slice. A task that sleeps gets the core back when it is woken.
//!
//! | manner | when | a wait |
//! |---|---|---|
//! | [`Manner::Spin`] | one core per task | polls repeatedly, then yields, then sleeps |
//! | [`Manner::Yield`] | more tasks than cores (oversubscribed) | polls once, yields a few times, then sleeps |
//! | [`Manner::Sleep`] | another program uses the core | polls once, then sleeps |
//!
//! Evidence that another program uses the core costs nothing in short waits, which do not collect any:
//!
//! * Spinning: the kernel has taken the core from the thread, at a yield or in between. It counts that (`ru_nivcsw`); the counter is
//!   read in waits longer than [`MIN_WATCHED_WAIT`].
//! * Oversubscribed: a yield has lasted longer than [`MAX_MESSAGE_YIELD`]. Tasks that pass messages return the core much sooner.
//!
//! After [`MIN_EVIDENCE`] waits with evidence, each within [`MAX_EVIDENCE_GAP`] of the previous one, the task sleeps in its next waits. After
//! [`TRIALS`] of these it waits in the old manner again to see whether the situation has changed. After each failed trial, trials become half as
//! frequent.

use std::time::{Duration, Instant};

use crate::linger::Linger;

/// Time for which a task polls when a core is free.
pub(crate) const SPIN: Duration = Duration::from_micros(100);
/// Number of successive waits with evidence that are believed. An idle machine produces some evidence from time to time.
const MIN_EVIDENCE: u32 = 3;
/// Maximum time between two such waits.
const MAX_EVIDENCE_GAP: Duration = Duration::from_millis(30);
/// Number of waits before the next trial: initial and maximum value.
const TRIALS: (u32, u32) = (32, 4096);
/// Minimum length of a wait that collects evidence.
const MIN_WATCHED_WAIT: Duration = Duration::from_micros(25);
/// Maximum length of a yield to a task that passes messages. A longer yield went to a program that computes.
const MAX_MESSAGE_YIELD: Duration = Duration::from_millis(1);

/// How a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Spin,
    Yield,
    Sleep,
}

/// How this task waits at present, and the evidence so far.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Whether the manner is `Spin`. Read on the fast paths.
    spins: bool,
    /// More tasks than cores: spinning takes the core from another task.
    crowded: bool,
    /// Number of waits that sleep before the next trial. Positive if another program uses the core.
    sleeps: u32,
    /// The value of `sleeps` for the next time.
    next: u32,
    /// Number of waits with evidence, and the time of the last.
    evidence: u32,
    last: Option<Instant>,
    /// Whether evidence is believed.
    adapts: bool,
    pub(crate) linger: Linger,
}

impl Pace {
    pub(crate) fn new(tasks_per_core: u32, task: u32, adapts: bool) -> Pace {
        let crowded = tasks_per_core > 1;
        Pace {
            spins: !crowded,
            crowded,
            sleeps: 0,
            next: TRIALS.0,
            evidence: 0,
            last: None,
            adapts,
            linger: Linger::new(tasks_per_core, task),
        }
    }

    /// Returns whether the task may poll repeatedly, for about as long as an answer takes.
    #[inline(always)]
    pub(crate) fn spins(&self) -> bool {
        self.spins
    }

    /// Returns for how long the task keeps its core while its program polls repeatedly.
    pub(crate) fn keeps_core(&self) -> Duration {
        match self.manner() {
            Manner::Spin if !self.adapts => Duration::MAX,
            Manner::Spin => SPIN,
            _ => Duration::ZERO,
        }
    }

    pub(crate) fn manner(&self) -> Manner {
        match (self.sleeps > 0, self.crowded) {
            (true, _) => Manner::Sleep,
            (false, true) => Manner::Yield,
            (false, false) => Manner::Spin,
        }
    }

    /// Records the number of tasks per core, which may have changed.
    pub(crate) fn set_tasks_per_core(&mut self, tasks: u32) {
        self.crowded = tasks > 1;
        self.linger.set_tasks_per_core(tasks);
        self.spins = self.manner() == Manner::Spin;
    }

    /// Records that a wait begins that was not ended by its first polls.
    pub(crate) fn begin_wait(&mut self) {
        if self.sleeps == 0 {
            if self.crowded {
                self.linger.begin_wait();
            }
            return;
        }
        self.sleeps -= 1;
        if self.sleeps == 0 {
            // A trial: one more wait with evidence is enough.
            (self.evidence, self.last) = (MIN_EVIDENCE - 1, Some(Instant::now()));
            self.spins = self.manner() == Manner::Spin;
        }
    }

    /// Records the end of a wait, or its sleep, and whether another program has had the core meanwhile.
    fn saw(&mut self, shared: bool, now: Instant) {
        let chained = self
            .last
            .is_some_and(|last| now.saturating_duration_since(last) <= MAX_EVIDENCE_GAP);
        if !shared || !chained {
            (self.evidence, self.next) = (0, TRIALS.0);
        }
        if !shared {
            return;
        }
        self.evidence += 1;
        self.last = Some(now);
        if self.evidence >= MIN_EVIDENCE && self.adapts {
            self.sleeps = self.next;
            self.next = (self.next * 2).min(TRIALS.1);
            self.spins = false;
        }
    }
}

/// The evidence of one wait.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The number of context switches when the wait began to collect evidence.
    switches: Option<i64>,
    /// Length of the wait at the last poll.
    idle: Duration,
    /// Whether a yield has lasted too long.
    late: bool,
    looked: bool,
}

impl Watch {
    /// Records an unsuccessful poll after a wait of length `idle`.
    pub(crate) fn look(&mut self, manner: Manner, idle: Duration) {
        match manner {
            Manner::Spin if idle > MIN_WATCHED_WAIT && self.switches.is_none() => {
                self.switches = switches();
            }
            Manner::Yield => {
                self.late |= self.looked && idle.saturating_sub(self.idle) > MAX_MESSAGE_YIELD;
                (self.looked, self.idle) = (true, idle);
            }
            _ => {}
        }
    }

    /// Ends the collection, because the wait is over or the task is about to sleep.
    pub(crate) fn end(&mut self, pace: &mut Pace) {
        let shared = match self.switches {
            Some(before) => switches() != Some(before),
            None if self.looked => self.late,
            None => return,
        };
        pace.saw(shared, Instant::now());
        *self = Watch::default();
    }
}

/// Returns how often the kernel has taken the core from this thread. Returns `None` if the kernel does not report that.
fn switches() -> Option<i64> {
    // SAFETY: all zeros are a valid `rusage`, and the call only writes to it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_THREAD, &mut usage) == 0).then_some(usage.ru_nivcsw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits with evidence until the task sleeps. Returns the number of waits.
    fn waits_until_it_sleeps(pace: &mut Pace, now: Instant) -> u32 {
        let mut waits = 0;
        while pace.manner() != Manner::Sleep {
            pace.begin_wait();
            pace.saw(true, now);
            waits += 1;
        }
        assert!(!pace.spins());
        waits
    }

    /// Returns the number of waits that sleep before the next trial.
    fn sleeps(pace: &mut Pace) -> u32 {
        let mut waits = 0;
        while pace.manner() == Manner::Sleep {
            pace.begin_wait();
            waits += 1;
        }
        waits
    }

    #[test]
    fn evidence_in_a_row_is_believed_and_tried_again_ever_less_often() {
        let now = Instant::now();
        for crowded in [false, true] {
            let mut pace = Pace::new(1 + crowded as u32, 0, true);
            assert_eq!(waits_until_it_sleeps(&mut pace, now), MIN_EVIDENCE);
            assert_eq!(sleeps(&mut pace), TRIALS.0);
            assert_eq!(pace.spins(), !crowded, "it tries the old manner");
            pace.saw(true, Instant::now());
            assert_eq!(sleeps(&mut pace), 2 * TRIALS.0);
            for _ in 0..20 {
                pace.saw(true, Instant::now());
                sleeps(&mut pace);
            }
            pace.saw(true, Instant::now());
            assert_eq!(sleeps(&mut pace), TRIALS.1);
        }
    }

    #[test]
    fn evidence_now_and_then_is_not_believed() {
        let mut pace = Pace::new(1, 0, true);
        let mut now = Instant::now();
        for wait in 0..1000 {
            pace.saw(wait % 3 != 0, now);
            assert!(pace.spins());
        }
        for _ in 0..1000 {
            now += 2 * MAX_EVIDENCE_GAP;
            pace.saw(true, now);
            assert!(pace.spins());
        }
    }

    #[test]
    fn a_trial_without_evidence_ends_it() {
        let mut pace = Pace::new(1, 0, true);
        waits_until_it_sleeps(&mut pace, Instant::now());
        sleeps(&mut pace);
        pace.saw(true, Instant::now());
        sleeps(&mut pace);
        pace.saw(false, Instant::now());
        assert_eq!(
            waits_until_it_sleeps(&mut pace, Instant::now()),
            MIN_EVIDENCE
        );
        assert_eq!(sleeps(&mut pace), TRIALS.0);
    }

    #[test]
    fn a_yield_that_lasts_a_slice_is_evidence() {
        let mut pace = Pace::new(2, 0, true);
        for _ in 0..MIN_EVIDENCE {
            let mut watch = Watch::default();
            watch.look(Manner::Yield, Duration::from_micros(1));
            watch.look(Manner::Yield, MAX_MESSAGE_YIELD * 3);
            watch.end(&mut pace);
        }
        assert_eq!(pace.manner(), Manner::Sleep);
    }

    #[test]
    fn a_task_that_is_told_so_takes_the_core_for_its_own() {
        let mut pace = Pace::new(1, 0, false);
        for _ in 0..100 {
            pace.saw(true, Instant::now());
            assert!(pace.spins());
        }
    }

    #[test]
    fn more_tasks_than_cores_and_back() {
        let mut pace = Pace::new(1, 0, true);
        pace.set_tasks_per_core(2);
        assert_eq!((pace.manner(), pace.spins()), (Manner::Yield, false));
        pace.set_tasks_per_core(1);
        assert_eq!((pace.manner(), pace.spins()), (Manner::Spin, true));
    }
}
