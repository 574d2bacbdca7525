//! Neighbourhood allgathers.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::forms;
use crate::collective::memory::{even, listed};
use crate::collective::neighbours::{self, try_allgather};

forms! {
    pub unsafe fn neighbor_allgather, ineighbor_allgather, neighbor_allgather_init(
        sendbuf: *const c_void,
        sendcount: i64,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcount: i64,
        recvtype: Datatype,
        comm: Comm,
    )
        = neighbours::allgather(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
        ),
        first try_allgather;

    pub unsafe fn neighbor_allgatherv, ineighbor_allgatherv, neighbor_allgatherv_init(
        sendbuf: *const c_void,
        sendcount: i64,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcounts: Ints,
        displs: Ints,
        recvtype: Datatype,
        comm: Comm,
    )
        = neighbours::allgather(
            comm,
            even(sendbuf, sendcount, sendtype),
            listed(recvbuf, recvcounts, displs, recvtype),
        );
}
