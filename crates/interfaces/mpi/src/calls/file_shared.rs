//! Accesses to files at the pointer that all processes have in common.

use std::ffi::c_void;

use super::file_access::{later, now};
use crate::abi::*;
use crate::error::Result;
use crate::files::Memory;
use crate::files::access::{Direction, Position};

pub unsafe fn file_read_shared(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Direction::Read, Position::Shared, false, memory, status) }
}

pub unsafe fn file_read_ordered(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Direction::Read, Position::Shared, true, memory, status) }
}

pub unsafe fn file_iread_shared(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Direction::Read, Position::Shared, memory, request) }
}

pub unsafe fn file_write_shared(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe {
        now(
            fh,
            Direction::Write,
            Position::Shared,
            false,
            memory,
            status,
        )
    }
}

pub unsafe fn file_write_ordered(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Direction::Write, Position::Shared, true, memory, status) }
}

pub unsafe fn file_iwrite_shared(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Direction::Write, Position::Shared, memory, request) }
}
