//! Accesses to files at the process' own pointer.

use std::ffi::c_void;

use super::file_access::{later, now};
use crate::abi::*;
use crate::error::Result;
use crate::files::Memory;
use crate::files::access::{Direction, Position};

pub unsafe fn file_read(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Direction::Read, Position::Own, false, memory, status) }
}

pub unsafe fn file_read_all(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Direction::Read, Position::Own, true, memory, status) }
}

pub unsafe fn file_iread(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Direction::Read, Position::Own, memory, request) }
}

pub unsafe fn file_iread_all(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Direction::Read, Position::Own, memory, request) }
}

pub unsafe fn file_write(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Direction::Write, Position::Own, false, memory, status) }
}

pub unsafe fn file_write_all(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Direction::Write, Position::Own, true, memory, status) }
}

pub unsafe fn file_iwrite(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Direction::Write, Position::Own, memory, request) }
}

pub unsafe fn file_iwrite_all(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Direction::Write, Position::Own, memory, request) }
}
