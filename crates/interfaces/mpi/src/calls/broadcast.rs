//! Barrier and broadcast.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use crate::abi::*;
use crate::collective::memory::{Buffer, even};
use crate::collective::quick::{bytes, is_memory, is_root, place};
use crate::collective::{
    Collective, Entry, LocalData, Role, entry, forms, intercommunicator, role,
};
use crate::communicator::get;
use crate::error::Result;

forms! {
    pub unsafe fn barrier, ibarrier, barrier_init(comm: Comm)
        = describe_barrier(comm),
        first try_barrier;

    pub unsafe fn bcast, ibcast, bcast_init(
        buffer: *mut c_void,
        count: i64,
        datatype: Datatype,
        root: c_int,
        comm: Comm,
    )
        = describe_broadcast(comm, even(buffer, count, datatype), root),
        first try_broadcast;
}

const BARRIER: Entry = entry!(rg_barrier or rg_ibarrier());

const BROADCAST: Entry = entry!(rg_broadcast or rg_ibroadcast(whole, length, root));

/// Describes MPI_Barrier.
fn describe_barrier(comm: Comm) -> Result<Collective> {
    let comm = get(comm)?;
    Ok(Collective::engine(
        comm,
        BARRIER,
        LocalData::Nothing,
        LocalData::Nothing,
    ))
}

/// Describes MPI_Bcast.
unsafe fn describe_broadcast(comm: Comm, buffer: Buffer, root: c_int) -> Result<Collective> {
    let comm = get(comm)?;
    let role = role(&comm, root)?;
    if role == Role::Outside {
        return Ok(intercommunicator::outside(comm));
    }
    // SAFETY: the caller upholds the safety contract of this function.
    let memory = unsafe { buffer.memory("buffer", 1)? };
    if comm.remote.is_some() {
        return Ok(match role {
            Role::Member(root) => intercommunicator::from_one(comm, root, memory),
            _ => intercommunicator::to_all(comm, |_| memory.clone()),
        });
    }
    let (gives, takes) = match role {
        Role::Root => (LocalData::Memory(memory), LocalData::Nothing),
        _ => (LocalData::Nothing, LocalData::Memory(memory)),
    };
    Ok(Collective::engine(comm, BROADCAST, gives, takes).rooted(root))
}

/// Fast path of MPI_Barrier.
#[inline(always)]
unsafe fn try_barrier(comm: Comm) -> Option<c_int> {
    let (route, _) = place(comm)?;
    // SAFETY: the call takes no pointers.
    Some(unsafe { rg::rg_barrier(route.group()) })
}

/// Fast path of MPI_Bcast.
#[inline(always)]
unsafe fn try_broadcast(comm: Comm, buffer: Buffer, root: c_int) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    is_root(root, rank, route)?;
    let length = bytes(&buffer)?;
    if !is_memory(buffer.address) {
        return None;
    }
    // SAFETY: the caller guarantees that the buffer is valid for its elements.
    Some(unsafe { rg::rg_broadcast(buffer.address, length, root, route.group()) })
}
