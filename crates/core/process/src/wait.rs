//! The waiting policy: spin only while a core is free, then yield, then sleep.
//!
//! Not oversubscribed (no more tasks than cores): an answer usually arrives within microseconds and no other task wants the core, so poll for a
//! while. Oversubscribed: the task that must act next may need this core, so yield after every poll, and poll on for a moment only where that has
//! paid ([`crate::linger`]). In both cases a task that has waited longer than a wake costs sleeps on its doorbell: a blocked task uses no CPU. A
//! task that detects another program on its core ([`crate::pace`]) sleeps at once.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use regatta_engine::{Result, Upkeep};
use regatta_memory::uncancelled::Uncancelled;

use crate::in_vain::HELP_AFTER;
use crate::interrupt::Asked;
use crate::linger::{Look, Stay};
use crate::pace::{Manner, SPIN, Watch};
use crate::state::{PROCESS, Process, SLEEPERS, enter};

/// Number of polls between two reads of the clock.
const POLLS_PER_CLOCK_READ: u32 = 64;
/// Time for which a task yields before it sleeps.
const YIELD: Duration = Duration::from_micros(50);
/// Number of yields before sleeping in oversubscribed jobs. Measured with 32 tasks on 2 cores: a barrier takes the same time with 1 to 48 yields. A
/// message passed round the ring takes 114 us with 4, 240 us with 1, and 300 us or more from 16 on, because tasks that wait longer delay the one
/// that has work to do.
const YIELDS: u32 = 4;
/// Maximum sleep between two checks, in case the awaited event cannot ring the bell.
pub(crate) const MAX_SLEEP: Duration = Duration::from_millis(500);

/// An event for which a caller waits.
pub(crate) trait Awaited {
    /// Result of the wait.
    type Output;
    /// Whether `poll` makes progress itself. If not, the loop does that between polls.
    const PROGRESSES: bool;
    /// Whether an arrival or a loss can end the wait without `poll` noticing. Then `check` is called whenever progress was made.
    const HEEDS_MOVES: bool = false;
    /// Whether the program may end the wait (`rg_on_wait`).
    const INTERRUPTIBLE: bool = false;
    /// Polls for the event. Must be cheap: called very often while spinning.
    fn poll(&mut self, process: &mut Process) -> Result<Option<Self::Output>>;
    /// Announces that the task is about to sleep, or is awake again. Returns false if it had asked for a different wake before: then it must poll
    /// once more before it sleeps.
    fn announce(&mut self, _process: &mut Process, _asleep: bool) -> bool {
        true
    }
    /// Checks for failures. Called from time to time while waiting.
    fn check(&mut self, _process: &mut Process, _waited: Duration) -> Result<()> {
        Ok(())
    }
    /// Returns the maximum sleep between two checks.
    fn patience(&self) -> Duration {
        MAX_SLEEP
    }
    /// Returns whether an oversubscribed task should yield for longer before it sleeps. This is so where all tasks of this host probably wait for
    /// the same event: data from another host takes about ten times as long as local data.
    fn is_worth_patience(&self) -> bool {
        false
    }
}

