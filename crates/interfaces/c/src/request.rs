//! Completion: waiting, testing, callbacks, cancelling, the descriptor.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use regatta_process::{self as process, Error, Handle, Result, Status};

use crate::error::{OK, answer, argument, code, fail};
use crate::memory::{RgRequest, RgStatus, output};
use crate::message::{report, report_result};

// RG_REQUEST_COMPLETE is the engine's handle of a completed operation.
const _: () = assert!(Handle::COMPLETE.0 == 1 << 63);

/// Returns the engine's handle of a request. For RG_REQUEST_NULL this is the handle of a completed operation.
#[inline(always)]
fn handle(request: &RgRequest) -> Handle {
    match request.id {
        0 => Handle::COMPLETE,
        id => Handle(id),
    }
}

/// Returns the requests of an array. Fails if `n` is negative, or if `requests` is NULL and `n` is positive.
fn array<'a>(n: c_int, requests: *mut RgRequest) -> Result<&'a mut [RgRequest]> {
    let n = usize::try_from(n).map_err(|_| argument("a negative number of requests"))?;
    if n == 0 {
        return Ok(&mut []);
    }
    if requests.is_null() {
        return Err(argument("requests is NULL and n positive"));
    }
    // SAFETY: the C program guarantees that `requests` points to `n` requests.
    Ok(unsafe { std::slice::from_raw_parts_mut(requests, n) })
}

fn at(statuses: *mut RgStatus, index: usize) -> *mut RgStatus {
    if statuses.is_null() {
        return statuses;
    }
    // SAFETY: the C program guarantees one status per request, and `statuses` is not NULL.
    unsafe { statuses.add(index) }
}

/// Completes a call that has no request to complete, with an empty status.
fn nothing_to_wait_for(status: *mut RgStatus) -> c_int {
    report_result(
        process::check_process().map(|()| (Status::EMPTY, None)),
        status,
    )
}

#[unsafe(no_mangle)]
extern "C" fn rg_wait(request: *mut RgRequest, status: *mut RgStatus) -> c_int {
    let request = match output(request, "request") {
        Ok(request) => request,
        Err(error) => return fail(&error),
    };
    if request.id == 0 {
        return nothing_to_wait_for(status);
    }
    if settle(std::slice::from_ref(request), status) == 1 {
        request.id = 0;
        return OK;
    }
    let result = process::wait(handle(request));
    used_up(request, &result);
    report_result(result, status)
}

/// Completes requests in order, starting with the first, up to one that is not complete without error, or soon will be. Returns
/// the number of completed requests. Does not set them to null.
#[inline(always)]
fn settle(requests: &[RgRequest], statuses: *mut RgStatus) -> usize {
    let open = requests.iter().map(handle);
    match statuses.is_null() {
        true => process::settle(open),
        false => process::settle_told(open, |index, status| {
            report(&status, None, at(statuses, index));
        }),
    }
}

