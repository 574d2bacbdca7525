//! All-to-all exchanges.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use crate::abi::*;
use crate::collective::describe::{Typed, given, typed};
use crate::collective::memory::{Buffer, Memory, even, listed};
use crate::collective::messages::{Content, Message};
use crate::collective::quick::{Listed, are_apart, part, place};
use crate::collective::{Collective, Entry, LocalData, entry, forms, intercommunicator, next_tag};
use crate::communicator::get;
use crate::error::{Error, Result};

forms! {
    pub unsafe fn alltoall, ialltoall, alltoall_init(
        sendbuf: *const c_void,
        sendcount: i64,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcount: i64,
        recvtype: Datatype,
        comm: Comm,
    )
        = describe_alltoall(
            comm,
            even(sendbuf, sendcount, sendtype),
            even(recvbuf, recvcount, recvtype),
        ),
        first try_alltoall;

    pub unsafe fn alltoallv, ialltoallv, alltoallv_init(
        sendbuf: *const c_void,
        sendcounts: Ints,
        sdispls: Ints,
        sendtype: Datatype,
        recvbuf: *mut c_void,
        recvcounts: Ints,
        rdispls: Ints,
        recvtype: Datatype,
        comm: Comm,
    )
        = describe_alltoall(
            comm,
            listed(sendbuf, sendcounts, sdispls, sendtype),
            listed(recvbuf, recvcounts, rdispls, recvtype),
        ),
        first try_alltoallv;

    pub unsafe fn alltoallw, ialltoallw, alltoallw_init(
        sendbuf: *const c_void,
        sendcounts: Ints,
        sdispls: Ints,
        sendtypes: *const Datatype,
        recvbuf: *mut c_void,
        recvcounts: Ints,
        rdispls: Ints,
        recvtypes: *const Datatype,
        comm: Comm,
    )
        = describe_alltoallw(
            comm,
            typed(sendbuf, sendcounts, sdispls, sendtypes),
            typed(recvbuf, recvcounts, rdispls, recvtypes),
        );
}

const ALLTOALL: Entry = entry!(rg_alltoall or rg_ialltoall(given, each, taken));
const ALLTOALLV: Entry = entry!(
    rg_alltoallv or rg_ialltoallv(given, give_lengths, give_offsets, taken, take_lengths, take_offsets)
);

/// Describes MPI_Alltoall and MPI_Alltoallv.
unsafe fn describe_alltoall(comm: Comm, send: Buffer, recv: Buffer) -> Result<Collective> {
    let comm = get(comm)?;
    let peers = comm.peers().len();
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        let takes = recv.memory("recvbuf", peers)?;
        if comm.remote.is_some() {
            let gives = send.memory("sendbuf", peers)?;
            return Ok(intercommunicator::exchange(
                comm,
                |rank| gives.only(rank),
                |rank| takes.only(rank),
            ));
        }
        let gives = match given(&send, peers, &takes, comm.rank as usize)? {
            // The engine cannot exchange in place.
            LocalData::InPlace => LocalData::Copied,
            gives => gives,
        };
        let entry = match recv.is_listed() {
            true => ALLTOALLV,
            false => ALLTOALL,
        };
        Ok(Collective::engine(
            comm,
            entry,
            gives,
            LocalData::Memory(takes),
        ))
    }
}

/// Describes MPI_Alltoallw.
unsafe fn describe_alltoallw(comm: Comm, send: Typed, recv: Typed) -> Result<Collective> {
    let comm = get(comm)?;
    let peers = comm.peers().len();
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        let takes = recv.memories("recvbuf", peers)?;
        if send.address as usize == IN_PLACE && comm.remote.is_none() {
            let (tag, base) = (next_tag(&comm.sequence), comm.peer_base());
            let message = |content: fn(Memory) -> Content| {
                let all = takes.iter().enumerate();
                let all = all.map(|(rank, part)| Message {
                    peer: base + rank as c_int,
                    tag,
                    content: content(part.clone()),
                });
                all.collect()
            };
            let (sends, receives) = (message(Content::Copied), message(Content::Memory));
            return Ok(Collective::messages(comm, sends, receives));
        }
        let gives = send.memories("sendbuf", peers)?;
        // Both may be MPI_BOTTOM: then the datatypes have the addresses.
        let same = send.address == recv.address && !send.address.is_null();
        if same && gives.iter().chain(&takes).any(|it| it.bytes() > 0) {
            let text = "sendbuf and recvbuf are the same (use MPI_IN_PLACE as sendbuf for that)";
            return Err(Error::new(ERR_BUFFER, text));
        }
        Ok(intercommunicator::exchange(
            comm,
            |rank| gives[rank].clone(),
            |rank| takes[rank].clone(),
        ))
    }
}

/// Fast path of MPI_Alltoall.
#[inline(always)]
unsafe fn try_alltoall(comm: Comm, send: Buffer, recv: Buffer) -> Option<c_int> {
    let (route, _) = place(comm)?;
    let length = part(&send, &recv)?;
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    Some(unsafe { rg::rg_alltoall(send.address, length, recv.address, route.group()) })
}

/// Fast path of MPI_Alltoallv.
unsafe fn try_alltoallv(comm: Comm, send: Buffer, recv: Buffer) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    // SAFETY: the caller guarantees that the arrays and buffers are valid.
    unsafe {
        let gives = Listed::new(route.peers(), &send)?;
        let takes = Listed::new(route.peers(), &recv)?;
        let own = rank as usize;
        if !are_apart(&send, &recv) || gives.lengths[own] != takes.lengths[own] {
            return None;
        }
        Some(rg::rg_alltoallv(
            send.address,
            gives.lengths.as_ptr(),
            gives.offsets.as_ptr(),
            recv.address,
            takes.lengths.as_ptr(),
            takes.offsets.as_ptr(),
            route.group(),
        ))
    }
}
