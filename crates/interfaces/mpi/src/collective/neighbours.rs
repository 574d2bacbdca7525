//! Neighbourhood collectives of a topology, by messages in the hidden group. MPI_PROC_NULL gets no message.
//!
//! Blocking ones with predefined datatypes have a fast path, which sends the same messages without a description.
//!
//! Safety of all of them: buffers and arrays are valid as the standard requires.
#![allow(clippy::missing_safety_doc)]

use std::borrow::Cow;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

use regatta_sys as rg;

use super::describe::Typed;
use super::memory::{Buffer, Memory};
use super::messages::{Content, Message};
use super::quick::{are_apart, bytes, place};
use super::{Collective, next_tag, of_one_group};
use crate::abi::*;
use crate::communicator::{Communicator, get};
use crate::error::{Error, Result};

/// The neighbours of this process in the order of the buffers; each is a rank or MPI_PROC_NULL.
struct Neighbours<'a> {
    sources: Cow<'a, [c_int]>,
    destinations: Cow<'a, [c_int]>,
    /// Whether it is a Cartesian grid: then the neighbours are those below and above in each dimension.
    is_grid: bool,
}

fn neighbours(comm: &Communicator) -> Result<Neighbours<'_>> {
    let topology = comm.topology.as_ref().ok_or_else(|| {
        let text = "the communicator has no topology, so processes have no neighbours";
        Error::new(ERR_TOPOLOGY, text)
    })?;
    Ok(Neighbours {
        sources: topology.sources(comm.rank),
        destinations: topology.destinations(comm.rank),
        is_grid: topology.kind() == CART,
    })
}

/// Returns the tag of the message that is received at this place of the buffer.
///
/// In a grid one process may be the neighbour in both directions: what one process sends down, the other receives from
/// above. So each direction has its own tag. In a graph, messages to the same process are received in the order of
/// sending.
fn tag_at(of: &Neighbours, first: c_int, at: usize) -> c_int {
    match of.is_grid {
        true => first + at as c_int,
        false => first,
    }
}

/// Returns the place at which a neighbour in a grid receives what is sent from this place: the neighbours below and
/// above in a dimension have adjacent places.
fn mirrored(at: usize) -> usize {
    at ^ 1
}

/// Returns a message for each neighbour.
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
    comm: &Arc<Communicator>,
    of: &Neighbours,
    gives: impl Fn(usize) -> Memory,
    takes: impl Fn(usize) -> Memory,
) -> Collective {
    let tag = next_tag(&comm.sequence);
    let sends = messages(&of.destinations, gives, |at| tag_at(of, tag, mirrored(at)));
    let receives = messages(&of.sources, takes, |at| tag_at(of, tag, at));
    Collective::messages(comm.clone(), sends, receives)
}

/// Maximum number of messages of the fast path, whose requests are kept on the stack.
const MAX_QUICK_MESSAGES: usize = 32;

/// Executes an exchange in which the part for a neighbour begins `stride` bytes after that for the previous one.
/// Returns the engine's code, or `None`, without effect, if the fast path does not apply.
unsafe fn try_exchange(comm: Comm, send: Buffer, recv: Buffer, stride: usize) -> Option<c_int> {
    place(comm)?;
    let (gives, takes) = (bytes(&send)?, bytes(&recv)?);
    let comm = get(comm).ok()?;
    let of = neighbours(&comm).ok()?;
    let number = of.sources.len() + of.destinations.len();
    let is_long = gives.max(takes) > isize::MAX as usize / MAX_QUICK_MESSAGES;
    if !are_apart(&send, &recv) || number > MAX_QUICK_MESSAGES || is_long {
        return None;
    }
    let first = next_tag(&comm.sequence);
    let mut requests = [rg::REQUEST_NULL; MAX_QUICK_MESSAGES];
    let (mut begun, mut failed) = (0, rg::OK);
    let receives = of.sources.iter().enumerate().map(|it| (true, it));
    let sends = of.destinations.iter().enumerate().map(|it| (false, it));
    for (receives, (at, &peer)) in receives.chain(sends).filter(|(_, (_, peer))| **peer >= 0) {
        let request = &mut requests[begun];
        // SAFETY: the caller guarantees that both buffers have a part for each neighbour. Completion is awaited here.
        let code = unsafe {
            if receives {
                let (into, tag) = (
                    recv.address.wrapping_byte_add(at * takes),
                    tag_at(&of, first, at),
                );
                rg::rg_irecv(into, takes, peer, tag, comm.hidden, request)
            } else {
                let (from, tag) = (
                    send.address.wrapping_byte_add(at * stride),
                    tag_at(&of, first, mirrored(at)),
                );
                rg::rg_isend(from, gives, peer, tag, comm.hidden, request)
            }
        };
        match code {
            rg::OK => begun += 1,
            _ => failed = code,
        }
    }
    // SAFETY: the array has this many requests.
    match unsafe { rg::rg_waitall(begun as c_int, requests.as_mut_ptr(), null_mut()) } {
        rg::OK => Some(failed),
        code => Some(code),
    }
}

/// Executes MPI_Neighbor_allgather; see [`try_exchange`].
pub unsafe fn try_allgather(comm: Comm, send: Buffer, recv: Buffer) -> Option<c_int> {
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { try_exchange(comm, send, recv, 0) }
}

/// Executes MPI_Neighbor_alltoall; see [`try_exchange`].
pub unsafe fn try_alltoall(comm: Comm, send: Buffer, recv: Buffer) -> Option<c_int> {
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { try_exchange(comm, send, recv, bytes(&send)?) }
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
    Ok(exchange(&comm, &of, |_| gives.clone(), |at| takes.only(at)))
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
    Ok(exchange(
        &comm,
        &of,
        |at| gives.only(at),
        |at| takes.only(at),
    ))
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
    Ok(exchange(
        &comm,
        &of,
        |at| gives[at].clone(),
        |at| takes[at].clone(),
    ))
}
