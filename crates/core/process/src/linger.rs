//! Decides whether a task of an oversubscribed job polls on for a moment after an unsuccessful yield, before it yields again.
//!
//! Where few tasks share a core, a task that was given the core back has often learned that none of them has work: what they wait for will come from
//! another core. They would pass this core around until a message arrives, and then usually another task than the receiver would have the core. A
//! task that polls on receives its message at once. But while it polls, a message for another task of its core waits. Which effect is larger depends
//! on the program. So a task tries it from time to time, and continues while most of the messages arrive during the polling.

use std::time::{Duration, Instant};

/// Time for which a task polls on before it yields again.
const LINGER: Duration = Duration::from_micros(20);
/// Maximum number of tasks per core for which polling on has ever paid. With more tasks, an arriving message is usually for another one.
const MAX_TASKS_PER_CORE: u32 = 4;
/// The credit at the start of a trial, and the maximum credit.
const CREDIT: (u32, u32) = (4, 8);
/// A message that arrives adds 1 to the credit, and one that does not subtracts this: polling pays if two of three arrive.
const LOSS: u32 = 2;
/// Number of waits before the next trial: initial and maximum value.
const TRIALS: (u32, u32) = (64, 4096);

/// Tasks with neighbouring ranks begin their trials this many waits apart. Tasks of a core that try at the same time disturb each other: while one
/// polls on, the next one's message waits.
const APART: u32 = 16;

/// Whether polling on pays, according to the messages so far.
#[derive(Debug)]
pub(crate) struct Linger {
    /// Whether few enough tasks share a core.
    allowed: bool,
    /// The task polls on while this is positive.
    credit: u32,
    /// Number of waits until the next trial; and, after a failed trial, until the one after it.
    until: u32,
    next: u32,
}

impl Linger {
    /// Creates the state for task number `task` of its world.
    pub(crate) fn new(tasks_per_core: u32, task: u32) -> Linger {
        Linger {
            allowed: tasks_per_core <= MAX_TASKS_PER_CORE,
            credit: 0,
            until: TRIALS.0 + task % MAX_TASKS_PER_CORE * APART,
            next: TRIALS.0,
        }
    }

    pub(crate) fn set_tasks_per_core(&mut self, tasks: u32) {
        self.allowed = tasks <= MAX_TASKS_PER_CORE;
    }

    /// Records that a wait begins that may yield.
    #[inline(always)]
    pub(crate) fn begin_wait(&mut self) {
        if self.credit > 0 {
            return;
        }
        self.until = self.until.saturating_sub(1);
        if self.until == 0 {
            self.credit = CREDIT.0;
        }
    }

    fn pays(&self) -> bool {
        self.allowed && self.credit > 0
    }

    /// Records whether the awaited event happened while the task polled on.
    fn saw(&mut self, come: bool) {
        if come {
            self.credit = (self.credit + 1).min(CREDIT.1);
            if self.credit == CREDIT.1 {
                self.next = TRIALS.0;
            }
            return;
        }
        self.credit = self.credit.saturating_sub(LOSS);
        if self.credit == 0 {
            self.until = self.next;
            self.next = (self.next * 2).min(TRIALS.1);
        }
    }
}

/// The result of a poll.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Nothing,
    /// The awaited event.
    It,
    SomethingElse,
}

/// The state of one wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stay {
    #[default]
    None,
    /// The next poll is the first one after a yield.
    Yielded,
    /// The task has polled on since this time.
    Since(Instant),
}

impl Stay {
    /// Returns whether the next polls may follow each other without a pause.
    #[inline(always)]
    pub(crate) fn looks_on(self) -> bool {
        matches!(self, Stay::Since(_))
    }

    /// Records the result of a poll. Returns whether the next poll follows at once.
    #[inline(always)]
    pub(crate) fn looked(&mut self, look: Look, linger: &mut Linger) -> bool {
        if *self == Stay::None {
            return false;
        }
        self.looked_after_yield(look, linger)
    }

