//! Calls that complete requests. When a receive completes, its message is recorded.

use std::ffi::{c_int, c_void};

use regatta_abi::{ERR_TRUNCATED, Group, OK, Request, Status};
use regatta_record::Call;

use super::note::NO_STATUS;
use crate::span::Span;
use crate::{real, requests};

/// Records the message of a request that existed before the call, if the call has completed it.
fn note(span: &mut Span, before: u64, now: &Request, status: &Status) {
    if before == 0 || now.id != 0 {
        return;
    }
    if let Some(group) = requests::completed(before)
        && (status.error == OK || status.error == ERR_TRUNCATED)
    {
        span.received(group, status);
    }
}

/// Returns the ids of a list of requests before a call.
///
/// # Safety
/// `requests` must be NULL or point to `n` requests if `n` is positive.
unsafe fn ids(n: c_int, requests: *const Request) -> Vec<u64> {
    let n = usize::try_from(n).unwrap_or_default();
    if requests.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller guarantees that `requests` points to `n` requests.
    let requests = unsafe { std::slice::from_raw_parts(requests, n) };
    requests.iter().map(|request| request.id).collect()
}

pub(super) unsafe fn rg_wait(request: *mut Request, status: *mut Status) -> c_int {
    const CALL: Call = Call::named("rg_wait");
    let mut span = Span::enter(CALL);
    let mut own = NO_STATUS;
    let status = match status.is_null() {
        true => &raw mut own,
        false => status,
    };
    // SAFETY: the program guarantees that `request` is NULL or valid.
    let before = unsafe { request.as_ref() }.map_or(0, |request| request.id);
    // SAFETY: the function of this name has this signature; the arguments are the program's, or valid memory of this function.
    let result = unsafe { real::rg_wait(request, status) };
    // SAFETY: `request` is NULL or valid, and `status` is valid.
    if let (Some(request), status) = unsafe { (request.as_ref(), &*status) } {
        note(&mut span, before, request, status);
    }
    span.leave(result)
}

pub(super) unsafe fn rg_test(
    request: *mut Request,
    done: *mut c_int,
    status: *mut Status,
) -> c_int {
    const CALL: Call = Call::named("rg_test");
    let mut span = Span::enter(CALL);
    let mut own = NO_STATUS;
    let status = match status.is_null() {
        true => &raw mut own,
        false => status,
    };
    // SAFETY: the program guarantees that `request` is NULL or valid.
    let before = unsafe { request.as_ref() }.map_or(0, |request| request.id);
    // SAFETY: the function of this name has this signature; the arguments are the program's, or valid memory of this function.
    let result = unsafe { real::rg_test(request, done, status) };
    // SAFETY: `request` is NULL or valid, and `status` is valid.
    if let (Some(request), status) = unsafe { (request.as_ref(), &*status) } {
        if request.id != 0 {
            span.found_nothing();
        }
        note(&mut span, before, request, status);
    }
    span.leave(result)
}

/// A list of requests before a call that may complete several of them.
struct List {
    before: Vec<u64>,
    own: Vec<Status>,
}

impl List {
    /// Makes a list before the call. If there are no statuses, sets `statuses` to memory of the list.
    ///
    /// # Safety
    /// `requests` must be NULL or point to `n` requests if `n` is positive.
    unsafe fn new(n: c_int, requests: *const Request, statuses: &mut *mut Status) -> List {
        // SAFETY: the caller guarantees that `requests` points to `n` requests.
        let before = unsafe { ids(n, requests) };
        let mut own = Vec::new();
        if statuses.is_null() && !before.is_empty() {
            own = vec![NO_STATUS; before.len()];
            *statuses = own.as_mut_ptr();
        }
        List { before, own }
    }

    /// Records the messages of completed requests. `statuses` is the pointer after `new`, and still valid.
    ///
    /// # Safety
    /// `requests` and, unless NULL, `statuses` must have as many entries as were given to `new`.
    unsafe fn note(self, span: &mut Span, requests: *const Request, statuses: *const Status) {
        if statuses.is_null() || self.before.iter().all(|&id| id == 0) {
            return;
        }
        for (at, &before) in self.before.iter().enumerate() {
            // SAFETY: `at` is below the number of requests and statuses.
            let (request, status) = unsafe { (&*requests.add(at), &*statuses.add(at)) };
            note(span, before, request, status);
        }
        drop(self.own);
    }
}

pub(super) unsafe fn rg_waitall(
    n: c_int,
    requests: *mut Request,
    mut statuses: *mut Status,
) -> c_int {
    const CALL: Call = Call::named("rg_waitall");
    let mut span = Span::enter(CALL);
    // SAFETY: the program guarantees that `requests` points to `n` requests.
    let list = unsafe { List::new(n, requests, &mut statuses) };
    // SAFETY: the function of this name has this signature; the arguments are the program's, or valid memory of this function.
    let result = unsafe { real::rg_waitall(n, requests, statuses) };
    // SAFETY: `requests` points to `n` requests, and `statuses` to `n` statuses of the program or of `list`, or is NULL.
    unsafe { list.note(&mut span, requests, statuses) };
    span.leave(result)
}

