//! Gathering to a root.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::collective::memory::{even, listed};
use crate::collective::{describe, forms, quick};

forms! {
    pub unsafe fn gather, igather, gather_init(
        sendbuf: *const c_void,
        sendcount: i64,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcount: i64,
        recvtype: Datatype,
        root: c_int,
        comm: Comm,
    )
        = describe::gather(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
            root,
        ),
        first quick::gather(
            sendbuf,
            (sendcount, sendtype),
            recvbuf,
            (recvcount, recvtype),
            root,
            comm,
        );

    pub unsafe fn gatherv, igatherv, gatherv_init(
        sendbuf: *const c_void,
        sendcount: i64,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcounts: Ints,
        displs: Ints,
        recvtype: Datatype,
        root: c_int,
        comm: Comm,
    )
        = describe::gather(
            comm,
            even(sendbuf, sendcount, sendtype),
            listed(recvbuf, recvcounts, displs, recvtype),
            root,
        ),
        first quick::gatherv(
            sendbuf,
            (sendcount, sendtype),
            recvbuf,
            (recvcounts, displs, recvtype),
            root,
            comm,
        );
}
