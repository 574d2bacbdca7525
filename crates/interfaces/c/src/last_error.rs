//! The sentence of each thread's last error.
//!
//! Calls are made wherever a thread may still be: in functions of `atexit`, in destructors of C++, in those of thread-specific data, where
//! Rust's thread-local values with a destructor are gone. So a sentence lies in memory of the C library's, under a key whose destructor is
//! `free`: it stays until the thread's next failing call or its end, whatever runs there, and after this library has been unloaded.
//!
//! Sentences that are constants need no memory: errors of calls from signal handlers are such.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

thread_local! {
    /// The last error, if its sentence is a constant. Without a destructor, so that it is there as long as the thread.
    static CONSTANT: Cell<Option<&'static CStr>> = const { Cell::new(Some(c"")) };
}

thread_local! {
    /// The task that the last error is about.
    static TASK: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Keeps the task that an error is about.
pub(crate) fn set_task(task: Option<u32>) {
    TASK.set(task);
}

/// The task that the last error is about.
pub(crate) fn task() -> Option<u32> {
    TASK.get()
}

/// The key of this process, unless the C library has none left.
fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the number just made; the C library's own function, of memory of its own.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(libc::free)) };
        (made == 0).then_some(key)
    })
}

/// Keeps a sentence that is there for ever.
pub(crate) fn set_constant(text: &'static CStr) {
    CONSTANT.set(Some(text));
}

/// Keeps a sentence.
pub(crate) fn set(text: &CStr) {
    // SAFETY: a text; the copy is the caller's.
    let copy = unsafe { libc::strdup(text.as_ptr()) };
    if copy.is_null() || !replace(copy, || ()) {
        // SAFETY: it was made above, or is NULL.
        unsafe { libc::free(copy.cast()) };
        CONSTANT.set(Some(
            c"the sentence of this error could not be kept: the C library has no memory for it, or no key for thread-specific data \
              (pthread_key_create)",
        ));
        return;
    }
    CONSTANT.set(None);
}

/// Keeps a copy in place of the last one. A signal handler that comes in the middle of it keeps none. `halfway` is run there, by tests.
fn replace(copy: *mut c_char, halfway: impl FnOnce()) -> bool {
    thread_local! {
        static REPLACES: Cell<bool> = const { Cell::new(false) };
    }
    let Some(key) = key() else { return false };
    if REPLACES.replace(true) {
        return false;
    }
    compiler_fence(Ordering::SeqCst);
    // SAFETY: a key that was made; its values are copies made in `set`, and this one is not used any more.
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

/// The sentence, as C sees it.
pub(crate) fn get() -> *const c_char {
    if let Some(text) = CONSTANT.get() {
        return text.as_ptr();
    }
    // SAFETY: a plain question, of a key that was made.
    let kept = key().map_or(std::ptr::null(), |key| unsafe {
        libc::pthread_getspecific(key).cast_const()
    });
    // The destructors of thread-specific data are run, and this one has been: nothing has failed since.
    match kept.is_null() {
        true => c"".as_ptr(),
        false => kept.cast(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_text() -> String {
        // SAFETY: the thread's own sentence, before its next failing call.
        let text = unsafe { CStr::from_ptr(get()) };
        text.to_string_lossy().into_owned()
    }

    #[test]
    fn a_failing_call_of_a_signal_handler_frees_no_sentence_of_the_call_that_it_interrupts() {
        set(c"the one before");
        // SAFETY: a text.
        let copy = unsafe { libc::strdup(c"of the interrupted call".as_ptr()) };
        let in_handler = || {
            set(c"of the handler");
            assert!(shown_text().contains("could not be kept"));
        };
        assert!(replace(copy, in_handler));
        CONSTANT.set(None);
        assert_eq!(shown_text(), "of the interrupted call");
        set(c"the next one");
        assert_eq!(shown_text(), "the next one");
    }
}
