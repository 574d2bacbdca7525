//! Error handlers, and the slot for one in each object.
//!
//! The handle of a user-defined error handler lives until the program has freed it as often as it has received it (by
//! creating it, or by getting it from an object), and no object has it.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::abi::*;
use crate::communicator;
use crate::error::{Error, Object, Result, fatal};
use crate::files;
use crate::objects::{Kind, Locked, Table};
use crate::session;

/// A callback of the program, by the kind of object that it handles errors of.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Function {
    Comm(Comm_errhandler_function),
    File(File_errhandler_function),
    Session(Session_errhandler_function),
    Win(Win_errhandler_function),
    /// A callback of another ABI.
    Adapted(Adapted),
}

/// A callback of another ABI, with the function that calls it. That function gets the object and the error code.
#[derive(Clone, Copy, Debug)]
pub struct Adapted {
    /// The kind of object whose errors it handles.
    pub of: Of,
    /// Calls it, and returns the code that it stores.
    pub call: unsafe fn(&Adapted, Object, c_int) -> c_int,
    /// The callback's address.
    pub function: usize,
    /// An additional word for `call`.
    pub extra: usize,
}

/// An error handler that the program has created.
struct Made {
    function: Function,
    /// Number of references: of the program, and of objects that have it.
    references: usize,
}

static MADE: Table<Made> = Table::new(Kind::Errhandler);

/// Creates an error handler, with one reference of the program.
pub fn make(function: Function) -> Result<Errhandler> {
    let made = MADE.insert(Made {
        function,
        references: 1,
    });
    made.map(Errhandler)
        .ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many error handlers"))
}

fn is_predefined(handler: Errhandler) -> bool {
    matches!(handler, ERRORS_ARE_FATAL | ERRORS_ABORT | ERRORS_RETURN)
}

#[cold]
fn none(handler: Errhandler) -> Error {
    let text = match handler {
        ERRHANDLER_NULL => "the error handler is MPI_ERRHANDLER_NULL".to_owned(),
        Errhandler(value) => {
            format!("{value:#x} is not a valid error handler; it may have been freed")
        }
    };
    Error::new(ERR_ERRHANDLER, text)
}

/// Adds a reference.
fn add_reference(made: &mut Locked<'_, Made>, handler: Errhandler) {
    if let Some(made) = made.get(handler.0) {
        made.references += 1;
    }
}

/// Removes a reference of the program or of an object.
fn let_go(made: &mut Locked<'_, Made>, handler: Errhandler) -> Result {
    if is_predefined(handler) {
        return Ok(());
    }
    let found = made.get(handler.0).ok_or_else(|| none(handler))?;
    found.references -= 1;
    if found.references == 0 {
        made.remove(handler.0);
    }
    Ok(())
}

/// Removes a reference of the program.
pub fn release(handler: Errhandler) -> Result {
    if is_predefined(handler) {
        return Ok(());
    }
    let_go(&mut locked()?, handler)
}

fn locked() -> Result<Locked<'static, Made>> {
    MADE.locked().ok_or_else(crate::objects::interrupted)
}

/// A kind of object that has an error handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Of {
    Comm,
    File,
    Session,
    Win,
}

impl Function {
    fn of(self) -> Of {
        match self {
            Function::Comm(_) => Of::Comm,
            Function::File(_) => Of::File,
            Function::Session(_) => Of::Session,
            Function::Win(_) => Of::Win,
            Function::Adapted(adapted) => adapted.of,
        }
    }
}

/// The slot of an object for its error handler.
#[derive(Debug)]
pub struct HandlerSlot {
    /// The handler. A user-defined one is read and changed while the table of handlers is locked, so that it is not
    /// freed meanwhile.
    handler: AtomicUsize,
    /// Whether the program has set a handler.
    chosen: AtomicBool,
}

impl HandlerSlot {
    /// Returns a slot with a predefined handler.
    pub const fn new(predefined: Errhandler) -> HandlerSlot {
        HandlerSlot {
            handler: AtomicUsize::new(predefined.0),
            chosen: AtomicBool::new(false),
        }
    }

    /// Returns a slot with a handler. Fails if the handler is for another kind of object.
    pub fn with(handler: Errhandler, of: Of) -> Result<HandlerSlot> {
        let slot = HandlerSlot::new(ERRORS_ARE_FATAL);
        slot.set(handler, of)?;
        Ok(slot)
    }

    fn get(&self) -> Errhandler {
        Errhandler(self.handler.load(Ordering::Relaxed))
    }

    /// Returns the present handler with its callback. A thread that replaces it frees it only after this call.
    fn current(&self) -> Current {
        let handler = self.get();
        if is_predefined(handler) {
            return Current::of(handler);
        }
        locked().map_or(Current::Ends, |mut made| {
            Current::among(&mut made, self.get())
        })
    }

    fn is_chosen(&self) -> bool {
        self.chosen.load(Ordering::Relaxed)
    }

    /// Returns the handler to the program, with a reference that the program must free.
    pub fn give(&self) -> Errhandler {
        let handler = self.get();
        if is_predefined(handler) {
            return handler;
        }
        let Ok(mut made) = locked() else {
            return ERRORS_ARE_FATAL;
        };
        let handler = self.get();
        add_reference(&mut made, handler);
        handler
    }

