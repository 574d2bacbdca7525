//! Accumulates: elements of a target's are replaced by what an operator makes of them, in one step for everybody
//! else who accumulates there.

use std::ffi::c_int;
use std::sync::Arc;

use super::copying::{self, CopyDirection};
use super::targets::Spot;
use super::{Reach, Window, service};
use crate::abi::*;
use crate::datatype::{self, Type, fortran, memory};
use crate::error::{Error, Result};
use crate::operator::{self, Reduction};

/// An operator and the predefined type of the elements.
pub struct Update {
    /// The operator.
    pub op: Op,
    /// The type of an element.
    pub leaf: Arc<Type>,
    /// Its handle.
    pub datatype: Datatype,
    /// Bytes of an element, packed.
    pub size: usize,
    /// The function that combines elements, if there is anything to combine.
    reduction: Option<Reduction>,
}

/// The predefined type that a type consists of; of one without elements, of which it would.
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
    /// Of a call's arguments.
    pub fn new(op: Op, datatype: Datatype) -> Result<Update> {
        let of = datatype::committed(datatype)?;
        let leaf = leaf(&of).ok_or_else(|| {
            let text = "the datatype has elements of several predefined types; accumulates are for those of one";
            Error::new(ERR_TYPE, text)
        })?;
        let found = leaf.predefined_handle().unwrap_or(datatype);
        // Types that were asked for by their precision have handles of this process' own.
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
    /// So many elements may be read, and written.
    unsafe fn combine(&self, input: *const u8, inout: *mut u8, count: usize) -> Result {
        let Some(reduction) = &self.reduction else {
            if self.op == REPLACE {
                // SAFETY: the caller's promise.
                unsafe { std::ptr::copy(input, inout, count * self.size) };
            }
            return Ok(());
        };
        let extent = self.leaf.extent() as usize;
        if extent == self.size {
            // SAFETY: the caller's promise.
            unsafe { reduction.combine(input.cast(), inout.cast(), count as i64) };
            return Ok(());
        }
        let bytes = count * self.size;
        let (mut given, mut own) = (memory(count * extent)?, memory(count * extent)?);
        // SAFETY: the caller's promise; there is memory for so many elements with their gaps.
        unsafe {
            self.leaf.unpack(input, 0, bytes, given.as_mut_ptr().cast());
            self.leaf.unpack(inout, 0, bytes, own.as_mut_ptr().cast());
            reduction.combine(given.as_ptr().cast(), own.as_mut_ptr().cast(), count as i64);
            self.leaf.pack(own.as_ptr().cast(), 0, bytes, inout);
        }
        Ok(())
    }

    /// Updates pieces of memory that this process sees. The values before go to `old`, if that is not null.
    ///
    /// # Safety
    /// The pieces may be read and written; `input` has as many bytes, and `old` room for them.
    pub(super) unsafe fn here(
        &self,
        window: &Window,
        place: usize,
        pieces: &[(u64, u64)],
        input: *const u8,
        old: *mut u8,
    ) -> Result {
        let whole = |piece: &(u64, u64)| (piece.1 as usize).is_multiple_of(self.size);
        if self.leaf.extent() as usize != self.size || !pieces.iter().all(whole) {
            // SAFETY: the caller's promise.
            return unsafe { self.held(window, place, pieces, input, old, None) };
        }
        window.locks().exclusively(place, window.comm.rank, || {
            let mut done = 0;
            for &(at, length) in pieces {
                let (there, length) = (at as *mut u8, length as usize);
                // SAFETY: the caller's promise.
                unsafe {
                    if !old.is_null() {
                        std::ptr::copy(there, old.add(done), length);
                    }
                    if self.op != NO_OP {
                        self.combine(input.add(done), there, length / self.size)?;
                    }
                }
                done += length;
            }
            Ok(())
        })
    }

    /// Updates pieces while the target's word is held; of another process, if one is named.
    unsafe fn held(
        &self,
        window: &Window,
        place: usize,
        pieces: &[(u64, u64)],
        input: *const u8,
        old: *mut u8,
        process: Option<c_int>,
    ) -> Result {
        let length: usize = pieces.iter().map(|it| it.1 as usize).sum();
        let mut bytes = memory(length)?;
        let bytes = bytes.as_mut_ptr();
        let locks = window.locks();
        locks.exclusively(place, window.comm.rank, || {
            // SAFETY: the caller's promise; there is so much memory.
            unsafe {
                transfer(process, pieces, bytes, CopyDirection::FromTarget)?;
                if !old.is_null() {
                    std::ptr::copy_nonoverlapping(bytes, old, length);
                }
                if self.op == NO_OP {
                    return Ok(());
                }
                self.combine(input, bytes, length / self.size.max(1))?;
                transfer(process, pieces, bytes, CopyDirection::ToTarget)
            }
        })
    }
}

