//! Exchanges of all with all.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::describe::typed;
use crate::collective::memory::{even, listed};
use crate::collective::{describe, forms, quick};

forms! {
    pub unsafe fn alltoall, ialltoall, alltoall_init(
        sendbuf: *const c_void,
        sendcount: i64,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcount: i64,
        recvtype: Datatype,
        comm: Comm,
    )
        = describe::alltoall(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
        ),
        first quick::alltoall(sendbuf, (sendcount, sendtype), recvbuf, (recvcount, recvtype), comm);

    pub unsafe fn alltoallv, ialltoallv, alltoallv_init(
        sendbuf: *const c_void,
        sendcounts: Ints,
        sdispls: Ints,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcounts: Ints,
        rdispls: Ints,
        recvtype: Datatype,
        comm: Comm,
    )
        = describe::alltoall(
            comm,
            listed(sendbuf, sendcounts, sdispls, sendtype),
            listed(recvbuf, recvcounts, rdispls, recvtype),
        ),
        first quick::alltoallv(
            sendbuf,
            (sendcounts, sdispls, sendtype),
            recvbuf,
            (recvcounts, rdispls, recvtype),
            comm,
        );

    pub unsafe fn alltoallw, ialltoallw, alltoallw_init(
        sendbuf: *const c_void,
        sendcounts: Ints,
        sdispls: Ints,
        sendtypes: *const Datatype,
        recvbuf: *mut c_void,
        recvcounts: Ints,
        rdispls: Ints,
        recvtypes: *const Datatype,
        comm: Comm,
    )
        = describe::alltoallw(
            comm,
            typed(sendbuf, sendcounts, sdispls, sendtypes),
            typed(recvbuf, recvcounts, rdispls, recvtypes),
        );
}
