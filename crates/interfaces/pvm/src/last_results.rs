//! Results that the library owns: a program may read them until the next call of the same function.

use std::cell::UnsafeCell;

/// A value at a fixed address.
#[repr(transparent)]
pub struct Kept<T>(UnsafeCell<T>);

// SAFETY: PVM allows only one thread at a time in the library.
unsafe impl<T> Sync for Kept<T> {}

impl<T> Kept<T> {
    pub const fn new(value: T) -> Kept<T> {
        Kept(UnsafeCell::new(value))
    }

    /// Returns the value, to be filled by the one function that owns it.
    #[allow(clippy::mut_from_ref)]
    pub fn get(&self) -> &mut T {
        // SAFETY: only one thread is in the library, and only the owning function takes the value, once.
        unsafe { &mut *self.0.get() }
    }
}
