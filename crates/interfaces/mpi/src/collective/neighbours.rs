//! Neighbourhood collectives of a topology, by messages in the hidden group. MPI_PROC_NULL gets no message.
//!
//! Safety of all of them: buffers and arrays are valid as the standard requires.
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

/// The neighbours of this process in the order of the buffers; each is a rank or MPI_PROC_NULL.
struct Neighbours {
    sources: Vec<c_int>,
    destinations: Vec<c_int>,
    /// Whether it is a Cartesian grid: then the neighbours are those below and above in each dimension.
    is_grid: bool,
}

fn neighbours(comm: &Communicator) -> Result<Neighbours> {
    let topology = comm.topology.as_ref().ok_or_else(|| {
        let text = "the communicator has no topology, so processes have no neighbours";
        Error::new(ERR_TOPOLOGY, text)
    })?;
    let (sources, destinations) = topology.neighbours(comm.rank);
    Ok(Neighbours {
        sources,
        destinations,
        is_grid: topology.kind() == CART,
    })
}

/// Returns a message for each neighbour.
///
/// In a grid one process may be the neighbour in both directions: what one process sends down, the other receives from
/// above. So each direction has its own tag. In a graph, messages to the same process are received in the order of
/// sending.
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
    // The neighbours below and above in a dimension have adjacent indices.
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

/// Describes MPI_Neighbor_allgather and MPI_Neighbor_allgatherv.
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

/// Describes MPI_Neighbor_alltoall and MPI_Neighbor_alltoallv.
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

/// Describes MPI_Neighbor_alltoallw.
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
