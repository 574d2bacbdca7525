//! The counter of tasks that have died or left: a change means that the states of tasks must be read again.
//!
//! The writer stores a task's state first, then calls [`Losses::add`]. The reader calls [`Losses::count`], then reads
//! states. A reader that has read a count therefore sees every state that was stored before that count: the increment
//! releases, and the load acquires. Each increment continues the release sequence of the earlier ones, so this holds
//! for several writers as well.

use crate::sync::{AtomicU32, Ordering, fence};

/// The counter. Zero is a valid initial state.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Losses(AtomicU32);

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout = crate::layout!("losses", Losses { 0 });

impl Losses {
    /// Increments the counter, after a state has been stored that others must read. What the caller reads after this is
    /// newer than the increment.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        // A task that joins at this moment is either seen by the caller, or sees the new count.
        fence(Ordering::SeqCst);
    }

    /// Returns the count, which changes with every loss. Read it before the states, never after.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        // Partner: `add`.
        self.0.load(Ordering::Acquire)
    }
}
