//! Protection of threads against cancellation in the middle of a call.
//!
//! A thread that is cancelled (`pthread_cancel`) ends at its next cancellation point: a function of the C library such
//! as `close` or `poll`. There it would leave locks held for ever, and the data under them inconsistent. Calls that
//! reach such functions hold an [`Uncancelled`]; the thread then ends at its first cancellation point after the call.
//! System calls that bypass the C library, as rustix makes them, are not cancellation points, so the paths of small
//! messages pay nothing.

use std::ffi::c_int;
use std::marker::PhantomData;

/// A guard that disables cancellation of this thread while it lives. Cannot be sent to another thread.
#[must_use]
pub struct Uncancelled {
    before: c_int,
    _not_send: PhantomData<*mut ()>,
}

const PTHREAD_CANCEL_DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

impl Uncancelled {
    /// Disables cancellation of this thread.
    #[inline]
    pub fn begin() -> Uncancelled {
        let mut before = 0;
        // SAFETY: the new state is a valid one; the previous one is written to `before`.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before) };
        Uncancelled {
            before,
            _not_send: PhantomData,
        }
    }
}

impl Drop for Uncancelled {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: restores the previous state; the C library allows a null pointer for the current one.
        unsafe { pthread_setcancelstate(self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> c_int {
        Uncancelled::begin().before
    }

    #[test]
    fn the_state_before_is_there_again_also_when_they_are_nested() {
        let before = state();
        let outer = Uncancelled::begin();
        drop(Uncancelled::begin());
        assert_eq!(state(), PTHREAD_CANCEL_DISABLE);
        drop(outer);
        assert_eq!(state(), before);
    }
}
