//! Accesses to files at offsets that the call gives.

use std::ffi::c_void;

use super::file_access::{check_offset, later, now};
use crate::abi::*;
use crate::error::Result;
use crate::files::Memory;
use crate::files::access::{Direction, Position};

pub unsafe fn file_read_at(
    fh: File,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    check_offset(offset)?;
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe {
        now(
            fh,
            Direction::Read,
            Position::At(offset),
            false,
            memory,
            status,
        )
    }
}

pub unsafe fn file_read_at_all(
    fh: File,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe {
        now(
            fh,
            Direction::Read,
            Position::At(offset),
            true,
            memory,
            status,
        )
    }
}

pub unsafe fn file_iread_at(
    fh: File,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    check_offset(offset)?;
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Direction::Read, Position::At(offset), memory, request) }
}

pub unsafe fn file_iread_at_all(
    fh: File,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    check_offset(offset)?;
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Direction::Read, Position::At(offset), memory, request) }
}

pub unsafe fn file_write_at(
    fh: File,
    offset: i64,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    check_offset(offset)?;
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe {
        now(
            fh,
            Direction::Write,
            Position::At(offset),
            false,
            memory,
            status,
        )
    }
}

pub unsafe fn file_write_at_all(
    fh: File,
    offset: i64,
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
            Position::At(offset),
            true,
            memory,
            status,
        )
    }
}

pub unsafe fn file_iwrite_at(
    fh: File,
    offset: i64,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    check_offset(offset)?;
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Direction::Write, Position::At(offset), memory, request) }
}

pub unsafe fn file_iwrite_at_all(
    fh: File,
    offset: i64,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    check_offset(offset)?;
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Direction::Write, Position::At(offset), memory, request) }
}
