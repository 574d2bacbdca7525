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
const FIRST_CHANNEL: i32 = 1 << 28;
/// The channels of tags with the sign bit.
const CHANNELS_OF_RESERVED_TAGS: i32 = 1 << 27;
/// Where the number of a context that was made begins, as in the numbers of tasks of the first host.
const FIRST_CONTEXT: i32 = 1 << 18;
/// Contexts that there can be.
const MAX_CONTEXTS: i32 = FIRST_CONTEXT - 1;
/// Under this name each context that is in use has an entry, whose index tells it from all others.
const NAME: &CStr = c"pvm-contexts";
/// Under this name there is the number of contexts made so far.
const NAME_OF_COUNT: &CStr = c"pvm-contexts-made";
/// Entries stay when we end, and others may change them.
const ENTRY_FLAGS: c_int = rg::OVERWRITABLE | rg::PERSISTENT;

/// The channel of the messages of a context whose tags are like this one.
#[inline(always)]
pub fn channel(context: i32, tag: i32) -> rg::Group {
    let apart = if tag < rg::ANY {
        CHANNELS_OF_RESERVED_TAGS
    } else {
        0
    };
    rg::channel(FIRST_CHANNEL + apart + (context & (CHANNELS_OF_RESERVED_TAGS - 1)))
}

/// Puts an entry of these bytes at an index, or where there is room (RG_ANY).
fn put(name: &CStr, value: &[u8], index: i32) -> Result<(), i32> {
    let (value, length, mut placed) = (value.as_ptr().cast(), value.len(), 0);
    // SAFETY: a text, so many bytes, and a place for the index.
    match unsafe {
        rg::rg_put(
            name.as_ptr(),
            value,
            length,
            index,
            ENTRY_FLAGS | rg::SEVERAL,
            &mut placed,
        )
    } {
        rg::OK => Ok(()),
        rg::ERR_MEMORY => Err(codes::OUT_OF_RES),
        _ => Err(codes::SYS_ERR),
    }
}

/// A number that comes again when [`MAX_CONTEXTS`] others have been given, in the whole job.
fn next_index() -> Result<i32, i32> {
    loop {
        let mut made = 0;
        // SAFETY: a text, and a place for the number.
        match unsafe { rg::rg_add(NAME_OF_COUNT.as_ptr(), 0, 1, &mut made) } {
            rg::OK => return Ok((made as u64 % MAX_CONTEXTS as u64) as i32),
            // Of several tasks that put the first number here, one has it at index 0.
            rg::ERR_NAME => put(NAME_OF_COUNT, &0u64.to_le_bytes(), rg::ANY)?,
            _ => return Err(codes::SYS_ERR),
        }
    }
}

fn is_in_use(index: i32) -> Result<bool, i32> {
    let (mut length, mut found) = (0, 0);
    // SAFETY: a text, no room for bytes, and places for two numbers.
    let code = unsafe {
        rg::rg_get(
            NAME.as_ptr(),
            index,
            0,
            std::ptr::null_mut(),
            0,
            &mut length,
            &mut found,
        )
    };
    match code {
        rg::OK => Ok(true),
        rg::ERR_NAME => Ok(false),
        _ => Err(codes::SYS_ERR),
    }
}

/// A new context that no other task has. It stays in use when we end: others may be in it. One that is freed comes again as late as can be,
/// since messages of it may still be on their way, or wait.
fn fresh() -> Result<i32, i32> {
    for _ in 0..MAX_CONTEXTS {
        let index = next_index()?;
        if !is_in_use(index)? {
            put(NAME, &[], index)?;
            return Ok(FIRST_CONTEXT + index + 1);
        }
    }
    Err(codes::OUT_OF_RES)
}

fn free(context: i32) -> Result<(), i32> {
    let index = context - FIRST_CONTEXT - 1;
    if !(0..MAX_CONTEXTS).contains(&index) {
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
