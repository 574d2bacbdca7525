//! Calls that may block. They release the GIL, and end when a signal handler raises an exception, such as for Ctrl-C.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use pyo3::prelude::*;
use regatta_sys as rg;

thread_local! {
    /// The exception that a signal handler has raised while a call of this thread waited.
    static PENDING: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

struct WithoutGil<F>(F);

// SAFETY: the call runs in the same thread. `detach` requires `Send` only so that the call uses no Python object without the GIL. The
// calls of this crate use only numbers and pointers to memory that their callers keep valid.
unsafe impl<F> Send for WithoutGil<F> {}

/// Runs a call of the C interface that may block, without the GIL.
#[inline(always)]
pub(crate) fn blocking<T: Send>(py: Python<'_>, call: impl FnOnce() -> T) -> T {
    let call = WithoutGil(call);
    py.detach(move || {
        let whole = call;
        (whole.0)()
    })
}

/// Makes waiting calls of the main thread run Python's signal handlers.
pub(crate) fn begin() {
    // SAFETY: `asked` is a static function, and needs no argument.
    unsafe { rg::rg_on_wait(Some(asked), std::ptr::null_mut()) };
}

/// Takes the exception that a signal handler has raised, which the caller must raise.
pub(crate) fn take_pending() -> Option<PyErr> {
    PENDING.take()
}

/// Returns whether this is the main thread, the only one in which Python runs signal handlers.
fn is_main_thread() -> bool {
    // SAFETY: both calls have no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
}

/// Runs the handlers of pending signals, and ends the wait if one raises an exception. libregatta.so calls this while a call waits.
unsafe extern "C" fn asked(ends: *mut c_int, _: *mut c_void) {
    if !is_main_thread() {
        return;
    }
    let Err(error) = Python::attach(|py| py.check_signals()) else {
        return;
    };
    PENDING.set(Some(error));
    // SAFETY: libregatta.so passes a valid `ends`.
    unsafe { ends.write(1) };
}
