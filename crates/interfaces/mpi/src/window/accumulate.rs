//! Accumulates: elements of a target are replaced by the result of an operator, atomically with respect to other
//! accumulates.

use std::ffi::c_int;
use std::sync::Arc;

use super::copying::{self, CopyDirection};
use super::pieces::{Pieces, parts};
use super::targets::{Elements, Spot};
use super::{Reach, Window, service};
use crate::abi::*;
use crate::datatype::{self, Type, fortran, memory};
use crate::error::{Error, Result};
use crate::operator::{self, Reduction};

/// Maximum number of bytes that are gathered, combined and scattered at a time, so that they stay in the first-level
/// cache.
const MAX_PART_BYTES: usize = 8192;

/// An operator and the predefined datatype of the elements.
pub struct Update {
    /// The operator.
    pub op: Op,
    /// The datatype of an element.
    pub leaf: Arc<Type>,
    /// Its handle.
    pub datatype: Datatype,
    /// Size of a packed element in bytes.
    pub size: usize,
    /// The reduction that combines elements. `None` for MPI_REPLACE and MPI_NO_OP.
    reduction: Option<Reduction>,
}

/// Returns the single predefined datatype of which a datatype consists, also if it has no elements. Returns `None` if
/// it consists of several.
fn leaf(of: &Arc<Type>) -> Option<Arc<Type>> {
    if of.predefined_handle().is_some() {
        return Some(of.clone());
    }
    if of.size() == 0 {
        return leaf(of.made().types.first()?);
    }
    let mut found: Option<Arc<Type>> = None;
    for part in of.made().types.iter().filter(|part| part.size() != 0) {
        let next = leaf(part)?;
        match &found {
            Some(known) if known.predefined_handle() != next.predefined_handle() => return None,
            _ => found = Some(next),
        }
    }
    found
}

impl Update {
    /// Returns the update for the arguments of a call. Fails if the operator does not support the datatype.
    pub fn new(op: Op, datatype: Datatype) -> Result<Update> {
        let of = datatype::committed(datatype)?;
        let leaf = leaf(&of).ok_or_else(|| {
            let text = "the datatype has elements of several predefined types; accumulates need elements of one type";
            Error::new(ERR_TYPE, text)
        })?;
        let found = leaf.predefined_handle().unwrap_or(datatype);
        // Datatypes that were made by precision have handles that are valid only in this process.
        let named = fortran::element(&leaf).map_or(found, |basic| basic.datatype);
        let reduction = match op {
            REPLACE | NO_OP => None,
            _ => Some(operator::for_windows(op, named)?),
        };
        Ok(Update {
            op,
            size: leaf.size() as usize,
            leaf,
            datatype: named,
            reduction,
        })
    }

    /// Combines packed elements.
    ///
    /// # Safety
    /// `input` is valid for reads of this many elements, and `inout` for reads and writes.
    unsafe fn combine(&self, input: *const u8, inout: *mut u8, count: usize) -> Result {
        let Some(reduction) = &self.reduction else {
            if self.op == REPLACE {
                // SAFETY: the caller upholds the safety contract of this function.
                unsafe { std::ptr::copy(input, inout, count * self.size) };
            }
            return Ok(());
        };
        let extent = self.leaf.extent() as usize;
        if extent == self.size {
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { reduction.combine(input.cast(), inout.cast(), count as i64) };
            return Ok(());
        }
        let bytes = count * self.size;
        let (mut given, mut own) = (memory(count * extent)?, memory(count * extent)?);
        // SAFETY: the caller upholds the safety contract of this function; the buffers have room for this many elements
        // with their gaps.
        unsafe {
            self.leaf.unpack(input, 0, bytes, given.as_mut_ptr().cast());
            self.leaf.unpack(inout, 0, bytes, own.as_mut_ptr().cast());
            reduction.combine(given.as_ptr().cast(), own.as_mut_ptr().cast(), count as i64);
            self.leaf.pack(own.as_ptr().cast(), 0, bytes, inout);
        }
        Ok(())
    }

