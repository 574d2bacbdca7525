//! `exhandle`: functions of the program that are called for messages as they arrive.
//!
//! They are called only from within calls of this library: at the beginning of each call, and while `exread` etc. wait.
//! A handler reads its message; if it has not read it when it returns, the message is dropped.

use std::ffi::c_int;

use regatta_nodes::fault::Fault;
use regatta_nodes::own::Own;
use regatta_nodes::rg;

use crate::left;
use crate::life::call;
use crate::look::{drop_message, look};
use crate::select::{Choice, node_of};

/// The program's function. Arguments: the node, the type and the length of the message.
type Function = unsafe extern "C" fn(*mut c_int, *mut c_int, c_int) -> c_int;

struct Handler {
    choice: Choice,
    function: Function,
}

struct Handlers {
    list: Vec<Handler>,
    /// The message of the running handler, until it has been read.
    offered: Option<Choice>,
    running: bool,
}

static HANDLERS: Own<Handlers> = Own::new(Handlers {
    list: Vec::new(),
    offered: None,
    running: false,
});

/// Returns whether there are handlers and none is running.
#[inline(always)]
fn any() -> bool {
    let handlers = HANDLERS.get();
    !handlers.list.is_empty() && !handlers.running
}

/// Calls handlers for the messages that have arrived.
#[inline(always)]
pub fn run() -> Result<(), Fault> {
    match any() {
        true => run_some(),
        false => Ok(()),
    }
}

#[cold]
fn run_some() -> Result<(), Fault> {
    // A handler may add other handlers, or remove itself.
    let mut at = 0;
    while let Some(choice) = HANDLERS.get().list.get(at).map(|handler| handler.choice) {
        // Ignore errors about a node from which no more messages can come: they do not concern the current call.
        let served = match look(choice) {
            Ok(Some(status)) => offer(&status)?,
            Ok(None) | Err(Fault::Regatta) => false,
            Err(why) => return Err(why),
        };
        at += usize::from(!served);
    }
    Ok(())
}

/// Passes a message to its handler. Returns `false` if there is none.
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
    // SAFETY: the program has passed this function, and no reference into the state is held.
    unsafe { function(&mut node, &mut kind, length) };
    let handlers = HANDLERS.get();
    handlers.running = false;
    match handlers.offered.take() {
        Some(message) => drop_message(message),
        None => Ok(()),
    }
    .map(|()| true)
}

/// Records that the first message from this sender with this type has been read, or belongs to a receive in progress.
#[inline(always)]
pub fn note_read(task: c_int, tag: c_int) {
    let handlers = HANDLERS.get();
    if handlers.running {
        handlers.offered = handlers
            .offered
            .filter(|message| !(Choice { task, tag }).takes(message.task, message.tag));
    }
}

/// Serves handlers until a message matches that has no handler. Returns the selection of that message.
#[inline(always)]
pub fn meanwhile(choice: Choice) -> Result<Choice, Fault> {
    match any() {
        true => serve_until(choice),
        false => Ok(choice),
    }
}

/// Returns the first matching message that has arrived and has no handler: the one that a read would get. Passes
/// earlier ones to their handlers.
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

/// Registers a function to be called for each message from this node with this type; NULL for the same two removes it.
/// Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exhandle(
    function: Option<Function>,
    src: *const c_int,
    kind: *const c_int,
) -> c_int {
    call("exhandle", || {
        // SAFETY: by the C contract the pointers are valid or NULL.
        let Some(choice) = (unsafe { Choice::read(src, kind)? }) else {
            return Ok(0);
        };
        let list = &mut HANDLERS.get().list;
        list.retain(|handler| handler.choice != choice);
        list.extend(function.map(|function| Handler { choice, function }));
        Ok(0)
    })
}
