//! Scattering from a root.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::collective::memory::{even, listed};
use crate::collective::{describe, forms, quick};

forms! {
    pub unsafe fn scatter, iscatter, scatter_init(
        sendbuf: *const c_void,
        sendcount: i64,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcount: i64,
        recvtype: Datatype,
        root: c_int,
        comm: Comm,
    )
        = describe::scatter(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
            root,
        ),
        first quick::scatter(
            sendbuf,
            (sendcount, sendtype),
            recvbuf,
            (recvcount, recvtype),
            root,
            comm,
        );

    pub unsafe fn scatterv, iscatterv, scatterv_init(
        sendbuf: *const c_void,
        sendcounts: Ints,
        displs: Ints,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcount: i64,
        recvtype: Datatype,
        root: c_int,
        comm: Comm,
    )
        = describe::scatter(
            comm,
            listed(sendbuf, sendcounts, displs, sendtype),
            even(recvbuf, recvcount, recvtype),
            root,
        ),
        first quick::scatterv(
            sendbuf,
            (sendcounts, displs, sendtype),
            recvbuf,
            (recvcount, recvtype),
            root,
            comm,
        );
}