    /// Updates `length` bytes of memory that `gather` and `scatter` copy. The caller holds the accumulate lock. The
    /// previous values are written to `old` unless it is null.
    ///
    /// # Safety
    /// The memory may be read and written. `input` is valid for reads, and `old` for writes, of as many bytes.
    unsafe fn apply(
        &self,
        length: usize,
        gather: impl Fn(*mut u8),
        scatter: impl Fn(*const u8),
        input: *const u8,
        old: *mut u8,
    ) -> Result {
        if !old.is_null() {
            gather(old);
        }
        match self.op {
            NO_OP => {}
            REPLACE => scatter(input),
            _ => {
                let mut bytes = memory(length)?;
                let bytes = bytes.as_mut_ptr();
                // SAFETY: the caller upholds the safety contract of this function; there is memory for this many bytes.
                unsafe {
                    match old.is_null() {
                        true => gather(bytes),
                        false => std::ptr::copy_nonoverlapping(old, bytes, length),
                    }
                    self.combine(input, bytes, length / self.size)?;
                }
                scatter(bytes);
            }
        }
        Ok(())
    }

    /// Updates one block in place; see [`Update::apply`].
    ///
    /// # Safety
    /// See [`Update::apply`].
    unsafe fn apply_to_block(
        &self,
        (at, length): (u64, usize),
        input: *const u8,
        old: *mut u8,
    ) -> Result {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            if !old.is_null() {
                std::ptr::copy(at as *const u8, old, length);
            }
            self.combine(input, at as *mut u8, length / self.size)
        }
    }

    /// Returns whether its elements have no gaps.
    fn is_dense(&self) -> bool {
        self.leaf.extent() as usize == self.size
    }

    /// Updates pieces of this process's memory while holding its accumulate lock; see [`Update::apply`].
    ///
    /// # Safety
    /// See [`Update::apply`].
    pub(super) unsafe fn here(
        &self,
        window: &Window,
        place: usize,
        pieces: &Pieces,
        input: *const u8,
        old: *mut u8,
    ) -> Result {
        let act = || {
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe {
                match pieces.only().filter(|_| self.is_dense()) {
                    Some(block) => self.apply_to_block(block, input, old),
                    None => self.apply(
                        pieces.length(),
                        |to| pieces.gather(to),
                        |from| pieces.scatter(from),
                        input,
                        old,
                    ),
                }
            }
        };
        window.locks().exclusively(place, window.comm.rank, act)
    }

    /// Updates elements in mapped memory, where the target's memory begins at `base`.
    unsafe fn mapped(
        &self,
        window: &Window,
        spot: &Spot<'_>,
        base: usize,
        input: *const u8,
        old: *mut u8,
    ) -> Result {
        let place = spot.target.place.unwrap_or(0);
        let at = base.wrapping_add(spot.offset as usize) as *mut u8;
        let part = |from: usize, to: usize| {
            let (input, old) = (
                input.wrapping_add(from),
                match old.is_null() {
                    true => old,
                    false => old.wrapping_add(from),
                },
            );
            // SAFETY: the caller upholds the safety contract of this function; `spot` lies within the target's memory.
            unsafe {
                match &spot.elements {
                    Elements::Plain(offset, _) if self.is_dense() => {
                        let at = at.wrapping_offset(*offset).wrapping_add(from);
                        self.apply_to_block((at as u64, to - from), input, old)
                    }
                    elements => self.apply(
                        to - from,
                        |bytes| elements.pack_part(at, (from, to), bytes),
                        |bytes| elements.unpack_part(bytes, (from, to), at),
                        input,
                        old,
                    ),
                }
            }
        };
        let act = || parts(spot.elements.length(), self.size, MAX_PART_BYTES, part);
        window.locks().exclusively(place, window.comm.rank, act)
    }

    /// Updates blocks of another process on this host while holding its accumulate lock.
    unsafe fn copied(
        &self,
        window: &Window,
        place: usize,
        pieces: &Pieces,
        input: *const u8,
        old: *mut u8,
        process: c_int,
    ) -> Result {
        let length = pieces.length();
        let mut bytes = memory(length)?;
        let bytes = bytes.as_mut_ptr();
        let locks = window.locks();
        locks.exclusively(place, window.comm.rank, || {
            // SAFETY: the caller upholds the safety contract of this function; there is this much memory.
            unsafe {
                copying::copy(process, pieces.blocks(), bytes, CopyDirection::FromTarget)?;
                if !old.is_null() {
                    std::ptr::copy_nonoverlapping(bytes, old, length);
                }
                if self.op == NO_OP {
                    return Ok(());
                }
                self.combine(input, bytes, length / self.size)?;
                copying::copy(process, pieces.blocks(), bytes, CopyDirection::ToTarget)
            }
        })
    }
}

