//! Accumulates.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use super::window_transfers::with_request;
use crate::abi::*;
use crate::datatype::{self, builtin};
use crate::error::{Error, Result};
use crate::operator;
use crate::window::Window;
use crate::window::accumulate::{self, Update};
use crate::window::quick::{self, Aim};
use crate::window::targets::Spot;
use crate::window::transfer::{Buffer, Given, check_lengths, spot};

/// Returns the update that a call requests. Returns `None` if the count is 0: the operator then need not support the
/// datatype, as other MPI libraries allow.
fn asked(op: Op, datatype: Datatype, count: i64) -> Result<Option<Update>> {
    match count == 0 && operator::name(op).is_some() {
        true => Ok(None),
        false => Update::new(op, datatype).map(Some),
    }
}

/// Updates the target's elements, with those of a buffer if the operator uses them. The previous values are written to
/// `old`.
unsafe fn apply(
    window: &Window,
    spot: &Spot<'_>,
    update: Option<&Update>,
    own: Option<&Buffer>,
    old: *mut u8,
) -> Result {
    let length = spot.elements.length();
    own.map_or(Ok(()), |own| check_lengths(own.elements.length(), length))?;
    let Some(update) = update else { return Ok(()) };
    let Some(own) = own else {
        // SAFETY: the caller guarantees that the memory is valid.
        return unsafe { accumulate::update(window, spot, update, null(), old) };
    };
    // SAFETY: the caller guarantees that the buffer is valid for its elements.
    unsafe { own.with_packed(|bytes| accumulate::update(window, spot, update, bytes, old)) }
}

/// General path of `accumulate`: derived datatypes, target memory that is not mapped, or an error in the arguments.
#[inline(never)]
unsafe fn accumulate_any(window: &Window, aim: Aim, op: Op, origin: Given) -> Result {
    let own = Buffer::new(origin)?;
    let update = asked(op, aim.datatype, aim.count)?;
    let Some(spot) = spot(window, aim)? else {
        return Ok(());
    };
    // SAFETY: the caller guarantees that the buffer is valid for its elements.
    unsafe { apply(window, &spot, update.as_ref(), Some(&own), null_mut()) }
}

/// General path of `get_accumulate`: derived datatypes, target memory that is not mapped, or an error in the arguments.
#[inline(never)]
unsafe fn get_accumulate_any(
    window: &Window,
    aim: Aim,
    op: Op,
    origin: Given,
    result: Given,
) -> Result {
    let own = match op {
        NO_OP => None,
        _ => Some(Buffer::new(origin)?),
    };
    let result = Buffer::new(result)?;
    let update = asked(op, aim.datatype, aim.count)?;
    let Some(spot) = spot(window, aim)? else {
        return Ok(());
    };
    check_lengths(result.elements.length(), spot.elements.length())?;
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    unsafe { result.fill(|old| apply(window, &spot, update.as_ref(), own.as_ref(), old)) }
}

with_request! {
    pub unsafe fn accumulate, raccumulate(
        origin_addr: *const c_void,
        origin_count: i64,
        origin_datatype: Datatype,
        target_rank: c_int,
        target_disp: i64,
        target_count: i64,
        target_datatype: Datatype,
        op: Op,
        window: &Window,
    ) {
        let aim = || Aim::new(target_rank, target_disp, target_count, target_datatype);
        let is_alike = origin_datatype == target_datatype && origin_count == target_count;
        // SAFETY: the caller guarantees that the buffer is valid for its elements.
        if is_alike && unsafe { quick::update(window, aim(), op, origin_addr, null_mut())? } {
            return Ok(());
        }
        let origin = Given::new(origin_addr, origin_count, origin_datatype);
        // SAFETY: the caller guarantees that the buffer is valid for its elements.
        unsafe { accumulate_any(window, aim(), op, origin) }
    }
}

with_request! {
    pub unsafe fn get_accumulate, rget_accumulate(
        origin_addr: *const c_void,
        origin_count: i64,
        origin_datatype: Datatype,
        result_addr: *mut c_void,
        result_count: i64,
        result_datatype: Datatype,
        target_rank: c_int,
        target_disp: i64,
        target_count: i64,
        target_datatype: Datatype,
        op: Op,
        window: &Window,
    ) {
        let aim = || Aim::new(target_rank, target_disp, target_count, target_datatype);
        let is_alike = result_datatype == target_datatype && result_count == target_count;
        let gives_alike = origin_datatype == target_datatype && origin_count == target_count;
        if is_alike
            && (op == NO_OP || gives_alike)
            && !result_addr.is_null()
            // SAFETY: the caller guarantees that the buffers are valid for their elements.
            && unsafe { quick::update(window, aim(), op, origin_addr, result_addr)? }
        {
            return Ok(());
        }
        let origin = Given::new(origin_addr, origin_count, origin_datatype);
        let result = Given::new(result_addr, result_count, result_datatype);
        // SAFETY: the caller guarantees that the buffers are valid for their elements.
        unsafe { get_accumulate_any(window, aim(), op, origin, result) }
    }
}

/// Fails unless the datatype is predefined.
fn check_predefined(datatype: Datatype) -> Result {
    let of = datatype::committed(datatype)?;
    match of.predefined_handle() {
        Some(_) => Ok(()),
        None => Err(Error::new(ERR_TYPE, "the datatype is not predefined")),
    }
}

#[inline(always)]
pub unsafe fn fetch_and_op(
    origin_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: Datatype,
    target_rank: c_int,
    target_disp: i64,
    op: Op,
    window: &Window,
) -> Result {
    if builtin::size(datatype).is_none() {
        check_predefined(datatype)?;
    }
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    unsafe {
        get_accumulate(
            origin_addr,
            1,
            datatype,
            result_addr,
            1,
            datatype,
            target_rank,
            target_disp,
            1,
            datatype,
            op,
            window,
        )
    }
}

pub unsafe fn compare_and_swap(
    origin_addr: *const c_void,
    compare_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: Datatype,
    target_rank: c_int,
    target_disp: i64,
    window: &Window,
) -> Result {
    use builtin::Kind::{Bytes, Letter, Logical, Signed, Unsigned};
    let basic = builtin::basic(datatype);
    if basic.is_none_or(|it| !matches!(it.kind, Signed | Unsigned | Logical | Bytes | Letter)) {
        check_predefined(datatype)?;
        let text = "the datatype is not an integer, a logical or MPI_BYTE";
        return Err(Error::new(ERR_TYPE, text));
    }
    for (address, name) in [
        (origin_addr, "origin_addr"),
        (compare_addr, "compare_addr"),
        (result_addr.cast_const(), "result_addr"),
    ] {
        if address.is_null() {
            return Err(Error::new(ERR_BUFFER, format!("{name} is a null pointer")));
        }
    }
    let aim = Aim::new(target_rank, target_disp, 1, datatype);
    // SAFETY: the caller guarantees that the elements are valid.
    if unsafe { quick::swap(window, aim, origin_addr, compare_addr, result_addr)? } {
        return Ok(());
    }
    let Some(spot) = spot(window, aim)? else {
        return Ok(());
    };
    let (given, compared) = (origin_addr.cast(), compare_addr.cast());
    // SAFETY: the caller guarantees that the elements are valid.
    unsafe { accumulate::swap(window, &spot, given, compared, result_addr.cast()) }
}
