//! Fast paths of blocking collectives with predefined datatypes within one group. They call the engine's collective
//! without a lock or an allocation.
//!
//! They return `None`, without any effect, if the fast path does not apply to these arguments or an argument is
//! invalid. Other processes may take the general path: all paths of a blocking call enter the same collective of the
//! engine.
#![allow(clippy::missing_safety_doc)]

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use super::describe::Reduced;
use super::memory::{Buffer, Counts};
use crate::abi::*;
use crate::communicator::{Route, route};
use crate::datatype::builtin;
use crate::operator;
use crate::progress;

/// Returns the route of an intracommunicator and this process's rank, unless multi-stage operations have to advance
/// during the call.
#[inline(always)]
pub fn place(comm: Comm) -> Option<(&'static Route, c_int)> {
    let route = route(comm).ok()?;
    let rank = route.rank_among_peers()?;
    progress::is_idle().then_some((route, rank))
}

/// Returns the length in bytes of the elements for a process, if their datatype is predefined and the count is the same
/// for all processes.
#[inline(always)]
pub fn bytes(buffer: &Buffer) -> Option<usize> {
    let Counts::Even(count) = buffer.counts else {
        return None;
    };
    let size = builtin::size(buffer.datatype)?;
    size.checked_mul(usize::try_from(count).ok()?)
}

/// Returns whether the address is memory that can be read or written: neither null nor MPI_IN_PLACE.
#[inline(always)]
pub fn is_memory(address: *const c_void) -> bool {
    address as usize > IN_PLACE
}

/// Returns whether this process is the root. Returns `None` if the root is not a member.
#[inline(always)]
pub fn is_root(root: c_int, rank: c_int, route: &Route) -> Option<bool> {
    (0..route.peers()).contains(&root).then_some(root == rank)
}

/// Returns the length in bytes of a process's part, if it sends and receives the same number of bytes.
#[inline(always)]
pub fn part(send: &Buffer, recv: &Buffer) -> Option<usize> {
    let length = bytes(recv)?;
    (are_apart(send, recv) && bytes(send)? == length).then_some(length)
}

/// Returns whether both are memory, and distinct.
#[inline(always)]
pub fn are_apart(send: &Buffer, recv: &Buffer) -> bool {
    let (send, recv) = (send.address, recv.address);
    is_memory(send) && is_memory(recv) && send != recv
}

/// Returns the length in bytes of a process's part, where the buffer `all` has the parts of all processes. The buffer
/// `one` must be MPI_IN_PLACE, or not the process's own part of `all`.
#[inline(always)]
pub fn part_of_all(one: &Buffer, all: &Buffer, rank: c_int) -> Option<usize> {
    if one.is_in_place() {
        return is_memory(all.address).then(|| bytes(all)).flatten();
    }
    let length = part(one, all)?;
    let own = length.wrapping_mul(rank as usize);
    (one.address != all.address.wrapping_byte_add(own)).then_some(length)
}

/// Maximum number of members whose lengths and offsets are kept on the stack.
pub const MAX_LISTED: usize = 64;

/// Lengths and offsets of the parts of a buffer, in bytes.
pub struct Listed {
    /// Length of each part in bytes, by rank.
    pub lengths: [usize; MAX_LISTED],
    /// Offset of each part in bytes, by rank.
    pub offsets: [usize; MAX_LISTED],
}

impl Listed {
    /// Returns those of all members, if the type is predefined and no part lies before the buffer's address.
    #[inline(always)]
    pub unsafe fn new(peers: c_int, buffer: &Buffer) -> Option<Listed> {
        let Counts::Listed(counts, displs) = buffer.counts else {
            return None;
        };
        let (size, peers) = (builtin::size(buffer.datatype)?, peers as usize);
        if peers > MAX_LISTED || counts.is_null() || displs.is_null() {
            return None;
        }
        let mut listed = Listed {
            lengths: [0; MAX_LISTED],
            offsets: [0; MAX_LISTED],
        };
        for index in 0..peers {
            // SAFETY: the caller guarantees that the arrays have an element for each member.
            let (count, displacement) = unsafe { (counts.get(index), displs.get(index)) };
            listed.lengths[index] = size.checked_mul(usize::try_from(count).ok()?)?;
            listed.offsets[index] = size.checked_mul(usize::try_from(displacement).ok()?)?;
        }
        Some(listed)
    }

    /// Returns the bytes of this process' part, if its other buffer has as many and is not that part itself.
    #[inline(always)]
    pub fn part(&self, all: &Buffer, one: &Buffer, rank: c_int) -> Option<usize> {
        let length = bytes(one)?;
        let own = all.address.wrapping_byte_add(self.offsets[rank as usize]);
        let right = are_apart(one, all) && one.address != own;
        (right && length == self.lengths[rank as usize]).then_some(length)
    }
}

/// Returns whether a process that gets a result has valid, distinct buffers for operands and result.
#[inline(always)]
pub fn has_both(what: &Reduced) -> bool {
    let (send, recv) = (what.send, what.recv.cast_const());
    !send.is_null() && is_memory(recv) && send != recv
}

/// Returns the engine's element and operator, and the number of the engine's elements.
#[inline(always)]
pub fn reduction(what: &Reduced) -> Option<(c_int, rg::Op, usize)> {
    let engine = operator::engine(what.op, what.datatype)?;
    let count = usize::try_from(what.count).ok()?;
    Some((engine.kind, engine.op, count.checked_mul(engine.times)?))
}
