//! Blocking collectives of predefined types within one group: the engine's, without a lock or an allocation.
//!
//! `None`: this way is not for these arguments, or one of them is wrong, and nothing has happened. Whether it is for them, other
//! processes may see otherwise: all ways of a blocking call meet in the engine.
#![allow(clippy::missing_safety_doc)]

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use regatta_sys as rg;

use crate::abi::*;
use crate::communicator::{Route, route};
use crate::datatype::builtin;
use crate::operator;
use crate::progress;

/// The route of a communicator of one group, if no operation has to advance meanwhile; and this process' rank.
#[inline(always)]
fn place(comm: Comm) -> Option<(&'static Route, c_int)> {
    let route = route(comm).ok()?;
    let rank = route.rank_among_peers()?;
    progress::is_idle().then_some((route, rank))
}

/// Bytes of elements of a predefined type.
#[inline(always)]
fn bytes((count, datatype): (i64, Datatype)) -> Option<usize> {
    let size = builtin::size(datatype)?;
    size.checked_mul(usize::try_from(count).ok()?)
}

/// Memory that a process writes to.
#[inline(always)]
fn is_memory(address: *const c_void) -> bool {
    address as usize > IN_PLACE
}

#[inline(always)]
fn is_root(root: c_int, rank: c_int, route: &Route) -> Option<bool> {
    (0..route.peers()).contains(&root).then_some(root == rank)
}

/// MPI_Barrier.
#[inline(always)]
pub unsafe fn barrier(comm: Comm) -> Option<c_int> {
    let (route, _) = place(comm)?;
    // SAFETY: it takes no memory.
    Some(unsafe { rg::rg_barrier(route.group()) })
}

/// MPI_Bcast.
#[inline(always)]
pub unsafe fn broadcast(
    buffer: *mut c_void,
    count: i64,
    datatype: Datatype,
    root: c_int,
    comm: Comm,
) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    is_root(root, rank, route)?;
    let length = bytes((count, datatype))?;
    if !is_memory(buffer) {
        return None;
    }
    // SAFETY: the caller's buffer.
    Some(unsafe { rg::rg_broadcast(buffer, length, root, route.group()) })
}

/// Bytes of a process' part, where what it sends and receives agree.
#[inline(always)]
fn part(
    (sendbuf, send): (*const c_void, (i64, Datatype)),
    (recvbuf, recv): (*const c_void, (i64, Datatype)),
) -> Option<usize> {
    let length = bytes(recv)?;
    let right = is_memory(sendbuf) && is_memory(recvbuf) && sendbuf != recvbuf;
    (right && bytes(send)? == length).then_some(length)
}

/// Bytes of a process' part where the other buffer has the parts of all: it is MPI_IN_PLACE, or elsewhere than its place there.
#[inline(always)]
fn part_of_all(
    (one, part): (*const c_void, (i64, Datatype)),
    (all, parts): (*const c_void, (i64, Datatype)),
    rank: c_int,
) -> Option<usize> {
    if one as usize == IN_PLACE {
        return is_memory(all).then(|| bytes(parts)).flatten();
    }
    let length = self::part((one, part), (all, parts))?;
    let own = all.wrapping_byte_add(length.wrapping_mul(rank as usize));
    (one != own).then_some(length)
}

/// MPI_Gather.
#[inline(always)]
pub unsafe fn gather(
    sendbuf: *const c_void,
    send: (i64, Datatype),
    recvbuf: *mut c_void,
    recv: (i64, Datatype),
    root: c_int,
    comm: Comm,
) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let length = match is_root(root, rank, route)? {
        true => part_of_all((sendbuf, send), (recvbuf, recv), rank)?,
        false if is_memory(sendbuf) => bytes(send)?,
        false => return None,
    };
    // SAFETY: the caller's buffers.
    Some(unsafe { rg::rg_gather(sendbuf, length, recvbuf, root, route.group()) })
}

/// MPI_Scatter.
#[inline(always)]
pub unsafe fn scatter(
    sendbuf: *const c_void,
    send: (i64, Datatype),
    recvbuf: *mut c_void,
    recv: (i64, Datatype),
    root: c_int,
    comm: Comm,
) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let length = match is_root(root, rank, route)? {
        true => part_of_all((recvbuf, recv), (sendbuf, send), rank)?,
        false if is_memory(recvbuf) => bytes(recv)?,
        false => return None,
    };
    // SAFETY: the caller's buffers.
    Some(unsafe { rg::rg_scatter(sendbuf, recvbuf, length, root, route.group()) })
}

