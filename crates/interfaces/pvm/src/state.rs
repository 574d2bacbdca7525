//! The library's state of its task.

use std::cell::UnsafeCell;
use std::ffi::c_int;

use crate::handlers::Handler;
use crate::inbox::Inbox;
use crate::notify::Watch;
use crate::options::Options;
use crate::output::Writer;
use crate::system::tracer::Tracing;
use crate::trace::Telling;

/// A program's matching function (`pvm_recvf`). Arguments: buffer, task and tag.
pub type Matcher = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;

/// The state.
pub struct Library {
    /// This task's tid, or 0 if the process is not a task.
    pub tid: i32,
    /// Regatta's number of this task, and its host's number.
    pub task: i32,
    pub host: i32,
    /// The parent, as `pvm_parent` returns it.
    pub parent: i32,
    /// The current context.
    pub context: i32,
    /// Contexts in which messages for this task may arrive.
    pub contexts: Vec<i32>,
    pub options: Options,
    /// Messages that have been taken in but not received.
    pub inbox: Inbox,
    pub matcher: Option<Matcher>,
    pub handlers: Vec<Handler>,
    /// Numbers of deleted handlers; the last one is reused first.
    pub free_handlers: Vec<i32>,
    /// Whether a handler is running; no other handler is called then.
    pub in_handler: bool,
    pub watches: Vec<Watch>,
    /// Tid of the resource manager that decides for this task, or 0, and the wait id of the last request to it.
    pub manager: i32,
    pub asked: i32,
    /// Regatta's ids of this task's notifications as the resource manager.
    pub managing: Vec<c_int>,
    /// State of the reports of this task's calls to a tracer.
    pub telling: Telling,
    /// This task's state as a tracer.
    pub tracing: Tracing,
    /// Tasks whose output this task receives.
    pub writers: Vec<Writer>,
    /// The file of `pvm_catchout`.
    pub caught: *mut libc::FILE,
}

struct Cell(UnsafeCell<Library>);

// SAFETY: PVM allows only one thread at a time in the library.
unsafe impl Sync for Cell {}

static LIBRARY: Cell = Cell(UnsafeCell::new(Library {
    tid: 0,
    task: -1,
    host: 0,
    parent: crate::message::codes::NO_PARENT,
    context: 0,
    contexts: Vec::new(),
    options: Options::new(),
    inbox: Inbox::new(),
    matcher: None,
    handlers: Vec::new(),
    free_handlers: Vec::new(),
    in_handler: false,
    watches: Vec::new(),
    manager: 0,
    asked: 0,
    managing: Vec::new(),
    telling: Telling::new(),
    tracing: Tracing::new(),
    writers: Vec::new(),
    caught: std::ptr::null_mut(),
}));

/// Returns the state. Drop the reference before calling a function of the program.
#[inline(always)]
#[allow(clippy::mut_from_ref)]
pub fn library<'a>() -> &'a mut Library {
    // SAFETY: only one thread is in the library, and every user drops the reference before it calls what could take it
    // again.
    unsafe { &mut *LIBRARY.0.get() }
}
