//! Blocking collectives of the engine's while operations of several stages are under way.
//!
//! The engine's blocking collectives meet only each other, and know nothing of those operations. A process that waits in one may be
//! awaited in a later stage of an operation by somebody who has not come to the collective yet. So a second thread lets
//! the operations advance meanwhile. That is rare: most processes never have such operations.

use std::ffi::c_int;

use regatta_sys as rg;

use crate::error::{Result, checked};
use crate::progress;
use crate::wake_up;

/// Makes this call, which waits; its code.
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
        // The sentence of an error is this thread's last one: it is read before the next call.
        let result = checked(call());
        let told = wake_up::wake(tag);
        let waited = others.join().unwrap_or(rg::ERR_STATE);
        result.and(told).and(checked(waited))
    })
}
