//! Waiting for a flag of the caller's, which something outside the engine raises: a future's waker,
//! or a callback.

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

/// Make progress until the flag is up. Blocks. A thread that raises it calls [`wake`] as well.
pub fn wait_until(flag: &AtomicBool) -> Result<()> {
    wait_for(Raised(flag))
}

/// Wake this task's sleeping threads, to look again at what they wait for.
pub fn wake() -> Result<()> {
    let held = enter()?;
    let (job, me) = (held.job.clone(), held.engine.me());
    drop(held);
    job.bell(me).wake();
    Ok(())
}
