//! The count of tasks that have died or left: a change says that the states of tasks must be read again.
//!
//! The writer stores a task's state first, then calls [`Losses::add`]. The reader calls [`Losses::count`], then reads states.
//! A reader that has seen a count therefore finds every state that was stored before that count: the increment releases, and
//! the load acquires. An increment continues the release sequence of those before it, so this holds for several writers as
//! well.

use crate::sync::{AtomicU32, Ordering, fence};

/// Zero is a valid start.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Losses(AtomicU32);

/// For the test that holds it to the version.
pub(crate) const LAYOUT: crate::layout::Layout = crate::layout!("losses", Losses { 0 });

impl Losses {
    /// A state has been stored that others must read. Reads of the caller after this are newer than the increment.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        // A task that joins at this moment is either seen by the caller, or sees the count.
        fence(Ordering::SeqCst);
    }

    /// Changes with every loss. Read it before the states, never after.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        // Partner: `add`.
        self.0.load(Ordering::Acquire)
    }
}
