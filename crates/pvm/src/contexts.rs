//! Contexts: messages of one are never received in another.
//!
//! A context is a channel of Regatta's. Messages whose tag has the sign bit, which only programs of PVM's own kind use,
//! have a channel of their own beside it, where the tag is what is left of it.

use std::ffi::c_int;

use crate::life::enrol;
use crate::message::{codes, error};
use crate::state::library;
use crate::{rg, tid};

/// The channels of PVM begin here, so that a program's own use of Regatta does not meet them.
const FIRST: i32 = 1 << 28;
/// Contexts are smaller than this.
const MOST: i32 = 1 << 20;
/// The channels of tags with the sign bit.
const RESERVED: i32 = MOST;
/// A task makes so many at a time; system-wide they differ by the task that made them.
const PER_TASK: i32 = 1 << 4;

/// The channel of the messages of a context whose tags are like this one.
#[inline(always)]
pub fn channel(context: i32, tag: i32) -> rg::Group {
    let apart = if tag < rg::ANY { RESERVED } else { 0 };
    rg::channel(FIRST + apart + (context & (MOST - 1)))
}

/// A new number that no other task has: the task's number, and which of its own.
fn fresh() -> Result<i32, i32> {
    let library = library();
    if let Some(context) = library.free_contexts.pop() {
        return Ok(context);
    }
    if library.last_context >= PER_TASK - 1 {
        return Err(codes::OUT_OF_RES);
    }
    library.last_context += 1;
    // 0 is everybody's.
    Ok(library.task * PER_TASK + library.last_context)
}

fn check(context: c_int) -> Result<i32, i32> {
    match (0..MOST).contains(&context) {
        true => Ok(context),
        false => Err(codes::BAD_PARAM),
    }
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
    let made = enrol().and_then(|_| fresh());
    error::result("pvm_newcontext", made.unwrap_or_else(|code| code))
}

#[unsafe(no_mangle)]
extern "C" fn pvm_freecontext(context: c_int) -> c_int {
    let freed = || -> Result<(), i32> {
        enrol()?;
        let library = library();
        let context = check(context)?;
        // Whose it is stands in it.
        let ours = context / PER_TASK == library.task
            && (1..=library.last_context).contains(&(context % PER_TASK));
        if !ours || library.free_contexts.contains(&context) {
            return Err(codes::BAD_PARAM);
        }
        library.free_contexts.push(context);
        library.contexts.retain(|&known| known != context);
        Ok(())
    };
    error::result("pvm_freecontext", freed().err().unwrap_or(0))
}

#[unsafe(no_mangle)]
extern "C" fn pvm_setcontext(context: c_int) -> c_int {
    let set = || -> Result<i32, i32> {
        enrol()?;
        let context = check(context)?;
        note(context);
        Ok(std::mem::replace(&mut library().context, context))
    };
    error::result("pvm_setcontext", set().unwrap_or_else(|code| code))
}

#[unsafe(no_mangle)]
extern "C" fn pvm_getcontext() -> c_int {
    let context = enrol().map(|_| library().context);
    error::result("pvm_getcontext", context.unwrap_or_else(|code| code))
}

/// Whom a receive names: a task of Regatta's, anybody, or a daemon, whose messages come from ourselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Task(i32),
    Anybody,
    Daemon,
}

/// What a program means by a task in a receive.
#[inline(always)]
pub fn source(from: c_int) -> Result<Source, i32> {
    match tid::task(from) {
        Some(task) => Ok(Source::Task(task)),
        None if from == rg::ANY => Ok(Source::Anybody),
        None if tid::is_daemon(from) => Ok(Source::Daemon),
        None => Err(codes::BAD_PARAM),
    }
}
