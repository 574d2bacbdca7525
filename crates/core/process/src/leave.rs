//! Before a task leaves, or may end: what it has said gets out, and what it has sent to other hosts arrives there.
//!
//! | what is left to get out | is waited for |
//! |---|---|
//! | answers that have found no room, and synchronous messages whose completion only calls back and that arrive without this task | until nothing has moved for [`STALL_TIMEOUT`]: who has not looked for so long may never |
//! | messages that the program takes for sent, and others whose completion only calls back, as long as bytes of them are here | until their receivers look, or are gone |
//! | bytes for other hosts | until these have them |
//!
//! A task that waits for a receiver is blocked as a sender is: it can be part of a circle, which ends the wait with the error of that
//! ([`crate::deadlock_detector`]). Nothing is taken back then, and the task may receive, and leave later. The end of the launcher ends the wait, too.

use std::time::{Duration, Instant};

use regatta_engine::Result;

use crate::deadlock_detector::DeadlockDetector;
use crate::state::{Process, enter, run_callbacks};
use crate::wait::{Awaited, wait_for};

/// Time without progress after which tasks that have not looked are no longer waited for.
const STALL_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two looks whether the launcher is there.
const LAUNCHER_INTERVAL: Duration = Duration::from_millis(50);

struct Goodbye {
    /// The others are told that it leaves.
    leaves: bool,
    /// When something last moved.
    moved: Instant,
    /// It is blocked by a task that is to receive.
    detector: Option<DeadlockDetector>,
    /// For how long it had waited at the last check.
    checked: Duration,
}

impl Awaited for Goodbye {
    type Output = ();
    const PROGRESSES: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<()>> {
        // Before progress, as for a send that blocks.
        if let Some(detector) = &mut self.detector
            && detector.is_told(process)
        {
            return detector.leave(process, None).map(|_| None);
        }
        if process.engine.progress() {
            self.moved = Instant::now();
        }
        // Frames that have found no room yet, such as the answer to a synchronous message, go first: others would take our leaving for
        // the loss of that. Room comes as soon as they look.
        let engine = &process.engine;
        let may_be_in_vain = engine.owes_answers() || engine.owes_synchronous_messages();
        if may_be_in_vain && self.moved.elapsed() < STALL_TIMEOUT {
            return Ok(None);
        }
        if process.copies > 0 || engine.owes_messages() {
            return Ok(None);
        }
        Ok(process.engine.transport.deliver(self.leaves).then_some(()))
    }

    fn announce(&mut self, process: &mut Process, asleep: bool) -> bool {
        if let (false, Some(detector)) = (asleep, &mut self.detector) {
            detector.awake(process);
        }
        true
    }

    fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        let interval = match &self.detector {
            Some(detector) => detector.patience(),
            None => LAUNCHER_INTERVAL,
        };
        if waited.saturating_sub(self.checked) < interval {
            return Ok(());
        }
        self.checked = waited;
        process.check_launcher(waited)?;
        let last = self.detector.as_ref().map(DeadlockDetector::receiver);
        match (process.engine.creditor(last), &mut self.detector) {
            (None, None) => Ok(()),
            (None, Some(detector)) => {
                detector.stop(process);
                Ok(())
            }
            (Some(to), detector) => {
                let detector = detector.get_or_insert_with(|| DeadlockDetector::new(to, false));
                detector.wait_for(process, to);
                detector.check(process, waited)
            }
        }
    }

    /// No event tells that the other kernel has it.
    fn patience(&self) -> Duration {
        Duration::from_millis(1)
    }
}

/// Waits until all is there, or those it was for are gone. `leaves`: nothing follows it.
pub(crate) fn deliver_all(leaves: bool) -> Result<()> {
    loop {
        wait_for(Goodbye {
            leaves,
            moved: Instant::now(),
            detector: None,
            checked: Duration::ZERO,
        })?;
        // A wait that ends on waking leaves callbacks to the next call, and there may be none.
        if !enter()?.engine.has_due_callbacks() {
            return Ok(());
        }
        run_callbacks()?;
    }
}
