//! The library's knowledge of its task.

use std::cell::UnsafeCell;
use std::ffi::c_int;

use crate::handlers::Handler;
use crate::inbox::Inbox;
use crate::notify::Watch;
use crate::options::Options;
use crate::output::Writer;
use crate::system::tracer::Tracing;
use crate::trace::Telling;

/// The function by which a program chooses among messages: buffer, task and tag.
pub type Matcher = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;

/// All of it.
pub struct Library {
    /// Our number, or 0: we are not a task now.
    pub tid: i32,
    /// Regatta's number for us, and our host's.
    pub task: i32,
    pub host: i32,
    /// The task that started us, as `pvm_parent` gives it.
    pub parent: i32,
    /// The current context.
    pub context: i32,
    /// Contexts that this task has been in, or waits in.
    pub contexts: Vec<i32>,
    pub options: Options,
    /// Messages that have been taken in and not been received.
    pub inbox: Inbox,
    pub matcher: Option<Matcher>,
    pub handlers: Vec<Handler>,
    /// Numbers of handlers that were deleted; the last one is the next to be used.
    pub free_handlers: Vec<i32>,
    /// A handler runs: no other is called.
    pub in_handler: bool,
    pub watches: Vec<Watch>,
    /// The resource manager that we ask, or 0, and the number of the last request.
    pub manager: i32,
    pub asked: i32,
    /// Our watches as the resource manager.
    pub managing: Vec<c_int>,
    /// The reports of our calls to a tracer.
    pub telling: Telling,
    /// Our state as a tracer.
    pub tracing: Tracing,
    /// Tasks whose output comes to us.
    pub writers: Vec<Writer>,
    /// The file that `pvm_catchout` has named.
    pub caught: *mut libc::FILE,
}

struct Cell(UnsafeCell<Library>);

// SAFETY: PVM's rule: one thread at a time is in the library.
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

/// The state. The reference must be gone before a function of the user is called.
#[inline(always)]
#[allow(clippy::mut_from_ref)]
pub fn library<'a>() -> &'a mut Library {
    // SAFETY: one thread at a time, and each user of this lets go before it calls anybody who could take it again.
    unsafe { &mut *LIBRARY.0.get() }
}