/// Sets a request to null if it has been completed. Leaves it unchanged if the call itself failed.
fn used_up<T>(request: &mut RgRequest, result: &Result<T>) {
    if result.is_ok() {
        request.id = 0;
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_test(request: *mut RgRequest, done: *mut c_int, status: *mut RgStatus) -> c_int {
    let both = output(request, "request").and_then(|r| Ok((r, output(done, "done")?)));
    let (request, done) = match both {
        Ok(both) => both,
        Err(error) => return fail(&error),
    };
    if request.id == 0 {
        *done = 1;
        return nothing_to_wait_for(status);
    }
    match process::test(handle(request)) {
        Ok(Some((told, error))) => {
            *done = 1;
            request.id = 0;
            report(&told, error.as_ref(), status)
        }
        Ok(None) => {
            *done = 0;
            OK
        }
        Err(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_look(request: RgRequest, done: *mut c_int, status: *mut RgStatus) -> c_int {
    let done = match output(done, "done") {
        Ok(done) => done,
        Err(error) => return fail(&error),
    };
    *done = 1;
    if request.id == 0 {
        return nothing_to_wait_for(status);
    }
    match process::look_at(handle(&request)) {
        Ok(Some((told, error))) => report(&told, error.as_ref(), status),
        Ok(None) => {
            *done = 0;
            OK
        }
        Err(error) => {
            *done = 0;
            fail(&error)
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_waitall(n: c_int, requests: *mut RgRequest, statuses: *mut RgStatus) -> c_int {
    let requests = match array(n, requests) {
        Ok(requests) => requests,
        Err(error) => return fail(&error),
    };
    let settled = settle(requests, statuses);
    let (over, open) = requests.split_at_mut(settled);
    for request in over {
        request.id = 0;
    }
    if open.is_empty() {
        return match settled {
            0 => answer(process::check_process()),
            _ => OK,
        };
    }
    finish_all(open, at(statuses, settled))
}

/// Waits for all requests. Returns the code of the first error.
fn finish_all(requests: &mut [RgRequest], statuses: *mut RgStatus) -> c_int {
    let mut first: Option<Error> = None;
    let open = requests.iter().map(handle);
    let mut finished = 0;
    let result = process::wait_all(open, |index, status, error| {
        finished = index + 1;
        if !statuses.is_null() {
            report(&status, error.as_ref(), at(statuses, index));
        }
        if let Some(error) = error {
            first.get_or_insert(error);
        }
    });
    for request in &mut requests[..finished] {
        request.id = 0;
    }
    match result.err().or(first) {
        None => OK,
        Some(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_testall(
    n: c_int,
    requests: *mut RgRequest,
    done: *mut c_int,
    statuses: *mut RgStatus,
) -> c_int {
    let both = array(n, requests).and_then(|r| Ok((r, output(done, "done")?)));
    let (requests, done) = match both {
        Ok(both) => both,
        Err(error) => return fail(&error),
    };
    let open = requests.iter().filter(|request| request.id != 0);
    match process::all_done(open.map(handle)) {
        Ok(all) => {
            *done = all as c_int;
            if all {
                finish_all(requests, statuses)
            } else {
                OK
            }
        }
        Err(error) => fail(&error),
    }
}

/// Returns the handle of a request, unless it is null.
fn open(request: &RgRequest) -> Option<Handle> {
    (request.id != 0).then_some(handle(request))
}

#[unsafe(no_mangle)]
extern "C" fn rg_waitany(
    n: c_int,
    requests: *mut RgRequest,
    index: *mut c_int,
    status: *mut RgStatus,
) -> c_int {
    let both = array(n, requests).and_then(|r| Ok((r, output(index, "index")?)));
    let (requests, index) = match both {
        Ok(both) => both,
        Err(error) => return fail(&error),
    };
    if requests.iter().all(|request| request.id == 0) {
        *index = -1;
        return nothing_to_wait_for(status);
    }
    match process::wait_any(requests.len(), |at| open(&requests[at])) {
        Ok(found) => {
            *index = found as c_int;
            rg_wait(&mut requests[found], status)
        }
        Err(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_testany(
    n: c_int,
    requests: *mut RgRequest,
    index: *mut c_int,
    done: *mut c_int,
    status: *mut RgStatus,
) -> c_int {
    let all =
        array(n, requests).and_then(|r| Ok((r, output(index, "index")?, output(done, "done")?)));
    let (requests, index, done) = match all {
        Ok(all) => all,
        Err(error) => return fail(&error),
    };
    (*index, *done) = (-1, 1);
    if requests.iter().all(|request| request.id == 0) {
        return nothing_to_wait_for(status);
    }
    match process::test_any(requests.len(), |at| open(&requests[at])) {
        Ok(Some(found)) => {
            *index = found as c_int;
            rg_wait(&mut requests[found], status)
        }
        Ok(None) => {
            *done = 0;
            OK
        }
        Err(error) => fail(&error),
    }
}

/// The header's `rg_callback`.
type RgCallback = extern "C" fn(*const RgStatus, *mut c_void);

struct Argument(*mut c_void);
// SAFETY: the pointer is only passed back to the user's function, and never dereferenced here.
unsafe impl Send for Argument {}

#[unsafe(no_mangle)]
extern "C" fn rg_on_complete(
    request: *mut RgRequest,
    done: Option<RgCallback>,
    arg: *mut c_void,
) -> c_int {
    let both = output(request, "request")
        .and_then(|r| Ok((r, done.ok_or_else(|| argument("done is NULL"))?)));
    let (request, done) = match both {
        Ok(both) => both,
        Err(error) => return fail(&error),
    };
    let arg = Argument(arg);
    let result = process::on_complete(
        handle(request),
        Box::new(move |status, error| {
            let arg = arg;
            let told = RgStatus {
                source: status.source,
                tag: status.tag,
                length: status.length,
                error: error.as_ref().map_or(OK, code),
                reserved: 0,
            };
            done(&told, { arg }.0);
        }),
    );
    used_up(request, &result);
    answer(result)
}

/// The header's `rg_asked`. Called while a call waits; sets its first argument to end the wait.
type RgAsked = extern "C" fn(*mut c_int, *mut c_void);

#[unsafe(no_mangle)]
extern "C" fn rg_on_wait(asked: Option<RgAsked>, arg: *mut c_void) -> c_int {
    let arg = AtomicPtr::new(arg);
    process::set_interrupt(asked.map(|asked| -> process::Interrupt {
        Arc::new(move || {
            let mut ends = 0;
            asked(&mut ends, arg.load(Ordering::Relaxed));
            ends != 0
        })
    }));
    OK
}

#[unsafe(no_mangle)]
extern "C" fn rg_cancel(request: RgRequest, cancelled: *mut c_int) -> c_int {
    if request.id == 0 {
        let known = process::check_process().and(Err(Error::Handle("request")));
        return answer(known);
    }
    match process::cancel(handle(&request)) {
        Ok(done) => {
            if let Ok(place) = output(cancelled, "cancelled") {
                *place = done as c_int;
            }
            OK
        }
        Err(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_progress() -> c_int {
    answer(process::progress())
}

#[unsafe(no_mangle)]
extern "C" fn rg_fd(fd: *mut c_int) -> c_int {
    let result = output(fd, "fd").and_then(|place| {
        *place = process::descriptor()?;
        Ok(())
    });
    answer(result)
}

#[unsafe(no_mangle)]
extern "C" fn rg_clear_fd() -> c_int {
    answer(process::clear_descriptor())
}

#[unsafe(no_mangle)]
extern "C" fn rg_raise_fd() -> c_int {
    answer(process::raise_descriptor())
}
