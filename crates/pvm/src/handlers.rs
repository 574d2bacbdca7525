//! Functions of the program that are called for messages as they are taken in.

use std::ffi::c_int;

use crate::life::enrol;
use crate::message::{self, codes, error};
use crate::rg::ANY;
use crate::state::library;
use crate::{output, receive};

/// A function that is called for messages of this kind; `ANY` is any.
pub struct Handler {
    number: i32,
    source: i32,
    tag: i32,
    pub context: i32,
    function: unsafe extern "C" fn(c_int) -> c_int,
}

impl Handler {
    fn takes(&self, info: &message::Info) -> bool {
        (self.source == ANY || self.source == info.src)
            && (self.tag == ANY || self.tag == info.tag)
            && (self.context == ANY || self.context == info.ctx)
    }
}

/// Take in what has come for handlers. Calls that concern messages begin with this.
#[inline(always)]
pub fn run() -> Result<(), i32> {
    if library().handlers.is_empty() && !output::is_caught() {
        return Ok(());
    }
    run_some()
}

#[cold]
fn run_some() -> Result<(), i32> {
    if library().in_handler {
        return Ok(());
    }
    receive::take_in().map(|_| ())
}

/// A message has been taken in: a handler's, or to be received.
pub fn offer(buffer: c_int) {
    let library = library();
    let info = message::info(buffer).unwrap_or_default();
    let found = library.handlers.iter().find(|handler| handler.takes(&info));
    let Some(function) = found
        .filter(|_| !library.in_handler)
        .map(|handler| handler.function)
    else {
        library.queue.push_back(buffer);
        return;
    };
    let (send, receive) = message::current();
    message::swap_current(0, buffer);
    library.in_handler = true;
    // SAFETY: the program's function; no reference into our state is held.
    unsafe { function(buffer) };
    crate::state::library().in_handler = false;
    message::free(buffer);
    message::swap_current(send, receive);
}

#[unsafe(no_mangle)]
extern "C" fn pvm_addmhf(
    source: c_int,
    tag: c_int,
    context: c_int,
    function: Option<unsafe extern "C" fn(c_int) -> c_int>,
) -> c_int {
    let added = || -> Result<i32, i32> {
        enrol()?;
        let function = function.ok_or(codes::BAD_PARAM)?;
        let library = library();
        let same = |handler: &Handler| {
            (handler.source, handler.tag, handler.context) == (source, tag, context)
        };
        if library.handlers.iter().any(same) {
            return Err(codes::EXISTS);
        }
        if context != ANY {
            crate::contexts::note(context);
        }
        let number = library.next_handler;
        library.next_handler += 1;
        library.handlers.push(Handler {
            number,
            source,
            tag,
            context,
            function,
        });
        Ok(number)
    };
    error::result("pvm_addmhf", added().unwrap_or_else(|code| code))
}

#[unsafe(no_mangle)]
extern "C" fn pvm_delmhf(number: c_int) -> c_int {
    let handlers = &mut library().handlers;
    let before = handlers.len();
    handlers.retain(|handler| handler.number != number);
    let code = match number {
        ..0 => codes::BAD_PARAM,
        _ if handlers.len() == before => codes::NOT_FOUND,
        _ => 0,
    };
    error::result("pvm_delmhf", code)
}
