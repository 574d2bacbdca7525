//! Neighbourhood all-to-all exchanges.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::describe::typed;
use crate::collective::forms;
use crate::collective::memory::{even, listed};
use crate::collective::neighbours::{self, try_alltoall};

forms! {
    pub unsafe fn neighbor_alltoall, ineighbor_alltoall, neighbor_alltoall_init(
        sendbuf: *const c_void,
        sendcount: i64,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcount: i64,
        recvtype: Datatype,
        comm: Comm,
    )
        = neighbours::alltoall(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
        ),
        first try_alltoall;

    pub unsafe fn neighbor_alltoallv, ineighbor_alltoallv, neighbor_alltoallv_init(
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
        = neighbours::alltoall(
            comm,
            listed(sendbuf, sendcounts, sdispls, sendtype),
            listed(recvbuf, recvcounts, rdispls, recvtype),
        );

    pub unsafe fn neighbor_alltoallw, ineighbor_alltoallw, neighbor_alltoallw_init(
        sendbuf: *const c_void,
        sendcounts: Ints,
        sdispls: *const i64,
        sendtypes: *const Datatype,
        recvbuf: *mut c_void,
        recvcounts: Ints,
        rdispls: *const i64,
        recvtypes: *const Datatype,
        comm: Comm,
    )
        = neighbours::alltoallw(
            comm,
            typed(sendbuf, sendcounts, Ints::Large(sdispls), sendtypes),
            typed(recvbuf, recvcounts, Ints::Large(rdispls), recvtypes),
        );
}
