//! Threads of this library in the user's program.
//!
//! They block all signals. A program that waits for a signal (`sigwait`) has blocked it in its own threads; in a thread
//! that the program does not know of, the signal would take its default action.

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::last_thread;
use crate::signal_mask::Blocked;

/// Starts a thread that blocks all signals from its first instruction on. Its name begins with `regatta/`, so it does
/// not prevent the process from ending with the program's last thread.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    last_thread::notice_end();
    // A new thread inherits the signal mask of its creator.
    let _blocked = Blocked::all();
    Builder::new().name(name.into()).spawn(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::MaybeUninit;

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
