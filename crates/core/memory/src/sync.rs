//! The atomics of the structures that the model checker (loom) runs unchanged.
//!
//! Without `--cfg loom` these are the standard library's. With it they are loom's, and so is the futex: a lock and a
//! condition variable, whose sleepers loom sees, so that it reports a lost wake as a deadlock.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use futex::{futex_wait, futex_wake};

/// Does nothing: compiler reordering is not part of loom's memory model.
#[cfg(loom)]
pub(crate) fn compiler_fence(_: Ordering) {}

#[cfg(loom)]
mod futex {
    use std::time::Duration;

    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};

    // One queue for all words: at worst a waiter is woken too often, as futexes allow.
    loom::lazy_static! {
        static ref QUEUE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    }

    /// Waits while `word` equals `value`. There is no time in a model, so the limit is ignored.
    pub fn futex_wait(word: &AtomicU32, value: u32, _limit: Option<Duration>) {
        let held = QUEUE.0.lock().unwrap();
        if word.load(Ordering::SeqCst) == value {
            drop(QUEUE.1.wait(held));
        }
    }

    /// Wakes all waiters on `word`.
    pub fn futex_wake(_word: &AtomicU32) {
        let _held = QUEUE.0.lock().unwrap();
        QUEUE.1.notify_all();
    }
}
