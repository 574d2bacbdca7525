//! Waiting for one request or for all of several requests; outcomes of complete requests.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use regatta_sys as rg;

use crate::abi::*;
use crate::communicator::status_of;
use crate::error::{Error, Object, Result, checked};
use crate::progress;
use crate::requests::{self, COMPLETE, FoundRequest, State, find};

/// The outcome of a complete request: its status, and its own error.
pub(crate) type Outcome = (Status, Result);

/// Returns the outcome of a request that is null or inactive.
pub(crate) fn nothing() -> Outcome {
    (Status::empty(ANY_SOURCE), Ok(()))
}

/// Returns the array of requests of a call.
///
/// # Safety
/// The array has this many elements, or is null.
pub(crate) unsafe fn array<'a>(count: c_int, requests: *mut Request) -> Result<&'a mut [Request]> {
    match usize::try_from(count) {
        Err(_) => Err(Error::new(
            ERR_COUNT,
            format!("the count is {count}; it must be 0 or more"),
        )),
        Ok(0) => Ok(&mut []),
        Ok(_) if requests.is_null() => Err(Error::new(
            ERR_REQUEST,
            "the array of requests is a null pointer",
        )),
        // SAFETY: the caller upholds the safety contract of this function.
        Ok(count) => Ok(unsafe { std::slice::from_raw_parts_mut(requests, count) }),
    }
}

/// Waits for one request. It is null afterwards unless it is persistent.
#[inline(always)]
pub(crate) fn wait_for(request: &mut Request) -> Result<Outcome> {
    if *request == REQUEST_NULL {
        return Ok(nothing());
    }
    if *request == COMPLETE {
        *request = REQUEST_NULL;
        return Ok((Status::empty(PROC_NULL), Ok(())));
    }
    let found = find(*request)?;
    let Some(mut plain) = found.plain() else {
        progress::wait_operation(*request)?;
        return operation_outcome(request);
    };
    let mut got = rg::Status::default();
    let code = if progress::is_idle() {
        // SAFETY: the request belongs to the engine, and the status may be written.
        unsafe { rg::rg_wait(&mut plain, &mut got) }
    } else {
        progress::wait(plain, &mut got)
    };
    plain_outcome(request, found, &got, code)
}

/// Returns the outcome of a complete plain request and releases its slot. `found` was read before completion.
#[inline(always)]
pub(crate) fn plain_outcome(
    request: &mut Request,
    found: FoundRequest,
    got: &rg::Status,
    code: c_int,
) -> Result<Outcome> {
    let comm = found.comm();
    if code == rg::ERR_CYCLE {
        // Only the wait has failed: the send goes on.
        return Err(Error::of_engine(code).on(Object::Comm(comm)));
    }
    let mut status = status_of(comm, got);
    let code = match code {
        rg::ERR_CANCELLED => {
            status.set_cancelled(true);
            rg::OK
        }
        code => code,
    };
    requests::release(*request, found);
    *request = REQUEST_NULL;
    Ok((
        status,
        checked(code).map_err(|error| error.on(Object::Comm(comm))),
    ))
}

/// Returns the outcome of a complete operation, or an empty one if the operation is inactive.
pub(crate) fn operation_outcome(request: &mut Request) -> Result<Outcome> {
    let found = find(*request)?;
    let mut operation = found.operation();
    let Some(inner) = operation.as_mut() else {
        return Ok(nothing());
    };
    if inner.state() == State::Inactive {
        return Ok(nothing());
    }
    let (status, result) = inner.finish();
    let result = result.map_err(|error| error.on(Object::Comm(found.comm())));
    let persistent = inner.is_persistent();
    drop(operation);
    if persistent {
        progress::remove(*request);
    } else {
        requests::release(*request, found);
        *request = REQUEST_NULL;
    }
    Ok((status, result))
}

pub unsafe fn wait(request: &mut Request, status: *mut Status) -> Result {
    let (found, result) = wait_for(request)?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { found.store(status) };
    result
}

/// Maximum number of plain requests that are passed to the engine at a time.
const AT_ONCE: usize = 32;

pub unsafe fn waitall(
    count: c_int,
    array_of_requests: *mut Request,
    array_of_statuses: *mut Status,
) -> Result {
    // SAFETY: the caller guarantees that the array has this many elements.
    let all = unsafe { array(count, array_of_requests)? };
    let mut failed = None;
    let mut index = 0;
    while index < all.len() {
        if all[index] == COMPLETE && array_of_statuses.is_null() {
            all[index] = REQUEST_NULL;
            index += 1;
            continue;
        }
        let mut plain = Plain::default();
        index += match plain.gather(&all[index..]) {
            0 => {
                let outcome = wait_for(&mut all[index])?;
                // SAFETY: the caller guarantees that the array is null or has one status for each request.
                unsafe { store(outcome, array_of_statuses, index, &mut failed) };
                1
            }
            // SAFETY: the caller guarantees that the array is null or has one status for each request.
            many => unsafe {
                let part = &mut all[index..index + many];
                plain.wait(part, array_of_statuses, index, &mut failed)?;
                many
            },
        };
    }
    summary(failed)
}

