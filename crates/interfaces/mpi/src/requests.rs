//! Requests.
//!
//! A request is *plain* if it is one of the engine's whose bytes go where they are to be, which most are: then its slot
//! holds the engine's request, and no more is to be done. All others are [`Operation`]s: state machines that are told which
//! of the engine's requests they wait for are complete.
//!
//! Slots are never freed, only used again; a handle is compared with its slot's at each use. A plain request stands in the slot of the number that the
//! engine's has; for operations each thread keeps some free slots, so neither needs a lock.

mod chunk;
mod operation;
mod pair;
mod persistent;
mod plain;
mod single;
mod slots;

pub use operation::{Operation, State};
pub use pair::Pair;
pub use persistent::Persistent;
pub use plain::COMPLETE;
pub use single::{Single, cancel, detach};
pub use slots::{FoundRequest, LockedOperation, comms_in_use, find, open};

use std::ffi::c_int;

use regatta_sys as rg;

use crate::abi::*;
use crate::error::{Result, checked};
use crate::progress;

/// A request for one of the engine's.
#[inline(always)]
pub fn plain(request: rg::Request, comm: Comm) -> Result<Request> {
    match plain::open(request, comm) {
        Some(opened) => Ok(opened),
        None => of_operation(Box::new(Single::new(request, comm)), comm),
    }
}

/// Makes a request of the engine's, which the engine has just written where one of MPI's is to be, one of MPI's; or says why there is none.
///
/// # Safety
/// `request` may be read and written.
#[inline(always)]
pub unsafe fn begun(code: c_int, comm: Comm, request: *mut Request) -> Result {
    checked(code)?;
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        let begun = *request.cast::<rg::Request>();
        *request = plain(begun, comm)?;
    }
    Ok(())
}

/// A request for an operation, which begins to advance.
pub fn of_operation(operation: Box<dyn Operation>, comm: Comm) -> Result<Request> {
    let stages = operation.has_stages();
    let request = slots::take(operation, comm)?;
    if stages {
        progress::add(request);
    }
    Ok(request)
}

/// Takes the operation out of a request, which is none any more.
pub fn dissolve(request: Request) -> Result<Box<dyn Operation>> {
    if request == REQUEST_NULL {
        return Ok(Box::new(Single::complete(Status::empty(ANY_SOURCE))));
    }
    let found = find(request)?;
    let comm = found.comm();
    let operation = match found.plain() {
        Some(plain) => Some(Box::new(Single::new(plain, comm)) as Box<dyn Operation>),
        None => found.operation().take(),
    };
    release(request, found);
    Ok(operation.unwrap_or_else(|| Box::new(Single::complete(Status::empty(ANY_SOURCE)))))
}

/// Forgets a request that is complete, or that nobody wants to hear of any more. As it was found: the slot of a plain one that is complete may
/// have another one by now.
#[inline(always)]
pub fn release(request: Request, found: FoundRequest) {
    match found.plain() {
        Some(plain) => plain::close(plain),
        None => release_operation(request),
    }
}

#[inline(never)]
fn release_operation(request: Request) {
    progress::remove(request);
    slots::give_back(request);
}

/// Forgets a request whose operation the caller has locked, as [`release`] does.
pub fn release_held(request: Request, operation: LockedOperation) {
    progress::remove(request);
    slots::give_back_held(request, operation);
}

/// The request of the engine's of a plain one, and its communicator.
#[inline(always)]
pub fn plain_of(request: Request) -> Option<(rg::Request, Comm)> {
    plain::find(request)
}

/// Forgets a plain request that is complete, whose engine's request this was.
#[inline(always)]
pub fn release_plain(found: rg::Request) {
    plain::close(found);
}
