//! The part of the record that a thread uses.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use regatta_record::{THREADS, THREADS_AT, thread};

use crate::map::{self, Map, add, now};

/// The thread has no part yet.
const NONE: usize = 0;
/// There was no part for the thread, or the thread is ending.
const REFUSED: usize = usize::MAX;

thread_local! {
    // Has no destructor, so that the sampler's signal handler may read it.
    static PART: Cell<usize> = const { Cell::new(NONE) };
}

/// Returns the position of this thread's part, which it claims at the first call. Returns `None` if all parts are in use.
#[inline]
pub(crate) fn part(map: Map) -> Option<usize> {
    match PART.get() {
        NONE => claim(map),
        REFUSED => None,
        part => Some(part),
    }
}

/// Returns the position of this thread's part, if it has one. Never claims one, so that a signal handler may call it.
pub(crate) fn part_there() -> Option<usize> {
    Some(PART.get()).filter(|&part| part != NONE && part != REFUSED)
}

#[cold]
fn claim(map: Map) -> Option<usize> {
    let free = (0..THREADS).map(|number| THREADS_AT + number * thread::WORDS);
    let found = free.into_iter().find(|part| {
        let taken = &map[part + thread::TAKEN];
        taken.compare_exchange(0, 1, AcqRel, Relaxed).is_ok()
    });
    let Some(part) = found else {
        PART.set(REFUSED);
        return None;
    };
    map[part + thread::BEGAN].store(now(), Relaxed);
    map[part + thread::CURRENT].store(0, Relaxed);
    map[part + thread::USED].store(1, Relaxed);
    PART.set(part);
    release_at_end(part);
    Some(part)
}

/// Makes the thread release its part when it ends.
fn release_at_end(part: usize) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for writing, and `release` stays valid as long as the process runs.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(release)) };
        (made == 0).then_some(key)
    });
    if let Some(key) = *key {
        // SAFETY: the key exists, and the value is never dereferenced.
        unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(part)) };
    }
}

extern "C" fn release(part: *mut c_void) {
    let part = part.addr();
    PART.set(REFUSED);
    let Some(map) = map::map() else { return };
    let began = map[part + thread::BEGAN].load(Relaxed);
    add(&map[part + thread::LIFE], now().saturating_sub(began));
    map[part + thread::TAKEN].store(0, Release);
}