/// Plain requests that are waited for together. The arrays stay uninitialized where they are not used: zeroing a
/// kilobyte would take longer than a message.
struct Plain {
    requests: [MaybeUninit<rg::Request>; AT_ONCE],
    /// The requests as they were before completion: afterwards other requests may have their slots.
    found: [MaybeUninit<(rg::Request, Comm)>; AT_ONCE],
    statuses: [MaybeUninit<rg::Status>; AT_ONCE],
}

impl Default for Plain {
    #[inline(always)]
    fn default() -> Plain {
        Plain {
            requests: [const { MaybeUninit::uninit() }; AT_ONCE],
            found: [const { MaybeUninit::uninit() }; AT_ONCE],
            statuses: [const { MaybeUninit::uninit() }; AT_ONCE],
        }
    }
}

impl Plain {
    /// Takes the plain requests at the front and returns their number. Takes none while other operations have to
    /// advance.
    #[inline(always)]
    fn gather(&mut self, all: &[Request]) -> usize {
        if !progress::is_idle() {
            return 0;
        }
        let most = all.len().min(AT_ONCE);
        for (index, request) in all[..most].iter().enumerate() {
            let Some(found) = requests::plain_of(*request) else {
                return index;
            };
            self.requests[index].write(found.0);
            self.found[index].write(found);
        }
        most
    }

    /// Waits for the gathered requests.
    ///
    /// # Safety
    /// `all` are the gathered requests. `statuses` is null, or has a status for each request of the call; these
    /// requests begin at index `first`.
    #[inline(always)]
    unsafe fn wait(
        &mut self,
        all: &mut [Request],
        statuses: *mut Status,
        first: usize,
        failed: &mut Option<Error>,
    ) -> Result {
        let count = all.len() as c_int;
        let (plain, got) = (self.requests.as_mut_ptr(), self.statuses.as_mut_ptr());
        // SAFETY: both arrays have this length.
        let code = unsafe { rg::rg_waitall(count, plain.cast(), got.cast()) };
        for (index, request) in all.iter_mut().enumerate() {
            // SAFETY: `gather` wrote both.
            let (left, (plain, comm)) = unsafe {
                let left = self.requests[index].assume_init();
                (left, self.found[index].assume_init())
            };
            if left != rg::REQUEST_NULL {
                // Only the wait has failed: this request goes on.
                return Err(Error::of_engine(code).on(Object::Comm(comm)));
            }
            // SAFETY: the engine writes a status for each request that it sets to null.
            let got = unsafe { self.statuses[index].assume_init_ref() };
            if got.error == rg::OK && statuses.is_null() {
                requests::release_plain(plain);
                *request = REQUEST_NULL;
                continue;
            }
            let found = FoundRequest::of_plain(plain, comm);
            let outcome = plain_outcome(request, found, got, got.error)?;
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { store(outcome, statuses, first + index, failed) };
        }
        Ok(())
    }
}

/// Writes the status of one of several requests, including its error. Keeps the first error in `failed`.
///
/// # Safety
/// `statuses` is null or has more than `index` elements.
#[inline(always)]
pub(crate) unsafe fn store(
    outcome: Outcome,
    statuses: *mut Status,
    index: usize,
    failed: &mut Option<Error>,
) {
    let (status, result) = outcome;
    if !statuses.is_null() {
        let error = result.as_ref().map_or_else(Error::class, |()| SUCCESS);
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            let place = statuses.add(index);
            status.store(place);
            (*place).error = error;
        }
    }
    if let Err(error) = result
        && failed.is_none()
    {
        *failed = Some(error);
    }
}

/// Returns the error of a call for several requests, whose own errors are in the statuses.
pub(crate) fn summary(failed: Option<Error>) -> Result {
    match failed {
        None => Ok(()),
        Some(error) => {
            let text = format!(
                "a request failed (each status has its error): {}",
                error.text()
            );
            let summary = Error::new(ERR_IN_STATUS, text);
            // The error is raised on the request's object, whose handler the program chose, rather than on no object.
            Err(match error.object() {
                Some(object) => summary.on(object),
                None => summary,
            })
        }
    }
}
