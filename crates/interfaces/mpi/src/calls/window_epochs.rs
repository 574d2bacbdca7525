//! Epochs of windows.

use std::ffi::c_int;
use std::sync::atomic::{Ordering, fence};

use crate::abi::*;
use crate::arguments::Out;
use crate::error::Result;
use crate::window::{Window, check_assert};

pub fn win_fence(assert: c_int, window: &Window) -> Result {
    window.fence(assert)
}

pub fn win_post(group: Group, assert: c_int, window: &Window) -> Result {
    check_assert(assert, MODE_NOCHECK | MODE_NOSTORE | MODE_NOPUT)?;
    window.post(group, assert)
}

pub fn win_start(group: Group, assert: c_int, window: &Window) -> Result {
    check_assert(assert, MODE_NOCHECK)?;
    window.start(group, assert)
}

pub fn win_complete(window: &Window) -> Result {
    window.complete()
}

pub fn win_wait(window: &Window) -> Result {
    window.exposed(true).map(drop)
}

pub fn win_test(window: &Window, flag: Out<c_int>) -> Result {
    let over = window.exposed(false)?;
    flag.put(c_int::from(over));
    Ok(())
}

pub fn win_lock(lock_type: c_int, rank: c_int, assert: c_int, window: &Window) -> Result {
    check_assert(assert, MODE_NOCHECK)?;
    window.lock(lock_type, rank, assert)
}

pub fn win_unlock(rank: c_int, window: &Window) -> Result {
    window.unlock(rank)
}

pub fn win_lock_all(assert: c_int, window: &Window) -> Result {
    check_assert(assert, MODE_NOCHECK)?;
    window.lock_all(assert)
}

pub fn win_unlock_all(window: &Window) -> Result {
    window.unlock_all()
}

pub fn win_flush(rank: c_int, window: &Window) -> Result {
    let target = window.target(rank)?;
    window.check_passive(rank)?;
    window.flush(target.map(|target| target.rank))
}

pub fn win_flush_all(window: &Window) -> Result {
    window.check_any_passive()?;
    window.flush_all()
}

/// Only checks its arguments: origin buffers may be reused as soon as the call that uses them has returned.
pub fn win_flush_local(rank: c_int, window: &Window) -> Result {
    window.target(rank)?;
    window.check_passive(rank)
}

pub fn win_flush_local_all(window: &Window) -> Result {
    window.check_any_passive()
}

pub fn win_sync(_window: &Window) -> Result {
    fence(Ordering::SeqCst);
    Ok(())
}
