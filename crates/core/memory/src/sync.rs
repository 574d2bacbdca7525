//! Where the structures get their atomics that the model checker (loom) runs as they are.
//!
//! Without `--cfg loom` these are the standard library's and nothing else. With it they are
//! loom's, and so is the futex: a lock and a condition, whose sleepers loom sees, so that a wake
//! that is lost is a deadlock it reports.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use futex::{futex_wait, futex_wake};

/// The compiler's freedom is no part of loom's memory model.
#[cfg(loom)]
pub(crate) fn compiler_fence(_: Ordering) {}

#[cfg(loom)]
mod futex {
    use std::time::Duration;

    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};

    // One queue for all words: a waiter is woken too often at most, as futexes allow.
    loom::lazy_static! {
        static ref QUEUE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    }

    /// Wait while `word` is `value`. Time does not pass in a model: no limit.
    pub fn futex_wait(word: &AtomicU32, value: u32, _limit: Option<Duration>) {
        let held = QUEUE.0.lock().unwrap();
        if word.load(Ordering::SeqCst) == value {
            drop(QUEUE.1.wait(held));
        }
    }

    /// Wake all who wait on `word`.
    pub fn futex_wake(_word: &AtomicU32) {
        let _held = QUEUE.0.lock().unwrap();
        QUEUE.1.notify_all();
    }
}
