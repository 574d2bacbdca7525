//! Reductions whose results are scattered.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::describe::{ScatterCounts, reduced};
use crate::collective::{begin, describe, keep, run};
use crate::error::Result;

pub unsafe fn reduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        run(describe::reduce_scatter(
            comm,
            reduced(sendbuf, recvbuf, 0, datatype, op),
            ScatterCounts::Listed(recvcounts),
        )?)
    }
}

pub unsafe fn ireduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    datatype: Datatype,
    op: Op,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            describe::reduce_scatter(
                comm,
                reduced(sendbuf, recvbuf, 0, datatype, op),
                ScatterCounts::Listed(recvcounts),
            )?,
            request,
        )
    }
}

pub unsafe fn reduce_scatter_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    datatype: Datatype,
    op: Op,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            describe::reduce_scatter(
                comm,
                reduced(sendbuf, recvbuf, 0, datatype, op),
                ScatterCounts::Listed(recvcounts),
            )?,
            request,
        )
    }
}

pub unsafe fn reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        run(describe::reduce_scatter(
            comm,
            reduced(sendbuf, recvbuf, 0, datatype, op),
            ScatterCounts::Block(recvcount),
        )?)
    }
}

pub unsafe fn ireduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            describe::reduce_scatter(
                comm,
                reduced(sendbuf, recvbuf, 0, datatype, op),
                ScatterCounts::Block(recvcount),
            )?,
            request,
        )
    }
}

pub unsafe fn reduce_scatter_block_init(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    recvcount: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            describe::reduce_scatter(
                comm,
                reduced(sendbuf, recvbuf, 0, datatype, op),
                ScatterCounts::Block(recvcount),
            )?,
            request,
        )
    }
}
