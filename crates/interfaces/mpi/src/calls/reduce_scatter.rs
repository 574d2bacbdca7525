//! Reductions whose results are scattered.

use std::ffi::c_void;

use crate::abi::*;
use crate::collective::describe::{ScatterCounts, reduced};
use crate::collective::{describe, forms};

forms! {
    pub unsafe fn reduce_scatter, ireduce_scatter, reduce_scatter_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        recvcounts: Ints,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    )
        = describe::reduce_scatter(
            comm,
            reduced(sendbuf, recvbuf, 0, datatype, op),
            ScatterCounts::Listed(recvcounts),
        );

    pub unsafe fn reduce_scatter_block, ireduce_scatter_block, reduce_scatter_block_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        recvcount: i64,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    )
        = describe::reduce_scatter(
            comm,
            reduced(sendbuf, recvbuf, 0, datatype, op),
            ScatterCounts::Block(recvcount),
        );
}
