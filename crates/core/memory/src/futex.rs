//! Sleeping on a word of shared memory, and waking the sleepers. The model checker has its own version, for its own
//! words (`sync`).

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Waits while `word` equals `value`, at most for `limit`. May return early without a reason.
pub fn wait(word: &AtomicU32, value: u32, limit: Option<Duration>) {
    let time = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos() as libc::c_long,
    });
    let time = time.as_ref().map_or(std::ptr::null(), |t| t as *const _);
    // SAFETY: the word and the time live across the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            time,
        );
    }
}

/// Wakes all waiters on `word`.
pub fn wake(word: &AtomicU32) {
    wake_some(word, i32::MAX);
}

/// Wakes one waiter on `word`.
pub(crate) fn wake_one(word: &AtomicU32) {
    wake_some(word, 1);
}

fn wake_some(word: &AtomicU32, most: i32) {
    // SAFETY: the word lives across the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, most);
    }
}
