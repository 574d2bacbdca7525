//! The memory of a process, and the parts of it that calls access.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use super::pieces::Pieces;
use super::service::Mailbox;
use crate::abi::*;
use crate::datatype::layout::Piece;
use crate::datatype::{self, Block, Type};
use crate::error::{Error, Result};

/// How the memory of a process is accessed.
#[derive(Clone, Copy, Debug)]
pub enum Reach {
    /// It is mapped into this process, at this address.
    Mapped(usize),
    /// The kernel copies it from and to the process with this number, or that process's inbox is used.
    Copied(c_int),
    /// By requests to its service.
    Asked,
}

/// The memory of a process in a window.
pub struct Target {
    /// Its rank.
    pub rank: c_int,
    /// How it is accessed.
    pub reach: Reach,
    /// Index of its words in the lock table, if it is on this host.
    pub place: Option<usize>,
    /// Its address in the target.
    pub base: u64,
    /// Its size in bytes; `i64::MAX` for a dynamic window.
    pub size: i64,
    /// Displacement unit in bytes; 0 for a dynamic window.
    pub unit: i64,
    /// Number of requests without a reply that have been sent to its service.
    pub sent: AtomicU64,
    /// Number of these that are known to be complete.
    pub flushed: AtomicU64,
    /// Number of bytes that have been sent since the last flush.
    pub bytes: AtomicUsize,
    /// The client of its inbox, if its memory is copied.
    pub mailbox: Mailbox,
}

/// Elements in memory, relative to an address.
pub enum Elements {
    /// Contiguous elements: offset and length in bytes.
    Plain(isize, usize),
    /// Noncontiguous elements: their datatype, total length in bytes, and number.
    Layout(Arc<Type>, usize, i64),
}

impl Elements {
    /// Returns the elements for the arguments of a call.
    pub fn new(datatype: Datatype, count: i64) -> Result<Elements> {
        Ok(match datatype::block(datatype, count)? {
            Block::Plain { offset, length } => Elements::Plain(offset, length),
            Block::Layout(of) => {
                let size = of.packed_size(count)?;
                Elements::Layout(of, size, count)
            }
        })
    }

    /// Returns their total length in bytes.
    pub fn length(&self) -> usize {
        match self {
            Elements::Plain(_, length) | Elements::Layout(_, length, _) => *length,
        }
    }

    /// Returns the offsets of the first byte, and after the last one. Returns `None` on overflow.
    fn bounds(&self) -> Option<(i64, i64)> {
        match self {
            Elements::Plain(offset, length) => {
                let (begin, length) = (*offset as i64, i64::try_from(*length).ok()?);
                Some((begin, begin.checked_add(length)?))
            }
            Elements::Layout(of, _, count) => {
                let last = of.extent().checked_mul(count - 1)?;
                let begin = of.true_lb().checked_add(last.min(0))?;
                let end = of.true_lb().checked_add(of.true_extent())?;
                Some((begin, end.checked_add(last.max(0))?))
            }
        }
    }

    /// Calls `visit` with the pieces of bytes `from .. to`, in order.
    pub fn walk(&self, from: usize, to: usize, mut visit: impl FnMut(Piece)) {
        match self {
            Elements::Plain(offset, _) => visit(Piece::one(offset + from as isize, to - from)),
            Elements::Layout(of, ..) => of.map().walk(from, to, &mut visit),
        }
    }

    /// Copies the elements at an address to contiguous memory.
    ///
    /// # Safety
    /// The elements are valid for reads, and `out` for writes.
    pub unsafe fn pack(&self, at: *const u8, out: *mut u8) {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { self.pack_part(at, (0, self.length()), out) };
    }

    /// Copies contiguous bytes to the elements at an address.
    ///
    /// # Safety
    /// The elements are valid for writes, and `bytes` for reads.
    pub unsafe fn unpack(&self, bytes: *const u8, at: *mut u8) {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { self.unpack_part(bytes, (0, self.length()), at) };
    }

    /// Copies bytes `from .. to` of the elements at an address to contiguous memory.
    ///
    /// # Safety
    /// The elements are valid for reads, and `out` for writes.
    pub unsafe fn pack_part(&self, at: *const u8, (from, to): (usize, usize), out: *mut u8) {
        // SAFETY: the caller upholds the safety contract of this function. `copy` allows overlaps, since a program may
        // pass overlapping memory against MPI's rules.
        unsafe {
            match self {
                Elements::Plain(offset, _) => {
                    let at = at.wrapping_offset(*offset).wrapping_add(from);
                    std::ptr::copy(at, out, to - from);
                }
                Elements::Layout(of, ..) => of.pack(at.cast(), from, to, out),
            }
        }
    }

    /// Copies contiguous bytes to bytes `from .. to` of the elements at an address.
    ///
    /// # Safety
    /// The elements are valid for writes, and `bytes` for reads.
    pub unsafe fn unpack_part(&self, bytes: *const u8, (from, to): (usize, usize), at: *mut u8) {
        // SAFETY: the caller upholds the safety contract of this function. `copy` allows overlaps.
        unsafe {
            match self {
                Elements::Plain(offset, _) => {
                    let at = at.wrapping_offset(*offset).wrapping_add(from);
                    std::ptr::copy(bytes, at, to - from);
                }
                Elements::Layout(of, ..) => of.unpack(bytes, from, to, at.cast()),
            }
        }
    }
}

/// Elements in the memory of a target.
pub struct Spot<'a> {
    /// The target.
    pub target: &'a Target,
    /// Offset from the beginning of the target's memory in bytes.
    pub offset: i64,
    /// The elements.
    pub elements: Elements,
}

impl<'a> Spot<'a> {
    /// Returns the spot for the arguments of a call. Fails unless all elements are within the target's memory.
    pub fn new(target: &'a Target, displacement: i64, elements: Elements) -> Result<Spot<'a>> {
        let is_dynamic = target.unit == 0;
        if displacement < 0 && !is_dynamic {
            let text = format!("the displacement is {displacement}; it must be 0 or more");
            return Err(Error::new(ERR_RMA_RANGE, text));
        }
        let offset = match is_dynamic {
            true => Some(displacement),
            false => displacement.checked_mul(target.unit),
        };
        let bounds = elements.bounds();
        let fits = offset.zip(bounds).is_some_and(|(offset, (begin, end))| {
            let (begin, end) = (offset.checked_add(begin), offset.checked_add(end));
            begin.is_some_and(|it| it >= 0) && end.is_some_and(|it| it <= target.size)
        });
        match (offset, fits) {
            (Some(offset), _) if fits || is_dynamic || elements.length() == 0 => Ok(Spot {
                target,
                offset,
                elements,
            }),
            _ => {
                let (rank, size) = (target.rank, target.size);
                let text = format!(
                    "the displacement is {displacement}, and the elements from there exceed the {size} bytes of process {rank} in the window"
                );
                Err(Error::new(ERR_RMA_RANGE, text))
            }
        }
    }

    /// Returns the address of the beginning of the elements in the target.
    pub fn address(&self) -> u64 {
        self.target.base.wrapping_add(self.offset as u64)
    }

    /// Returns the pieces of bytes `from .. to`, with their addresses in the target.
    pub fn pieces(&self, from: usize, to: usize) -> Pieces {
        Pieces::of(self, self.target.base, from, to)
    }

    /// Returns the pieces of all bytes, with their addresses in the target.
    pub fn all(&self) -> Pieces {
        self.pieces(0, self.elements.length())
    }
}
