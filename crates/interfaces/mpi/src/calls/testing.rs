//! Testing requests: completes those that are complete, and leaves the others unchanged.

use std::ffi::c_int;

use regatta_sys as rg;

use super::completion::{
    Outcome, array, nothing, operation_outcome, plain_outcome, store, summary, wait_for,
};
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::status_of;
use crate::error::{Error, Result, checked, not_null};
use crate::progress;
use crate::requests::{State, find};

/// Returns the outcome of a request if it is complete, null or inactive, and `None` if it is pending.
pub(crate) fn test_for(request: &mut Request) -> Result<Option<Outcome>> {
    if *request == REQUEST_NULL {
        return Ok(Some(nothing()));
    }
    if !progress::is_idle() {
        progress::advance();
    }
    let found = find(*request)?;
    if let Some(mut plain) = found.plain() {
        let (mut done, mut got) = (0, rg::Status::default());
        // SAFETY: the request belongs to the engine; the call may write the other arguments.
        let code = unsafe { rg::rg_test(&mut plain, &mut done, &mut got) };
        if done == 0 {
            checked(code)?;
            return Ok(None);
        }
        return plain_outcome(request, found, &got, code).map(Some);
    }
    match look_at(*request)? {
        Look::Pending => Ok(None),
        _ => operation_outcome(request).map(Some),
    }
}

/// The state of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Null, or persistent and not started.
    Inactive,
    Pending,
    /// Complete, with this status.
    Complete(Status),
}

/// Returns the state of a request without completing it.
pub(crate) fn look_at(request: Request) -> Result<Look> {
    if request == REQUEST_NULL {
        return Ok(Look::Inactive);
    }
    let found = find(request)?;
    if let Some(plain) = found.plain() {
        let (mut done, mut got) = (0, rg::Status::default());
        // SAFETY: the engine checks requests at each use; the call may write the other arguments.
        let code = unsafe { rg::rg_look(plain, &mut done, &mut got) };
        if done == 0 {
            checked(code)?;
            return Ok(Look::Pending);
        }
        let mut status = status_of(found.comm(), &got);
        if code == rg::ERR_CANCELLED {
            status.set_cancelled(true);
        }
        return Ok(Look::Complete(status));
    }
    // Another thread has locked the operation because it waits for it.
    let Some(mut operation) = found.try_operation() else {
        return Ok(Look::Pending);
    };
    let Some(inner) = operation.as_mut() else {
        return Ok(Look::Inactive);
    };
    progress::advance_one(inner.as_mut());
    Ok(match inner.state() {
        State::Inactive => Look::Inactive,
        State::Pending => Look::Pending,
        State::Complete => Look::Complete(inner.look()),
    })
}

pub unsafe fn test(request: &mut Request, flag: Out<c_int>, status: *mut Status) -> Result {
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        let outcome = test_for(request)?;
        flag.put(c_int::from(outcome.is_some()));
        let Some((found, result)) = outcome else {
            return Ok(());
        };
        found.store(status);
        result
    }
}

pub unsafe fn testall(
    count: c_int,
    array_of_requests: *mut Request,
    flag: Out<c_int>,
    array_of_statuses: *mut Status,
) -> Result {
    // SAFETY: the caller guarantees that the array has this many elements.
    let all = unsafe { array(count, array_of_requests)? };
    progress::advance();
    for request in all.iter() {
        if look_at(*request)? == Look::Pending {
            flag.put(0);
            return Ok(());
        }
    }
    let mut failed = None;
    for (index, request) in all.iter_mut().enumerate() {
        // None is pending, so this does not block. `test_for` would not do: another thread may have the operation
        // locked.
        let outcome = wait_for(request)?;
        // SAFETY: the caller guarantees that the array is null or has one status for each request.
        unsafe { store(outcome, array_of_statuses, index, &mut failed) };
    }
    flag.put(1);
    summary(failed)
}

/// Returns whether a request is null or inactive.
pub(crate) fn is_inactive(request: Request) -> Result<bool> {
    if request == REQUEST_NULL {
        return Ok(true);
    }
    let found = find(request)?;
    if found.plain().is_some() {
        return Ok(false);
    }
    let operation = found.try_operation();
    let state = operation.map(|operation| operation.as_ref().map(|it| it.state()));
    Ok(matches!(state, Some(None | Some(State::Inactive))))
}

pub unsafe fn testany(
    count: c_int,
    array_of_requests: *mut Request,
    indx: Out<c_int>,
    flag: Out<c_int>,
    status: *mut Status,
) -> Result {
    // SAFETY: the caller guarantees that the array has this many elements.
    let all = unsafe { array(count, array_of_requests)? };
    progress::advance();
    let mut active = false;
    for (index, request) in all.iter_mut().enumerate() {
        if is_inactive(*request)? {
            continue;
        }
        active = true;
        if let Some((found, result)) = test_for(request)? {
            indx.put(index as c_int);
            flag.put(1);
            // SAFETY: the caller guarantees that the pointer is valid.
            unsafe { found.store(status) };
            return result;
        }
    }
    if !active {
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { Status::store_empty(status) };
    }
    indx.put(UNDEFINED);
    flag.put(c_int::from(!active));
    Ok(())
}

