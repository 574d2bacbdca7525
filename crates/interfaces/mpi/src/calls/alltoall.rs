//! Exchanges of all with all.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::describe::typed;
use crate::collective::memory::{even, listed};
use crate::collective::{begin, describe, keep, quick, run, slowly};
use crate::error::{Result, checked};

pub unsafe fn alltoall(
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
        if let Some(code) = quick::alltoall(
            sendbuf,
            (sendcount, sendtype),
            recvbuf,
            (recvcount, recvtype),
            comm,
        ) {
            return checked(code);
        }
        slowly(|| {
            describe::alltoall(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
            )
        })
    }
}

pub unsafe fn ialltoall(
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
            describe::alltoall(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn alltoall_init(
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
            describe::alltoall(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn alltoallv(
    sendbuf: *const c_void,
    sendcounts: Ints,
    sdispls: Ints,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    rdispls: Ints,
    recvtype: Datatype,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        run(describe::alltoall(
            comm,
            listed(sendbuf, sendcounts, sdispls, sendtype),
            listed(recvbuf, recvcounts, rdispls, recvtype),
        )?)
    }
}

pub unsafe fn ialltoallv(
    sendbuf: *const c_void,
    sendcounts: Ints,
    sdispls: Ints,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    rdispls: Ints,
    recvtype: Datatype,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            describe::alltoall(
                comm,
                listed(sendbuf, sendcounts, sdispls, sendtype),
                listed(recvbuf, recvcounts, rdispls, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn alltoallv_init(
    sendbuf: *const c_void,
    sendcounts: Ints,
    sdispls: Ints,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    rdispls: Ints,
    recvtype: Datatype,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            describe::alltoall(
                comm,
                listed(sendbuf, sendcounts, sdispls, sendtype),
                listed(recvbuf, recvcounts, rdispls, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn alltoallw(
    sendbuf: *const c_void,
    sendcounts: Ints,
    sdispls: Ints,
    sendtypes: *const Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    rdispls: Ints,
    recvtypes: *const Datatype,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        run(describe::alltoallw(
            comm,
            typed(sendbuf, sendcounts, sdispls, sendtypes),
            typed(recvbuf, recvcounts, rdispls, recvtypes),
        )?)
    }
}

pub unsafe fn ialltoallw(
    sendbuf: *const c_void,
    sendcounts: Ints,
    sdispls: Ints,
    sendtypes: *const Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    rdispls: Ints,
    recvtypes: *const Datatype,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            describe::alltoallw(
                comm,
                typed(sendbuf, sendcounts, sdispls, sendtypes),
                typed(recvbuf, recvcounts, rdispls, recvtypes),
            )?,
            request,
        )
    }
}

pub unsafe fn alltoallw_init(
    sendbuf: *const c_void,
    sendcounts: Ints,
    sdispls: Ints,
    sendtypes: *const Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    rdispls: Ints,
    recvtypes: *const Datatype,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            describe::alltoallw(
                comm,
                typed(sendbuf, sendcounts, sdispls, sendtypes),
                typed(recvbuf, recvcounts, rdispls, recvtypes),
            )?,
            request,
        )
    }
}