/// Waits until the event has happened, and returns its result.
#[inline(never)]
pub(crate) fn wait_for<A: Awaited>(mut awaited: A) -> Result<A::Output> {
    let _whole = Uncancelled::begin();
    let start = Instant::now();
    let mut idle_since = start;
    let (mut turns, mut looks) = (0u32, 0u32);
    let (mut watch, mut stay) = (Watch::default(), Stay::default());
    let mut asked = Asked::begin(start);
    let mut slept_in_vain = false;
    loop {
        let mut held = enter()?;
        if turns == 0 {
            held.look_around();
        }
        if looks == 0 {
            held.pace.begin_wait();
        }
        let manner = held.pace.manner();
        let polls = polls((held.pace.spins() || stay.looks_on()) && !slept_in_vain);
        let polled = poll_some(&mut awaited, &mut held, polls)?;
        let looks_on = stay.looked(polled.look(), &mut held.pace.linger);
        if !matches!(polled, Polled::Nothing) {
            watch.end(&mut held.pace);
        }
        let calls_back = held.engine.has_due_callbacks();
        // Check even if other requests make progress meanwhile.
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(64) {
            check(&mut awaited, &mut held, start.elapsed())?;
        }
        drop(held);
        if calls_back {
            crate::state::run_callbacks()?;
        }
        if A::INTERRUPTIBLE && looks.is_multiple_of(64) && polled.is_no_output() {
            asked.ask_now_and_then()?;
        }
        match polled {
            Polled::Output(output) => return Ok(output),
            Polled::Moved => {
                if A::HEEDS_MOVES {
                    check(&mut awaited, &mut *enter()?, start.elapsed())?;
                }
                (turns, idle_since) = (0, Instant::now());
                slept_in_vain = false;
                continue;
            }
            Polled::Nothing if looks_on => continue,
            Polled::Nothing => turns += 1,
        }
        let idle = idle_since.elapsed();
        watch.look(manner, idle);
        if stays_awake(&awaited, manner, idle, turns, &mut stay) {
            continue;
        }
        watch.end(&mut enter()?.pace);
        let asleep = Instant::now();
        let (found, rung) = sleep(&mut awaited)?;
        if let Some(output) = found {
            return Ok(output);
        }
        if A::INTERRUPTIBLE && !rung {
            asked.ask()?;
        }
        check(&mut awaited, &mut *enter()?, start.elapsed())?;
        // The task was just woken, so the event has probably happened: poll a few times before sleeping again, unless the sleep has timed out.
        slept_in_vain = asleep.elapsed() >= awaited.patience();
        if !slept_in_vain {
            (turns, idle_since) = (0, Instant::now());
        }
    }
}

/// Returns the number of polls under one lock.
#[inline(always)]
fn polls(without_pause: bool) -> u32 {
    if without_pause {
        POLLS_PER_CLOCK_READ
    } else {
        1
    }
}

/// Decides whether a task whose polls were unsuccessful polls on, at once or after a yield. Returns false if it is time to sleep.
#[inline(always)]
fn stays_awake<A: Awaited>(
    awaited: &A,
    manner: Manner,
    idle: Duration,
    turns: u32,
    stay: &mut Stay,
) -> bool {
    let patient = || idle < SPIN && awaited.is_worth_patience();
    match manner {
        Manner::Spin if idle < SPIN => true,
        Manner::Spin if idle < SPIN + YIELD => {
            std::thread::yield_now();
            true
        }
        Manner::Yield if turns <= YIELDS || patient() => {
            std::thread::yield_now();
            // Another thread may need the lock.
            if !PROCESS.is_shared() {
                *stay = Stay::Yielded;
            }
            true
        }
        _ => false,
    }
}

fn check<A: Awaited>(awaited: &mut A, process: &mut Process, waited: Duration) -> Result<()> {
    if waited >= HELP_AFTER {
        process.engine.take_in_offers();
    }
    awaited.check(process, waited)
}

enum Polled<T> {
    Output(T),
    Moved,
    Nothing,
}

impl<T> Polled<T> {
    fn is_no_output(&self) -> bool {
        !matches!(self, Polled::Output(_))
    }

    #[inline(always)]
    fn look(&self) -> Look {
        match self {
            Polled::Output(_) => Look::It,
            Polled::Moved => Look::SomethingElse,
            Polled::Nothing => Look::Nothing,
        }
    }
}

#[inline(always)]
fn poll_some<A: Awaited>(
    awaited: &mut A,
    process: &mut Process,
    polls: u32,
) -> Result<Polled<A::Output>> {
    let moves = process.engine.moves();
    let heard = process.handle_news();
    for _ in 0..polls {
        if let Some(output) = awaited.poll(process)? {
            return Ok(Polled::Output(output));
        }
        std::hint::spin_loop();
    }
    if !A::PROGRESSES {
        process.engine.progress();
    }
    let gave_up = process.report_reaches();
    // Progress handles a limited amount at a time; what it has left would not ring again.
    if heard || gave_up || process.engine.moves() != moves {
        return Ok(Polled::Moved);
    }
    Ok(Polled::Nothing)
}

