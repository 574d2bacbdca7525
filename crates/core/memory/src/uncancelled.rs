//! Threads that are not cancelled in the midst of a call.
//!
//! A thread that is cancelled (`pthread_cancel`) ends at its next cancellation point: a function of the C library such as `close` or `poll`. There it
//! would leave locks held for ever, and what they guard half done. Calls that come to such functions have an [`Uncancelled`] around them;
//! the thread then ends at its first cancellation point after the call. System calls that are made past the C library, as rustix makes them, are no
//! such points, so the paths of small messages pay nothing.

use std::ffi::c_int;
use std::marker::PhantomData;

/// This thread is not cancelled while this lives. Not for sending to another thread.
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
    /// From now on.
    #[inline]
    pub fn begin() -> Uncancelled {
        let mut before = 0;
        // SAFETY: the state is one; the one before is written.
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
        // SAFETY: the state that was there before; the C library allows not to ask for this one.
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
