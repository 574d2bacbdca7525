//! Cells in which modules keep their state.

use std::cell::UnsafeCell;

/// Something of one module's, without a lock.
pub struct Own<T>(UnsafeCell<T>);

// SAFETY: the rule of the libraries: one thread at a time is in them.
unsafe impl<T> Sync for Own<T> {}

impl<T> Own<T> {
    pub const fn new(value: T) -> Own<T> {
        Own(UnsafeCell::new(value))
    }

    /// The reference must be gone before a function of the program, or one that takes it again, is called.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub fn get(&self) -> &mut T {
        // SAFETY: one thread at a time, and each user of this lets go before it calls anybody who could take it again.
        unsafe { &mut *self.0.get() }
    }
}