/// Polls for the last time before the sleep. Frames of other hosts ring from here on. They must not ring earlier: a ring for frames that this poll
/// leaves would be lost.
fn last_look<A: Awaited>(awaited: &mut A, process: &mut Process) -> Result<Polled<A::Output>> {
    process.engine.transport_mut().look_everywhere();
    let polled = poll_some(awaited, process, 1)?;
    if !matches!(polled, Polled::Nothing) {
        return Ok(polled);
    }
    // This poll may have changed which member is awaited; that one was not asked to wake this task yet.
    if !awaited.announce(process, true) {
        return Ok(Polled::Moved);
    }
    process.engine.transport_mut().arm();
    Ok(polled)
}

/// Sleeps until the bell rings. The last poll happens after the sleep was announced. Returns its result, and whether the sleep ended for a reason
/// other than its time limit or a signal.
fn sleep<A: Awaited>(awaited: &mut A) -> Result<(Option<A::Output>, bool)> {
    let mut held = enter()?;
    let job = held.job.clone();
    let often = held.pace.manner() == Manner::Sleep;
    // Another thread may be about to sleep with the fences that it has requested: it counts as a sleeper before it releases the lock.
    let others = SLEEPERS.fetch_add(1, Ordering::SeqCst);
    if often || others == 0 {
        held.fencing = held.fencing.ask_senders(often);
    }
    let (me, fencing) = (held.engine.me(), held.fencing);
    awaited.announce(&mut held, true);
    drop(held);
    let bell = job.bell(me);
    let patience = awaited.patience();
    let mut last = Ok(Polled::Nothing);
    let rung = bell.sleep(fencing, Some(patience), || {
        last = enter().and_then(|mut held| last_look(awaited, &mut held));
        !matches!(last, Ok(Polled::Nothing))
    });
    SLEEPERS.fetch_sub(1, Ordering::SeqCst);
    if !PROCESS.is_shared() {
        bell.awake();
    }
    awaited.announce(&mut *enter()?, false);
    match last? {
        Polled::Output(output) => Ok((Some(output), rung)),
        _ => Ok((None, rung)),
    }
}

/// Wakes other threads after a send that is complete: it may have been to this task, and another thread may sleep waiting for that message.
#[inline(always)]
pub(crate) fn wake_other_threads() {
    if PROCESS.is_shared()
        && SLEEPERS.load(Ordering::SeqCst) > 0
        && let Ok(held) = enter()
    {
        held.wake_sleepers();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two events that are awaited one after the other. The first happens, and the second may happen, during the last poll before the first sleep.
    #[derive(Default)]
    struct OneAfterTheOther {
        at: u32,
        asked: Option<u32>,
    }

    impl Awaited for OneAfterTheOther {
        type Output = ();
        const PROGRESSES: bool = false;

        fn poll(&mut self, _: &mut Process) -> Result<Option<()>> {
            let done = self.at == 1 && self.asked.is_some();
            self.at |= self.asked.is_some() as u32;
            Ok(done.then_some(()))
        }

        fn announce(&mut self, _: &mut Process, asleep: bool) -> bool {
            let asks = asleep.then_some(self.at);
            std::mem::replace(&mut self.asked, asks) == asks
        }

        fn patience(&self) -> Duration {
            Duration::from_secs(20)
        }
    }

    #[test]
    fn nobody_sleeps_who_has_asked_another_one_to_ring_than_it_waits_for() {
        crate::init().expect("a world of one");
        let start = Instant::now();
        wait_for(OneAfterTheOther::default()).expect("both came");
        assert!(start.elapsed() < Duration::from_secs(10), "it slept");
        crate::finalize().expect("the end");
    }
}
