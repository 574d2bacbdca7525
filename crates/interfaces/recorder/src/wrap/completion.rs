//! Completion of what was begun. A receive that completes tells whose message it has.

use std::ffi::{c_int, c_void};

use regatta_abi::{ERR_TRUNCATED, Group, OK, Request, Status};
use regatta_record::Call;

use super::note::NO_STATUS;
use crate::span::Span;
use crate::{real, requests};

/// Notes the message of a request that was there before the call, if it is complete now.
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

/// The requests of a list, as they are before a call.
///
/// # Safety
/// There are `n` of them, if it is positive.
unsafe fn ids(n: c_int, requests: *const Request) -> Vec<u64> {
    let n = usize::try_from(n).unwrap_or_default();
    if requests.is_null() {
        return Vec::new();
    }
    // SAFETY: as the caller promises.
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
    // SAFETY: the C contract: NULL, or a request.
    let before = unsafe { request.as_ref() }.map_or(0, |request| request.id);
    // SAFETY: the function of this name has this signature; the arguments are as they came, or the status is ours.
    let result = unsafe { real::rg_wait(request, status) };
    // SAFETY: likewise; the status is there in any case.
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
    // SAFETY: the C contract: NULL, or a request.
    let before = unsafe { request.as_ref() }.map_or(0, |request| request.id);
    // SAFETY: as in `rg_wait`.
    let result = unsafe { real::rg_test(request, done, status) };
    // SAFETY: likewise.
    if let (Some(request), status) = unsafe { (request.as_ref(), &*status) } {
        if request.id != 0 {
            span.found_nothing();
        }
        note(&mut span, before, request, status);
    }
    span.leave(result)
}

/// A list of requests around a call that may complete several of them.
struct List {
    before: Vec<u64>,
    own: Vec<Status>,
}

impl List {
    /// # Safety
    /// There are `n` requests, if it is positive.
    unsafe fn new(n: c_int, requests: *const Request, statuses: &mut *mut Status) -> List {
        // SAFETY: as the caller promises.
        let before = unsafe { ids(n, requests) };
        let mut own = Vec::new();
        if statuses.is_null() && !before.is_empty() {
            own = vec![NO_STATUS; before.len()];
            *statuses = own.as_mut_ptr();
        }
        List { before, own }
    }

    /// Notes the messages of those that are complete. `statuses` is the pointer that `new` has left, and still is there.
    ///
    /// # Safety
    /// There are as many requests, and statuses or none, as before.
    unsafe fn note(self, span: &mut Span, requests: *const Request, statuses: *const Status) {
        if statuses.is_null() || self.before.iter().all(|&id| id == 0) {
            return;
        }
        for (at, &before) in self.before.iter().enumerate() {
            // SAFETY: `at` is below their number.
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
    // SAFETY: the C contract: so many requests.
    let list = unsafe { List::new(n, requests, &mut statuses) };
    // SAFETY: as in `rg_wait`.
    let result = unsafe { real::rg_waitall(n, requests, statuses) };
    // SAFETY: the C contract: as many statuses, or ours.
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
    // SAFETY: the C contract: so many requests.
    let list = unsafe { List::new(n, requests, &mut statuses) };
    // SAFETY: as in `rg_wait`.
    let result = unsafe { real::rg_testall(n, requests, done, statuses) };
    // SAFETY: the C contract: NULL, or a number that the call has written.
    if unsafe { done.as_ref() }.is_none_or(|done| *done == 0) {
        span.found_nothing();
    }
    // SAFETY: the C contract: as many statuses, or ours.
    unsafe { list.note(&mut span, requests, statuses) };
    span.leave(result)
}

/// Notes the one of a list that is complete.
///
/// # Safety
/// There are this many requests; index and status were written, or are as before.
unsafe fn note_one(
    span: &mut Span,
    before: &[u64],
    requests: *const Request,
    (index, status): (c_int, &Status),
) {
    let at = usize::try_from(index).unwrap_or(usize::MAX);
    if let Some(&before) = before.get(at) {
        // SAFETY: `at` is below their number.
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
    // SAFETY: the C contract: so many requests.
    let before = unsafe { ids(n, requests) };
    // SAFETY: as in `rg_wait`.
    let result = unsafe { real::rg_waitany(n, requests, index, status) };
    // SAFETY: the C contract, or ours.
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
    // SAFETY: the C contract: so many requests.
    let before = unsafe { ids(n, requests) };
    // SAFETY: as in `rg_wait`.
    let result = unsafe { real::rg_testany(n, requests, index, done, status) };
    // SAFETY: the C contract, or ours.
    if unsafe { *done } == 0 {
        span.found_nothing();
    } else {
        // SAFETY: likewise.
        unsafe { note_one(&mut span, &before, requests, (*index, &*status)) };
    }
    span.leave(result)
}

/// A function of the program that is called when a request is complete.
type Callback = unsafe extern "C" fn(*const Status, *mut c_void);

/// A program's function, in whose place ours is called.
struct Later {
    done: Callback,
    argument: *mut c_void,
    group: Option<Group>,
}

/// Notes the message of a receive, and calls the program's function.
unsafe extern "C" fn completed(status: *const Status, later: *mut c_void) {
    // SAFETY: what `rg_on_complete` below has made, once.
    let later = unsafe { Box::from_raw(later.cast::<Later>()) };
    // SAFETY: the C contract.
    if let (Some(group), Some(status)) = (later.group, unsafe { status.as_ref() })
        && (status.error == OK || status.error == ERR_TRUNCATED)
    {
        const CALL: Call = Call::named("rg_on_complete");
        let mut span = Span::enter(CALL);
        span.received(group, status);
        span.leave(OK);
    }
    // SAFETY: the program's function, with its argument.
    unsafe { (later.done)(status, later.argument) };
}

pub(super) unsafe fn rg_on_complete(
    request: *mut Request,
    done: Option<Callback>,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the C contract: NULL, or a request.
    let id = unsafe { request.as_ref() }.map_or(0, |request| request.id);
    let (Some(function), Some(group)) = (done, requests::completed(id)) else {
        // SAFETY: the function of this name has this signature, and the arguments are as they came.
        return unsafe { real::rg_on_complete(request, done, arg) };
    };
    let later = Box::into_raw(Box::new(Later {
        done: function,
        argument: arg,
        group: Some(group),
    }));
    let (done, arg) = (Some(completed as Callback), later.cast::<c_void>());
    // SAFETY: likewise, with our function and its argument.
    let result = unsafe { real::rg_on_complete(request, done, arg) };
    if result != OK {
        // SAFETY: nobody will call our function.
        drop(unsafe { Box::from_raw(later) });
        requests::began(Request { id }, group);
    }
    result
}