/// The complete requests that a call has found.
pub(crate) struct SomeOf<'a> {
    pub(crate) outcount: Out<'a, c_int>,
    pub(crate) indices: *mut c_int,
    pub(crate) statuses: *mut Status,
    /// The first error.
    pub(crate) failed: Option<Error>,
}

impl SomeOf<'_> {
    /// Adds a complete request.
    ///
    /// # Safety
    /// The indices have room for all requests of the call. So have the statuses, unless they are null.
    pub(crate) unsafe fn add(&mut self, index: usize, outcome: Outcome) {
        // SAFETY: the caller upholds the safety contract of this function; no more are added than there are requests.
        unsafe {
            let place = self.outcount.get() as usize;
            *self.indices.add(place) = index as c_int;
            store(outcome, self.statuses, place, &mut self.failed);
            self.outcount.put(place as c_int + 1);
        }
    }

    /// Completes those requests that are complete. Returns whether any was active.
    ///
    /// # Safety
    /// See [`SomeOf::add`].
    pub(crate) unsafe fn complete(&mut self, all: &mut [Request]) -> Result<bool> {
        let mut active = false;
        for (index, request) in all.iter_mut().enumerate() {
            if is_inactive(*request)? {
                continue;
            }
            active = true;
            if let Some(outcome) = test_for(request)? {
                // SAFETY: the caller upholds the safety contract of this function.
                unsafe { self.add(index, outcome) };
            }
        }
        Ok(active)
    }
}

pub unsafe fn testsome(
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
        progress::advance();
        outcount.put(0);
        let mut some = SomeOf {
            outcount,
            indices: array_of_indices,
            statuses: array_of_statuses,
            failed: None,
        };
        if !some.complete(all)? {
            outcount.put(UNDEFINED);
        }
        summary(some.failed)
    }
}

pub unsafe fn request_get_status(
    request: Request,
    flag: Out<c_int>,
    status: *mut Status,
) -> Result {
    progress::advance();
    let found = look_at(request)?;
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        flag.put(c_int::from(found != Look::Pending));
        match found {
            Look::Inactive => Status::store_empty(status),
            Look::Complete(found) => found.store(status),
            Look::Pending => {}
        }
    }
    Ok(())
}

pub unsafe fn request_get_status_all(
    count: c_int,
    array_of_requests: *const Request,
    flag: Out<c_int>,
    array_of_statuses: *mut Status,
) -> Result {
    // SAFETY: the caller guarantees that the array is valid; the call only reads it.
    let all = unsafe { array(count, array_of_requests.cast_mut())? };
    progress::advance();
    let looks: Result<Vec<Look>> = all.iter().map(|&request| look_at(request)).collect();
    let looks = looks?;
    let complete = !looks.contains(&Look::Pending);
    flag.put(c_int::from(complete));
    for (index, look) in looks.into_iter().enumerate().filter(|_| complete) {
        let status = match look {
            Look::Complete(status) => status,
            _ => Status::empty(ANY_SOURCE),
        };
        if !array_of_statuses.is_null() {
            // SAFETY: the caller guarantees that the array has one status for each request.
            unsafe { status.store(array_of_statuses.add(index)) };
        }
    }
    Ok(())
}

pub unsafe fn request_get_status_any(
    count: c_int,
    array_of_requests: *const Request,
    indx: Out<c_int>,
    flag: Out<c_int>,
    status: *mut Status,
) -> Result {
    // SAFETY: the caller guarantees that the array is valid; the call only reads it.
    let all = unsafe { array(count, array_of_requests.cast_mut())? };
    progress::advance();
    let mut active = false;
    for (index, &request) in all.iter().enumerate() {
        match look_at(request)? {
            Look::Inactive => {}
            Look::Pending => active = true,
            Look::Complete(found) => {
                indx.put(index as c_int);
                flag.put(1);
                // SAFETY: the caller guarantees that the pointer is valid.
                unsafe { found.store(status) };
                return Ok(());
            }
        }
    }
    if !active {
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { Status::store_empty(status) };
    }
    indx.put(UNDEFINED);
    flag.put(c_int::from(!active));
    Ok(())
}

pub unsafe fn request_get_status_some(
    incount: c_int,
    array_of_requests: *const Request,
    outcount: Out<c_int>,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result {
    // SAFETY: the caller guarantees that the array is valid; the call only reads it.
    let all = unsafe { array(incount, array_of_requests.cast_mut())? };
    if !all.is_empty() {
        not_null(array_of_indices, "array_of_indices")?;
    }
    progress::advance();
    let (mut found, mut active) = (0, false);
    for (index, &request) in all.iter().enumerate() {
        let look = look_at(request)?;
        active |= look != Look::Inactive;
        let Look::Complete(status) = look else {
            continue;
        };
        // SAFETY: the caller guarantees that the arrays are valid; no more are found than there are requests.
        unsafe {
            *array_of_indices.add(found) = index as c_int;
            if !array_of_statuses.is_null() {
                status.store(array_of_statuses.add(found));
            }
        }
        found += 1;
    }
    outcount.put(if active { found as c_int } else { UNDEFINED });
    Ok(())
}
