//! Does it pay a task of a crowd to look on for a moment when it has yielded in vain, before it yields again?
//!
//! Where few tasks share a core, such a task has often found out that none of them has anything to do: what they wait for is on
//! its way from another core. They would hand this core around until it arrives, and then it would mostly be another one's turn
//! than the receiver's. A task that looks on takes its message at once. But as long as it looks, a message for another
//! task of its core waits. Which of the two it is depends on the program. So a task tries it out now and then, and does
//! it for as long as most of the messages come while it looks.

use std::time::{Duration, Instant};

/// Time to poll on before sleeping.
const LINGER: Duration = Duration::from_micros(20);
/// Maximum number of tasks a core with which polling on has ever paid: with more, what comes is for another one.
const MAX_TASKS_PER_CORE: u32 = 4;
/// The credit of a trial, and the most there is.
const CREDIT: (u32, u32) = (4, 8);
/// A message that comes adds one, and one that does not come takes so many: it pays when two of three come.
const LOSS: u32 = 2;
/// Waits before the next trial, at first and at most.
const TRIALS: (u32, u32) = (64, 4096);

/// Neighbours in rank begin their trials so many waits apart. The tasks of a core that try at once spoil it for each other: while one
/// looks on, the next one's message waits.
const APART: u32 = 16;

/// Whether it pays, as the messages so far have shown.
#[derive(Debug)]
pub(crate) struct Linger {
    /// Few enough tasks share a core.
    allowed: bool,
    /// It is done while there is some.
    credit: u32,
    /// Waits until the next trial, and from a failure to the trial after it.
    until: u32,
    next: u32,
}

impl Linger {
    /// Task number `task` of its world.
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

    /// A wait begins that may yield.
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

    /// The task has looked on: has what it waits for come?
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

/// The outcome of a look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Nothing,
    /// The task waits for it.
    It,
    SomethingElse,
}

/// Where one wait stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stay {
    #[default]
    None,
    /// The next look is the first one after a yield.
    Yielded,
    /// The task looks on.
    Since(Instant),
}

impl Stay {
    /// The next looks may follow each other without pause.
    #[inline(always)]
    pub(crate) fn looks_on(self) -> bool {
        matches!(self, Stay::Since(_))
    }

    /// After each look. True: the next one follows at once.
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

    /// A wait that yields once, and then looks until this comes; did it look on?
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

    /// The rest of a trial fails.
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
