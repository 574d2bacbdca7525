//! Error handlers, and the slot in each object for one.
//!
//! The handle of an error handler that a program has made lives until the program has freed it as often as it was given it
//! (by making it, and by asking an object for its own), and no object has it any more.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::abi::*;
use crate::communicator;
use crate::error::{Error, Object, Result, fatal};
use crate::files;
use crate::objects::{Kind, Locked, Table};
use crate::session;

/// A program's function, by the kind of object that it is for.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Function {
    Comm(Comm_errhandler_function),
    File(File_errhandler_function),
    Session(Session_errhandler_function),
    Win(Win_errhandler_function),
    /// One of another ABI's values.
    Adapted(Adapted),
}

/// A function of a program with another ABI's values, and how it is called: with the object and the error's code.
#[derive(Clone, Copy, Debug)]
pub struct Adapted {
    /// Whose errors it handles.
    pub of: Of,
    /// Calls it; returns the code that it leaves behind.
    pub call: unsafe fn(&Adapted, Object, c_int) -> c_int,
    /// The function's address.
    pub function: usize,
    /// Another word for the caller.
    pub extra: usize,
}

/// An error handler that a program has made.
struct Made {
    function: Function,
    /// How often it was given to the program, and how many objects have it.
    references: usize,
}

static MADE: Table<Made> = Table::new(Kind::Errhandler);

/// Makes an error handler, which the program is given.
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
        Errhandler(value) => format!("{value:#x} is no error handler, or one that has been freed"),
    };
    Error::new(ERR_ERRHANDLER, text)
}

/// One more has it.
fn add_reference(made: &mut Locked<'_, Made>, handler: Errhandler) {
    if let Some(made) = made.get(handler.0) {
        made.references += 1;
    }
}

/// The program, or an object, has it no more.
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

/// The program has it no more.
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
    /// Another one than a predefined handler is looked at, and changed, with the table of handlers locked: it is not freed meanwhile.
    handler: AtomicUsize,
    /// Whether the program has set a handler here.
    chosen: AtomicBool,
}

impl HandlerSlot {
    /// With one of the predefined handlers.
    pub const fn new(predefined: Errhandler) -> HandlerSlot {
        HandlerSlot {
            handler: AtomicUsize::new(predefined.0),
            chosen: AtomicBool::new(false),
        }
    }

    /// With a handler for this kind of object.
    pub fn with(handler: Errhandler, of: Of) -> Result<HandlerSlot> {
        let slot = HandlerSlot::new(ERRORS_ARE_FATAL);
        slot.set(handler, of)?;
        Ok(slot)
    }

    fn get(&self) -> Errhandler {
        Errhandler(self.handler.load(Ordering::Relaxed))
    }

    /// The handler that is here now, with its function: another thread that sets another one frees this one only afterwards.
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

    /// Gives the handler to the program, which is to free it.
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

    /// Has another handler from now on.
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

/// An error handler about to be called.
enum Current {
    Returns,
    Calls(Function),
    /// One that ends the program; or none.
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
            // Another thread has set a predefined one.
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
    /// Its slot.
    fn errhandler(&self) -> &HandlerSlot;
}

/// The error handler of files that are opened, and of errors about no file.
pub static OF_NO_FILE: HandlerSlot = HandlerSlot::new(ERRORS_RETURN);

/// The object with this handle, and itself.
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

/// The communicator on which errors about no object are raised: MPI_COMM_SELF. Until MPI 4.0 it was MPI_COMM_WORLD, and a
/// program of that time sets the handler there alone: then it is MPI_COMM_WORLD.
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

/// An error on an object: its error handler is called, and what that leaves is returned to the program. Errors on none go to
/// the handler of the default communicator; where there is none, they are fatal.
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
