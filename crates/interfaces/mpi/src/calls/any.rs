//! Waiting for one or some of several requests.

use std::ffi::c_int;
use std::sync::MutexGuard;

use regatta_sys as rg;

use super::completion::{Outcome, array, operation_outcome, plain_outcome, summary};
use super::testing::SomeOf;
use crate::abi::*;
use crate::error::{Result, not_null};
use crate::progress;
use crate::requests::{FoundRequest, Operation, State, find};

/// The requests of the engine's for which a call waits.
#[derive(Default)]
struct Waiting<'a> {
    requests: Vec<rg::Request>,
    parts: Vec<Part<'a>>,
    /// Operations that advance in every call that waits, whoever locks them then.
    staged: bool,
}

/// The requests of one request of the call's.
struct Part<'a> {
    /// Of the call's request.
    index: usize,
    /// Of its first one of the engine's.
    begin: usize,
    found: FoundRequest,
    /// None, of a plain one.
    operation: Option<MutexGuard<'a, Option<Box<dyn Operation>>>>,
}

/// How one of several requests is found.
enum Found {
    /// All are null or inactive.
    None,
    /// This one, with its outcome.
    One(usize, Outcome),
}

/// Waits until one is complete.
fn wait_for_any(all: &mut [Request]) -> Result<Found> {
    loop {
        let mut waiting = Waiting::default();
        for (index, &request) in all.iter().enumerate() {
            if request != REQUEST_NULL && waiting.add(index, request)? {
                drop(waiting);
                let outcome = operation_outcome(&mut all[index])?;
                return Ok(Found::One(index, outcome));
            }
        }
        if waiting.requests.is_empty() && !waiting.staged {
            return Ok(Found::None);
        }
        let mut got = rg::Status::default();
        let Some((at, code)) = progress::wait_once(&mut waiting.requests, &mut got) else {
            continue;
        };
        if let Some((index, found)) = waiting.tell(at, &got, code) {
            drop(waiting);
            let outcome = plain_outcome(&mut all[index], found, &got, code)?;
            return Ok(Found::One(index, outcome));
        }
    }
}

impl Waiting<'_> {
    /// Waits for this one, too; whether it is an operation that is complete.
    fn add(&mut self, index: usize, request: Request) -> Result<bool> {
        let begin = self.requests.len();
        let found = find(request)?;
        if let Some(plain) = found.plain() {
            self.requests.push(plain);
            self.parts.push(Part {
                index,
                begin,
                found,
                operation: None,
            });
            return Ok(false);
        }
        let Some(operation) = found.try_operation() else {
            self.staged = true;
            return Ok(false);
        };
        let Some(inner) = operation.as_ref() else {
            return Ok(false);
        };
        match inner.state() {
            State::Inactive => return Ok(false),
            State::Complete => return Ok(true),
            State::Pending if inner.has_stages() => self.staged = true,
            State::Pending => {
                self.requests.extend_from_slice(inner.waits_for());
                self.parts.push(Part {
                    index,
                    begin,
                    found,
                    operation: Some(operation),
                });
            }
        }
        Ok(false)
    }

    /// The engine's request in this place is complete: the index of the plain one that it is, as it was found. An operation goes on.
    fn tell(&mut self, at: usize, got: &rg::Status, code: c_int) -> Option<(usize, FoundRequest)> {
        let part = self.parts.iter_mut().rfind(|part| part.begin <= at)?;
        let Some(operation) = &mut part.operation else {
            return Some((part.index, part.found));
        };
        if let Some(inner) = operation.as_mut() {
            inner.completed(at - part.begin, got, code);
        }
        None
    }
}

pub unsafe fn waitany(
    count: c_int,
    array_of_requests: *mut Request,
    indx: *mut c_int,
    status: *mut Status,
) -> Result {
    not_null(indx, "index")?;
    // SAFETY: the caller's array.
    let all = unsafe { array(count, array_of_requests)? };
    let (index, (found, result)) = match wait_for_any(all)? {
        Found::None => (UNDEFINED, (Status::empty(ANY_SOURCE), Ok(()))),
        Found::One(index, outcome) => (index as c_int, outcome),
    };
    // SAFETY: the caller's pointers.
    unsafe {
        *indx = index;
        found.store(status);
    }
    result
}

pub unsafe fn waitsome(
    incount: c_int,
    array_of_requests: *mut Request,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result {
    not_null(outcount, "outcount")?;
    // SAFETY: the caller's arrays.
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
                *outcount = UNDEFINED;
                Ok(())
            }
            Found::One(index, outcome) => {
                *outcount = 0;
                some.add(index, outcome);
                some.complete(all)?;
                summary(some.failed)
            }
        }
    }
}
