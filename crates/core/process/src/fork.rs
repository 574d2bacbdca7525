//! Forked children of a task.
//!
//! A child has a copy of the engine and would write into the rings of its parent. So in the child the lock is shut, and every call fails. The job's
//! memory is not mapped there either, which covers children that were made without the C library, and pointers into loans. The parent is not
//! affected. Nothing runs at the child's exit: there is nothing to undo.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use regatta_engine::Result;
use regatta_memory::biased::Refusal;

use crate::state::{PROCESS, refused};

/// Whether this process is a task, or becoming one.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Keeps forked children out from now on.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    // SAFETY: the handler accesses only atomics of this library, which is allowed in a handler, and stays valid, because this library is never
    // unloaded (`-z nodelete`).
    ONCE.call_once(|| unsafe {
        // If there is no memory for the handler, the missing mapping still keeps children out, without an error message.
        let _ = libc::pthread_atfork(None, None, Some(child));
    });
    WATCHED.store(true, Ordering::Relaxed);
}

/// Stops keeping children out: this process is not a task any more, and a child may become one.
pub(crate) fn unwatch() {
    WATCHED.store(false, Ordering::Relaxed);
}

/// Shuts the lock in a child. Runs there first, in the only thread.
extern "C" fn child() {
    if WATCHED.load(Ordering::Relaxed) {
        PROCESS.shut();
    }
}

/// Fails in a forked child. For calls that do not use the engine.
#[inline]
pub fn check_process() -> Result<()> {
    match PROCESS.is_shut() {
        true => Err(refused(Refusal::Shut)),
        false => Ok(()),
    }
}