/// MPI_Allgather.
#[inline(always)]
pub unsafe fn allgather(
    sendbuf: *const c_void,
    send: (i64, Datatype),
    recvbuf: *mut c_void,
    recv: (i64, Datatype),
    comm: Comm,
) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let length = part_of_all((sendbuf, send), (recvbuf, recv), rank)?;
    // SAFETY: the caller's buffers.
    Some(unsafe { rg::rg_allgather(sendbuf, length, recvbuf, route.group()) })
}

/// MPI_Alltoall.
#[inline(always)]
pub unsafe fn alltoall(
    sendbuf: *const c_void,
    send: (i64, Datatype),
    recvbuf: *mut c_void,
    recv: (i64, Datatype),
    comm: Comm,
) -> Option<c_int> {
    let (route, _) = place(comm)?;
    let length = part((sendbuf, send), (recvbuf, recv))?;
    // SAFETY: the caller's buffers.
    Some(unsafe { rg::rg_alltoall(sendbuf, length, recvbuf, route.group()) })
}

/// Maximum number of members whose lengths and offsets are kept on the stack.
const MAX_LISTED: usize = 64;

/// Lengths and offsets of the parts of a buffer, in bytes.
struct Listed {
    lengths: [usize; MAX_LISTED],
    offsets: [usize; MAX_LISTED],
}

impl Listed {
    /// Returns those of all members, if the type is predefined and no part lies before the buffer's address.
    #[inline]
    unsafe fn new(peers: c_int, counts: Ints, displs: Ints, datatype: Datatype) -> Option<Listed> {
        let (size, peers) = (builtin::size(datatype)?, peers as usize);
        if peers > MAX_LISTED || counts.is_null() || displs.is_null() {
            return None;
        }
        let mut listed = Listed {
            lengths: [0; MAX_LISTED],
            offsets: [0; MAX_LISTED],
        };
        for index in 0..peers {
            // SAFETY: the caller's arrays have an element for each member.
            let (count, displacement) = unsafe { (counts.get(index), displs.get(index)) };
            listed.lengths[index] = size.checked_mul(usize::try_from(count).ok()?)?;
            listed.offsets[index] = size.checked_mul(usize::try_from(displacement).ok()?)?;
        }
        Some(listed)
    }

    /// Returns the bytes of this process' part, if its other buffer has as many and is not that part itself.
    #[inline]
    fn part(
        &self,
        all: *const c_void,
        (one, part): (*const c_void, (i64, Datatype)),
        rank: c_int,
    ) -> Option<usize> {
        let length = bytes(part)?;
        let own = all.wrapping_byte_add(self.offsets[rank as usize]);
        let right = is_memory(one) && is_memory(all) && one != all && one != own;
        (right && length == self.lengths[rank as usize]).then_some(length)
    }
}

/// MPI_Gatherv.
pub unsafe fn gatherv(
    sendbuf: *const c_void,
    send: (i64, Datatype),
    recvbuf: *mut c_void,
    (counts, displs, datatype): (Ints, Ints, Datatype),
    root: c_int,
    comm: Comm,
) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let group = route.group();
    // SAFETY: the caller's arrays and buffers, also below.
    unsafe {
        if !is_root(root, rank, route)? {
            let length = bytes(send).filter(|_| is_memory(sendbuf))?;
            let (out, none) = (null_mut(), null());
            return Some(rg::rg_gatherv(
                sendbuf, length, out, none, none, root, group,
            ));
        }
        let all = Listed::new(route.peers(), counts, displs, datatype)?;
        let length = all.part(recvbuf, (sendbuf, send), rank)?;
        let (lengths, offsets) = (all.lengths.as_ptr(), all.offsets.as_ptr());
        Some(rg::rg_gatherv(
            sendbuf, length, recvbuf, lengths, offsets, root, group,
        ))
    }
}

/// MPI_Scatterv.
pub unsafe fn scatterv(
    sendbuf: *const c_void,
    (counts, displs, datatype): (Ints, Ints, Datatype),
    recvbuf: *mut c_void,
    recv: (i64, Datatype),
    root: c_int,
    comm: Comm,
) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let group = route.group();
    // SAFETY: the caller's arrays and buffers, also below.
    unsafe {
        if !is_root(root, rank, route)? {
            let length = bytes(recv).filter(|_| is_memory(recvbuf))?;
            let (input, none) = (null(), null());
            return Some(rg::rg_scatterv(
                input, none, none, recvbuf, length, root, group,
            ));
        }
        let all = Listed::new(route.peers(), counts, displs, datatype)?;
        let length = all.part(sendbuf, (recvbuf, recv), rank)?;
        let (lengths, offsets) = (all.lengths.as_ptr(), all.offsets.as_ptr());
        Some(rg::rg_scatterv(
            sendbuf, lengths, offsets, recvbuf, length, root, group,
        ))
    }
}

