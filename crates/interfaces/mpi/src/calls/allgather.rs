//! Allgather.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::memory::{even, listed};
use crate::collective::{describe, forms, quick};

forms! {
    pub unsafe fn allgather, iallgather, allgather_init(
        sendbuf: *const c_void,
        sendcount: i64,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcount: i64,
        recvtype: Datatype,
        comm: Comm,
    )
        = describe::allgather(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
        ),
        first quick::allgather(
            sendbuf,
            (sendcount, sendtype),
            recvbuf,
            (recvcount, recvtype),
            comm,
        );

    pub unsafe fn allgatherv, iallgatherv, allgatherv_init(
        sendbuf: *const c_void,
        sendcount: i64,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcounts: Ints,
        displs: Ints,
        recvtype: Datatype,
        comm: Comm,
    )
        = describe::allgather(
            comm,
            even(sendbuf, sendcount, sendtype),
            listed(recvbuf, recvcounts, displs, recvtype),
        ),
        first quick::allgatherv(
            sendbuf,
            (sendcount, sendtype),
            recvbuf,
            (recvcounts, displs, recvtype),
            comm,
        );
}
