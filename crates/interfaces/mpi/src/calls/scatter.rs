//! Scattering from a root.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use regatta_sys as rg;

use crate::abi::*;
use crate::collective::describe::{distinct, elsewhere, fits};
use crate::collective::memory::{Buffer, even, listed};
use crate::collective::quick::{Listed, bytes, is_memory, is_root, part_of_all, place};
use crate::collective::{
    Collective, Entry, LocalData, Role, entry, forms, intercommunicator, role,
};
use crate::communicator::get;
use crate::error::Result;

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
        = describe_scatter(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
            root,
        ),
        first try_scatter;

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
        = describe_scatter(
            comm,
            listed(sendbuf, sendcounts, displs, sendtype),
            even(recvbuf, recvcount, recvtype),
            root,
        ),
        first try_scatterv;
}

const SCATTER: Entry = entry!(rg_scatter or rg_iscatter(given, taken, each, root));
const SCATTERV: Entry =
    entry!(rg_scatterv or rg_iscatterv(given, give_lengths, give_offsets, taken, takes, root));

/// Describes MPI_Scatter and MPI_Scatterv.
unsafe fn describe_scatter(
    comm: Comm,
    send: Buffer,
    recv: Buffer,
    root: c_int,
) -> Result<Collective> {
    let comm = get(comm)?;
    let entry = match send.is_listed() {
        true => SCATTERV,
        false => SCATTER,
    };
    let peers = comm.peers().len();
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        match (role(&comm, root)?, &comm.remote) {
            (Role::Outside, _) => Ok(intercommunicator::outside(comm)),
            (Role::Root, Some(_)) => {
                let gives = send.memory("sendbuf", peers)?;
                Ok(intercommunicator::to_all(comm, |rank| gives.only(rank)))
            }
            (Role::Member(root), Some(_)) => {
                let takes = recv.memory("recvbuf", 1)?;
                Ok(intercommunicator::from_one(comm, root, takes))
            }
            (Role::Member(_), None) => {
                let takes = LocalData::Memory(recv.memory("recvbuf", 1)?);
                Ok(Collective::engine(comm, entry, LocalData::Nothing, takes).rooted(root))
            }
            (Role::Root, None) => {
                let gives = send.memory("sendbuf", peers)?;
                let takes = match recv.is_in_place() {
                    true => LocalData::InPlace,
                    false => {
                        let takes = recv.memory("recvbuf", 1)?;
                        distinct(&gives, &takes)?;
                        let (gave, got) = (gives.part(comm.rank as usize), takes.part(0));
                        fits(gave, got)?;
                        elsewhere((&takes, got), (&gives, gave))?;
                        LocalData::Memory(takes)
                    }
                };
                Ok(Collective::engine(comm, entry, LocalData::Memory(gives), takes).rooted(root))
            }
        }
    }
}

/// Fast path of MPI_Scatter.
#[inline(always)]
unsafe fn try_scatter(comm: Comm, send: Buffer, recv: Buffer, root: c_int) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let length = match is_root(root, rank, route)? {
        true => part_of_all(&recv, &send, rank)?,
        false if is_memory(recv.address) => bytes(&recv)?,
        false => return None,
    };
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    Some(unsafe { rg::rg_scatter(send.address, recv.address, length, root, route.group()) })
}

/// Fast path of MPI_Scatterv.
unsafe fn try_scatterv(comm: Comm, send: Buffer, recv: Buffer, root: c_int) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let (group, to) = (route.group(), recv.address);
    // SAFETY: the caller guarantees that the arrays and buffers are valid.
    unsafe {
        if !is_root(root, rank, route)? {
            let length = bytes(&recv).filter(|_| is_memory(to))?;
            let (input, none) = (null(), null());
            return Some(rg::rg_scatterv(input, none, none, to, length, root, group));
        }
        let all = Listed::new(route.peers(), &send)?;
        let length = all.part(&send, &recv, rank)?;
        let (lengths, offsets) = (all.lengths.as_ptr(), all.offsets.as_ptr());
        Some(rg::rg_scatterv(
            send.address,
            lengths,
            offsets,
            to,
            length,
            root,
            group,
        ))
    }
}
