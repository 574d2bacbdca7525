//! Barrier and broadcast.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::collective::memory::even;
use crate::collective::{describe, forms, quick};

forms! {
    pub unsafe fn barrier, ibarrier, barrier_init(comm: Comm)
        = describe::barrier(comm),
        first quick::barrier(comm);

    pub unsafe fn bcast, ibcast, bcast_init(
        buffer: *mut c_void,
        count: i64,
        datatype: Datatype,
        root: c_int,
        comm: Comm,
    )
        = describe::broadcast(comm, even(buffer, count, datatype), root),
        first quick::broadcast(buffer, count, datatype, root, comm);
}
