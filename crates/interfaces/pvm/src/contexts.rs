//! Contexts: a message sent in one context is never received in another.
//!
//! A context is a channel of Regatta's. Messages whose tag has the sign bit (only PVM's system programs use these) have
//! a second channel per context. In that channel their tag is the remaining 31 bits.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::life::enrol;
use crate::message::{codes, error};
use crate::state::library;
use crate::trace::{self, calls, ints, traced};
use crate::{rg, tid};

/// First channel of PVM's contexts. A program's own use of Regatta has the channels below.
const FIRST_CHANNEL: i32 = 1 << 28;
/// Offset of the channels for tags with the sign bit.
const CHANNELS_OF_RESERVED_TAGS: i32 = 1 << 27;
/// First number of new contexts, as in the tids of the first host.
const FIRST_CONTEXT: i32 = 1 << 18;
/// Maximum number of contexts.
const MAX_CONTEXTS: i32 = FIRST_CONTEXT - 1;
/// Each context in use has an entry under this name. The entry's index identifies the context.
const NAME: &CStr = c"pvm-contexts";
/// The entry under this name counts the contexts made so far.
const NAME_OF_COUNT: &CStr = c"pvm-contexts-made";
/// Entries outlive the task that put them, and other tasks may change them.
const ENTRY_FLAGS: c_int = rg::OVERWRITABLE | rg::PERSISTENT;

/// Returns the channel of a context for tags like `tag` (with or without the sign bit).
#[inline(always)]
pub fn channel(context: i32, tag: i32) -> rg::Group {
    let apart = if tag < rg::ANY {
        CHANNELS_OF_RESERVED_TAGS
    } else {
        0
    };
    rg::channel(FIRST_CHANNEL + apart + (context & (CHANNELS_OF_RESERVED_TAGS - 1)))
}

/// Puts an entry with these bytes at `index`, or at a free index (RG_ANY).
fn put(name: &CStr, value: &[u8], index: i32) -> Result<(), i32> {
    let (value, length, mut placed) = (value.as_ptr().cast(), value.len(), 0);
    // SAFETY: the name is NUL-terminated, the value is a valid slice, and the index is writable.
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

/// Returns the next index, counted in the whole job. It repeats after [`MAX_CONTEXTS`] calls.
fn next_index() -> Result<i32, i32> {
    loop {
        let mut made = 0;
        // SAFETY: the name is NUL-terminated, and the number is writable.
        match unsafe { rg::rg_add(NAME_OF_COUNT.as_ptr(), 0, 1, &mut made) } {
            rg::OK => return Ok((made as u64 % MAX_CONTEXTS as u64) as i32),
            // If several tasks put the first number at the same time, index 0 holds the one that counts.
            rg::ERR_NAME => put(NAME_OF_COUNT, &0u64.to_le_bytes(), rg::ANY)?,
            _ => return Err(codes::SYS_ERR),
        }
    }
}

fn is_in_use(index: i32) -> Result<bool, i32> {
    let (mut length, mut found) = (0, 0);
    // SAFETY: the name is NUL-terminated, no room for the value is passed, and the results are writable.
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

/// Allocates a new context for the whole job. It stays in use when this task ends, as other tasks may use it. A freed
/// context is reused as late as possible, because messages in it may still be in flight or unreceived.
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
    // SAFETY: the string is NUL-terminated.
    match unsafe { rg::rg_delete(NAME.as_ptr(), index) } {
        rg::OK => Ok(()),
        rg::ERR_NAME => Err(codes::NOT_FOUND),
        _ => Err(codes::SYS_ERR),
    }
}

/// The current context, exported because some programs read this variable of PVM's library.
#[unsafe(no_mangle)]
static pvmmyctx: AtomicI32 = AtomicI32::new(0);

/// Makes `context` the current one, and returns the previous one.
pub fn change(context: i32) -> i32 {
    note(context);
    pvmmyctx.store(context, Ordering::Relaxed);
    std::mem::replace(&mut library().context, context)
}

/// Records that messages in this context may arrive for this task.
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

/// The sender that a receive selects: a Regatta task, any task, or a daemon. Messages of daemons are sent by this task
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Task(i32),
    Anybody,
    Daemon,
}

/// Returns the source that a program names in a receive, or `None` if no task has this number or ever will.
#[inline(always)]
pub fn source(from: c_int) -> Option<Source> {
    match tid::named(from) {
        Some(task) => Some(Source::Task(task)),
        None if from == rg::ANY => Some(Source::Anybody),
        None if tid::is_daemon(from) => Some(Source::Daemon),
        None => None,
    }
}
