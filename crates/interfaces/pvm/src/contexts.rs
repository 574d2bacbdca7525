//! Contexts: messages of one are never received in another.
//!
//! A context is a channel of Regatta's. Messages whose tag has the sign bit, which only programs of PVM's own kind use,
//! have a channel of their own beside it, where the tag is what is left of it.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::life::enrol;
use crate::message::{codes, error};
use crate::state::library;
use crate::trace::{self, calls, ints, traced};
use crate::{rg, tid};

/// The channels of PVM begin here, so that a program's own use of Regatta does not meet them.
const FIRST: i32 = 1 << 28;
/// The channels of tags with the sign bit.
const RESERVED: i32 = 1 << 27;
/// Where the number of a context that was made begins, as in the numbers of tasks of the first host.
const BASE: i32 = 1 << 18;
/// Under this name each context that is in use has an entry, whose index tells it from all others.
const NAME: &CStr = c"pvm-contexts";

/// The channel of the messages of a context whose tags are like this one.
#[inline(always)]
pub fn channel(context: i32, tag: i32) -> rg::Group {
    let apart = if tag < rg::ANY { RESERVED } else { 0 };
    rg::channel(FIRST + apart + (context & (RESERVED - 1)))
}

/// A new context that no other task has. It stays in use when we end: others may be in it.
fn fresh() -> Result<i32, i32> {
    let mut index = 0;
    let flags = rg::SEVERAL | rg::OVERWRITABLE | rg::PERSISTENT;
    // SAFETY: a text, no bytes, and a place for the index.
    let code = unsafe {
        rg::rg_put(
            NAME.as_ptr(),
            std::ptr::null(),
            0,
            rg::ANY,
            flags,
            &mut index,
        )
    };
    match code {
        rg::OK if index < BASE - 1 => Ok(BASE + index + 1),
        rg::OK | rg::ERR_MEMORY => Err(codes::OUT_OF_RES),
        _ => Err(codes::SYS_ERR),
    }
}

fn free(context: i32) -> Result<(), i32> {
    let index = context - BASE - 1;
    if !(0..BASE).contains(&index) {
        return Err(codes::NOT_FOUND);
    }
    // SAFETY: a text.
    match unsafe { rg::rg_delete(NAME.as_ptr(), index) } {
        rg::OK => Ok(()),
        rg::ERR_NAME => Err(codes::NOT_FOUND),
        _ => Err(codes::SYS_ERR),
    }
}

/// The current context, for programs that look into PVM's library.
#[unsafe(no_mangle)]
static pvmmyctx: AtomicI32 = AtomicI32::new(0);

/// Make a context the current one; the one before.
pub fn change(context: i32) -> i32 {
    note(context);
    pvmmyctx.store(context, Ordering::Relaxed);
    std::mem::replace(&mut library().context, context)
}

/// From now on messages of this context may be for us.
pub fn note(context: i32) {
    let known = &mut library().contexts;
    if !known.contains(&context) {
        known.push(context);
    }
}

#[unsafe(no_mangle)]
extern "C" fn pvm_newcontext() -> c_int {
    let made = || {
        let made = enrol().and_then(|_| fresh());
        error::result("pvm_newcontext", made.unwrap_or_else(|code| code))
    };
    traced(calls::NEWCONTEXT, || [], made, trace::code)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_freecontext(context: c_int) -> c_int {
    let freed = || -> Result<(), i32> {
        enrol()?;
        free(context)?;
        library().contexts.retain(|&known| known != context);
        Ok(())
    };
    let freed = || error::result("pvm_freecontext", freed().err().unwrap_or(0));
    traced(calls::FREECONTEXT, || ints([context]), freed, trace::code)
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_setcontext(context: c_int) -> c_int {
    let set = || -> Result<i32, i32> {
        enrol()?;
        Ok(change(context))
    };
    let set = || error::result("pvm_setcontext", set().unwrap_or_else(|code| code));
    traced(calls::SETCONTEXT, || ints([context]), set, trace::code)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_getcontext() -> c_int {
    let current = || {
        let context = enrol().map(|_| library().context);
        error::result("pvm_getcontext", context.unwrap_or_else(|code| code))
    };
    traced(calls::GETCONTEXT, || [], current, trace::code)
}

/// The sender that a receive names: a task of Regatta's, anybody, or a daemon, whose messages come from ourselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Task(i32),
    Anybody,
    Daemon,
}

/// The source that a program names in a receive. `None`: no task has this number, nor ever will.
#[inline(always)]
pub fn source(from: c_int) -> Option<Source> {
    match tid::named(from) {
        Some(task) => Some(Source::Task(task)),
        None if from == rg::ANY => Some(Source::Anybody),
        None if tid::is_daemon(from) => Some(Source::Daemon),
        None => None,
    }
}
