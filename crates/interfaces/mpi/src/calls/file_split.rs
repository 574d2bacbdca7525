//! Collective accesses to files in two calls. The first one does the access; the second one has the status.

use std::ffi::c_void;

use super::file_access::{begin, end};
use crate::abi::*;
use crate::error::Result;
use crate::files::Memory;
use crate::files::access::{Direction, Position};

pub unsafe fn file_read_all_begin(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe {
        begin(
            fh,
            Direction::Read,
            Position::Own,
            memory,
            "MPI_File_read_all_end",
        )
    }
}

pub unsafe fn file_read_all_end(fh: File, buf: *mut c_void, status: *mut Status) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { end(fh, "MPI_File_read_all_end", buf, status) }
}

pub unsafe fn file_read_at_all_begin(
    fh: File,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe {
        begin(
            fh,
            Direction::Read,
            Position::At(offset),
            memory,
            "MPI_File_read_at_all_end",
        )
    }
}

pub unsafe fn file_read_at_all_end(fh: File, buf: *mut c_void, status: *mut Status) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { end(fh, "MPI_File_read_at_all_end", buf, status) }
}

pub unsafe fn file_read_ordered_begin(
    fh: File,
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
) -> Result {
    let memory = Memory::new(buf, count, datatype);
    // SAFETY: the caller's pointers.
    unsafe {
        begin(
            fh,
            Direction::Read,
            Position::Shared,
            memory,
            "MPI_File_read_ordered_end",
        )
    }
}

pub unsafe fn file_read_ordered_end(fh: File, buf: *mut c_void, status: *mut Status) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { end(fh, "MPI_File_read_ordered_end", buf, status) }
}

pub unsafe fn file_write_all_begin(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
) -> Result {
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe {
        begin(
            fh,
            Direction::Write,
            Position::Own,
            memory,
            "MPI_File_write_all_end",
        )
    }
}

pub unsafe fn file_write_all_end(fh: File, buf: *const c_void, status: *mut Status) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { end(fh, "MPI_File_write_all_end", buf, status) }
}

pub unsafe fn file_write_at_all_begin(
    fh: File,
    offset: i64,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
) -> Result {
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe {
        begin(
            fh,
            Direction::Write,
            Position::At(offset),
            memory,
            "MPI_File_write_at_all_end",
        )
    }
}

pub unsafe fn file_write_at_all_end(fh: File, buf: *const c_void, status: *mut Status) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { end(fh, "MPI_File_write_at_all_end", buf, status) }
}

pub unsafe fn file_write_ordered_begin(
    fh: File,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
) -> Result {
    let memory = Memory::new(buf.cast_mut(), count, datatype);
    // SAFETY: the caller's pointers.
    unsafe {
        begin(
            fh,
            Direction::Write,
            Position::Shared,
            memory,
            "MPI_File_write_ordered_end",
        )
    }
}

pub unsafe fn file_write_ordered_end(fh: File, buf: *const c_void, status: *mut Status) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { end(fh, "MPI_File_write_ordered_end", buf, status) }
}
