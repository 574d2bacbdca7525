//! The lock of an operation.
//!
//! While only one thread may call MPI, a lock is a flag that is loaded and stored: an atomic read-modify-write would
//! cost more than everything else that is done to make or free a request. From the time when several threads may, all of
//! them use the mutex, and still respect the flag: a thread that has set it clears it itself.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::Operation;
use crate::process;
use crate::progress::watch;

/// An operation behind its lock, or `None` if there is none.
#[derive(Default)]
pub(super) struct Locked {
    mutex: Mutex<()>,
    /// Whether it has been locked without the mutex.
    is_taken: AtomicBool,
    operation: UnsafeCell<Option<Box<dyn Operation>>>,
}

// SAFETY: `operation` is only accessed by the thread that has taken the lock.
unsafe impl Sync for Locked {}

impl Locked {
    /// Returns the lock of no operation.
    pub(super) const fn none() -> Locked {
        Locked {
            mutex: Mutex::new(()),
            is_taken: AtomicBool::new(false),
            operation: UnsafeCell::new(None),
        }
    }

    /// Takes the lock unless it is taken.
    pub(super) fn try_lock(&'static self) -> Option<LockedOperation> {
        let by_mutex = match process::has_many_threads() {
            true => match self.mutex.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
                Err(TryLockError::WouldBlock) => return None,
            },
            false => None,
        };
        self.unless_taken(by_mutex)
    }

    /// Takes the lock, after waiting until no other thread has it.
    pub(super) fn lock(&'static self) -> LockedOperation {
        loop {
            let by_mutex = process::has_many_threads()
                .then(|| self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
            if let Some(locked) = self.unless_taken(by_mutex) {
                return locked;
            }
            std::thread::yield_now();
        }
    }

    fn unless_taken(
        &'static self,
        by_mutex: Option<MutexGuard<'static, ()>>,
    ) -> Option<LockedOperation> {
        if self.is_taken.load(Ordering::Acquire) {
            return None;
        }
        if by_mutex.is_none() {
            self.is_taken.store(true, Ordering::Relaxed);
            // Several threads may call MPI since this one has looked: another may hold the mutex, and not have seen the flag.
            if process::has_many_threads() {
                self.is_taken.store(false, Ordering::Release);
                return None;
            }
        }
        Some(LockedOperation {
            lock: self,
            by_mutex,
        })
    }

    /// Returns the address of the operation, which is unique among existing operations.
    pub(super) fn address(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// A locked operation, or `None` if there is none. When it is released, threads that watch it are woken.
pub struct LockedOperation {
    lock: &'static Locked,
    by_mutex: Option<MutexGuard<'static, ()>>,
}

impl LockedOperation {
    /// Returns the operation's address; see [`FoundRequest::address`](super::FoundRequest::address).
    pub fn address(&self) -> usize {
        self.lock.address()
    }
}

impl Deref for LockedOperation {
    type Target = Option<Box<dyn Operation>>;

    fn deref(&self) -> &Self::Target {
        // SAFETY: this thread has the lock.
        unsafe { &*self.lock.operation.get() }
    }
}

impl DerefMut for LockedOperation {
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: this thread has the lock, and the borrow of `self` is exclusive.
        unsafe { &mut *self.lock.operation.get() }
    }
}

impl Drop for LockedOperation {
    fn drop(&mut self) {
        if self.by_mutex.take().is_none() {
            self.lock.is_taken.store(false, Ordering::Release);
        }
        watch::let_go(self.address());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_locked_is_not_locked_again_until_it_is_released() {
        static LOCK: Locked = Locked::none();
        let first = LOCK.try_lock().expect("it is free");
        assert!(LOCK.try_lock().is_none());
        drop(first);
        assert!(LOCK.lock().is_none(), "there is no operation");
    }
}
