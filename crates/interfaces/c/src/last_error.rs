//! The sentence of each thread's last error.
//!
//! Programs also call Regatta in functions of `atexit`, in destructors of C++ and in destructors of thread-specific data, where
//! Rust's thread-local values with a destructor have already been dropped. Therefore a sentence is stored in memory of the C
//! library, as thread-specific data whose destructor is `free`. It stays valid until the thread's next failing call or its end,
//! even after this library has been unloaded.
//!
//! Constant sentences need no memory. The errors of calls from signal handlers are constant.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

thread_local! {
    /// The sentence of the last error, if it is a constant. Has no destructor, so that it is valid as long as the thread runs.
    static CONSTANT: Cell<Option<&'static CStr>> = const { Cell::new(Some(c"")) };
}

thread_local! {
    /// The task that the last error concerns.
    static TASK: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Stores the task that the last error concerns.
pub(crate) fn set_task(task: Option<u32>) {
    TASK.set(task);
}

/// Returns the task that the last error concerns.
pub(crate) fn task() -> Option<u32> {
    TASK.get()
}

/// Returns the key of the thread-specific data. Returns `None` if the C library has no key left.
fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for writing, and the values will be memory from `strdup`, which `free` may free.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(libc::free)) };
        (made == 0).then_some(key)
    })
}

/// Stores a constant sentence.
pub(crate) fn set_constant(text: &'static CStr) {
    CONSTANT.set(Some(text));
}

/// Stores a copy of a sentence. If there is no memory for the copy, stores a constant sentence that says so.
pub(crate) fn set(text: &CStr) {
    // SAFETY: `text` is a NUL-terminated text. The copy belongs to this function.
    let copy = unsafe { libc::strdup(text.as_ptr()) };
    if copy.is_null() || !replace(copy, || ()) {
        // SAFETY: `copy` is NULL or was made above, and nothing refers to it.
        unsafe { libc::free(copy.cast()) };
        CONSTANT.set(Some(
            c"the text of this error could not be stored: the C library has no memory for it, or no key for thread-specific data (pthread_key_create)",
        ));
        return;
    }
    CONSTANT.set(None);
}

/// Stores a copy in place of the last one, which it frees. Returns `false` if the copy was not stored: there is no key, or the
/// caller is a signal handler that has interrupted this function. Tests use `halfway` to run code in the middle of it.
fn replace(copy: *mut c_char, halfway: impl FnOnce()) -> bool {
    thread_local! {
        static REPLACES: Cell<bool> = const { Cell::new(false) };
    }
    let Some(key) = key() else { return false };
    if REPLACES.replace(true) {
        return false;
    }
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the key exists. Its values are copies made in `set`, and `before` is no longer used after the exchange.
    unsafe {
        let before: *mut c_void = libc::pthread_getspecific(key);
        halfway();
        let kept = libc::pthread_setspecific(key, copy.cast()) == 0;
        if kept {
            libc::free(before);
        }
        compiler_fence(Ordering::SeqCst);
        REPLACES.set(false);
        kept
    }
}

/// Returns the sentence of the thread's last error, NUL-terminated.
pub(crate) fn get() -> *const c_char {
    if let Some(text) = CONSTANT.get() {
        return text.as_ptr();
    }
    // SAFETY: the key exists.
    let kept = key().map_or(std::ptr::null(), |key| unsafe {
        libc::pthread_getspecific(key).cast_const()
    });
    // The value is NULL if the destructor of this key has already run, and no call has failed since.
    match kept.is_null() {
        true => c"".as_ptr(),
        false => kept.cast(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_text() -> String {
        // SAFETY: the thread's sentence is valid until its next failing call.
        let text = unsafe { CStr::from_ptr(get()) };
        text.to_string_lossy().into_owned()
    }

    #[test]
    fn a_failing_call_of_a_signal_handler_frees_no_sentence_of_the_call_that_it_interrupts() {
        set(c"the one before");
        // SAFETY: the argument is a NUL-terminated text.
        let copy = unsafe { libc::strdup(c"of the interrupted call".as_ptr()) };
        let in_handler = || {
            set(c"of the handler");
            assert!(shown_text().contains("could not be stored"));
        };
        assert!(replace(copy, in_handler));
        CONSTANT.set(None);
        assert_eq!(shown_text(), "of the interrupted call");
        set(c"the next one");
        assert_eq!(shown_text(), "the next one");
    }
}
