//! Cells in which modules keep their state.

use std::cell::UnsafeCell;

/// The state of one module, without a lock.
pub struct Own<T>(UnsafeCell<T>);

// SAFETY: only one thread at a time is in a library.
unsafe impl<T> Sync for Own<T> {}

impl<T> Own<T> {
    pub const fn new(value: T) -> Own<T> {
        Own(UnsafeCell::new(value))
    }

    /// Returns the state. Drop the reference before calling a function of the program, or one that takes the state
    /// again.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub fn get(&self) -> &mut T {
        // SAFETY: only one thread is in the library, and every user drops the reference before it calls what could take
        // it again.
        unsafe { &mut *self.0.get() }
    }
}
