//! Reductions to a root and to all.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::collective::describe::reduced;
use crate::collective::{describe, forms, quick};

forms! {
    pub unsafe fn reduce, ireduce, reduce_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: i64,
        datatype: Datatype,
        op: Op,
        root: c_int,
        comm: Comm,
    )
        = describe::reduce(comm, reduced(sendbuf, recvbuf, count, datatype, op), root),
        first quick::reduce(sendbuf, recvbuf, count, datatype, op, root, comm);

    pub unsafe fn allreduce, iallreduce, allreduce_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: i64,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    )
        = describe::allreduce(comm, reduced(sendbuf, recvbuf, count, datatype, op)),
        first quick::allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}
