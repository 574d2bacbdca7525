//! The signals that a thread has blocked.

use std::mem::MaybeUninit;

/// All signals, blocked in this thread while this lives.
pub struct Blocked(libc::sigset_t);

impl Blocked {
    /// From now on.
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

    /// The signals that this thread had blocked before.
    pub(crate) fn before(&self) -> libc::sigset_t {
        self.0
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set was given by the kernel.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
