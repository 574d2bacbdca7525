//! Results that stay the library's: a program may look at them until the next call of the same function.

use std::cell::UnsafeCell;

/// Something that stays where it is.
#[repr(transparent)]
pub struct Kept<T>(UnsafeCell<T>);

// SAFETY: PVM's rule: one thread at a time is in the library.
unsafe impl<T> Sync for Kept<T> {}

impl<T> Kept<T> {
    pub const fn new(value: T) -> Kept<T> {
        Kept(UnsafeCell::new(value))
    }

    /// To be filled, by the one function it belongs to.
    #[allow(clippy::mut_from_ref)]
    pub fn get(&self) -> &mut T {
        // SAFETY: one thread at a time; the function it belongs to takes it once.
        unsafe { &mut *self.0.get() }
    }
}
