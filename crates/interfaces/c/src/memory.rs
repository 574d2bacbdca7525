//! Conversion of C's memory to views, and of C's handles.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;

pub(crate) use regatta_abi::{
    Group as RgGroup, Message as RgMessage, Request as RgRequest, Status as RgStatus,
    View as RgView,
};
use regatta_process::{Error, GroupId, Refused, Result, View, Views};

use crate::error::argument;

/// Conversion of a group's handle.
pub(crate) trait GroupHandle {
    /// Returns the engine's id of the group.
    fn id(self) -> GroupId;
}

impl GroupHandle for RgGroup {
    #[inline(always)]
    fn id(self) -> GroupId {
        GroupId(self.id)
    }
}

/// Maximum size of an object, in bytes. A longer length comes from a negative number.
const MAX_OBJECT_BYTES: usize = isize::MAX as usize;

#[cold]
fn absurd(len: usize) -> Error {
    Error::Argument(format!(
        "the length {len} is not valid; it may be a negative number"
    ))
}

#[cold]
fn null(len: usize) -> Error {
    Error::Argument(format!("the buffer is NULL and its length {len}"))
}

/// Returns a view of a block of the C program's memory. Fails if the length is too large, or if `base` is NULL and the length is
/// not 0. The C program guarantees that the memory is valid until the operation is complete.
#[inline(always)]
pub(crate) fn block(base: *const c_void, len: usize) -> Result<Views> {
    if len > MAX_OBJECT_BYTES {
        return Err(absurd(len));
    }
    if base.is_null() && len > 0 {
        return Err(null(len));
    }
    // SAFETY: the C program guarantees that the memory is valid until the operation is complete.
    Ok(unsafe { Views::block(base.cast_mut().cast(), len) })
}

/// Returns whether [`block`] accepts this memory.
#[inline(always)]
pub(crate) fn is_block(base: *const c_void, len: usize) -> bool {
    len <= MAX_OBJECT_BYTES && !(base.is_null() && len > 0)
}

/// Returns a view of a block that [`is_block`] has accepted. For fast paths: there is no result to check, and nothing to drop,
/// because a block owns nothing.
#[inline(always)]
pub(crate) fn block_unchecked(base: *const c_void, len: usize) -> ManuallyDrop<Views> {
    debug_assert!(is_block(base, len));
    // SAFETY: the C program guarantees that the memory is valid until the operation is complete.
    ManuallyDrop::new(unsafe { Views::block(base.cast_mut().cast(), len) })
}

/// Converts an array of C's views. Fails if a view or all together are invalid.
///
/// # Safety
/// `views` must point to `n` views if `n` is positive.
pub(crate) unsafe fn strided(views: *const RgView, n: c_int) -> Result<Views> {
    let n = usize::try_from(n).map_err(|_| argument("a negative number of views"))?;
    if n > 0 && views.is_null() {
        return Err(argument("views is NULL and n positive"));
    }
    let mut list = Vec::new();
    reserve(&mut list, n)?;
    for index in 0..n {
        // SAFETY: `views` points to `n` views, and `index < n`.
        let view = unsafe { *views.add(index) };
        if view.base.is_null() && view.block > 0 && view.count > 0 {
            return Err(argument("a view's base is NULL"));
        }
        if view.block > MAX_OBJECT_BYTES
            || view
                .block
                .checked_mul(view.count)
                .is_none_or(|all| all > MAX_OBJECT_BYTES)
        {
            return Err(absurd(view.block.saturating_mul(view.count)));
        }
        // SAFETY: the C program guarantees that the memory is valid until the operation is complete.
        list.push(unsafe { View::new(view.base.cast(), view.block, view.count, view.stride) });
    }
    Views::strided(list)
        .filter(|views| views.len() <= MAX_OBJECT_BYTES)
        .ok_or_else(|| argument("the views together exceed the address space"))
}

/// Reserves room for `n` entries. Fails if there is no memory for them.
pub(crate) fn reserve<T>(list: &mut Vec<T>, n: usize) -> Result<()> {
    list.try_reserve_exact(n)
        .map_err(|_| Refused(n.saturating_mul(size_of::<T>())).into())
}

/// Returns the memory for an output. Fails if the pointer is NULL.
pub(crate) fn output<'a, T>(place: *mut T, name: &str) -> Result<&'a mut T> {
    // SAFETY: the C program guarantees that output pointers are valid or NULL.
    unsafe { place.as_mut() }.ok_or_else(|| {
        Error::Argument(format!(
            "{name} is NULL; it must point to memory for the result"
        ))
    })
}
