//! Accesses to files: at the individual file pointer, at an explicit offset, or at the shared file pointer; by one
//! process or collective; blocking, nonblocking or split.

use std::ffi::c_void;
use std::mem::discriminant;
use std::sync::Arc;

use crate::abi::*;
use crate::arguments::Out;
use crate::error::{Error, Result};
use crate::files::access::{Direction, Position, access, decline};
use crate::files::{Memory, Open, Split};
use crate::requests::{self, Single};

/// Checks an explicit offset.
pub(crate) fn check_offset(offset: i64) -> Result {
    match offset {
        0.. => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("the offset is {offset}; it must be 0 or more"),
        )),
    }
}

/// Checks the position of a noncollective access. The offset of a collective access is checked where all processes
/// learn the result.
fn alone(position: Position) -> Result<Position> {
    if let Position::At(offset) = position {
        check_offset(offset)?;
    }
    Ok(position)
}

type Access<'a> = (&'a Open, Direction, Memory);

/// Accesses a file, noncollectively.
unsafe fn now((file, direction, memory): Access, position: Position, to: *mut Status) -> Result {
    // SAFETY: the caller guarantees that the memory and the status are valid.
    unsafe { access(file, direction, alone(position)?, false, memory)?.store(to) };
    Ok(())
}

/// Accesses a file collectively.
unsafe fn all((file, direction, memory): Access, position: Position, to: *mut Status) -> Result {
    // SAFETY: the caller guarantees that the memory and the status are valid.
    unsafe { access(file, direction, position, true, memory)?.store(to) };
    Ok(())
}

/// Accesses a file at once and returns a completed request.
unsafe fn later(
    (file, direction, memory): Access,
    position: Position,
    request: Out<Request>,
) -> Result {
    // SAFETY: the caller guarantees that the memory and the status are valid.
    let done = unsafe { access(file, direction, alone(position)?, false, memory)? };
    request.put(requests::of_operation(
        Box::new(Single::complete(done)),
        COMM_SELF,
    )?);
    Ok(())
}

/// Begins a split collective access: accesses the file at once and keeps the status for the call that ends it.
unsafe fn begin((file, direction, memory): Access, position: Position) -> Result {
    if let Err(error) = file.check_no_split() {
        decline(file, direction, position);
        return Err(error);
    }
    // SAFETY: the caller guarantees that the memory and the status are valid.
    let status = unsafe { access(file, direction, position, true, memory)? };
    file.state().split = Some(Split {
        direction,
        position,
        buffer: memory.buffer as usize,
        status,
    });
    Ok(())
}

/// Ends a split collective access.
unsafe fn end(
    (file, direction, buffer): (&Open, Direction, *const c_void),
    position: Position,
    to: *mut Status,
) -> Result {
    let mut state = file.state();
    let Some(split) = &state.split else {
        let text = "no access that this call could end is in progress";
        return Err(Error::new(ERR_IO, text));
    };
    if split.direction != direction || discriminant(&split.position) != discriminant(&position) {
        let text = format!("the access in progress must be ended by {}", split.end());
        return Err(Error::new(ERR_IO, text));
    }
    if split.buffer != buffer as usize {
        let text = "the buffer is not that of the access in progress";
        return Err(Error::new(ERR_IO, text));
    }
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { split.status.store(to) };
    state.split = None;
    Ok(())
}

/// Defines the access functions, a read and a write in each line: their results, the form of the access, and the
/// position where it begins.
macro_rules! accesses {
    ($(pub unsafe fn $read:ident, $write:ident($($result:ident: $kind:ty)?) $(at $offset:ident)?
        = $form:ident($position:expr);)*) => {
        $(
            accesses! { @call $read, Read, *mut c_void, ($($offset)?), ($($result: $kind)?), $form, $position }
            accesses! { @call $write, Write, *const c_void, ($($offset)?), ($($result: $kind)?), $form, $position }
        )*
    };
    (@call $name:ident, $direction:ident, $buffer:ty, ($($offset:ident)?), ($($result:ident: $kind:ty)?), end, $position:expr) => {
        pub unsafe fn $name(file: Arc<Open>, buf: $buffer, $($result: $kind)?) -> Result {
            // SAFETY: the caller guarantees that the pointer is valid.
            unsafe { end((&file, Direction::$direction, buf as *const c_void), $position, $($result)?) }
        }
    };
    (@call $name:ident, $direction:ident, $buffer:ty, ($($offset:ident)?), ($($result:ident: $kind:ty)?), $form:ident, $position:expr) => {
        pub unsafe fn $name(
            file: Arc<Open>,
            $($offset: i64,)?
            buf: $buffer,
            count: i64,
            datatype: Datatype,
            $($result: $kind)?
        ) -> Result {
            let memory = Memory::new(buf as *mut c_void, count, datatype);
            // SAFETY: the caller guarantees that the elements and the pointer are valid.
            unsafe { $form((&file, Direction::$direction, memory), $position $(, $result)?) }
        }
    };
}

accesses! {
    pub unsafe fn file_read, file_write(status: *mut Status) = now(Position::Own);
    pub unsafe fn file_read_all, file_write_all(status: *mut Status) = all(Position::Own);
    pub unsafe fn file_iread, file_iwrite(request: Out<Request>) = later(Position::Own);
    pub unsafe fn file_iread_all, file_iwrite_all(request: Out<Request>) = later(Position::Own);
    pub unsafe fn file_read_all_begin, file_write_all_begin() = begin(Position::Own);
    pub unsafe fn file_read_all_end, file_write_all_end(status: *mut Status) = end(Position::Own);

    pub unsafe fn file_read_at, file_write_at(status: *mut Status) at offset = now(Position::At(offset));
    pub unsafe fn file_read_at_all, file_write_at_all(status: *mut Status) at offset = all(Position::At(offset));
    pub unsafe fn file_iread_at, file_iwrite_at(request: Out<Request>) at offset = later(Position::At(offset));
    pub unsafe fn file_iread_at_all, file_iwrite_at_all(request: Out<Request>) at offset = later(Position::At(offset));
    pub unsafe fn file_read_at_all_begin, file_write_at_all_begin() at offset = begin(Position::At(offset));
    pub unsafe fn file_read_at_all_end, file_write_at_all_end(status: *mut Status) = end(Position::At(0));

    pub unsafe fn file_read_shared, file_write_shared(status: *mut Status) = now(Position::Shared);
    pub unsafe fn file_iread_shared, file_iwrite_shared(request: Out<Request>) = later(Position::Shared);
    pub unsafe fn file_read_ordered, file_write_ordered(status: *mut Status) = all(Position::Shared);
    pub unsafe fn file_read_ordered_begin, file_write_ordered_begin() = begin(Position::Shared);
    pub unsafe fn file_read_ordered_end, file_write_ordered_end(status: *mut Status) = end(Position::Shared);
}
