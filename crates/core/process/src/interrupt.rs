//! The question whether a wait is to end, put to the program: languages whose interpreters handle signals between their instructions
//! hear of a signal in no other way while a call blocks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use regatta_engine::{Error, Result};

use crate::wait::MAX_SLEEP;

/// Says whether the wait of the calling thread is to end. It runs without the lock.
pub type Interrupt = Arc<dyn Fn() -> bool + Send + Sync>;

static INTERRUPT: Mutex<Option<Interrupt>> = Mutex::new(None);
static IS_SET: AtomicBool = AtomicBool::new(false);

/// Asks `interrupt` from now on, or nobody.
pub fn set_interrupt(interrupt: Option<Interrupt>) {
    IS_SET.store(interrupt.is_some(), Ordering::Release);
    *INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner) = interrupt;
}

/// When the program has been asked last in a wait.
pub(crate) struct Asked(Instant);

impl Asked {
    /// A wait begins.
    pub(crate) fn begin(now: Instant) -> Asked {
        Asked(now)
    }

    /// Asks if nobody has done so for as long as a task sleeps at most.
    pub(crate) fn ask_now_and_then(&mut self) -> Result<()> {
        self.ask_after(MAX_SLEEP)
    }

    /// Asks: a signal may have ended a sleep.
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
