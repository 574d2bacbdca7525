//! Epochs of windows.

use std::ffi::c_int;
use std::sync::atomic::{Ordering, fence};

use crate::abi::*;
use crate::error::{Result, not_null};
use crate::window::{check_assert, get};

pub unsafe fn win_fence(assert: c_int, win: Win) -> Result {
    get(win)?.fence(assert)
}

pub unsafe fn win_post(group: Group, assert: c_int, win: Win) -> Result {
    let window = get(win)?;
    check_assert(assert, MODE_NOCHECK | MODE_NOSTORE | MODE_NOPUT)?;
    window.post(group, assert)
}

pub unsafe fn win_start(group: Group, assert: c_int, win: Win) -> Result {
    let window = get(win)?;
    check_assert(assert, MODE_NOCHECK)?;
    window.start(group, assert)
}

pub unsafe fn win_complete(win: Win) -> Result {
    get(win)?.complete()
}

pub unsafe fn win_wait(win: Win) -> Result {
    get(win)?.exposed(true).map(drop)
}

pub unsafe fn win_test(win: Win, flag: *mut c_int) -> Result {
    let window = get(win)?;
    not_null(flag, "flag")?;
    let over = window.exposed(false)?;
    // SAFETY: the caller's pointer.
    unsafe { *flag = c_int::from(over) };
    Ok(())
}

pub unsafe fn win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: Win) -> Result {
    let window = get(win)?;
    check_assert(assert, MODE_NOCHECK)?;
    window.lock(lock_type, rank, assert)
}

pub unsafe fn win_unlock(rank: c_int, win: Win) -> Result {
    get(win)?.unlock(rank)
}

pub unsafe fn win_lock_all(assert: c_int, win: Win) -> Result {
    let window = get(win)?;
    check_assert(assert, MODE_NOCHECK)?;
    window.lock_all(assert)
}

pub unsafe fn win_unlock_all(win: Win) -> Result {
    get(win)?.unlock_all()
}

pub unsafe fn win_flush(rank: c_int, win: Win) -> Result {
    let window = get(win)?;
    let target = window.target(rank)?;
    window.check_passive(rank)?;
    window.flush(target.map(|target| target.rank))
}

pub unsafe fn win_flush_all(win: Win) -> Result {
    let window = get(win)?;
    window.check_any_passive()?;
    window.flush_all()
}

/// Buffers may be used again when a call that has them returns: nothing is left to be done here.
pub unsafe fn win_flush_local(rank: c_int, win: Win) -> Result {
    let window = get(win)?;
    window.target(rank)?;
    window.check_passive(rank)
}

pub unsafe fn win_flush_local_all(win: Win) -> Result {
    get(win)?.check_any_passive()
}

pub unsafe fn win_sync(win: Win) -> Result {
    get(win)?;
    fence(Ordering::SeqCst);
    Ok(())
}
