//! Gathering to a root.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::collective::memory::{even, listed};
use crate::collective::{begin, describe, keep, quick, run, slowly};
use crate::error::{Result, checked};

pub unsafe fn gather(
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
        if let Some(code) = quick::gather(
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
            describe::gather(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
                root,
            )
        })
    }
}

pub unsafe fn igather(
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
            describe::gather(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
                root,
            )?,
            request,
        )
    }
}

pub unsafe fn gather_init(
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
            describe::gather(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
                root,
            )?,
            request,
        )
    }
}

pub unsafe fn gatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    displs: Ints,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        run(describe::gather(
            comm,
            even(sendbuf, sendcount, sendtype),
            listed(recvbuf, recvcounts, displs, recvtype),
            root,
        )?)
    }
}

pub unsafe fn igatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    displs: Ints,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            describe::gather(
                comm,
                even(sendbuf, sendcount, sendtype),
                listed(recvbuf, recvcounts, displs, recvtype),
                root,
            )?,
            request,
        )
    }
}

pub unsafe fn gatherv_init(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    displs: Ints,
    recvtype: Datatype,
    root: c_int,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            describe::gather(
                comm,
                even(sendbuf, sendcount, sendtype),
                listed(recvbuf, recvcounts, displs, recvtype),
                root,
            )?,
            request,
        )
    }
}
