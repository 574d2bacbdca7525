//! Prefix reductions.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::describe::reduced;
use crate::collective::{describe, forms, quick};

forms! {
    pub unsafe fn scan, iscan, scan_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: i64,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    )
        = describe::scan(comm, reduced(sendbuf, recvbuf, count, datatype, op)),
        first quick::scan(sendbuf, recvbuf, count, datatype, op, comm);

    pub unsafe fn exscan, iexscan, exscan_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: i64,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    )
        = describe::exscan(comm, reduced(sendbuf, recvbuf, count, datatype, op));
}
