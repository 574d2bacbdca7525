//! Scattering from a root.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::collective::memory::{even, listed};
use crate::collective::{begin, describe, keep, quick, run, slowly};
use crate::error::{Result, checked};

pub unsafe fn scatter(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        if let Some(code) = quick::scatter(
            sendbuf,
            (sendcount, sendtype),
            recvbuf,
            (recvcount, recvtype),
            root,
            comm,
        ) {
            return checked(code);
        }
        slowly(|| {
            describe::scatter(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
                root,
            )
        })
    }
}

pub unsafe fn iscatter(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            describe::scatter(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
                root,
            )?,
            request,
        )
    }
}

pub unsafe fn scatter_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            describe::scatter(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
                root,
            )?,
            request,
        )
    }
}

pub unsafe fn scatterv(
    sendbuf: *const c_void,
    sendcounts: Ints,
    displs: Ints,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        run(describe::scatter(
            comm,
            listed(sendbuf, sendcounts, displs, sendtype),
            even(recvbuf, recvcount, recvtype),
            root,
        )?)
    }
}

pub unsafe fn iscatterv(
    sendbuf: *const c_void,
    sendcounts: Ints,
    displs: Ints,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            describe::scatter(
                comm,
                listed(sendbuf, sendcounts, displs, sendtype),
                even(recvbuf, recvcount, recvtype),
                root,
            )?,
            request,
        )
    }
}

pub unsafe fn scatterv_init(
    sendbuf: *const c_void,
    sendcounts: Ints,
    displs: Ints,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            describe::scatter(
                comm,
                listed(sendbuf, sendcounts, displs, sendtype),
                even(recvbuf, recvcount, recvtype),
                root,
            )?,
            request,
        )
    }
}
