//! `exhandle`: functions of the program that are called for messages as they come.
//!
//! They are called from within calls of this library, never beside the program: at the beginning of each call, and while
//! `exread` and its like wait. A handler reads its message; one that it has not read when it returns is dropped.

use std::ffi::c_int;

use regatta_nodes::fault::Fault;
use regatta_nodes::own::Own;
use regatta_nodes::rg;

use crate::left;
use crate::life::call;
use crate::look::{drop_message, look};
use crate::select::{Choice, node_of};

/// The program's function: the node, the type and the length of the message.
type Function = unsafe extern "C" fn(*mut c_int, *mut c_int, c_int) -> c_int;

struct Handler {
    choice: Choice,
    function: Function,
}

struct Handlers {
    list: Vec<Handler>,
    /// The message of the handler that runs, until it has read it. While one runs no other is called.
    offered: Option<Choice>,
    running: bool,
}

static HANDLERS: Own<Handlers> = Own::new(Handlers {
    list: Vec::new(),
    offered: None,
    running: false,
});

/// Is there any that may be called now?
#[inline(always)]
fn any() -> bool {
    let handlers = HANDLERS.get();
    !handlers.list.is_empty() && !handlers.running
}

/// Calls handlers for what has come.
#[inline(always)]
pub fn run() -> Result<(), Fault> {
    match any() {
        true => run_some(),
        false => Ok(()),
    }
}

#[cold]
fn run_some() -> Result<(), Fault> {
    // A handler may add others, or take itself away.
    let mut at = 0;
    while let Some(choice) = HANDLERS.get().list.get(at).map(|handler| handler.choice) {
        // A node of which nothing comes any more is no failure of the call that happens to look.
        let served = match look(choice) {
            Ok(Some(status)) => offer(&status)?,
            Ok(None) | Err(Fault::Regatta) => false,
            Err(why) => return Err(why),
        };
        at += usize::from(!served);
    }
    Ok(())
}

/// Gives a message to its handler. False: it is nobody's.
fn offer(status: &rg::Status) -> Result<bool, Fault> {
    let handlers = HANDLERS.get();
    let mut list = handlers.list.iter();
    let found = list.find(|handler| handler.choice.takes(status.source, status.tag));
    let Some(function) = found.map(|handler| handler.function) else {
        return Ok(false);
    };
    let message = Choice {
        task: status.source,
        tag: status.tag,
    };
    handlers.offered = Some(message);
    handlers.running = true;
    let (mut node, mut kind) = (node_of(status.source), status.tag);
    let length = c_int::try_from(status.length).unwrap_or(c_int::MAX);
    // SAFETY: the program's function; no reference into our state is held.
    unsafe { function(&mut node, &mut kind, length) };
    let handlers = HANDLERS.get();
    handlers.running = false;
    match handlers.offered.take() {
        Some(message) => drop_message(message),
        None => Ok(()),
    }
    .map(|()| true)
}

/// The first message of this sender and type has been read, or is read by what was begun.
#[inline(always)]
pub fn note_read(task: c_int, tag: c_int) {
    let handlers = HANDLERS.get();
    if handlers.running {
        handlers.offered = handlers
            .offered
            .filter(|message| !(Choice { task, tag }).takes(message.task, message.tag));
    }
}

/// Serves handlers until there is a message of this kind that is no handler's; the choice of that one.
#[inline(always)]
pub fn meanwhile(choice: Choice) -> Result<Choice, Fault> {
    match any() {
        true => serve_until(choice),
        false => Ok(choice),
    }
}

/// The first message of this kind that has come and is no handler's: that which a read would get. Handlers get those before it.
#[inline(always)]
pub fn look_past(choice: Choice) -> Result<Option<rg::Status>, Fault> {
    match any() {
        true => serve_before(choice),
        false => look(choice),
    }
}

#[cold]
fn serve_before(choice: Choice) -> Result<Option<rg::Status>, Fault> {
    while let Some(status) = look(choice)? {
        if !offer(&status)? {
            return Ok(Some(status));
        }
    }
    Ok(None)
}

#[cold]
fn serve_until(choice: Choice) -> Result<Choice, Fault> {
    while any() {
        if let Some(status) = serve_before(choice)? {
            return Ok(Choice {
                task: status.source,
                tag: status.tag,
            });
        }
        run_some()?;
        if look(choice)?.is_none() {
            left::sleep()?;
        }
    }
    Ok(choice)
}

/// Have a function called for each message of this node and type, until NULL is given for the same two. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exhandle(
    function: Option<Function>,
    src: *const c_int,
    kind: *const c_int,
) -> c_int {
    call("exhandle", || {
        // SAFETY: the C contract: numbers, or NULL.
        let Some(choice) = (unsafe { Choice::read(src, kind)? }) else {
            return Ok(0);
        };
        let list = &mut HANDLERS.get().list;
        list.retain(|handler| handler.choice != choice);
        list.extend(function.map(|function| Handler { choice, function }));
        Ok(0)
    })
}
