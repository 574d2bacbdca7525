//! Gathering to all.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::memory::{even, listed};
use crate::collective::{begin, describe, keep, quick, run, slowly};
use crate::error::{Result, checked};

pub unsafe fn allgather(
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
        if let Some(code) = quick::allgather(
            sendbuf,
            (sendcount, sendtype),
            recvbuf,
            (recvcount, recvtype),
            comm,
        ) {
            return checked(code);
        }
        slowly(|| {
            describe::allgather(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
            )
        })
    }
}

pub unsafe fn iallgather(
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
            describe::allgather(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn allgather_init(
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
            describe::allgather(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn allgatherv(
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
        run(describe::allgather(
            comm,
            even(sendbuf, sendcount, sendtype),
            listed(recvbuf, recvcounts, displs, recvtype),
        )?)
    }
}

pub unsafe fn iallgatherv(
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
            describe::allgather(
                comm,
                even(sendbuf, sendcount, sendtype),
                listed(recvbuf, recvcounts, displs, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn allgatherv_init(
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
            describe::allgather(
                comm,
                even(sendbuf, sendcount, sendtype),
                listed(recvbuf, recvcounts, displs, recvtype),
            )?,
            request,
        )
    }
}
