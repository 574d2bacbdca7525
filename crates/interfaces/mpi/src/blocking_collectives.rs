//! Keeps multi-stage operations advancing during the engine's blocking collectives.
//!
//! The engine's blocking collectives do not advance multi-stage operations. Another process may wait in a later stage
//! of such an operation for this one, and so not reach the collective. A second thread therefore advances the
//! operations meanwhile. That is rare: most processes never have such operations.

use std::ffi::c_int;

use regatta_sys as rg;

use crate::error::{Result, checked};
use crate::progress;
use crate::wake_up;

/// Makes this blocking call. If multi-stage operations are pending, a second thread advances them meanwhile.
#[inline(always)]
pub fn beside(call: impl FnOnce() -> c_int) -> Result {
    match progress::is_idle() {
        true => checked(call()),
        false => beside_others(call),
    }
}

#[cold]
fn beside_others(call: impl FnOnce() -> c_int) -> Result {
    let (tag, over) = wake_up::sleep()?;
    std::thread::scope(|scope| {
        let others = scope.spawn(|| progress::wait(over, &mut rg::Status::default()));
        // The text of an error belongs to this thread: it is read before the next call.
        let result = checked(call());
        let told = wake_up::wake(tag);
        let waited = others.join().unwrap_or(rg::ERR_STATE);
        result.and(told).and(checked(waited))
    })
}
