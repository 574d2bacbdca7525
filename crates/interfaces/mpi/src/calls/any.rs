//! Waiting for one or some of several requests.

use std::ffi::c_int;

use regatta_sys as rg;

use super::completion::{Outcome, array, operation_outcome, plain_outcome, summary};
use super::testing::SomeOf;
use crate::abi::*;
use crate::arguments::Out;
use crate::error::{Result, checked, not_null};
use crate::progress::{self, Waited};
use crate::requests::{FoundRequest, LockedOperation, State, find};

/// The engine's requests for which a call waits.
struct Waiting {
    /// One for each request of the call, null unless that is a plain one, followed by those of operations.
    requests: Vec<rg::Request>,
    /// The communicators of the call's plain requests, read beforehand: once a request is complete, its slot may belong
    /// to another request.
    comms: Vec<Comm>,
    operations: Vec<Part>,
    /// Operations that other threads have locked.
    elsewhere: Vec<FoundRequest>,
    /// Whether any request is neither null nor inactive.
    pending: bool,
}

/// An operation whose engine requests the call waits for.
struct Part {
    /// The index of its first request.
    begin: usize,
    operation: LockedOperation,
}

/// The result of waiting for one of several requests.
enum Found {
    /// All are null or inactive.
    None,
    /// The index of a complete request, with its outcome.
    One(usize, Outcome),
}

/// Waits until one of the requests is complete.
fn wait_for_any(all: &mut [Request]) -> Result<Found> {
    loop {
        let mut waiting = Waiting::for_some_of(all.len());
        for (index, &request) in all.iter().enumerate() {
            if request != REQUEST_NULL && waiting.add(index, request)? {
                drop(waiting);
                let outcome = operation_outcome(&mut all[index])?;
                return Ok(Found::One(index, outcome));
            }
        }
        if !waiting.pending {
            return Ok(Found::None);
        }
        let mut got = rg::Status::default();
        let held = waiting.operations.iter();
        let held: Vec<usize> = held.map(|part| part.operation.address()).collect();
        match progress::wait_once(&waiting.requests, &held, &waiting.elsewhere, &mut got) {
            Waited::Complete(at, code) => match waiting.comms.get(at) {
                Some(&comm) => {
                    let found = FoundRequest::of_plain(waiting.requests[at], comm);
                    drop(waiting);
                    let outcome = plain_outcome(&mut all[at], found, &got, code)?;
                    return Ok(Found::One(at, outcome));
                }
                None => waiting.tell(at, &got, code),
            },
            Waited::Advanced => {}
            Waited::Failed(code) => checked(code)?,
        }
    }
}

impl Waiting {
    fn for_some_of(count: usize) -> Self {
        Waiting {
            requests: vec![rg::REQUEST_NULL; count],
            comms: vec![COMM_NULL; count],
            operations: Vec::new(),
            elsewhere: Vec::new(),
            pending: false,
        }
    }

    /// Adds a request to those waited for. Returns whether it is an operation that is already complete.
    fn add(&mut self, index: usize, request: Request) -> Result<bool> {
        let found = find(request)?;
        if let Some(plain) = found.plain() {
            self.requests[index] = plain;
            self.comms[index] = found.comm();
            self.pending = true;
            return Ok(false);
        }
        let Some(operation) = found.try_operation() else {
            self.elsewhere.push(found);
            self.pending = true;
            return Ok(false);
        };
        let Some(inner) = operation.as_ref() else {
            return Ok(false);
        };
        match inner.state() {
            State::Inactive => return Ok(false),
            State::Complete => return Ok(true),
            // Every waiting call advances it, so it is not locked meanwhile.
            State::Pending if inner.has_stages() => {}
            State::Pending => {
                let begin = self.requests.len();
                self.requests.extend_from_slice(inner.waits_for());
                self.operations.push(Part { begin, operation });
            }
        }
        self.pending = true;
        Ok(false)
    }

    /// Notifies the operation that one of its engine requests is complete.
    fn tell(&mut self, at: usize, got: &rg::Status, code: c_int) {
        let part = self.operations.iter_mut().rfind(|part| part.begin <= at);
        if let Some(part) = part
            && let Some(operation) = part.operation.as_mut()
        {
            operation.completed(at - part.begin, got, code);
        }
    }
}

pub unsafe fn waitany(
    count: c_int,
    array_of_requests: *mut Request,
    indx: Out<c_int>,
    status: *mut Status,
) -> Result {
    // SAFETY: the caller guarantees that the array has this many elements.
    let all = unsafe { array(count, array_of_requests)? };
    let (index, (found, result)) = match wait_for_any(all)? {
        Found::None => (UNDEFINED, (Status::empty(ANY_SOURCE), Ok(()))),
        Found::One(index, outcome) => (index as c_int, outcome),
    };
    indx.put(index);
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { found.store(status) };
    result
}

pub unsafe fn waitsome(
    incount: c_int,
    array_of_requests: *mut Request,
    outcount: Out<c_int>,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result {
    // SAFETY: the caller guarantees that the arrays have this many elements.
    unsafe {
        let all = array(incount, array_of_requests)?;
        if !all.is_empty() {
            not_null(array_of_indices, "array_of_indices")?;
        }
        let mut some = SomeOf {
            outcount,
            indices: array_of_indices,
            statuses: array_of_statuses,
            failed: None,
        };
        match wait_for_any(all)? {
            Found::None => {
                outcount.put(UNDEFINED);
                Ok(())
            }
            Found::One(index, outcome) => {
                outcount.put(0);
                some.add(index, outcome);
                some.complete(all)?;
                summary(some.failed)
            }
        }
    }
}
