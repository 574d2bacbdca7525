//! Exchanges among neighbours of a topology.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::describe::typed;
use crate::collective::memory::{even, listed};
use crate::collective::{begin, keep, neighbours, run};
use crate::error::Result;

pub unsafe fn neighbor_alltoall(
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
        run(neighbours::alltoall(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
        )?)
    }
}

pub unsafe fn ineighbor_alltoall(
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
            neighbours::alltoall(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn neighbor_alltoall_init(
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
            neighbours::alltoall(
                comm,
                even(sendbuf, sendcount, sendtype),
                even(recvbuf, recvcount, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn neighbor_alltoallv(
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
        run(neighbours::alltoall(
            comm,
            listed(sendbuf, sendcounts, sdispls, sendtype),
            listed(recvbuf, recvcounts, rdispls, recvtype),
        )?)
    }
}

pub unsafe fn ineighbor_alltoallv(
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
            neighbours::alltoall(
                comm,
                listed(sendbuf, sendcounts, sdispls, sendtype),
                listed(recvbuf, recvcounts, rdispls, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn neighbor_alltoallv_init(
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
            neighbours::alltoall(
                comm,
                listed(sendbuf, sendcounts, sdispls, sendtype),
                listed(recvbuf, recvcounts, rdispls, recvtype),
            )?,
            request,
        )
    }
}

pub unsafe fn neighbor_alltoallw(
    sendbuf: *const c_void,
    sendcounts: Ints,
    sdispls: *const i64,
    sendtypes: *const Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    rdispls: *const i64,
    recvtypes: *const Datatype,
    comm: Comm,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        run(neighbours::alltoallw(
            comm,
            typed(sendbuf, sendcounts, Ints::Large(sdispls), sendtypes),
            typed(recvbuf, recvcounts, Ints::Large(rdispls), recvtypes),
        )?)
    }
}

pub unsafe fn ineighbor_alltoallw(
    sendbuf: *const c_void,
    sendcounts: Ints,
    sdispls: *const i64,
    sendtypes: *const Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    rdispls: *const i64,
    recvtypes: *const Datatype,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        begin(
            neighbours::alltoallw(
                comm,
                typed(sendbuf, sendcounts, Ints::Large(sdispls), sendtypes),
                typed(recvbuf, recvcounts, Ints::Large(rdispls), recvtypes),
            )?,
            request,
        )
    }
}

pub unsafe fn neighbor_alltoallw_init(
    sendbuf: *const c_void,
    sendcounts: Ints,
    sdispls: *const i64,
    sendtypes: *const Datatype,
    recvbuf: *mut c_void,
    recvcounts: Ints,
    rdispls: *const i64,
    recvtypes: *const Datatype,
    comm: Comm,
    _info: Info,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller keeps MPI's rules.
    unsafe {
        keep(
            neighbours::alltoallw(
                comm,
                typed(sendbuf, sendcounts, Ints::Large(sdispls), sendtypes),
                typed(recvbuf, recvcounts, Ints::Large(rdispls), recvtypes),
            )?,
            request,
        )
    }
}
