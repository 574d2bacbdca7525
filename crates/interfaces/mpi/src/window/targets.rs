//! The memory of a process, and which part of it a call names.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use super::pieces::Pieces;
use super::service::Mailbox;
use crate::abi::*;
use crate::datatype::layout::Piece;
use crate::datatype::{self, Block, Type};
use crate::error::{Error, Result};

/// The way to the memory of a process.
#[derive(Clone, Copy, Debug)]
pub enum Reach {
    /// It is in this process' memory too, at this address.
    Mapped(usize),
    /// The system copies it from and to the process with this number, or its service does.
    Copied(c_int),
    /// Its service is asked.
    Asked,
}

/// The memory of a process.
pub struct Target {
    /// Its rank.
    pub rank: c_int,
    /// The way there.
    pub reach: Reach,
    /// The place of its words on the locks, if it is on this host.
    pub place: Option<usize>,
    /// Its address in the target.
    pub base: u64,
    /// Its bytes; all there are of a dynamic window.
    pub size: i64,
    /// Bytes of a unit of displacements.
    pub unit: i64,
    /// Requests without a reply that were sent to its service.
    pub sent: AtomicU64,
    /// How many of these are known to have happened.
    pub flushed: AtomicU64,
    /// Bytes that were sent since the last flush.
    pub bytes: AtomicUsize,
    /// The way to its service if its memory is copied.
    pub mailbox: Mailbox,
}

/// Elements in memory, at no certain address.
pub enum Elements {
    /// This many bytes from an offset on.
    Plain(isize, usize),
    /// Bytes that lie apart: their type, and how many in all.
    Layout(Arc<Type>, usize, i64),
}

impl Elements {
    /// Of a call's arguments.
    pub fn new(datatype: Datatype, count: i64) -> Result<Elements> {
        Ok(match datatype::block(datatype, count)? {
            Block::Plain { offset, length } => Elements::Plain(offset, length),
            Block::Layout(of) => {
                let size = of.packed_size(count)?;
                Elements::Layout(of, size, count)
            }
        })
    }

    /// How many bytes there are.
    pub fn length(&self) -> usize {
        match self {
            Elements::Plain(_, length) | Elements::Layout(_, length, _) => *length,
        }
    }

    /// From the first byte to behind the last one.
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

    /// Copies the bytes at an address to contiguous memory.
    ///
    /// # Safety
    /// The elements may be read.
    pub unsafe fn pack(&self, at: *const u8, out: *mut u8) {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { self.pack_part(at, (0, self.length()), out) };
    }

    /// Copies contiguous bytes to their places at an address.
    ///
    /// # Safety
    /// The elements may be written, the bytes read.
    pub unsafe fn unpack(&self, bytes: *const u8, at: *mut u8) {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { self.unpack_part(bytes, (0, self.length()), at) };
    }

    /// Copies bytes `from .. to` of those at an address to contiguous memory.
    ///
    /// # Safety
    /// The elements may be read.
    pub unsafe fn pack_part(&self, at: *const u8, (from, to): (usize, usize), out: *mut u8) {
        // SAFETY: the caller upholds the safety contract of this function. A program may name overlapping memory,
        // against MPI's rules.
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

    /// Copies contiguous bytes to the places of bytes `from .. to` at an address.
    ///
    /// # Safety
    /// The elements may be written, the bytes read.
    pub unsafe fn unpack_part(&self, bytes: *const u8, (from, to): (usize, usize), at: *mut u8) {
        // SAFETY: the caller upholds the safety contract of this function. A program may name overlapping memory,
        // against MPI's rules.
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
    /// Whose memory.
    pub target: &'a Target,
    /// From its beginning, in bytes.
    pub offset: i64,
    /// Which.
    pub elements: Elements,
}

impl<'a> Spot<'a> {
    /// Of a call's arguments: all of it is within the target's memory.
    pub fn new(target: &'a Target, displacement: i64, elements: Elements) -> Result<Spot<'a>> {
        let is_dynamic = target.unit == 0;
        if displacement < 0 && !is_dynamic {
            let text = format!("the displacement is {displacement}; it is 0 or more");
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
                    "the displacement is {displacement}, and from there the elements leave the {size} bytes that process {rank} has in the window"
                );
                Err(Error::new(ERR_RMA_RANGE, text))
            }
        }
    }

    /// The address of the beginning of the elements in the target.
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
