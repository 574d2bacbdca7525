//! Message handlers: functions of the program that are called for messages as they are taken in.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Write;

use crate::contexts::pvm_setcontext;
use crate::life::enrol;
use crate::message::{self, codes, error, pvm_freebuf, pvm_setrbuf, pvm_setsbuf};
use crate::rg::ANY;
use crate::state::library;
use crate::trace::{self, calls, ints, traced};
use crate::{output, receive};

/// First number of a program's handler. On PVM the numbers below belong to the library's own handlers.
const FIRST: i32 = 9;

/// A function that is called for messages with this source, tag and context. `ANY` matches everything.
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

    /// Returns whether some message would match both this handler and one with these three values.
    fn meets(&self, (source, tag, context): (i32, i32, i32)) -> bool {
        let meet = |one: i32, other: i32| one == ANY || other == ANY || one == other;
        meet(self.source, source) && meet(self.tag, tag) && meet(self.context, context)
    }
}

/// Takes in the messages that have arrived for handlers. Calls that concern messages begin with this.
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
    receive::take_in_one().map(|_| ())
}

/// Passes a message that has been taken in to its handler or, if there is none, to the inbox.
pub fn offer(buffer: c_int) {
    let library = library();
    let info = message::info(buffer).unwrap_or_default();
    let found = library.handlers.iter().find(|handler| handler.takes(&info));
    let Some(handler) = found.filter(|_| !library.in_handler) else {
        receive::keep(buffer);
        return;
    };
    let function = handler.function;
    let entry = || {
        let (source, tag, context) = (handler.source, handler.tag, handler.context);
        let length = message::length(buffer);
        ints([
            source, tag, context, buffer, length, info.tag, info.ctx, info.src,
        ])
    };
    library.in_handler = true;
    trace::apart(calls::MHF_INVOKE, entry, || {
        let send = pvm_setsbuf(0);
        let receive = pvm_setrbuf(buffer);
        let context = pvm_setcontext(info.ctx);
        // SAFETY: the program has passed this function, and no reference into the library's state is held.
        unsafe { function(buffer) };
        pvm_setcontext(context);
        pvm_freebuf(pvm_setsbuf(send));
        pvm_freebuf(pvm_setrbuf(receive));
    });
    crate::state::library().in_handler = false;
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
        // On PVM such a handler would also receive the library's own messages.
        let is_own = tag == ANY && context == ANY;
        let wanted = (source, tag, context);
        if is_own || library.handlers.iter().any(|other| other.meets(wanted)) {
            return Err(codes::EXISTS);
        }
        if context != ANY {
            crate::contexts::note(context);
        }
        let number = match library.free_handlers.pop() {
            Some(number) => number,
            // No number is free, so the numbers in use are contiguous from `FIRST` on.
            None => FIRST + library.handlers.len() as i32,
        };
        library.handlers.push(Handler {
            number,
            source,
            tag,
            context,
            function,
        });
        Ok(number)
    };
    let added = || error::result("pvm_addmhf", added().unwrap_or_else(|code| code));
    traced(
        calls::ADDMHF,
        || ints([source, tag, context]),
        added,
        trace::code,
    )
}

#[unsafe(no_mangle)]
extern "C" fn pvm_delmhf(number: c_int) -> c_int {
    let deleted = || {
        let library = library();
        let before = library.handlers.len();
        library.handlers.retain(|handler| handler.number != number);
        let code = match number {
            ..0 => codes::BAD_PARAM,
            _ if library.handlers.len() == before => codes::NOT_FOUND,
            _ => {
                library.free_handlers.push(number);
                0
            }
        };
        error::result("pvm_delmhf", code)
    };
    traced(calls::DELMHF, || ints([number]), deleted, trace::code)
}

/// Removes all handlers, when the task leaves.
pub fn clear() {
    let library = library();
    library.handlers.clear();
    library.free_handlers.clear();
}

/// Prints all handlers to standard output, one per line, in PVM's format.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvmdisplaymhfinfo(
    who: *const c_char,
    what: *const c_char,
    tid: c_int,
) -> c_int {
    let text = |of: *const c_char| match of.is_null() {
        true => String::new(),
        // SAFETY: by the C contract the string is NUL-terminated or NULL.
        false => unsafe { CStr::from_ptr(of) }.to_string_lossy().into_owned(),
    };
    let (before, what) = (format!("{} t{tid:x}: ", text(who)), text(what));
    let handlers = &library().handlers;
    let mut all = format!("\n{before}message handlers: {}\n", handlers.len());
    let _ = writeln!(all, "{before}{what}");
    for (place, handler) in (FIRST..).zip(handlers) {
        let Handler {
            number,
            source,
            tag,
            context,
            ..
        } = handler;
        let _ = writeln!(
            all,
            "{before}dhandles[{number:2}].mhid = {number:2}  .handle = {place:2}     \
             handles[{place:2}].mhid = {number:2}  \
             .header.src = t{source:<8x}  .header.ctx = {context:8}  .header.tag= {tag:8}"
        );
    }
    all.push_str("\n\n");
    let all = CString::new(all).unwrap_or_default();
    // SAFETY: both are NUL-terminated. It uses C's stdout, to keep the order relative to the program's own output.
    unsafe { libc::printf(c"%s".as_ptr(), all.as_ptr()) };
    0
}
