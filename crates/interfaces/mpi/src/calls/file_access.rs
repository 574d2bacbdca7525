//! The common part of calls that access files.

use std::ffi::c_void;

use crate::abi::*;
use crate::error::{Error, Result, not_null};
use crate::files::access::{Direction, Position, access, decline};
use crate::files::{Memory, Split, get};
use crate::requests::{self, Single};

/// An offset that a call gives.
pub(crate) fn check_offset(offset: i64) -> Result {
    match offset {
        0.. => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("the offset is {offset}; it is 0 or more"),
        )),
    }
}

/// Accesses a file.
///
/// # Safety
/// The memory and the status may be accessed.
pub(crate) unsafe fn now(
    fh: File,
    direction: Direction,
    position: Position,
    all: bool,
    memory: Memory,
    status: *mut Status,
) -> Result {
    let file = get(fh)?;
    // SAFETY: the caller's promise.
    unsafe {
        let done = access(&file, direction, position, all, memory)?;
        done.store(status);
    }
    Ok(())
}

/// Accesses a file, for a request that is complete.
///
/// # Safety
/// The memory and the request may be accessed.
pub(crate) unsafe fn later(
    fh: File,
    direction: Direction,
    position: Position,
    memory: Memory,
    request: *mut Request,
) -> Result {
    let file = get(fh)?;
    not_null(request, "request")?;
    // SAFETY: the caller's promise.
    unsafe {
        let done = access(&file, direction, position, false, memory)?;
        *request = requests::of_operation(Box::new(Single::complete(done)), COMM_SELF)?;
    }
    Ok(())
}

/// Accesses a file collectively; another call, with this name, ends that.
///
/// # Safety
/// The memory may be accessed.
pub(crate) unsafe fn begin(
    fh: File,
    direction: Direction,
    position: Position,
    memory: Memory,
    end: &'static str,
) -> Result {
    let file = get(fh)?;
    if let Err(error) = file.check_no_split() {
        decline(&file, direction, position);
        return Err(error);
    }
    // SAFETY: the caller's promise.
    let status = unsafe { access(&file, direction, position, true, memory)? };
    file.state().split = Some(Split {
        end,
        buffer: memory.buffer as usize,
        status,
    });
    Ok(())
}

/// Ends a collective access.
///
/// # Safety
/// The status may be written.
pub(crate) unsafe fn end(
    fh: File,
    call: &'static str,
    buffer: *const c_void,
    status: *mut Status,
) -> Result {
    let file = get(fh)?;
    let mut state = file.state();
    let wrong = |text: String| Err(Error::new(ERR_IO, text));
    match &state.split {
        None => return wrong("no access has begun that this call could end".to_owned()),
        Some(split) if split.end != call => {
            return wrong(format!(
                "the access that has begun is ended by {}",
                split.end
            ));
        }
        Some(split) if split.buffer != buffer as usize => {
            return wrong("the buffer is not that of the access that has begun".to_owned());
        }
        Some(split) => {
            // SAFETY: the caller's promise.
            unsafe { split.status.store(status) };
        }
    }
    state.split = None;
    Ok(())
}
