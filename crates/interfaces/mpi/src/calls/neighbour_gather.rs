//! Gathering among neighbours of a topology.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::memory::{even, listed};
use crate::collective::{begin, keep, neighbours, run};
use crate::error::Result;

pub unsafe fn neighbor_allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        run(neighbours::allgather(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
        )?)
    }
}

pub unsafe fn ineighbor_allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            neighbours::allgather(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn neighbor_allgather_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            neighbours::allgather(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn neighbor_allgatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    displs: Ints,
    recvtype: Datatype,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        run(neighbours::allgather(
            comm,
            even(sendbuf, sendcount, sendtype),
            listed(recvbuf, recvcounts, displs, recvtype),
        )?)
    }
}

pub unsafe fn ineighbor_allgatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    displs: Ints,
    recvtype: Datatype,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            neighbours::allgather(
                comm,
                even(sendbuf, sendcount, sendtype),
                listed(recvbuf, recvcounts, displs, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn neighbor_allgatherv_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    displs: Ints,
    recvtype: Datatype,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            neighbours::allgather(
                comm,
                even(sendbuf, sendcount, sendtype),
                listed(recvbuf, recvcounts, displs, recvtype),
            )?,
            request,
        )
    }
}
