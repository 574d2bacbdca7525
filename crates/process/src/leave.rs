//! Before a task leaves: what it has sent to other hosts arrives there first.

use std::time::Duration;

use regatta_engine::Result;

use crate::state::Process;
use crate::wait::{Awaited, wait_for};

struct Delivered;

impl Awaited for Delivered {
    type Output = ();
    const PROGRESSES: bool = false;

    fn poll(&mut self, process: &mut Process) -> Result<Option<()>> {
        if process.copies > 0 {
            return Ok(None);
        }
        Ok(process.engine.transport.leave().then_some(()))
    }

    /// No event tells that the other kernel has it.
    fn patience(&self) -> Duration {
        Duration::from_millis(1)
    }
}

/// Wait until all is there, or those it was for are gone.
pub(crate) fn say_goodbye() -> Result<()> {
    wait_for(Delivered)
}
