//! Prefix reductions.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::describe::reduced;
use crate::collective::{begin, describe, keep, quick, run, slowly};
use crate::error::{Result, checked};

pub unsafe fn scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        if let Some(code) = quick::scan(sendbuf, recvbuf, count, datatype, op, comm) {
            return checked(code);
        }
        slowly(|| describe::scan(comm, reduced(sendbuf, recvbuf, count, datatype, op)))
    }
}

pub unsafe fn iscan(
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
            describe::scan(comm, reduced(sendbuf, recvbuf, count, datatype, op))?,
            request,
        )
    }
}

pub unsafe fn scan_init(
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
            describe::scan(comm, reduced(sendbuf, recvbuf, count, datatype, op))?,
            request,
        )
    }
}

pub unsafe fn exscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        run(describe::exscan(
            comm,
            reduced(sendbuf, recvbuf, count, datatype, op),
        )?)
    }
}

pub unsafe fn iexscan(
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
            describe::exscan(comm, reduced(sendbuf, recvbuf, count, datatype, op))?,
            request,
        )
    }
}

pub unsafe fn exscan_init(
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
            describe::exscan(comm, reduced(sendbuf, recvbuf, count, datatype, op))?,
            request,
        )
    }
}
