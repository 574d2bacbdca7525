//! Forked children of a task.
//!
//! A child has a copy of the engine and would write into the rings of its parent. So in the child
//! the lock is shut and every call is an error; and the job's memory is not mapped there, for
//! children that were made past the C library and for pointers into loans. The parent does not
//! notice. Nothing runs at the child's exit: there is nothing to undo.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use regatta_engine::{Error, Result};

use crate::state::PROCESS;

/// Is this process a task, or becoming one?
static WATCHED: AtomicBool = AtomicBool::new(false);

/// From now on children are kept out.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    // SAFETY: the handler touches atomics of this library alone, which is what a handler may do.
    // The C library forgets it when this library is unloaded.
    ONCE.call_once(|| unsafe {
        // Without memory for it, the mapping that is not there keeps children out, less politely.
        let _ = libc::pthread_atfork(None, None, Some(child));
    });
    WATCHED.store(true, Ordering::Relaxed);
}

/// Not a task any more: a child may become one.
pub(crate) fn unwatch() {
    WATCHED.store(false, Ordering::Relaxed);
}

/// The first thing that runs in a child, in its only thread.
extern "C" fn child() {
    if WATCHED.load(Ordering::Relaxed) {
        PROCESS.shut();
    }
}

/// An error in a forked child: for calls that do nothing to the engine, and need none.
#[inline]
pub fn check_process() -> Result<()> {
    match PROCESS.is_shut() {
        true => Err(in_child()),
        false => Ok(()),
    }
}

#[cold]
pub(crate) fn in_child() -> Error {
    Error::State(
        c"this process was forked by a task and is not that task: it cannot call Regatta, only exec \
         another program or end. Call fork before rg_init, or let the parent do the messages",
    )
}