    fn looked_after_yield(&mut self, look: Look, linger: &mut Linger) -> bool {
        let since = match *self {
            Stay::Since(since) => Some(since),
            _ => None,
        };
        match (look, since) {
            (Look::Nothing, None) if linger.pays() => *self = Stay::Since(Instant::now()),
            (Look::Nothing, Some(since)) if since.elapsed() < LINGER => {}
            (_, since) => {
                if since.is_some() && look != Look::SomethingElse {
                    linger.saw(look == Look::It);
                }
                *self = Stay::None;
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a wait that yields once and then polls. `comes` says whether the event happens. Returns whether it polled on.
    fn wait(linger: &mut Linger, comes: bool) -> bool {
        linger.begin_wait();
        let mut stay = Stay::Yielded;
        let looks_on = stay.looked(Look::Nothing, linger);
        assert_eq!(looks_on, stay.looks_on());
        if !looks_on {
            return false;
        }
        if comes {
            assert!(!stay.looked(Look::It, linger));
        } else {
            while stay.looked(Look::Nothing, linger) {}
        }
        true
    }

    fn waits_until_a_trial(linger: &mut Linger) -> u32 {
        let mut waits = 1;
        while !wait(linger, false) {
            waits += 1;
        }
        waits
    }

    /// Fails the rest of a trial.
    fn fail(linger: &mut Linger) {
        while linger.pays() {
            wait(linger, false);
        }
    }

    #[test]
    fn it_is_tried_and_goes_on_while_most_messages_come() {
        let mut linger = Linger::new(MAX_TASKS_PER_CORE, 0);
        assert_eq!(waits_until_a_trial(&mut linger), TRIALS.0);
        for message in 0..1000 {
            assert!(wait(&mut linger, message % 4 != 3), "{message}");
        }
        fail(&mut linger);
        assert!(!wait(&mut linger, true));
    }

    #[test]
    fn what_fails_is_tried_ever_less_often() {
        let mut linger = Linger::new(2, 0);
        let mut expected = TRIALS.0;
        for _ in 0..10 {
            assert_eq!(waits_until_a_trial(&mut linger), expected);
            fail(&mut linger);
            let known = linger.next;
            expected = linger.until;
            assert!(expected <= TRIALS.1 && known <= TRIALS.1);
        }
        assert_eq!(expected, TRIALS.1);
        linger.credit = CREDIT.0;
        while linger.credit < CREDIT.1 {
            wait(&mut linger, true);
        }
        fail(&mut linger);
        assert_eq!(waits_until_a_trial(&mut linger), TRIALS.0);
    }

    #[test]
    fn half_of_the_messages_are_not_enough() {
        let mut linger = Linger::new(2, 0);
        waits_until_a_trial(&mut linger);
        let looked_on = (0..100).filter(|message| wait(&mut linger, message % 2 == 0));
        assert!(looked_on.count() < 20);
    }

    #[test]
    fn neighbours_do_not_try_at_once() {
        let first = |task| waits_until_a_trial(&mut Linger::new(MAX_TASKS_PER_CORE, task));
        assert_eq!(first(0), TRIALS.0);
        for task in 1..MAX_TASKS_PER_CORE {
            assert_eq!(first(task), first(task - 1) + APART);
        }
    }

    #[test]
    fn many_tasks_a_core_never_try() {
        let mut linger = Linger::new(MAX_TASKS_PER_CORE + 1, 0);
        assert!((0..10_000).all(|_| !wait(&mut linger, true)));
        linger.set_tasks_per_core(MAX_TASKS_PER_CORE);
        assert!(wait(&mut linger, true));
    }

    #[test]
    fn something_else_that_comes_says_nothing() {
        let mut linger = Linger::new(2, 0);
        waits_until_a_trial(&mut linger);
        let credit = linger.credit;
        let mut stay = Stay::Since(Instant::now());
        assert!(!stay.looked(Look::SomethingElse, &mut linger));
        assert_eq!((stay, linger.credit), (Stay::None, credit));
    }
}
