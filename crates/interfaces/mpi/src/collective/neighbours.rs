//! Collectives among the neighbours of a topology: by messages in the hidden group, with nobody for MPI_PROC_NULL.
//!
//! Safety of all of them: buffers and lists are those that the standard asks for.
#![allow(clippy::missing_safety_doc)]

use std::ffi::c_int;
use std::sync::Arc;

use super::describe::Typed;
use super::memory::{Buffer, Memory};
use super::messages::{Content, Message};
use super::{Collective, next_tag, of_one_group};
use crate::abi::*;
use crate::communicator::Communicator;
use crate::error::{Error, Result};

/// The neighbours of this process, by rank or MPI_PROC_NULL, in the order of the buffers.
struct Neighbours {
    sources: Vec<c_int>,
    destinations: Vec<c_int>,
    /// Of a grid (MPI_Cart_create): below and above in each dimension.
    is_grid: bool,
}

fn neighbours(comm: &Communicator) -> Result<Neighbours> {
    let topology = comm.topology.as_ref().ok_or_else(|| {
        let text = "the communicator has no topology, so that nobody is a neighbour";
        Error::new(ERR_TOPOLOGY, text)
    })?;
    let (sources, destinations) = topology.neighbours(comm.rank);
    Ok(Neighbours {
        sources,
        destinations,
        is_grid: topology.kind() == CART,
    })
}

/// A message for each neighbour.
///
/// In a grid a process may be the neighbour on both sides: what goes down comes from above. So each place has its tag.
/// Messages of a graph to one process are received in the order in which they are sent.
fn messages(
    ranks: &[c_int],
    memories: impl Fn(usize) -> Memory,
    tag: impl Fn(usize) -> c_int,
) -> Vec<Message> {
    let real = ranks.iter().enumerate().filter(|&(_, &rank)| rank >= 0);
    let message = |(at, &peer)| Message {
        peer,
        tag: tag(at),
        content: Content::Memory(memories(at)),
    };
    real.map(message).collect()
}

fn exchange(
    comm: Arc<Communicator>,
    gives: impl Fn(usize) -> Memory,
    takes: impl Fn(usize) -> Memory,
) -> Result<Collective> {
    let tag = next_tag(&comm.sequence);
    let of = neighbours(&comm)?;
    let place = |at: usize| match of.is_grid {
        true => tag + at as c_int,
        false => tag,
    };
    // Neighbours below and above in a dimension are next to each other.
    let sends = messages(&of.destinations, gives, |at| place(at ^ 1));
    let receives = messages(&of.sources, takes, place);
    Ok(Collective::messages(comm, sends, receives))
}

fn distinct(
    gives: *const std::ffi::c_void,
    takes: *const std::ffi::c_void,
    bytes: usize,
) -> Result {
    match gives == takes && bytes > 0 {
        false => Ok(()),
        true => Err(Error::new(ERR_BUFFER, "sendbuf and recvbuf are the same")),
    }
}

/// MPI_Neighbor_allgather and MPI_Neighbor_allgatherv.
pub unsafe fn allgather(comm: Comm, send: Buffer, recv: Buffer) -> Result<Collective> {
    let comm = of_one_group(comm)?;
    let of = neighbours(&comm)?;
    // SAFETY: the caller upholds the safety contract of this function.
    let (gives, takes) = unsafe {
        let gives = send.memory("sendbuf", 1)?;
        (gives, recv.memory("recvbuf", of.sources.len())?)
    };
    distinct(
        gives.address,
        takes.address,
        gives.bytes().min(takes.bytes()),
    )?;
    exchange(comm, |_| gives.clone(), |at| takes.only(at))
}

/// MPI_Neighbor_alltoall and MPI_Neighbor_alltoallv.
pub unsafe fn alltoall(comm: Comm, send: Buffer, recv: Buffer) -> Result<Collective> {
    let comm = of_one_group(comm)?;
    let of = neighbours(&comm)?;
    // SAFETY: the caller upholds the safety contract of this function.
    let (gives, takes) = unsafe {
        let gives = send.memory("sendbuf", of.destinations.len())?;
        (gives, recv.memory("recvbuf", of.sources.len())?)
    };
    distinct(
        gives.address,
        takes.address,
        gives.bytes().min(takes.bytes()),
    )?;
    exchange(comm, |at| gives.only(at), |at| takes.only(at))
}

/// MPI_Neighbor_alltoallw.
pub unsafe fn alltoallw(comm: Comm, send: Typed, recv: Typed) -> Result<Collective> {
    let comm = of_one_group(comm)?;
    let of = neighbours(&comm)?;
    // SAFETY: the caller upholds the safety contract of this function.
    let (gives, takes) = unsafe {
        let gives = send.memories("sendbuf", of.destinations.len())?;
        (gives, recv.memories("recvbuf", of.sources.len())?)
    };
    exchange(comm, |at| gives[at].clone(), |at| takes[at].clone())
}
