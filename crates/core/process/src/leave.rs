//! Before a task leaves, or may end: what it has said gets out, and what it has sent to other hosts arrives there.

use std::time::{Duration, Instant};

use regatta_engine::Result;

use crate::state::Process;
use crate::wait::{Awaited, wait_for};

/// One who has not looked for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

struct Goodbye {
    /// The others are told that it leaves.
    leaves: bool,
    /// When something last moved.
    moved: Instant,
}

impl Awaited for Goodbye {
    type Output = ();
    const PROGRESSES: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<()>> {
        if process.engine.progress() {
            self.moved = Instant::now();
        }
        // Frames that have found no room yet, such as the answer to a synchronous message, go first: others would take our leaving for
        // the loss of that. Room comes as soon as they look.
        if process.engine.owes_answers() && self.moved.elapsed() < PATIENCE {
            return Ok(None);
        }
        // Of these the program knows that they are sent, so they are waited for until their receivers look or are gone.
        if process.copies > 0 || process.engine.owes_messages() {
            return Ok(None);
        }
        Ok(process.engine.transport.deliver(self.leaves).then_some(()))
    }

    /// No event tells that the other kernel has it.
    fn patience(&self) -> Duration {
        Duration::from_millis(1)
    }
}

/// Waits until all is there, or those it was for are gone. `leaves`: nothing follows it.
pub(crate) fn deliver_all(leaves: bool) -> Result<()> {
    wait_for(Goodbye {
        leaves,
        moved: Instant::now(),
    })
}
