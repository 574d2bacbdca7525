//! Reductions to a root and to all.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::collective::describe::reduced;
use crate::collective::{begin, describe, keep, quick, slowly};
use crate::error::{Result, checked};

pub unsafe fn reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    root: c_int,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        if let Some(code) = quick::reduce(sendbuf, recvbuf, count, datatype, op, root, comm) {
            return checked(code);
        }
        slowly(|| describe::reduce(comm, reduced(sendbuf, recvbuf, count, datatype, op), root))
    }
}

pub unsafe fn ireduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    root: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            describe::reduce(comm, reduced(sendbuf, recvbuf, count, datatype, op), root)?,
            request,
        )
    }
}

pub unsafe fn reduce_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    root: c_int,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            describe::reduce(comm, reduced(sendbuf, recvbuf, count, datatype, op), root)?,
            request,
        )
    }
}

pub unsafe fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        if let Some(code) = quick::allreduce(sendbuf, recvbuf, count, datatype, op, comm) {
            return checked(code);
        }
        slowly(|| describe::allreduce(comm, reduced(sendbuf, recvbuf, count, datatype, op)))
    }
}

pub unsafe fn iallreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            describe::allreduce(comm, reduced(sendbuf, recvbuf, count, datatype, op))?,
            request,
        )
    }
}

pub unsafe fn allreduce_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            describe::allreduce(comm, reduced(sendbuf, recvbuf, count, datatype, op))?,
            request,
        )
    }
}
