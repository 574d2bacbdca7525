//! A mutex whose word identifies the thread that holds it.
//!
//! A signal handler may interrupt the holder anywhere, and lock the mutex again. As the word holds both the state and
//! the holder, there is no instruction between taking the mutex and recording the holder.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::biased::thread_pointer;
use crate::futex;

/// A mutex. It guards nothing by itself.
pub struct ErrorCheckingMutex {
    /// Thread pointer of the holder; 0 if there is none.
    holder: AtomicUsize,
    /// Number of threads that sleep, or are about to.
    sleepers: AtomicU32,
    /// Incremented when the holder unlocks and a thread sleeps.
    turn: AtomicU32,
}

/// The error if the thread holds the mutex already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reentered;

/// Proof that the mutex is held. Unlocks when dropped.
pub struct Held<'a> {
    mutex: &'a ErrorCheckingMutex,
    _not_send: std::marker::PhantomData<*mut ()>,
}

/// Number of checks of a mutex that another thread holds, before the thread sleeps.
const SPINS_BEFORE_SLEEP: u32 = 100;

impl ErrorCheckingMutex {
    /// Returns an unlocked mutex.
    pub const fn new() -> ErrorCheckingMutex {
        ErrorCheckingMutex {
            holder: AtomicUsize::new(0),
            sleepers: AtomicU32::new(0),
            turn: AtomicU32::new(0),
        }
    }

    /// Takes the mutex if it is free.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<Held<'_>> {
        self.take(thread_pointer()).is_ok().then(|| self.held())
    }

    /// Takes the mutex; blocks while another thread holds it. Fails if this thread holds it.
    #[inline]
    pub fn lock(&self) -> Result<Held<'_>, Reentered> {
        let me = thread_pointer();
        if let Err(holder) = self.take(me) {
            if holder == me {
                return Err(Reentered);
            }
            self.wait(me);
        }
        Ok(self.held())
    }

    #[inline(always)]
    fn held(&self) -> Held<'_> {
        Held {
            mutex: self,
            _not_send: std::marker::PhantomData,
        }
    }

    /// Makes this thread the holder if the mutex is free; otherwise returns the holder as the error.
    #[inline(always)]
    fn take(&self, me: usize) -> Result<usize, usize> {
        self.holder
            .compare_exchange(0, me, Ordering::SeqCst, Ordering::Relaxed)
    }

    #[cold]
    fn wait(&self, me: usize) {
        for _ in 0..SPINS_BEFORE_SLEEP {
            if self.holder.load(Ordering::Relaxed) == 0 && self.take(me).is_ok() {
                return;
            }
            std::hint::spin_loop();
        }
        loop {
            let turn = self.turn.load(Ordering::SeqCst);
            // Partner: `drop`, which unlocks before it checks for sleepers.
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let taken = self.take(me).is_ok();
            if !taken {
                futex::wait(&self.turn, turn, None);
            }
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
            if taken {
                return;
            }
        }
    }

    /// Frees the mutex, whatever its holder. For the child of a fork, in which the calling thread is the only one. If
    /// that thread was interrupted while it waits for the mutex, its sleep ends, as the turn changes.
    pub(crate) fn free(&self) {
        self.holder.store(0, Ordering::SeqCst);
        self.turn.fetch_add(1, Ordering::SeqCst);
    }

    #[cfg(test)]
    pub(crate) fn sleepers(&self) -> u32 {
        self.sleepers.load(Ordering::SeqCst)
    }

    #[cold]
    fn wake(&self) {
        self.turn.fetch_add(1, Ordering::SeqCst);
        futex::wake_one(&self.turn);
    }
}

impl Default for ErrorCheckingMutex {
    fn default() -> ErrorCheckingMutex {
        ErrorCheckingMutex::new()
    }
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.mutex.holder.store(0, Ordering::SeqCst);
        if self.mutex.sleepers.load(Ordering::SeqCst) > 0 {
            self.mutex.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;

    struct Count(UnsafeCell<u64>);
    // SAFETY: the test uses it only with the mutex held.
    unsafe impl Sync for Count {}

    #[test]
    fn one_thread_at_a_time_holds_it() {
        const INCREMENTS_PER_THREAD: u64 = 50_000;
        let (mutex, count) = (ErrorCheckingMutex::new(), Count(UnsafeCell::new(0)));
        let count = &count;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..INCREMENTS_PER_THREAD {
                        let _held = mutex.lock().unwrap();
                        // SAFETY: the mutex is held.
                        unsafe { *count.0.get() = std::hint::black_box(*count.0.get()) + 1 };
                    }
                });
            }
        });
        // SAFETY: all threads have ended.
        assert_eq!(unsafe { *count.0.get() }, 4 * INCREMENTS_PER_THREAD);
    }

    #[test]
    fn its_holder_is_told_that_it_has_it() {
        let mutex = ErrorCheckingMutex::new();
        let held = mutex.lock();
        assert!(held.is_ok());
        assert_eq!(mutex.lock().err(), Some(Reentered));
        assert!(mutex.try_lock().is_none());
        drop(held);
        assert!(mutex.lock().is_ok());
    }
}