    /// Sets another handler. Fails if it is for another kind of object.
    pub fn set(&self, handler: Errhandler, of: Of) -> Result {
        let mut made = locked()?;
        if !is_predefined(handler) {
            let found = made.get(handler.0).ok_or_else(|| none(handler))?;
            let kind = found.function.of();
            if kind != of {
                let text = format!("an error handler for a {kind:?} is given to a {of:?}");
                return Err(Error::new(ERR_ERRHANDLER, text));
            }
            add_reference(&mut made, handler);
        }
        let old = self.get();
        self.handler.store(handler.0, Ordering::Relaxed);
        self.chosen.store(true, Ordering::Relaxed);
        let_go(&mut made, old)
    }
}

/// An error handler that is about to be called.
enum Current {
    Returns,
    Calls(Function),
    /// A handler that ends the program, or no valid handler.
    Ends,
}

impl Current {
    fn of(handler: Errhandler) -> Current {
        match handler {
            ERRORS_RETURN => Current::Returns,
            _ if is_predefined(handler) => Current::Ends,
            _ => locked().map_or(Current::Ends, |mut made| Current::among(&mut made, handler)),
        }
    }

    fn among(made: &mut Locked<'_, Made>, handler: Errhandler) -> Current {
        match made.get(handler.0) {
            Some(made) => Current::Calls(made.function),
            // Another thread has set a predefined handler.
            None if handler == ERRORS_RETURN => Current::Returns,
            None => Current::Ends,
        }
    }
}

impl Clone for HandlerSlot {
    fn clone(&self) -> HandlerSlot {
        HandlerSlot::new(self.give())
    }
}

impl Drop for HandlerSlot {
    fn drop(&mut self) {
        let _ = release(self.get());
    }
}

/// An object that has an error handler.
pub trait Handled: Send + Sync {
    /// Returns its slot.
    fn errhandler(&self) -> &HandlerSlot;
}

/// The default error handler of opened files, and of errors without a file.
pub static OF_NO_FILE: HandlerSlot = HandlerSlot::new(ERRORS_RETURN);

/// Returns the object behind the handle, with the handle.
fn find(object: Object) -> Option<(Object, Arc<dyn Handled>)> {
    match object {
        Object::Comm(comm) => {
            let found = communicator::get(comm).ok()?;
            Some((object, found))
        }
        Object::Session(session) => Some((object, session::get(session).ok()?)),
        Object::File(file) => Some((object, files::get(file).ok()?)),
        Object::Win(win) => Some((object, crate::window::held(win).ok()?)),
        _ => None,
    }
}

/// Returns the communicator on which errors without an object are raised: MPI_COMM_SELF. Before MPI 4.0 it was
/// MPI_COMM_WORLD, so if the program has set a handler only there, it is MPI_COMM_WORLD.
fn default() -> Option<(Object, Arc<dyn Handled>)> {
    let own = find(Object::Comm(COMM_SELF));
    if own
        .as_ref()
        .is_some_and(|(_, it)| it.errhandler().is_chosen())
    {
        return own;
    }
    match find(Object::Comm(COMM_WORLD)) {
        Some(world) if world.1.errhandler().is_chosen() => Some(world),
        _ => own,
    }
}

/// Calls the error handler of an object, and returns the code that it leaves. Errors without an object are raised on
/// the default communicator; if there is none, they are fatal.
#[cold]
pub fn handle(object: Object, code: c_int, text: &str) -> c_int {
    if let Object::Unmade(handler) = object {
        return handle_by(Current::of(handler), object, code, text);
    }
    let found = find(object);
    if let (None, Object::File(_)) = (&found, object) {
        return handle_by(OF_NO_FILE.current(), object, code, text);
    }
    match found.or_else(default) {
        Some((object, found)) => handle_by(found.errhandler().current(), object, code, text),
        None => fatal(text, code),
    }
}

/// Calls the handler of this slot, for an object of its kind.
pub fn call(slot: &HandlerSlot, object: Object, code: c_int, text: &str) {
    handle_by(slot.current(), object, code, text);
}

fn handle_by(handler: Current, object: Object, code: c_int, text: &str) -> c_int {
    let function = match handler {
        Current::Returns => return code,
        Current::Calls(function) => function,
        Current::Ends => fatal(text, code),
    };
    let mut code = code;
    // SAFETY: the program guarantees that its handler may be called with the object's handle and the code.
    unsafe {
        match (function, object) {
            (Function::Adapted(adapted), object) => code = (adapted.call)(&adapted, object, code),
            (Function::Comm(Some(function)), Object::Comm(mut comm)) => {
                function(&mut comm, &mut code);
            }
            (Function::File(Some(function)), Object::File(mut file)) => {
                function(&mut file, &mut code);
            }
            (Function::Session(Some(function)), Object::Session(mut session)) => {
                function(&mut session, &mut code);
            }
            (Function::Win(Some(function)), Object::Win(mut win)) => function(&mut win, &mut code),
            (Function::Comm(Some(function)), Object::Unmade(_)) => {
                function(&mut COMM_NULL.clone(), &mut code);
            }
            (Function::Session(Some(function)), Object::Unmade(_)) => {
                function(&mut SESSION_NULL.clone(), &mut code);
            }
            _ => {}
        }
    }
    code
}
