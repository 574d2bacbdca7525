//! A request of the engine as an operation, for combining it with others.

use std::ffi::c_int;

use regatta_sys as rg;

use super::{Operation, State};
use crate::abi::*;
use crate::communicator::status_of;
use crate::error::{Result, checked};

/// A request of the engine that transfers its bytes directly.
pub struct Single {
    request: [rg::Request; 1],
    comm: Comm,
    outcome: Option<(Status, Result)>,
}

impl Single {
    /// Returns an operation for a request of the engine in this communicator.
    pub fn new(request: rg::Request, comm: Comm) -> Single {
        Single {
            request: [request],
            comm,
            outcome: None,
        }
    }

    /// Returns a complete operation with this status.
    pub fn complete(status: Status) -> Single {
        Single {
            request: [rg::REQUEST_NULL],
            comm: COMM_NULL,
            outcome: Some((status, Ok(()))),
        }
    }
}

impl Operation for Single {
    fn state(&self) -> State {
        match self.outcome {
            Some(_) => State::Complete,
            None => State::Pending,
        }
    }

    fn waits_for(&self) -> &[rg::Request] {
        &self.request
    }

    fn completed(&mut self, _index: usize, status: &rg::Status, code: c_int) {
        self.request = [rg::REQUEST_NULL];
        let mut status = status_of(self.comm, status);
        let result = match code {
            rg::ERR_CANCELLED => {
                status.set_cancelled(true);
                Ok(())
            }
            code => checked(code),
        };
        self.outcome = Some((status, result));
    }

    fn finish(&mut self) -> (Status, Result) {
        let empty = || (Status::empty(ANY_SOURCE), Ok(()));
        self.outcome.take().unwrap_or_else(empty)
    }

    fn look(&self) -> Status {
        let outcome = self.outcome.as_ref();
        outcome.map_or(Status::empty(ANY_SOURCE), |(status, _)| *status)
    }

    /// Cancels the request, unless it is complete.
    fn cancel(&mut self) -> Result {
        match self.outcome {
            Some(_) => Ok(()),
            None => cancel(self.request[0]),
        }
    }
}

/// Cancels a receive that has not matched, or tries to cancel a send.
pub fn cancel(request: rg::Request) -> Result {
    let mut cancelled = 0;
    // SAFETY: the engine checks requests at each use; the call may write `cancelled`.
    checked(unsafe { rg::rg_cancel(request, &mut cancelled) })
}

/// Lets a request of the engine be freed when it is complete.
pub fn detach(mut request: rg::Request) {
    unsafe extern "C" fn nothing(_status: *const rg::Status, _arg: *mut std::ffi::c_void) {}
    // A complete request is freed at once: after cancelling it the program may never call MPI again.
    let mut done = 0;
    // SAFETY: the request belongs to the engine; the call may write the answer.
    unsafe { rg::rg_test(&mut request, &mut done, std::ptr::null_mut()) };
    if request != rg::REQUEST_NULL && done == 0 {
        // SAFETY: the callback accepts any arguments and uses none.
        unsafe { rg::rg_on_complete(&mut request, Some(nothing), std::ptr::null_mut()) };
    }
}
