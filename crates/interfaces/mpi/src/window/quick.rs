//! Fast paths of transfers and accumulates of predefined elements in mapped memory. They use no allocation, no object
//! but the window, and no lock but the target's accumulate lock.
//!
//! Calls with other arguments, including invalid ones, take the general path. These functions are inlined into the
//! calls: two more function calls with all their arguments would cost about as much as transferring a few bytes.

use std::ffi::{c_int, c_void};

use super::targets::Target;
use super::{Reach, Window};
use crate::abi::*;
use crate::datatype::builtin;
use crate::error::Result;
use crate::operator;

/// The elements of a target that a call accesses. A call makes one for the fast path, which stays in registers, and
/// another one for the general path, which is passed in memory.
#[derive(Clone, Copy)]
pub struct Aim {
    /// Rank of the target.
    pub rank: c_int,
    /// Displacement at the target, in its displacement units.
    pub displacement: i64,
    /// Number of elements.
    pub count: i64,
    /// Datatype of the elements.
    pub datatype: Datatype,
}

/// Elements in mapped memory, which the present epochs allow to access.
struct Mapped<'a> {
    target: &'a Target,
    at: *mut u8,
    length: usize,
}

impl Aim {
    /// Returns the elements for the arguments of a call.
    #[inline(always)]
    pub fn new(rank: c_int, displacement: i64, count: i64, datatype: Datatype) -> Aim {
        Aim {
            rank,
            displacement,
            count,
            datatype,
        }
    }

    #[inline(always)]
    fn mapped(self, window: &Window) -> Option<Mapped<'_>> {
        let size = builtin::size(self.datatype)?;
        let target = window.targets.get(usize::try_from(self.rank).ok()?)?;
        let Reach::Mapped(base) = target.reach else {
            return None;
        };
        let offset = self.displacement.checked_mul(target.unit)?;
        let length = self.count.checked_mul(size as i64)?;
        // The displacement unit of a dynamic window is 0; it takes the general path.
        let fits = target.unit != 0
            && offset >= 0
            && length > 0
            && offset.checked_add(length)? <= target.size;
        if !fits || window.check_access(self.rank).is_err() {
            return None;
        }
        Some(Mapped {
            target,
            at: (base + offset as usize) as *mut u8,
            length: length as usize,
        })
    }
}

/// Copies bytes, which may overlap. Four or eight bytes are copied without a call.
///
/// # Safety
/// The conditions of `std::ptr::copy`.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        match length {
            8 => to
                .cast::<u64>()
                .write_unaligned(from.cast::<u64>().read_unaligned()),
            4 => to
                .cast::<u32>()
                .write_unaligned(from.cast::<u32>().read_unaligned()),
            _ => std::ptr::copy(from, to, length),
        }
    }
}

/// Writes elements to a target. Returns false if the fast path does not apply; then nothing has been done.
///
/// # Safety
/// `input` is null, or valid for reads of as many elements.
#[inline(always)]
pub unsafe fn put(window: &Window, aim: Aim, input: *const c_void) -> bool {
    let Some(found) = aim.mapped(window).filter(|_| !input.is_null()) else {
        return false;
    };
    // SAFETY: the caller guarantees that the buffer is valid; the elements are within the target's memory.
    unsafe { copy(input.cast(), found.at, found.length) };
    true
}

/// Reads elements from a target. Returns false if the fast path does not apply; then nothing has been done.
///
/// # Safety
/// `output` is null, or valid for writes of as many elements.
#[inline(always)]
pub unsafe fn get(window: &Window, aim: Aim, output: *mut c_void) -> bool {
    let Some(found) = aim.mapped(window).filter(|_| !output.is_null()) else {
        return false;
    };
    // SAFETY: the caller guarantees that the buffer is valid; the elements are within the target's memory.
    unsafe { copy(found.at, output.cast(), found.length) };
    true
}

/// Updates elements. Returns false if the fast path does not apply; then nothing has been done. The previous values are
/// written to `old` unless it is null.
///
/// # Safety
/// `input` is null or valid for reads, `old` is null or valid for writes, of as many elements.
#[inline(always)]
pub unsafe fn update(
    window: &Window,
    aim: Aim,
    op: Op,
    input: *const c_void,
    old: *mut c_void,
) -> Result<bool> {
    let Some(kernel) = operator::of_predefined(op, aim.datatype) else {
        return Ok(false);
    };
    if input.is_null() && op != NO_OP {
        return Ok(false);
    }
    let Some(found) = aim.mapped(window) else {
        return Ok(false);
    };
    let (locks, place) = (window.locks(), found.target.place.unwrap_or(0));
    locks.begin_accumulate(place, window.comm.rank)?;
    // SAFETY: the caller upholds the safety contract of this function; the elements are within the target's memory.
    unsafe {
        if !old.is_null() {
            copy(found.at, old.cast(), found.length);
        }
        if op != NO_OP {
            kernel(input.cast(), found.at, aim.count as usize);
        }
    }
    locks.end_accumulate(place);
    Ok(true)
}

/// Returns the bits of an element of four or eight bytes.
#[inline(always)]
unsafe fn bits(at: *const u8, length: usize) -> u64 {
    // SAFETY: the caller guarantees that the element is valid.
    unsafe {
        match length {
            4 => at.cast::<u32>().read_unaligned().into(),
            _ => at.cast::<u64>().read_unaligned(),
        }
    }
}

/// Replaces an element of four or eight bytes if it equals `compared`. Returns false if the fast path does not apply;
/// then nothing has been done. The previous value is written to `old`.
///
/// # Safety
/// All three pointers are valid for the size of an element.
#[inline(always)]
pub unsafe fn swap(
    window: &Window,
    aim: Aim,
    given: *const c_void,
    compared: *const c_void,
    old: *mut c_void,
) -> Result<bool> {
    let Some(found) = aim.mapped(window) else {
        return Ok(false);
    };
    if !matches!(found.length, 4 | 8) {
        return Ok(false);
    }
    let (locks, place) = (window.locks(), found.target.place.unwrap_or(0));
    locks.begin_accumulate(place, window.comm.rank)?;
    // SAFETY: the caller upholds the safety contract of this function; the element is within the target's memory.
    unsafe {
        let is_alike = bits(found.at, found.length) == bits(compared.cast(), found.length);
        copy(found.at, old.cast(), found.length);
        if is_alike {
            copy(given.cast(), found.at, found.length);
        }
    }
    locks.end_accumulate(place);
    Ok(true)
}
