//! Blocking collectives of the engine's while operations of several stages are under way.
//!
//! The engine's blocking collectives meet only each other, and know nothing of those operations. A process that waits in one may be
//! awaited in a later stage of an operation by somebody who has not come to the collective yet. So a second thread lets
//! the operations advance meanwhile. That is rare: most processes never have such operations.

use std::ffi::c_int;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use regatta_sys as rg;

use crate::abi::COMM_SELF;
use crate::collective::reserved_tag;
use crate::communicator::get;
use crate::error::{Result, checked};
use crate::progress;

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
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let hidden = get(COMM_SELF)?.hidden;
    let tag = reserved_tag(NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut over = rg::REQUEST_NULL;
    // SAFETY: it takes no memory but that of the request.
    checked(unsafe { rg::rg_irecv(null_mut(), 0, 0, tag, hidden, &mut over) })?;
    std::thread::scope(|scope| {
        let others = scope.spawn(|| progress::wait(over, &mut rg::Status::default()));
        // The sentence of an error is this thread's last one: it is read before the next call.
        let result = checked(call());
        // SAFETY: an empty message to this process.
        let told = unsafe { rg::rg_bsend(null(), 0, 0, tag, hidden) };
        let waited = others.join().unwrap_or(rg::ERR_STATE);
        result.and(checked(told)).and(checked(waited))
    })
}
