//! Asks the program whether a wait is to end. Languages whose interpreters handle signals between their instructions cannot learn of a signal in
//! another way while a call blocks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use regatta_engine::{Error, Result};

use crate::wait::MAX_SLEEP;

/// Returns whether the wait of the calling thread is to end. Called without the lock.
pub type Interrupt = Arc<dyn Fn() -> bool + Send + Sync>;

static INTERRUPT: Mutex<Option<Interrupt>> = Mutex::new(None);
static IS_SET: AtomicBool = AtomicBool::new(false);

/// Sets the function that is called from now on, or none.
pub fn set_interrupt(interrupt: Option<Interrupt>) {
    IS_SET.store(interrupt.is_some(), Ordering::Release);
    *INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner) = interrupt;
}

/// Time at which the program was last asked in a wait.
pub(crate) struct Asked(Instant);

impl Asked {
    /// Begins a wait.
    pub(crate) fn begin(now: Instant) -> Asked {
        Asked(now)
    }

    /// Asks if that was not done for the maximum time that a task sleeps.
    pub(crate) fn ask_now_and_then(&mut self) -> Result<()> {
        self.ask_after(MAX_SLEEP)
    }

    /// Asks at once: a signal may have ended a sleep.
    pub(crate) fn ask(&mut self) -> Result<()> {
        self.ask_after(Duration::ZERO)
    }

    fn ask_after(&mut self, pause: Duration) -> Result<()> {
        if !IS_SET.load(Ordering::Acquire) || self.0.elapsed() < pause {
            return Ok(());
        }
        self.0 = Instant::now();
        let interrupt = INTERRUPT
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match interrupt {
            Some(ends) if ends() => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }
}