/// MPI_Allgatherv.
pub unsafe fn allgatherv(
    sendbuf: *const c_void,
    send: (i64, Datatype),
    recvbuf: *mut c_void,
    (counts, displs, datatype): (Ints, Ints, Datatype),
    comm: Comm,
) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    // SAFETY: the caller's arrays and buffers, also below.
    unsafe {
        let all = Listed::new(route.peers(), counts, displs, datatype)?;
        let length = all.part(recvbuf, (sendbuf, send), rank)?;
        let (lengths, offsets) = (all.lengths.as_ptr(), all.offsets.as_ptr());
        let group = route.group();
        Some(rg::rg_allgatherv(
            sendbuf, length, recvbuf, lengths, offsets, group,
        ))
    }
}

/// MPI_Alltoallv.
pub unsafe fn alltoallv(
    sendbuf: *const c_void,
    (sendcounts, sdispls, sendtype): (Ints, Ints, Datatype),
    recvbuf: *mut c_void,
    (recvcounts, rdispls, recvtype): (Ints, Ints, Datatype),
    comm: Comm,
) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    // SAFETY: the caller's arrays and buffers, also below.
    unsafe {
        let gives = Listed::new(route.peers(), sendcounts, sdispls, sendtype)?;
        let takes = Listed::new(route.peers(), recvcounts, rdispls, recvtype)?;
        let own = rank as usize;
        let right = is_memory(sendbuf) && is_memory(recvbuf) && sendbuf != recvbuf;
        if !right || gives.lengths[own] != takes.lengths[own] {
            return None;
        }
        Some(rg::rg_alltoallv(
            sendbuf,
            gives.lengths.as_ptr(),
            gives.offsets.as_ptr(),
            recvbuf,
            takes.lengths.as_ptr(),
            takes.offsets.as_ptr(),
            route.group(),
        ))
    }
}

/// Whether a process that gets a result has memory for that.
#[inline(always)]
fn has_both(sendbuf: *const c_void, recvbuf: *const c_void) -> bool {
    !sendbuf.is_null() && is_memory(recvbuf) && sendbuf != recvbuf
}

/// The engine's element and operator, and the number of elements.
#[inline(always)]
fn reduction(op: Op, datatype: Datatype, count: i64) -> Option<(c_int, rg::Op, usize)> {
    let engine = operator::engine(op, datatype)?;
    let count = usize::try_from(count).ok()?;
    Some((engine.kind, engine.op, count.checked_mul(engine.times)?))
}

/// MPI_Reduce.
#[inline(always)]
pub unsafe fn reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    root: c_int,
    comm: Comm,
) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let (element, op, count) = reduction(op, datatype, count)?;
    let right = match is_root(root, rank, route)? {
        true => has_both(sendbuf, recvbuf),
        false => is_memory(sendbuf),
    };
    if !right {
        return None;
    }
    let group = route.group();
    // SAFETY: the caller's buffers.
    Some(unsafe { rg::rg_reduce(sendbuf, recvbuf, count, element, op, root, group) })
}

/// MPI_Allreduce.
#[inline(always)]
pub unsafe fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> Option<c_int> {
    let (route, _) = place(comm)?;
    let (element, op, count) = reduction(op, datatype, count)?;
    if !has_both(sendbuf, recvbuf) {
        return None;
    }
    // SAFETY: the caller's buffers.
    Some(unsafe { rg::rg_allreduce(sendbuf, recvbuf, count, element, op, route.group()) })
}

/// MPI_Scan.
#[inline(always)]
pub unsafe fn scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
    comm: Comm,
) -> Option<c_int> {
    let (route, _) = place(comm)?;
    let (element, op, count) = reduction(op, datatype, count)?;
    if !has_both(sendbuf, recvbuf) {
        return None;
    }
    // SAFETY: the caller's buffers.
    Some(unsafe { rg::rg_scan(sendbuf, recvbuf, count, element, op, route.group()) })
}
