//! Puts and gets. Their buffers may be used again when the call returns; at the target they are complete after a flush.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::error::{Result, not_null};
use crate::requests::{self, Single};
use crate::window::quick::{self, Aim};
use crate::window::transfer::{Buffer, check_lengths, read, spot, write};
use crate::window::{self, Window};

/// A request that is complete.
pub(crate) unsafe fn complete(request: *mut Request) -> Result {
    let operation = Single::complete(Status::empty(ANY_SOURCE));
    // SAFETY: the caller's pointer, which was looked at.
    unsafe { *request = requests::of_operation(Box::new(operation), COMM_SELF)? };
    Ok(())
}

/// As `put`, of elements that are not predefined, or not in mapped memory; or there is something wrong.
#[inline(never)]
unsafe fn put_any(
    window: &Window,
    aim: Aim,
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: Datatype,
) -> Result {
    let own = Buffer::new(origin_addr, origin_count, origin_datatype)?;
    let Some(spot) = spot(window, aim)? else {
        return Ok(());
    };
    check_lengths(own.elements.length(), spot.elements.length())?;
    // SAFETY: the caller's buffer.
    unsafe { own.with_packed(|bytes| write(window, &spot, bytes)) }
}

#[inline(always)]
pub unsafe fn put(
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: Datatype,
    win: Win,
) -> Result {
    let window = window::get(win)?;
    let aim = || Aim {
        rank: target_rank,
        displacement: target_disp,
        count: target_count,
        datatype: target_datatype,
    };
    let is_alike = origin_datatype == target_datatype && origin_count == target_count;
    // SAFETY: the caller's buffer.
    if is_alike && unsafe { quick::put(window, aim(), origin_addr) } {
        return Ok(());
    }
    // SAFETY: the caller's buffer.
    unsafe { put_any(window, aim(), origin_addr, origin_count, origin_datatype) }
}

/// As `get`, as above.
#[inline(never)]
unsafe fn get_any(
    window: &Window,
    aim: Aim,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: Datatype,
) -> Result {
    let own = Buffer::new(origin_addr, origin_count, origin_datatype)?;
    let Some(spot) = spot(window, aim)? else {
        return Ok(());
    };
    check_lengths(own.elements.length(), spot.elements.length())?;
    // SAFETY: the caller's buffer.
    unsafe { own.fill(|bytes| read(window, &spot, bytes)) }
}

#[inline(always)]
pub unsafe fn get(
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: Datatype,
    win: Win,
) -> Result {
    let window = window::get(win)?;
    let aim = || Aim {
        rank: target_rank,
        displacement: target_disp,
        count: target_count,
        datatype: target_datatype,
    };
    let is_alike = origin_datatype == target_datatype && origin_count == target_count;
    // SAFETY: the caller's buffer.
    if is_alike && unsafe { quick::get(window, aim(), origin_addr) } {
        return Ok(());
    }
    // SAFETY: the caller's buffer.
    unsafe { get_any(window, aim(), origin_addr, origin_count, origin_datatype) }
}

pub unsafe fn rput(
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: Datatype,
    win: Win,
    request: *mut Request,
) -> Result {
    not_null(request, "request")?;
    // SAFETY: the caller's buffer and pointer.
    unsafe {
        put(
            origin_addr,
            origin_count,
            origin_datatype,
            target_rank,
            target_disp,
            target_count,
            target_datatype,
            win,
        )?;
        complete(request)
    }
}

pub unsafe fn rget(
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: Datatype,
    win: Win,
    request: *mut Request,
) -> Result {
    not_null(request, "request")?;
    // SAFETY: the caller's buffer and pointer.
    unsafe {
        get(
            origin_addr,
            origin_count,
            origin_datatype,
            target_rank,
            target_disp,
            target_count,
            target_datatype,
            win,
        )?;
        complete(request)
    }
}
