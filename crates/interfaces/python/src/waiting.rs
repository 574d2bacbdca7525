//! Calls that may wait: without the GIL, and ended by a signal whose handler raises, such as Ctrl-C.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use pyo3::prelude::*;
use regatta_sys as rg;

thread_local! {
    /// What a handler of this thread has raised while a call waited.
    static PENDING: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

struct WithoutGil<F>(F);

// SAFETY: such a call stays in its thread. That it is `Send` is asked so that it uses no object of Python's without the GIL: those
// of this crate take pointers to memory that their callers keep, and numbers.
unsafe impl<F> Send for WithoutGil<F> {}

/// Makes a call of the C interface that may wait.
#[inline(always)]
pub(crate) fn blocking<T: Send>(py: Python<'_>, call: impl FnOnce() -> T) -> T {
    let call = WithoutGil(call);
    py.detach(move || {
        let whole = call;
        (whole.0)()
    })
}

/// Has waits of the main thread handle signals.
pub(crate) fn begin() {
    // SAFETY: a function that stays, and no argument.
    unsafe { rg::rg_on_wait(Some(asked), std::ptr::null_mut()) };
}

/// What a handler has raised, which is to be raised now.
pub(crate) fn take_pending() -> Option<PyErr> {
    PENDING.take()
}

/// Python handles signals in the main thread alone.
fn is_main_thread() -> bool {
    // SAFETY: plain questions.
    unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
}

/// A call waits: have signals come whose handlers raise?
unsafe extern "C" fn asked(ends: *mut c_int, _: *mut c_void) {
    if !is_main_thread() {
        return;
    }
    let Err(error) = Python::attach(|py| py.check_signals()) else {
        return;
    };
    PENDING.set(Some(error));
    // SAFETY: the contract of rg_on_wait: a place for the answer.
    unsafe { ends.write(1) };
}
