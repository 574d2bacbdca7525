//! Threads of the library's own in somebody else's program: no signal is ever theirs.
//!
//! A program that blocks a signal to wait for it (`sigwait`) has blocked it in the threads it knows of; in one it does not
//! know of, the signal would do what it does by default.

use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

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
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set was given by the kernel.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// A thread with this name that takes no signals, from its first moment on.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // A thread begins with the mask of the one that makes it.
    let _blocked = Blocked::all();
    Builder::new().name(name.into()).spawn(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_blocked(signal: libc::c_int) -> bool {
        let mut now = MaybeUninit::uninit();
        // SAFETY: the set is written before it is read.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), now.as_mut_ptr());
            libc::sigismember(now.as_ptr(), signal) == 1
        }
    }

    #[test]
    fn signals_are_blocked_in_the_thread_alone() {
        let before = is_blocked(libc::SIGUSR1);
        let thread = spawn("quiet", || assert!(is_blocked(libc::SIGUSR1)));
        thread.unwrap().join().unwrap();
        assert_eq!(is_blocked(libc::SIGUSR1), before);
    }
}
