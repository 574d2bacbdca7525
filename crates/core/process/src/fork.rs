//! Forked children of a task.
//!
//! A child has a copy of the engine and would write into the rings of its parent. So in the child
//! the lock is shut and every call is an error; and the job's memory is not mapped there, for
//! children that were made past the C library and for pointers into loans. The parent does not
//! notice. Nothing runs at the child's exit: there is nothing to undo.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use regatta_engine::Result;
use regatta_memory::biased::Refusal;

use crate::state::{PROCESS, refused};

/// Is this process a task, or becoming one?
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Keeps children out from now on.
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

/// Keeps children out no more: this is no task any more, and a child may become one.
pub(crate) fn unwatch() {
    WATCHED.store(false, Ordering::Relaxed);
}

/// Shuts the lock in a child. Runs there before all else, in the only thread.
extern "C" fn child() {
    if WATCHED.load(Ordering::Relaxed) {
        PROCESS.shut();
    }
}

/// Fails in a forked child: for calls that do nothing to the engine, and need none.
#[inline]
pub fn check_process() -> Result<()> {
    match PROCESS.is_shut() {
        true => Err(refused(Refusal::Shut)),
        false => Ok(()),
    }
}
