//! C's memory as views, and C's handles.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;

pub(crate) use regatta_abi::{
    Group as RgGroup, Message as RgMessage, Request as RgRequest, Status as RgStatus,
    View as RgView,
};
use regatta_process::{Error, GroupId, Refused, Result, View, Views};

use crate::error::argument;

/// Handles of groups.
pub(crate) trait GroupHandle {
    /// The handle as the engine has it.
    fn id(self) -> GroupId;
}

impl GroupHandle for RgGroup {
    #[inline(always)]
    fn id(self) -> GroupId {
        GroupId(self.id)
    }
}

/// Maximum size of an object, in bytes; a longer length is a negative number gone astray.
const MAX_OBJECT_BYTES: usize = isize::MAX as usize;

#[cold]
fn absurd(len: usize) -> Error {
    Error::Argument(format!(
        "a length of {len} bytes is no length (a negative number?)"
    ))
}

#[cold]
fn null(len: usize) -> Error {
    Error::Argument(format!("the buffer is NULL and its length {len}"))
}

/// A block of the caller's memory. The caller of the C function vouches for it.
#[inline(always)]
pub(crate) fn block(base: *const c_void, len: usize) -> Result<Views> {
    if len > MAX_OBJECT_BYTES {
        return Err(absurd(len));
    }
    if base.is_null() && len > 0 {
        return Err(null(len));
    }
    // SAFETY: the C contract: the memory is valid until the operation is complete.
    Ok(unsafe { Views::block(base.cast_mut().cast(), len) })
}

/// Is this a block that [`block`] accepts?
#[inline(always)]
pub(crate) fn is_block(base: *const c_void, len: usize) -> bool {
    len <= MAX_OBJECT_BYTES && !(base.is_null() && len > 0)
}

/// A block for which [`is_block`] has said yes. For fast paths: no result to take apart, and no end, since a block owns nothing.
#[inline(always)]
pub(crate) fn block_unchecked(base: *const c_void, len: usize) -> ManuallyDrop<Views> {
    debug_assert!(is_block(base, len));
    // SAFETY: the C contract, as for `block`.
    ManuallyDrop::new(unsafe { Views::block(base.cast_mut().cast(), len) })
}

/// An array of views.
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
        // SAFETY: `index < n`.
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
        // SAFETY: the C contract, as for `block`.
        list.push(unsafe { View::new(view.base.cast(), view.block, view.count, view.stride) });
    }
    Views::strided(list)
        .filter(|views| views.len() <= MAX_OBJECT_BYTES)
        .ok_or_else(|| argument("the views together are longer than memory"))
}

/// Room for as many entries as a caller's array has.
pub(crate) fn reserve<T>(list: &mut Vec<T>, n: usize) -> Result<()> {
    list.try_reserve_exact(n)
        .map_err(|_| Refused(n.saturating_mul(size_of::<T>())).into())
}

/// A pointer that must not be NULL.
pub(crate) fn output<'a, T>(place: *mut T, name: &str) -> Result<&'a mut T> {
    // SAFETY: the C contract: output pointers are valid or NULL.
    unsafe { place.as_mut() }.ok_or_else(|| {
        Error::Argument(format!(
            "{name} is NULL; it must point to where the answer goes"
        ))
    })
}
