//! Delivers what a task has sent before it leaves, or may end.
//!
//! | not delivered yet | waited for |
//! |---|---|
//! | queued answers; synchronous messages that complete by a callback and whose bytes have all gone | until nothing has moved for [`STALL_TIMEOUT`]: a receiver that has not looked for so long may never look |
//! | queued messages that the program takes for sent; others that complete by a callback, while bytes of them are here | until their receivers look, or are gone |
//! | bytes for other hosts | until the hosts have them |
//!
//! A task that waits for a receiver is a blocked sender: if it is part of a circle, the wait ends with an error
//! ([`crate::deadlock_detector`]). No message is taken back, so the task may receive, and leave later. The end of the launcher ends the wait, too.

use std::time::{Duration, Instant};

use regatta_engine::{Result, Upkeep};

use crate::deadlock_detector::DeadlockDetector;
use crate::state::{Process, enter, run_callbacks};
use crate::wait::{Awaited, wait_for};

/// Time without progress after which tasks that have not looked are no longer waited for.
const STALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between two checks whether the launcher is there.
const LAUNCHER_INTERVAL: Duration = Duration::from_millis(50);

struct Goodbye {
    /// The others are told that it leaves.
    leaves: bool,
    /// When something last moved.
    moved: Instant,
    /// Detects circles while the task waits for a receiver.
    detector: Option<DeadlockDetector>,
    /// Time waited at the last check.
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
        Ok(process
            .engine
            .transport_mut()
            .deliver(self.leaves)
            .then_some(()))
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
        // A wait that ends as the task wakes leaves callbacks to the next call; this may be the last one.
        if !enter()?.engine.has_due_callbacks() {
            return Ok(());
        }
        run_callbacks()?;
    }
}
