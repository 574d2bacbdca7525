//! The signal mask of a thread.

use std::mem::MaybeUninit;

/// A guard that keeps all signals blocked in this thread while it lives.
pub struct Blocked(libc::sigset_t);

impl Blocked {
    /// Blocks all signals.
    pub fn all() -> Blocked {
        let mut before = MaybeUninit::uninit();
        let mut all = MaybeUninit::uninit();
        // SAFETY: both sets are written before they are read.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::sigemptyset(before.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Blocked(before.assume_init())
        }
    }

    /// Returns the signal mask from before.
    pub(crate) fn before(&self) -> libc::sigset_t {
        self.0
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the kernel has returned this set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
