//! Waiting for a flag of the caller that is raised outside the engine: by a future's waker, or by a callback.

use std::sync::atomic::{AtomicBool, Ordering};

use regatta_engine::Result;

use crate::state::{Process, enter};
use crate::wait::{Awaited, wait_for};

struct Raised<'a>(&'a AtomicBool);

impl Awaited for Raised<'_> {
    type Output = ();
    const PROGRESSES: bool = false;

    fn poll(&mut self, _process: &mut Process) -> Result<Option<()>> {
        Ok(self.0.load(Ordering::Acquire).then_some(()))
    }
}

/// Makes progress until the flag is raised. Blocks. A thread that raises the flag must also call [`wake`].
pub fn wait_until(flag: &AtomicBool) -> Result<()> {
    wait_for(Raised(flag))
}

/// Wakes this task's sleeping threads, so that they poll again.
pub fn wake() -> Result<()> {
    let held = enter()?;
    let (job, me) = (held.job.clone(), held.engine.me());
    drop(held);
    job.bell(me).wake();
    Ok(())
}