/// Updates elements of a target with packed ones. The previous values are written to `old` unless it is null.
///
/// # Safety
/// `input` is valid for reads, and `old` for writes, of as many bytes.
pub unsafe fn update(
    window: &Window,
    spot: &Spot<'_>,
    update: &Update,
    input: *const u8,
    old: *mut u8,
) -> Result {
    if spot.elements.length() == 0 || update.op == NO_OP && old.is_null() {
        return Ok(());
    }
    let place = spot.target.place.unwrap_or(0);
    // SAFETY: the caller upholds the safety contract of this function, also below.
    unsafe {
        match spot.target.reach {
            Reach::Mapped(base) => update.mapped(window, spot, base, input, old),
            Reach::Copied(process) => service::by_either(
                spot,
                process,
                |pieces, needed| {
                    service::update(window, spot, (pieces, needed), update, input, old)
                },
                |pieces| update.copied(window, place, pieces, input, old, process),
            ),
            Reach::Asked => {
                let all = (&spot.all(), true);
                service::update(window, spot, all, update, input, old).map(drop)
            }
        }
    }
}

/// Replaces an element if it equals `compared`. It is in mapped memory, or in the memory of another process on this
/// host.
///
/// # Safety
/// The element may be read and written. The other pointers are valid for as many bytes.
pub(super) unsafe fn swap_here(
    window: &Window,
    place: usize,
    (at, size): (u64, usize),
    given: *const u8,
    compared: *const u8,
    old: *mut u8,
    process: Option<c_int>,
) -> Result {
    let transfer = |bytes: *mut u8, direction| {
        let mapped = at as *mut u8;
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            match (process, direction) {
                (Some(process), _) => {
                    return copying::copy(process, [(at, size)], bytes, direction);
                }
                (None, CopyDirection::FromTarget) => mapped.copy_to(bytes, size),
                (None, CopyDirection::ToTarget) => mapped.copy_from(bytes, size),
            }
        }
        Ok(())
    };
    window.locks().exclusively(place, window.comm.rank, || {
        transfer(old, CopyDirection::FromTarget)?;
        // SAFETY: the caller upholds the safety contract of this function.
        let is_alike = unsafe {
            std::slice::from_raw_parts(old, size) == std::slice::from_raw_parts(compared, size)
        };
        match is_alike {
            true => transfer(given.cast_mut(), CopyDirection::ToTarget),
            false => Ok(()),
        }
    })
}

/// Replaces an element of a target if it equals `compared`. Its previous value is written to `old`.
///
/// # Safety
/// All three pointers are valid for the size of the element.
pub unsafe fn swap(
    window: &Window,
    spot: &Spot<'_>,
    given: *const u8,
    compared: *const u8,
    old: *mut u8,
) -> Result {
    let size = spot.elements.length();
    let place = spot.target.place.unwrap_or(0);
    // SAFETY: the caller upholds the safety contract of this function; `spot` lies within the target's memory.
    unsafe {
        match spot.target.reach {
            Reach::Mapped(base) => {
                let at = (base as i64).wrapping_add(spot.offset) as u64;
                swap_here(window, place, (at, size), given, compared, old, None)
            }
            Reach::Copied(process) => service::by_either(
                spot,
                process,
                |pieces, needed| {
                    service::swap(window, spot, (pieces, needed), given, compared, old)
                },
                |_| {
                    let at = (spot.address(), size);
                    swap_here(window, place, at, given, compared, old, Some(process))
                },
            ),
            Reach::Asked => {
                let all = (&spot.all(), true);
                service::swap(window, spot, all, given, compared, old).map(drop)
            }
        }
    }
}
