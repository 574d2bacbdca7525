//! `exhandle`: functions of the program that are called for messages as they come.
//!
//! They are called from within calls of this library, never beside the program: at the beginning of each call, and while
//! `exread` and its like wait. A handler reads its message; one that it has not read when it returns is dropped.

use std::ffi::c_int;

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::own::Own;
use regatta_nodes::rg;

use crate::left;
use crate::life::call;
use crate::select::{CHANNEL, Choice, node_of};

/// The program's function: the node, the type and the length of the message.
type Function = unsafe extern "C" fn(*mut c_int, *mut c_int, c_int) -> c_int;

struct Handler {
    choice: Choice,
    function: Function,
}

struct Handlers {
    list: Vec<Handler>,
    /// A handler runs: no other is called.
    running: bool,
    /// How many messages were read: a handler that has read none leaves its message.
    read: u64,
}

static HANDLERS: Own<Handlers> = Own::new(Handlers {
    list: Vec::new(),
    running: false,
    read: 0,
});

impl Handler {
    fn takes(&self, status: &rg::Status) -> bool {
        let fits = |wanted: c_int, is: c_int| wanted == rg::ANY || wanted == is;
        fits(self.choice.task, status.source) && fits(self.choice.tag, status.tag)
    }
}

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
        let served = match look(choice)? {
            Some(status) => offer(&status)?,
            None => false,
        };
        at += usize::from(!served);
    }
    Ok(())
}

/// The first message of this kind that has come.
fn look(choice: Choice) -> Result<Option<rg::Status>, Fault> {
    let (mut found, mut status) = (0, rg::Status::default());
    let (task, tag) = (choice.task, choice.tag);
    // SAFETY: places for the answers.
    checked(unsafe { rg::rg_iprobe(task, tag, CHANNEL, &mut found, &mut status) })?;
    Ok((found != 0).then_some(status))
}

/// Gives a message to its handler. False: it is nobody's.
fn offer(status: &rg::Status) -> Result<bool, Fault> {
    let handlers = HANDLERS.get();
    let found = handlers.list.iter().find(|handler| handler.takes(status));
    let Some(function) = found.map(|handler| handler.function) else {
        return Ok(false);
    };
    let before = handlers.read;
    handlers.running = true;
    let (mut node, mut kind) = (node_of(status.source), status.tag);
    let length = c_int::try_from(status.length).unwrap_or(c_int::MAX);
    // SAFETY: the program's function; no reference into our state is held.
    unsafe { function(&mut node, &mut kind, length) };
    let handlers = HANDLERS.get();
    handlers.running = false;
    if handlers.read == before {
        drop_message(status)?;
    }
    Ok(true)
}

fn drop_message(status: &rg::Status) -> Result<(), Fault> {
    let (from, tag) = (status.source, status.tag);
    let none = std::ptr::null_mut();
    // SAFETY: nothing is to be written.
    match unsafe { rg::rg_recv(none, 0, from, tag, CHANNEL, std::ptr::null_mut()) } {
        rg::ERR_TRUNCATED => Ok(()),
        code => checked(code),
    }
}

/// A message was read.
#[inline(always)]
pub fn count_read() {
    let handlers = HANDLERS.get();
    handlers.read = handlers.read.wrapping_add(1);
}

/// Serves handlers until there is a message of this kind that is no handler's; the choice of that one.
#[inline(always)]
pub fn meanwhile(choice: Choice) -> Result<Choice, Fault> {
    match any() {
        true => serve_until(choice),
        false => Ok(choice),
    }
}

#[cold]
fn serve_until(choice: Choice) -> Result<Choice, Fault> {
    while any() {
        while let Some(status) = look(choice)? {
            if !offer(&status)? {
                return Ok(Choice {
                    task: status.source,
                    tag: status.tag,
                });
            }
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
