//! Completes requests that are complete or will be soon: the fast path of `rg_wait` and `rg_waitall`. A request that takes longer is left to the
//! waiting policy (`wait`). So are all requests while callbacks are due: these run first, in the call that follows this one.

use regatta_engine::{Handle, Status};

use crate::fast::POLLS_BEFORE_REQUEST;
use crate::state::{PROCESS, Process, enter_or};

/// Completes requests, in order, while they are complete without error or will be soon. Returns their number.
#[inline(always)]
pub fn settle(handles: impl Iterator<Item = Handle>) -> usize {
    settle_each(handles, |_, _, _| ())
}

/// Does the same as [`settle`], and passes the index and status of each to `told`.
#[inline(always)]
pub fn settle_told(
    handles: impl Iterator<Item = Handle>,
    mut told: impl FnMut(usize, Status),
) -> usize {
    settle_each(handles, |process, index, status| {
        told(index, process.in_ranks(status))
    })
}

#[inline(always)]
fn settle_each(
    handles: impl Iterator<Item = Handle>,
    mut each: impl FnMut(&Process, usize, Status),
) -> usize {
    enter_or!(try_enter, process, 0);
    if process.engine.has_due_callbacks() {
        return 0;
    }
    let mut settled = 0;
    // A request that is not complete soon is left to the waiting policy. So is one for which another thread may have to enter.
    let spins = process.pace.spins() && !PROCESS.is_shared();
    let mut looks = if spins { POLLS_BEFORE_REQUEST / 10 } else { 0 };
    for handle in handles {
        let status = loop {
            if let Some(status) = process.engine.settle(handle) {
                break status;
            }
            if looks == 0 {
                return settled;
            }
            looks -= 1;
            process.engine.progress();
        };
        each(process, settled, status);
        settled += 1;
    }
    settled
}
