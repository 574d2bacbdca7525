//! The waiting policy: spin only while a core is to spare, then yield, then sleep.
//!
//! Not crowded (no more tasks than cores): an answer usually comes within microseconds and nobody
//! else wants the core, so poll for a while. Crowded: the task that must act next may need this
//! core, so give it away after every look, and look on for a moment only where that has paid ([`crate::linger`]). In both cases a task that has waited longer than it
//! costs to be woken goes to sleep on its doorbell: a blocked task uses no CPU. A task that sees
//! somebody else on its core ([`crate::pace`]) goes to sleep at once.

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
/// How long to yield before sleeping.
const YIELD: Duration = Duration::from_micros(50);
/// Yields in crowded jobs before sleeping. Tried with 32 tasks on 2 cores: a barrier takes the same
/// with 1 to 48; a message passed round the ring 114 us with 4, 240 with 1, 300 and more from 16
/// on, because those who wait longer keep getting in the way of the one that has something to do.
const YIELDS: u32 = 4;
/// Maximum sleep between two checks, in case what a task waits for cannot ring.
pub(crate) const MAX_SLEEP: Duration = Duration::from_millis(500);

/// Something a caller waits for.
pub(crate) trait Awaited {
    /// Its result.
    type Output;
    /// Does `poll` make progress itself? If not, the loop does it between polls.
    const PROGRESSES: bool;
    /// Can something that has come, or a loss, end it without `poll` seeing that? Then `check` looks whenever something has moved.
    const HEEDS_MOVES: bool = false;
    /// May the program end the wait (`rg_on_wait`)?
    const INTERRUPTIBLE: bool = false;
    /// Look, cheaply. Called very often while spinning.
    fn poll(&mut self, process: &mut Process) -> Result<Option<Self::Output>>;
    /// About to sleep, or awake again. False: another wake-up had been asked for until now, so a look must come before the
    /// sleep.
    fn announce(&mut self, _process: &mut Process, _asleep: bool) -> bool {
        true
    }
    /// Looked at now and then while nothing comes.
    fn check(&mut self, _process: &mut Process, _waited: Duration) -> Result<()> {
        Ok(())
    }
    /// The longest sleep between two checks.
    fn patience(&self) -> Duration {
        MAX_SLEEP
    }
    /// Does a crowded task better yield for longer before it sleeps? So it is where all tasks of this host are likely to wait
    /// for the same: what comes from another host takes some ten times as long as what does not.
    fn is_worth_patience(&self) -> bool {
        false
    }
}

/// Wait until it is there.
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
        // Even if other requests move meanwhile.
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
        // Just woken, so probably needed: look a few times before sleeping again. Not if nobody rang.
        slept_in_vain = asleep.elapsed() >= awaited.patience();
        if !slept_in_vain {
            (turns, idle_since) = (0, Instant::now());
        }
    }
}

/// Looks under one lock.
#[inline(always)]
fn polls(without_pause: bool) -> u32 {
    if without_pause {
        POLLS_PER_CLOCK_READ
    } else {
        1
    }
}

/// A task that has looked in vain looks on, at once or when others have had the core. False: it is time to sleep.
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
    // Progress takes so much at a time; what it has left would not ring again.
    if heard || gave_up || process.engine.moves() != moves {
        return Ok(Polled::Moved);
    }
    Ok(Polled::Nothing)
}

/// The look before the sleep. Frames of other hosts ring from here on; not before, or a ring for frames that this look leaves
/// would be heard by nobody.
fn last_look<A: Awaited>(awaited: &mut A, process: &mut Process) -> Result<Polled<A::Output>> {
    process.engine.transport_mut().look_everywhere();
    let polled = poll_some(awaited, process, 1)?;
    if !matches!(polled, Polled::Nothing) {
        return Ok(polled);
    }
    // This look may have found that somebody else is awaited by now, who has not been asked to ring.
    if !awaited.announce(process, true) {
        return Ok(Polled::Moved);
    }
    process.engine.transport_mut().arm();
    Ok(polled)
}

/// Sleep until something rings. The last look happens after the sleep has been announced. Returns what it has found, and whether
/// there was more to the end of the sleep than its limit or a signal.
fn sleep<A: Awaited>(awaited: &mut A) -> Result<(Option<A::Output>, bool)> {
    let mut held = enter()?;
    let job = held.job.clone();
    let often = held.pace.manner() == Manner::Sleep;
    // Another thread may be about to sleep by the fences that were asked for: it counts as a sleeper before it lets go of the lock.
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

/// After a send that is over: it may have been to this task, and another thread of it sleep for just that.
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

    /// Two that are awaited one after the other. The first comes, and the second may, during the look before the first sleep.
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
