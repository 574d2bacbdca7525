//! Accesses to files at the process' own pointer.

use std::ffi::c_void;

use super::file_access::{later, now};
use crate::abi::*;
use crate::error::Result;
use crate::files::Memory;
use crate::files::access::{Place, Way};

pub unsafe fn file_read(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory {
        buffer: buf,
        count,
        datatype,
    };
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Way::Read, Place::Own, false, memory, status) }
}

pub unsafe fn file_read_all(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory {
        buffer: buf,
        count,
        datatype,
    };
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Way::Read, Place::Own, true, memory, status) }
}

pub unsafe fn file_iread(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    let memory = Memory {
        buffer: buf,
        count,
        datatype,
    };
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Way::Read, Place::Own, memory, request) }
}

pub unsafe fn file_iread_all(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    let memory = Memory {
        buffer: buf,
        count,
        datatype,
    };
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Way::Read, Place::Own, memory, request) }
}

pub unsafe fn file_write(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory {
        buffer: buf.cast_mut(),
        count,
        datatype,
    };
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Way::Write, Place::Own, false, memory, status) }
}

pub unsafe fn file_write_all(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    status: *mut Status,
) -> Result {
    let memory = Memory {
        buffer: buf.cast_mut(),
        count,
        datatype,
    };
    // SAFETY: the caller's pointers.
    unsafe { now(fh, Way::Write, Place::Own, true, memory, status) }
}

pub unsafe fn file_iwrite(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    let memory = Memory {
        buffer: buf.cast_mut(),
        count,
        datatype,
    };
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Way::Write, Place::Own, memory, request) }
}

pub unsafe fn file_iwrite_all(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    request: *mut Request,
) -> Result {
    let memory = Memory {
        buffer: buf.cast_mut(),
        count,
        datatype,
    };
    // SAFETY: the caller's pointers.
    unsafe { later(fh, Way::Write, Place::Own, memory, request) }
}
