//! Requests.
//!
//! A request is *plain* if it is one of the engine's whose bytes go where they are to be, which most are: then its slot
//! holds the engine's request, and no more is to be done. All others are [`Operation`]s: state machines that are told which
//! of the engine's requests they wait for are complete.
//!
//! Slots are never freed, only used again; a handle is compared with its slot's at each use. To take a slot and to give
//! it back costs no lock: each thread keeps some free ones.

mod operation;
mod pair;
mod persistent;
mod single;
mod slots;

pub use operation::{Operation, State};
pub use pair::Pair;
pub use persistent::Persistent;
pub use single::{Single, cancel, detach};
pub use slots::{COMPLETE, Content, Slot, any_in, open, slot};

use std::ffi::c_int;

use regatta_sys as rg;

use crate::abi::*;
use crate::error::{Result, checked};
use crate::progress;

/// A request for one of the engine's.
#[inline(always)]
pub fn plain(request: rg::Request, comm: Comm) -> Result<Request> {
    if request == rg::REQUEST_COMPLETE {
        return Ok(COMPLETE);
    }
    slots::take(|slot| slot.fill_plain(request, comm))
}

/// Makes a request of the engine's, which the engine has just written where one of MPI's is to be, one of MPI's; or says why there is none.
///
/// # Safety
/// `request` may be read and written.
#[inline(never)]
pub unsafe fn begun(code: c_int, comm: Comm, request: *mut Request) -> Result {
    checked(code)?;
    // SAFETY: the caller's promise.
    unsafe {
        let begun = *request.cast::<rg::Request>();
        *request = plain(begun, comm)?;
    }
    Ok(())
}

/// A request for an operation, which begins to advance.
pub fn of_operation(operation: Box<dyn Operation>, comm: Comm) -> Result<Request> {
    let stages = operation.has_stages();
    let request = slots::take(|slot| slot.fill(operation, comm))?;
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
    let slot = slot(request)?;
    let comm = slot.comm();
    let operation = match slot.plain() {
        Some(plain) => Some(Box::new(Single::new(plain, comm)) as Box<dyn Operation>),
        None => slot.operation().take(),
    };
    release(request);
    Ok(operation.unwrap_or_else(|| Box::new(Single::complete(Status::empty(ANY_SOURCE)))))
}

/// Forgets a request that is complete, or that nobody wants to hear of any more.
pub fn release(request: Request) {
    progress::remove(request);
    slots::give_back(request);
}