pub(super) unsafe fn rg_testall(
    n: c_int,
    requests: *mut Request,
    done: *mut c_int,
    mut statuses: *mut Status,
) -> c_int {
    const CALL: Call = Call::named("rg_testall");
    let mut span = Span::enter(CALL);
    // SAFETY: the program guarantees that `requests` points to `n` requests.
    let list = unsafe { List::new(n, requests, &mut statuses) };
    // SAFETY: the function of this name has this signature; the arguments are the program's, or valid memory of this function.
    let result = unsafe { real::rg_testall(n, requests, done, statuses) };
    // SAFETY: the program guarantees that `done` is NULL or valid.
    if unsafe { done.as_ref() }.is_none_or(|done| *done == 0) {
        span.found_nothing();
    }
    // SAFETY: `requests` points to `n` requests, and `statuses` to `n` statuses of the program or of `list`, or is NULL.
    unsafe { list.note(&mut span, requests, statuses) };
    span.leave(result)
}

/// Records the message of the request of a list that the call has completed.
///
/// # Safety
/// `requests` must have as many entries as `before`.
unsafe fn note_one(
    span: &mut Span,
    before: &[u64],
    requests: *const Request,
    (index, status): (c_int, &Status),
) {
    let at = usize::try_from(index).unwrap_or(usize::MAX);
    if let Some(&before) = before.get(at) {
        // SAFETY: `at` is below the number of requests.
        note(span, before, unsafe { &*requests.add(at) }, status);
    }
}

pub(super) unsafe fn rg_waitany(
    n: c_int,
    requests: *mut Request,
    index: *mut c_int,
    status: *mut Status,
) -> c_int {
    const CALL: Call = Call::named("rg_waitany");
    let mut span = Span::enter(CALL);
    let (mut own, mut own_index) = (NO_STATUS, -1);
    let status = match status.is_null() {
        true => &raw mut own,
        false => status,
    };
    let index = match index.is_null() {
        true => &raw mut own_index,
        false => index,
    };
    // SAFETY: the program guarantees that `requests` points to `n` requests.
    let before = unsafe { ids(n, requests) };
    // SAFETY: the function of this name has this signature; the arguments are the program's, or valid memory of this function.
    let result = unsafe { real::rg_waitany(n, requests, index, status) };
    // SAFETY: `requests` points to `n` requests; `index` and `status` are valid.
    unsafe { note_one(&mut span, &before, requests, (*index, &*status)) };
    span.leave(result)
}

pub(super) unsafe fn rg_testany(
    n: c_int,
    requests: *mut Request,
    index: *mut c_int,
    done: *mut c_int,
    status: *mut Status,
) -> c_int {
    const CALL: Call = Call::named("rg_testany");
    let mut span = Span::enter(CALL);
    let (mut own, mut own_index, mut own_done) = (NO_STATUS, -1, 0);
    let status = match status.is_null() {
        true => &raw mut own,
        false => status,
    };
    let index = match index.is_null() {
        true => &raw mut own_index,
        false => index,
    };
    let done = match done.is_null() {
        true => &raw mut own_done,
        false => done,
    };
    // SAFETY: the program guarantees that `requests` points to `n` requests.
    let before = unsafe { ids(n, requests) };
    // SAFETY: the function of this name has this signature; the arguments are the program's, or valid memory of this function.
    let result = unsafe { real::rg_testany(n, requests, index, done, status) };
    // SAFETY: `done` is valid.
    if unsafe { *done } == 0 {
        span.found_nothing();
    } else {
        // SAFETY: `requests` points to `n` requests; `index` and `status` are valid.
        unsafe { note_one(&mut span, &before, requests, (*index, &*status)) };
    }
    span.leave(result)
}

/// A function of the program to call when a request completes.
type Callback = unsafe extern "C" fn(*const Status, *mut c_void);

/// The program's callback and its argument, which `completed` calls.
struct Later {
    done: Callback,
    argument: *mut c_void,
    group: Option<Group>,
}

/// Records the message of a receive, and calls the program's callback.
unsafe extern "C" fn completed(status: *const Status, later: *mut c_void) {
    // SAFETY: `rg_on_complete` below made `later` with `Box::into_raw`, and this is called once.
    let later = unsafe { Box::from_raw(later.cast::<Later>()) };
    // SAFETY: libregatta.so passes a status that is valid during the callback.
    if let (Some(group), Some(status)) = (later.group, unsafe { status.as_ref() })
        && (status.error == OK || status.error == ERR_TRUNCATED)
    {
        const CALL: Call = Call::named("rg_on_complete");
        let mut span = Span::enter(CALL);
        span.received(group, status);
        span.leave(OK);
    }
    // SAFETY: the program has passed this function and this argument to `rg_on_complete`.
    unsafe { (later.done)(status, later.argument) };
}

pub(super) unsafe fn rg_on_complete(
    request: *mut Request,
    done: Option<Callback>,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the program guarantees that `request` is NULL or valid.
    let id = unsafe { request.as_ref() }.map_or(0, |request| request.id);
    let (Some(function), Some(group)) = (done, requests::completed(id)) else {
        // SAFETY: the function of this name has this signature, and the arguments are the program's.
        return unsafe { real::rg_on_complete(request, done, arg) };
    };
    let later = Box::into_raw(Box::new(Later {
        done: function,
        argument: arg,
        group: Some(group),
    }));
    let (done, arg) = (Some(completed as Callback), later.cast::<c_void>());
    // SAFETY: the function of this name has this signature, and `completed` takes `later` as its argument.
    let result = unsafe { real::rg_on_complete(request, done, arg) };
    if result != OK {
        // SAFETY: the call has failed, so `completed` will not be called and `later` has no other owner.
        drop(unsafe { Box::from_raw(later) });
        requests::began(Request { id }, group);
    }
    result
}
