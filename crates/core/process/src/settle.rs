//! Finishing requests that are complete, or soon are: the fast path of `rg_wait` and `rg_waitall`. A request that takes longer is left to the waiting policy (`wait`),
//! and so is everything while callbacks are due: they run first, in the call that comes after this one.

use regatta_engine::{Handle, Status};

use crate::message::LOOKS;
use crate::state::{PROCESS, Process, inside_or};

/// Finish a request that is complete without error, or soon is: its status.
#[inline(always)]
pub fn settle(handle: Handle) -> Option<Status> {
    inside_or!(enter_now, process, None);
    if process.engine.has_due_callbacks() {
        return None;
    }
    let mut looks = looks(process);
    let status = settle_soon(process, handle, &mut looks)?;
    Some(process.in_ranks(status))
}

/// Finish requests that are complete without error, or soon are, from the first on; how many.
#[inline(always)]
pub fn settle_in_order(handles: impl Iterator<Item = Handle> + Clone) -> usize {
    settle_each(handles, None::<fn(usize, Status)>)
}

/// As [`settle_in_order`]; the status of each is told with its place.
#[inline(always)]
pub fn settle_told(
    handles: impl Iterator<Item = Handle> + Clone,
    told: impl FnMut(usize, Status),
) -> usize {
    settle_each(handles, Some(told))
}

#[inline(always)]
fn settle_each(
    mut handles: impl Iterator<Item = Handle> + Clone,
    mut told: Option<impl FnMut(usize, Status)>,
) -> usize {
    inside_or!(enter_now, process, 0);
    if process.engine.has_due_callbacks() {
        return 0;
    }
    let (mut settled, mut looks) = (0, looks(process));
    while let Some(handle) = handles.next() {
        // As most small sends are: nothing else need be looked at.
        if handle == Handle::COMPLETE {
            if let Some(told) = &mut told {
                told(settled, Status::EMPTY);
            }
            settled += 1;
            continue;
        }
        let Some(status) = settle_soon(process, handle, &mut looks) else {
            return settled;
        };
        if let Some(told) = &mut told {
            told(settled, process.in_ranks(status));
        }
        settled += 1;
        settled += settle_run(process, &mut handles, settled, &mut told);
    }
    settled
}

/// How often a look may be in vain. An operation that takes longer is the waiting policy's, and so is one that another thread may have to enter for.
#[inline(always)]
fn looks(process: &Process) -> u32 {
    match process.pace.spins() && !PROCESS.is_shared() {
        true => LOOKS / 10,
        false => 0,
    }
}

#[inline(always)]
fn settle_soon(process: &mut Process, handle: Handle, looks: &mut u32) -> Option<Status> {
    loop {
        let status = process.engine.settle(handle);
        if status.is_some() || *looks == 0 {
            return status;
        }
        *looks -= 1;
        process.engine.progress();
    }
}

/// Finish the requests that come next, as far as they are the oldest receives and their messages are there; how many. The first of them has place `at`.
#[inline(always)]
fn settle_run(
    process: &mut Process,
    handles: &mut (impl Iterator<Item = Handle> + Clone),
    mut at: usize,
    told: &mut Option<impl FnMut(usize, Status)>,
) -> usize {
    let Some(told) = told else {
        return process.engine.settle_run(handles, |_| ());
    };
    let Some(common) = process.engine.oldest_receives() else {
        return 0;
    };
    let common = process.in_ranks(common);
    process.engine.settle_run(handles, |length| {
        let status = Status {
            length,
            ..common.clone()
        };
        told(at, status);
        at += 1;
    })
}
