//! The record as it is mapped, and the clock.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

/// The words of the record.
pub(crate) type Map = &'static [AtomicU64];

static BASE: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());
static WORDS: AtomicUsize = AtomicUsize::new(0);

/// The record, if this process has one.
#[inline]
pub(crate) fn map() -> Option<Map> {
    let base = BASE.load(Acquire);
    if base.is_null() {
        return None;
    }
    // SAFETY: `set` was given a mapping of this many words, which is never undone; all access to it is atomic.
    Some(unsafe { std::slice::from_raw_parts(base, WORDS.load(Relaxed)) })
}

/// Makes this mapping the record.
///
/// # Safety
/// It has `words` words, is zero or initialized, and stays for the life of the process.
pub(crate) unsafe fn set(base: *mut AtomicU64, words: usize) {
    WORDS.store(words, Relaxed);
    BASE.store(base, Release);
}

/// From here on nothing is recorded in this process.
pub(crate) fn forget() {
    BASE.store(std::ptr::null_mut(), Release);
}

/// Adds to a word that only this thread writes.
#[inline]
pub(crate) fn add(word: &AtomicU64, more: u64) {
    word.store(word.load(Relaxed).wrapping_add(more), Relaxed);
}

/// Monotonic time in nanoseconds.
#[inline]
pub(crate) fn now() -> u64 {
    time(libc::CLOCK_MONOTONIC)
}

/// The time of a clock in nanoseconds.
pub(crate) fn time(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the struct just made.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
