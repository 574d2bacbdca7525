//! Barrier and broadcast.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::collective::memory::even;
use crate::collective::{begin, describe, keep, quick, slowly};
use crate::error::{Result, checked};

pub unsafe fn barrier(comm: Comm) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        if let Some(code) = quick::barrier(comm) {
            return checked(code);
        }
        slowly(|| describe::barrier(comm))
    }
}

pub unsafe fn ibarrier(comm: Comm, request: *mut Request) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe { begin(describe::barrier(comm)?, request) }
}

pub unsafe fn barrier_init(comm: Comm, _info: Info, request: *mut Request) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe { keep(describe::barrier(comm)?, request) }
}

pub unsafe fn bcast(
    buffer: *mut c_void,
    count: i64,
    datatype: Datatype,
    root: c_int,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        if let Some(code) = quick::broadcast(buffer, count, datatype, root, comm) {
            return checked(code);
        }
        slowly(|| describe::broadcast(comm, even(buffer, count, datatype), root))
    }
}

pub unsafe fn ibcast(
    buffer: *mut c_void,
    count: i64,
    datatype: Datatype,
    root: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            describe::broadcast(comm, even(buffer, count, datatype), root)?,
            request,
        )
    }
}

pub unsafe fn bcast_init(
    buffer: *mut c_void,
    count: i64,
    datatype: Datatype,
    root: c_int,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            describe::broadcast(comm, even(buffer, count, datatype), root)?,
            request,
        )
    }
}
