//! Delivers what a task has sent before it leaves, or may end.
//!
//! | not delivered yet | waited for |
//! |---|---|
//! | queued answers; synchronous messages whose completion calls back and whose data is all in the stream | until there was no progress for [`STALL_TIMEOUT`]: a receiver that has not polled for that long may never do so |
//! | queued messages that the program considers sent; other messages whose completion calls back, while some of their data is here | until their receivers poll, or are gone |
//! | data for other hosts | until the hosts have received it |
//!
//! A task that waits for a receiver is a blocked sender: if it is part of a cycle, the wait ends with an error ([`crate::deadlock_detector`]). No
//! message is withdrawn, so the task may receive, and leave later. The end of the launcher ends the wait, too.

use std::time::{Duration, Instant};

use regatta_engine::{Result, Upkeep};

use crate::deadlock_detector::DeadlockDetector;
use crate::state::{Process, enter, run_callbacks};
use crate::wait::{Awaited, wait_for};

/// Time without progress after which the task no longer waits for tasks that do not poll.
const STALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between two checks whether the launcher is alive.
const LAUNCHER_INTERVAL: Duration = Duration::from_millis(50);

struct Goodbye {
    /// Whether the task leaves. The other tasks are notified of that.
    leaves: bool,
    /// Time of the last progress.
    moved: Instant,
    /// Detects cycles while the task waits for a receiver.
    detector: Option<DeadlockDetector>,
    /// Time waited until the last check.
    checked: Duration,
}

impl Awaited for Goodbye {
    type Output = ();
    const PROGRESSES: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<()>> {
        // Check before progress, as for a blocking send.
        if let Some(detector) = &mut self.detector
            && detector.is_told(process)
        {
            return detector.leave(process, None).map(|_| None);
        }
        if process.engine.progress() {
            self.moved = Instant::now();
        }
        // Queued frames, such as the answer to a synchronous message, go first: the other tasks would treat this task's leaving as the loss of such
        // an answer. There is space as soon as they poll.
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

    /// Returns a short interval, since no event reports that the other kernel has received the data.
    fn patience(&self) -> Duration {
        Duration::from_millis(1)
    }
}

/// Waits until everything sent was delivered, or its receivers are gone. `leaves` says whether the task sends nothing afterwards.
pub(crate) fn deliver_all(leaves: bool) -> Result<()> {
    loop {
        wait_for(Goodbye {
            leaves,
            moved: Instant::now(),
            detector: None,
            checked: Duration::ZERO,
        })?;
        // A wait that ends as the task wakes leaves callbacks to the next call. This may be the last call.
        if !enter()?.engine.has_due_callbacks() {
            return Ok(());
        }
        run_callbacks()?;
    }
}
