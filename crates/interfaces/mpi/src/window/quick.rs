//! Transfers and accumulates of predefined elements in mapped memory: no allocation, no object but the window, and no lock but that of
//! accumulates at a target.
//!
//! Calls with other arguments, wrong ones among them, take the general way.

use std::ffi::{c_int, c_void};

use super::{Reach, Window};
use crate::abi::*;
use crate::datatype::builtin;
use crate::error::Result;
use crate::operator;

/// The elements of a target that a call names.
#[derive(Clone, Copy)]
pub struct Aim {
    /// The target.
    pub rank: c_int,
    /// Its displacement.
    pub displacement: i64,
    /// How many elements.
    pub count: i64,
    /// Their type.
    pub datatype: Datatype,
}

impl Aim {
    /// Address and length of the elements in this process' memory, if they may be reached now.
    #[inline]
    pub fn mapped(self, window: &Window) -> Option<(usize, usize)> {
        let size = builtin::size(self.datatype)?;
        let target = window.targets.get(usize::try_from(self.rank).ok()?)?;
        let Reach::Mapped(base) = target.reach else {
            return None;
        };
        let offset = self.displacement.checked_mul(target.unit)?;
        let length = self.count.checked_mul(size as i64)?;
        // The unit of a dynamic window is 0, and so is the offset.
        let fits = target.unit != 0
            && offset >= 0
            && length > 0
            && offset.checked_add(length)? <= target.size;
        if !fits || window.check_access(self.rank).is_err() {
            return None;
        }
        Some((base + offset as usize, length as usize))
    }
}

/// Updates elements; `false` if nothing was done. What was there goes to `old`, if that is not null.
///
/// # Safety
/// `input` has as many elements, unless it is null; `old` has room for them.
#[inline]
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
    let Some((at, length)) = aim.mapped(window) else {
        return Ok(false);
    };
    let place = window.targets[aim.rank as usize].place;
    window
        .locks()
        .exclusively(place.unwrap_or(0), window.comm.rank, || {
            let there = at as *mut u8;
            // SAFETY: the caller's promise; the elements are within the target's memory.
            unsafe {
                if !old.is_null() {
                    std::ptr::copy(there, old.cast(), length);
                }
                if op != NO_OP {
                    kernel(input.cast(), there, aim.count as usize);
                }
            }
            Ok(true)
        })
}
