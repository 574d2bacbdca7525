//! Allgather.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use crate::abi::*;
use crate::collective::describe::given;
use crate::collective::memory::{Buffer, even, listed};
use crate::collective::quick::{Listed, part_of_all, place};
use crate::collective::{Collective, Entry, LocalData, entry, forms, intercommunicator};
use crate::communicator::get;
use crate::error::Result;

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
        = describe_allgather(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
        ),
        first try_allgather;

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
        = describe_allgather(
            comm,
            even(sendbuf, sendcount, sendtype),
            listed(recvbuf, recvcounts, displs, recvtype),
        ),
        first try_allgatherv;
}

const ALLGATHER: Entry = entry!(rg_allgather or rg_iallgather(given, each, taken));
const ALLGATHERV: Entry =
    entry!(rg_allgatherv or rg_iallgatherv(given, gives, taken, take_lengths, take_offsets));

/// Describes MPI_Allgather and MPI_Allgatherv.
unsafe fn describe_allgather(comm: Comm, send: Buffer, recv: Buffer) -> Result<Collective> {
    let comm = get(comm)?;
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        let takes = recv.memory("recvbuf", comm.peers().len())?;
        if comm.remote.is_some() {
            let gives = send.memory("sendbuf", 1)?;
            return Ok(intercommunicator::exchange(
                comm,
                |_| gives.clone(),
                |rank| takes.only(rank),
            ));
        }
        let gives = given(&send, 1, &takes, comm.rank as usize)?;
        let entry = match recv.is_listed() {
            true => ALLGATHERV,
            false => ALLGATHER,
        };
        Ok(Collective::engine(
            comm,
            entry,
            gives,
            LocalData::Memory(takes),
        ))
    }
}

/// Fast path of MPI_Allgather.
#[inline(always)]
unsafe fn try_allgather(comm: Comm, send: Buffer, recv: Buffer) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let length = part_of_all(&send, &recv, rank)?;
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    Some(unsafe { rg::rg_allgather(send.address, length, recv.address, route.group()) })
}

/// Fast path of MPI_Allgatherv.
unsafe fn try_allgatherv(comm: Comm, send: Buffer, recv: Buffer) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    // SAFETY: the caller guarantees that the arrays and buffers are valid.
    unsafe {
        let all = Listed::new(route.peers(), &recv)?;
        let length = all.part(&recv, &send, rank)?;
        let (lengths, offsets) = (all.lengths.as_ptr(), all.offsets.as_ptr());
        let group = route.group();
        Some(rg::rg_allgatherv(
            send.address,
            length,
            recv.address,
            lengths,
            offsets,
            group,
        ))
    }
}
