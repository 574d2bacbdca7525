//! Blocking collectives of the engine's while operations of several stages are under way.
//!
//! The engine's blocking collectives meet only each other, and know nothing of those operations. A process that waits in one may be
//! awaited in a later stage of an operation by somebody who has not come to the collective yet. So a second thread lets
//! the operations advance meanwhile. That is rare: most processes never have such operations.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use regatta_sys as rg;

use crate::abi::{COMM_SELF, ERR_NO_MEM};
use crate::collective::{RESERVED_TAGS, reserved_tag};
use crate::communicator::get;
use crate::error::{Error, Result, checked};
use crate::numbers::Numbers;
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
    /// A thread is in one such call at a time.
    static NUMBERS: Numbers = Numbers::below(RESERVED_TAGS);
    let hidden = get(COMM_SELF)?.hidden;
    let taken = NUMBERS.take().ok_or_else(|| {
        Error::new(
            ERR_NO_MEM,
            "too many threads are in blocking collectives at once",
        )
    })?;
    let waited = wait_beside(call, hidden, reserved_tag(taken));
    NUMBERS.give_back(taken);
    waited
}

fn wait_beside(call: impl FnOnce() -> c_int, hidden: rg::Group, tag: c_int) -> Result {
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
