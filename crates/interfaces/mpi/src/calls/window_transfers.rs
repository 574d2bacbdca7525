//! Puts and gets. Their buffers may be used again when the call returns; at the target they are complete after a flush.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::error::{Result, not_null};
use crate::requests::{self, Single};
use crate::window;
use crate::window::quick::Aim;
use crate::window::transfer::{Buffer, check_lengths, read, spot, write};

/// A request that is complete.
pub(crate) unsafe fn complete(request: *mut Request) -> Result {
    let operation = Single::complete(Status::empty(ANY_SOURCE));
    // SAFETY: the caller's pointer, which was looked at.
    unsafe { *request = requests::of_operation(Box::new(operation), COMM_SELF)? };
    Ok(())
}

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
    let aim = Aim {
        rank: target_rank,
        displacement: target_disp,
        count: target_count,
        datatype: target_datatype,
    };
    if origin_datatype == target_datatype
        && origin_count == target_count
        && !origin_addr.is_null()
        && let Some((at, length)) = aim.mapped(window)
    {
        // SAFETY: the caller's buffer, and memory of the target's in the window.
        unsafe { std::ptr::copy(origin_addr.cast::<u8>(), at as *mut u8, length) };
        return Ok(());
    }
    let own = Buffer::new(origin_addr, origin_count, origin_datatype)?;
    let found = spot(
        window,
        target_rank,
        target_disp,
        target_count,
        target_datatype,
    )?;
    let Some(spot) = found else { return Ok(()) };
    check_lengths(own.elements.length(), spot.elements.length())?;
    // SAFETY: the caller's buffer.
    unsafe { own.with_packed(|bytes| write(window, &spot, bytes)) }
}

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
    let aim = Aim {
        rank: target_rank,
        displacement: target_disp,
        count: target_count,
        datatype: target_datatype,
    };
    if origin_datatype == target_datatype
        && origin_count == target_count
        && !origin_addr.is_null()
        && let Some((at, length)) = aim.mapped(window)
    {
        // SAFETY: the caller's buffer, and memory of the target's in the window.
        unsafe { std::ptr::copy(at as *const u8, origin_addr.cast::<u8>(), length) };
        return Ok(());
    }
    let own = Buffer::new(origin_addr, origin_count, origin_datatype)?;
    let found = spot(
        window,
        target_rank,
        target_disp,
        target_count,
        target_datatype,
    )?;
    let Some(spot) = found else { return Ok(()) };
    check_lengths(own.elements.length(), spot.elements.length())?;
    // SAFETY: the caller's buffer.
    unsafe { own.fill(|bytes| read(window, &spot, bytes)) }
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
