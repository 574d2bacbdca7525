//! Puts and gets. The origin buffer may be reused when the call returns. At the target, a put is complete after a
//! flush.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::arguments::Out;
use crate::error::Result;
use crate::requests::{self, Single};
use crate::window::Window;
use crate::window::quick::{self, Aim};
use crate::window::transfer::{Buffer, Given, check_lengths, read, spot, write};

/// Returns a completed request to the caller.
pub(crate) fn complete(request: Out<Request>) -> Result {
    let operation = Single::complete(Status::empty(ANY_SOURCE));
    request.put(requests::of_operation(Box::new(operation), COMM_SELF)?);
    Ok(())
}

/// Defines a function, and its form with a request, which is complete when the function returns.
macro_rules! with_request {
    (
        pub unsafe fn $name:ident, $started:ident($($given:ident: $kind:ty),* $(,)?) $body:block
    ) => {
        #[inline(always)]
        pub unsafe fn $name($($given: $kind),*) -> $crate::error::Result $body

        pub unsafe fn $started(
            $($given: $kind,)*
            request: $crate::arguments::Out<$crate::abi::Request>,
        ) -> $crate::error::Result {
            // SAFETY: the caller keeps MPI's rules.
            unsafe { $name($($given),*)? };
            $crate::calls::window_transfers::complete(request)
        }
    };
}
pub(crate) use with_request;

/// General path of `put`: derived datatypes, target memory that is not mapped, or an error in the arguments.
#[inline(never)]
unsafe fn put_any(window: &Window, aim: Aim, origin: Given) -> Result {
    let own = Buffer::new(origin)?;
    let Some(spot) = spot(window, aim)? else {
        return Ok(());
    };
    check_lengths(own.elements.length(), spot.elements.length())?;
    // SAFETY: the caller guarantees that the buffer is valid for its elements.
    unsafe { own.with_packed(|bytes| write(window, &spot, bytes)) }
}

/// General path of `get`: derived datatypes, target memory that is not mapped, or an error in the arguments.
#[inline(never)]
unsafe fn get_any(window: &Window, aim: Aim, origin: Given) -> Result {
    let own = Buffer::new(origin)?;
    let Some(spot) = spot(window, aim)? else {
        return Ok(());
    };
    check_lengths(own.elements.length(), spot.elements.length())?;
    // SAFETY: the caller guarantees that the buffer is valid for its elements.
    unsafe { own.fill(|bytes| read(window, &spot, bytes)) }
}

with_request! {
    pub unsafe fn put, rput(
        origin_addr: *const c_void,
        origin_count: i64,
        origin_datatype: Datatype,
        target_rank: c_int,
        target_disp: i64,
        target_count: i64,
        target_datatype: Datatype,
        window: &Window,
    ) {
        let aim = || Aim::new(target_rank, target_disp, target_count, target_datatype);
        let is_alike = origin_datatype == target_datatype && origin_count == target_count;
        // SAFETY: the caller guarantees that the buffer is valid for its elements.
        if is_alike && unsafe { quick::put(window, aim(), origin_addr) } {
            return Ok(());
        }
        let origin = Given::new(origin_addr, origin_count, origin_datatype);
        // SAFETY: the caller guarantees that the buffer is valid for its elements.
        unsafe { put_any(window, aim(), origin) }
    }
}

with_request! {
    pub unsafe fn get, rget(
        origin_addr: *mut c_void,
        origin_count: i64,
        origin_datatype: Datatype,
        target_rank: c_int,
        target_disp: i64,
        target_count: i64,
        target_datatype: Datatype,
        window: &Window,
    ) {
        let aim = || Aim::new(target_rank, target_disp, target_count, target_datatype);
        let is_alike = origin_datatype == target_datatype && origin_count == target_count;
        // SAFETY: the caller guarantees that the buffer is valid for its elements.
        if is_alike && unsafe { quick::get(window, aim(), origin_addr) } {
            return Ok(());
        }
        let origin = Given::new(origin_addr, origin_count, origin_datatype);
        // SAFETY: the caller guarantees that the buffer is valid for its elements.
        unsafe { get_any(window, aim(), origin) }
    }
}
