//! The mapped record, and the clock.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

/// The words of the record.
pub(crate) type Map = &'static [AtomicU64];

static BASE: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());
static WORDS: AtomicUsize = AtomicUsize::new(0);

/// Returns the record, if this process has one.
#[inline]
pub(crate) fn map() -> Option<Map> {
    let base = BASE.load(Acquire);
    if base.is_null() {
        return None;
    }
    // SAFETY: `set` got a mapping of this many words, which is never unmapped. All accesses to it are atomic.
    Some(unsafe { std::slice::from_raw_parts(base, WORDS.load(Relaxed)) })
}

/// Sets the mapping of the record.
///
/// # Safety
/// The mapping must have `words` initialized words, and stay valid as long as the process runs.
pub(crate) unsafe fn set(base: *mut AtomicU64, words: usize) {
    WORDS.store(words, Relaxed);
    BASE.store(base, Release);
}

/// Ends recording in this process.
pub(crate) fn forget() {
    BASE.store(std::ptr::null_mut(), Release);
}

/// Adds to a word. No other thread may write it.
#[inline]
pub(crate) fn add(word: &AtomicU64, more: u64) {
    word.store(word.load(Relaxed).wrapping_add(more), Relaxed);
}

/// Returns the monotonic time in nanoseconds.
#[inline]
pub(crate) fn now() -> u64 {
    time(libc::CLOCK_MONOTONIC)
}

/// Returns the time of a clock in nanoseconds.
pub(crate) fn time(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is valid for writing.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