/// Copies bytes from or to pieces, of another process or of this one.
unsafe fn transfer(
    process: Option<c_int>,
    pieces: &[(u64, u64)],
    bytes: *mut u8,
    direction: CopyDirection,
) -> Result {
    if let Some(process) = process {
        // SAFETY: the caller's promise.
        return unsafe { copying::copy(process, pieces, bytes, direction) };
    }
    let mut bytes = bytes;
    for &(address, length) in pieces {
        let (there, length) = (address as *mut u8, length as usize);
        // SAFETY: the caller's promise.
        unsafe {
            match direction {
                CopyDirection::FromTarget => std::ptr::copy_nonoverlapping(there, bytes, length),
                CopyDirection::ToTarget => std::ptr::copy_nonoverlapping(bytes, there, length),
            }
        }
        bytes = bytes.wrapping_add(length);
    }
    Ok(())
}

/// The pieces of a spot in mapped memory, as this process sees them.
fn mapped(spot: &Spot<'_>, base: usize) -> Vec<(u64, u64)> {
    let mut pieces = spot.pieces(0, spot.elements.length());
    for piece in &mut pieces {
        piece.0 = piece
            .0
            .wrapping_sub(spot.target.base)
            .wrapping_add(base as u64);
    }
    pieces
}

/// Updates elements of a target with packed ones. The values before go to `old`, if that is not null.
///
/// # Safety
/// `input` has as many bytes, and `old` room for them.
pub unsafe fn update(
    window: &Window,
    spot: &Spot<'_>,
    update: &Update,
    input: *const u8,
    old: *mut u8,
) -> Result {
    let length = spot.elements.length();
    if length == 0 || update.op == NO_OP && old.is_null() {
        return Ok(());
    }
    let place = spot.target.place.unwrap_or(0);
    match spot.target.reach {
        // SAFETY: the caller's promise.
        Reach::Mapped(base) => unsafe {
            update.here(window, place, &mapped(spot, base), input, old)
        },
        // SAFETY: the caller's promise.
        Reach::Copied(process) => unsafe {
            update.held(
                window,
                place,
                &spot.pieces(0, length),
                input,
                old,
                Some(process),
            )
        },
        // SAFETY: the caller's promise.
        Reach::Asked => unsafe { service::update(window, spot, update, input, old) },
    }
}

/// Replaces an element in memory that this process sees, or in that of another process on this host, if it has a value.
///
/// # Safety
/// The element may be read and written; the others have as many bytes.
pub(super) unsafe fn swap_here(
    window: &Window,
    place: usize,
    (at, size): (u64, usize),
    given: *const u8,
    compared: *const u8,
    old: *mut u8,
    process: Option<c_int>,
) -> Result {
    let locks = window.locks();
    locks.exclusively(place, window.comm.rank, || {
        let pieces = [(at, size as u64)];
        // SAFETY: the caller's promise.
        unsafe {
            transfer(process, &pieces, old, CopyDirection::FromTarget)?;
            let before = std::slice::from_raw_parts(old, size);
            match before == std::slice::from_raw_parts(compared, size) {
                true => transfer(process, &pieces, given.cast_mut(), CopyDirection::ToTarget),
                false => Ok(()),
            }
        }
    })
}

/// Replaces an element of a target's if it has a value; what was there goes to `old`.
///
/// # Safety
/// All three have as many bytes as the element.
pub unsafe fn swap(
    window: &Window,
    spot: &Spot<'_>,
    given: *const u8,
    compared: *const u8,
    old: *mut u8,
) -> Result {
    let size = spot.elements.length();
    let place = spot.target.place.unwrap_or(0);
    // SAFETY: the caller's promise; `spot` lies within the target's memory.
    unsafe {
        match spot.target.reach {
            Reach::Mapped(base) => {
                let at = (base as i64).wrapping_add(spot.offset) as u64;
                swap_here(window, place, (at, size), given, compared, old, None)
            }
            Reach::Copied(process) => {
                let at = (spot.address(), size);
                swap_here(window, place, at, given, compared, old, Some(process))
            }
            Reach::Asked => service::swap(window, spot, given, compared, old),
        }
    }
}
