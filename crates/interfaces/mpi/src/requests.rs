//! Requests.
//!
//! A request is *plain* if it is a request of the engine that transfers its bytes directly, as most are: then its slot
//! has the engine's request, and nothing else needs to be done. All others are [`Operation`]s: state machines that are
//! notified when the engine's requests that they wait for are complete.
//!
//! Slots are never freed, only reused. A handle is compared with that of its slot at each use. A plain request is in
//! the slot with the number of the engine's slot. For operations each thread keeps some free slots. So neither needs a
//! lock.

mod chunk;
mod lock;
mod operation;
mod pair;
mod persistent;
mod plain;
mod single;
mod slots;

pub use lock::LockedOperation;
pub use operation::{Operation, State};
pub use pair::Pair;
pub use persistent::Persistent;
pub use plain::COMPLETE;
pub use single::{Single, cancel, detach};
pub use slots::{FoundRequest, comms_in_use, find, open};

use std::ffi::c_int;

use regatta_sys as rg;

use crate::abi::*;
use crate::error::{Result, checked};
use crate::progress;

/// Returns a request for a request of the engine.
#[inline(always)]
pub fn plain(request: rg::Request, comm: Comm) -> Result<Request> {
    match plain::open(request, comm) {
        Some(opened) => Ok(opened),
        None => of_operation(Box::new(Single::new(request, comm)), comm),
    }
}

/// Converts a request of the engine, which the engine has just written to `request`, to an MPI request. Fails if `code`
/// is an error.
///
/// # Safety
/// `request` is valid for reads and writes.
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

/// Returns a request for an operation. If it has several stages, it begins to advance.
pub fn of_operation(operation: Box<dyn Operation>, comm: Comm) -> Result<Request> {
    let stages = operation.has_stages();
    let request = slots::take(operation, comm)?;
    if stages {
        progress::add(request);
    }
    Ok(request)
}

/// Takes the operation out of a request and frees the request.
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

/// Frees a request that is complete or that the program has freed. `found` was read before completion: the slot of a
/// complete plain request may have another request by now.
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

/// Frees a request whose operation the caller has locked; see [`release`].
pub fn release_held(request: Request, operation: LockedOperation) {
    progress::remove(request);
    slots::give_back_held(request, operation);
}

/// Returns the engine's request of a plain request, and its communicator. Returns `None` for other requests.
#[inline(always)]
pub fn plain_of(request: Request) -> Option<(rg::Request, Comm)> {
    plain::find(request)
}

/// Frees a complete plain request. `found` was its engine request.
#[inline(always)]
pub fn release_plain(found: rg::Request) {
    plain::close(found);
}
