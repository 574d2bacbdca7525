//! Requests of the engine that this process completes itself, to wake a thread that sleeps in the engine. Each is the
//! receive of an empty message from this process, in a channel of its own.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use regatta_sys as rg;

use crate::abi::ERR_NO_MEM;
use crate::error::{Error, Result, checked};
use crate::numbers::Numbers;

const CHANNEL: rg::Group = rg::library_channel(0x4d51);
/// Tags in that channel.
static NUMBERS: Numbers = Numbers::below(1 << 29);

fn own_rank() -> Result<c_int> {
    // SAFETY: the call has no arguments and no preconditions.
    let tid = unsafe { rg::rg_tid() };
    checked(tid).map(|()| tid)
}

/// Makes such a request. Its tag is for one call of [`wake`] or [`cancel`].
pub fn sleep() -> Result<(c_int, rg::Request)> {
    let from = own_rank()?;
    let taken = NUMBERS.take();
    let taken = taken.ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many requests"))?;
    let (tag, mut message) = (taken as c_int, rg::REQUEST_NULL);
    // SAFETY: the message is empty, so no memory is accessed.
    let code = unsafe { rg::rg_irecv(null_mut(), 0, from, tag, CHANNEL, &mut message) };
    if code < 0 {
        NUMBERS.give_back(taken);
    }
    checked(code).map(|()| (tag, message))
}

/// Completes the request. Its tag may be reused from now on.
pub fn wake(tag: c_int) -> Result {
    // SAFETY: the message is empty, so no memory is accessed.
    checked(unsafe { rg::rg_bsend(null(), 0, own_rank()?, tag, CHANNEL) })?;
    NUMBERS.give_back(tag as u32);
    Ok(())
}

/// Cancels a request that has not been completed by [`wake`].
pub fn cancel(tag: c_int, mut request: rg::Request) {
    let mut cancelled = 0;
    // SAFETY: the engine checks requests at each use; the call may write `cancelled`.
    unsafe {
        rg::rg_cancel(request, &mut cancelled);
        rg::rg_wait(&mut request, null_mut());
    }
    NUMBERS.give_back(tag as u32);
}
