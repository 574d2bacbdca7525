//! Gathering to a root.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use regatta_sys as rg;

use crate::abi::*;
use crate::collective::describe::given;
use crate::collective::memory::{Buffer, even, listed};
use crate::collective::quick::{Listed, bytes, is_memory, is_root, part_of_all, place};
use crate::collective::{
    Collective, Entry, LocalData, Role, entry, forms, intercommunicator, role,
};
use crate::communicator::get;
use crate::error::Result;

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
        = describe_gather(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
            root,
        ),
        first try_gather;

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
        = describe_gather(
            comm,
            even(sendbuf, sendcount, sendtype),
            listed(recvbuf, recvcounts, displs, recvtype),
            root,
        ),
        first try_gatherv;
}

const GATHER: Entry = entry!(rg_gather or rg_igather(given, each, taken, root));
const GATHERV: Entry =
    entry!(rg_gatherv or rg_igatherv(given, gives, taken, take_lengths, take_offsets, root));

/// Describes MPI_Gather and MPI_Gatherv.
unsafe fn describe_gather(
    comm: Comm,
    send: Buffer,
    recv: Buffer,
    root: c_int,
) -> Result<Collective> {
    let comm = get(comm)?;
    let entry = match recv.is_listed() {
        true => GATHERV,
        false => GATHER,
    };
    let peers = comm.peers().len();
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        match (role(&comm, root)?, &comm.remote) {
            (Role::Outside, _) => Ok(intercommunicator::outside(comm)),
            (Role::Root, Some(_)) => {
                let takes = recv.memory("recvbuf", peers)?;
                Ok(intercommunicator::from_all(comm, |rank| takes.only(rank)))
            }
            (Role::Member(root), Some(_)) => {
                let gives = send.memory("sendbuf", 1)?;
                Ok(intercommunicator::to_one(comm, root, gives))
            }
            (Role::Member(_), None) => {
                let gives = LocalData::Memory(send.memory("sendbuf", 1)?);
                Ok(Collective::engine(comm, entry, gives, LocalData::Nothing).rooted(root))
            }
            (Role::Root, None) => {
                let takes = recv.memory("recvbuf", peers)?;
                let gives = given(&send, 1, &takes, comm.rank as usize)?;
                Ok(Collective::engine(comm, entry, gives, LocalData::Memory(takes)).rooted(root))
            }
        }
    }
}

/// Fast path of MPI_Gather.
#[inline(always)]
unsafe fn try_gather(comm: Comm, send: Buffer, recv: Buffer, root: c_int) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let length = match is_root(root, rank, route)? {
        true => part_of_all(&send, &recv, rank)?,
        false if is_memory(send.address) => bytes(&send)?,
        false => return None,
    };
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    Some(unsafe { rg::rg_gather(send.address, length, recv.address, root, route.group()) })
}

/// Fast path of MPI_Gatherv.
unsafe fn try_gatherv(comm: Comm, send: Buffer, recv: Buffer, root: c_int) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let (group, from) = (route.group(), send.address);
    // SAFETY: the caller guarantees that the arrays and buffers are valid.
    unsafe {
        if !is_root(root, rank, route)? {
            let length = bytes(&send).filter(|_| is_memory(from))?;
            let (out, none) = (null_mut(), null());
            return Some(rg::rg_gatherv(from, length, out, none, none, root, group));
        }
        let all = Listed::new(route.peers(), &recv)?;
        let length = all.part(&recv, &send, rank)?;
        let (lengths, offsets) = (all.lengths.as_ptr(), all.offsets.as_ptr());
        Some(rg::rg_gatherv(
            from,
            length,
            recv.address,
            lengths,
            offsets,
            root,
            group,
        ))
    }
}
