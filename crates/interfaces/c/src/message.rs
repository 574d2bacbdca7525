//! Sends, receives and probes.

use std::ffi::{c_int, c_void};
use std::time::Duration;

use regatta_process::{
    self as process, Came, Error, Mode, Result, SentLine, Status, TagSelect, Views,
};

use crate::error::{NOTHING, OK, answer, argument, code, fail};
use crate::memory::{
    GroupHandle, RgGroup, RgRequest, RgStatus, RgView, block, block_unchecked, is_block, output,
    strided,
};

/// Writes the status of an operation to `place`, unless it is NULL. Returns the operation's code.
#[inline(always)]
pub(crate) fn report(status: &Status, error: Option<&Error>, place: *mut RgStatus) -> c_int {
    let result = match error {
        None => OK,
        Some(error) => fail(error),
    };
    if !place.is_null() {
        let told = RgStatus {
            source: status.source,
            tag: status.tag,
            length: status.length,
            error: error.map_or(OK, code),
            reserved: 0,
        };
        // SAFETY: the C program guarantees that a status pointer is valid, and `place` is not NULL.
        unsafe { place.write(told) };
    }
    result
}

#[inline(always)]
pub(crate) fn report_result(
    result: Result<(Status, Option<Error>)>,
    place: *mut RgStatus,
) -> c_int {
    match result {
        Ok((status, error)) => report(&status, error.as_ref(), place),
        Err(error) => report(&Status::EMPTY, Some(&error), place),
    }
}

#[inline(never)]
fn send(views: Result<Views>, to: c_int, tag: c_int, group: RgGroup, mode: Mode) -> c_int {
    answer(views.and_then(|views| process::send(views, to, tag, group.id(), mode)))
}

/// Writes the handle of a started operation to `place`. Returns the code of the call.
#[inline(always)]
pub(crate) fn started(result: Result<process::Handle>, place: *mut RgRequest) -> c_int {
    let handle = match result {
        Ok(handle) => handle,
        Err(error) => return fail(&error),
    };
    match output(place, "request") {
        Ok(request) => {
            request.id = handle.0;
            OK
        }
        // Unreachable: callers check the pointer before they start an operation, which could never be completed otherwise.
        Err(error) => fail(&error),
    }
}

#[inline(never)]
fn start_send(
    views: Result<Views>,
    to: c_int,
    tag: c_int,
    group: RgGroup,
    mode: Mode,
    request: *mut RgRequest,
) -> c_int {
    let checked = output(request, "request").and(views);
    started(
        checked.and_then(|views| process::start_send(views, to, tag, group.id(), mode)),
        request,
    )
}

#[inline(never)]
fn receive(
    views: Result<Views>,
    from: c_int,
    tag: TagSelect,
    group: RgGroup,
    status: *mut RgStatus,
) -> c_int {
    let result = views.and_then(|views| process::receive(views, from, tag, group.id()));
    report_result(result, status)
}

#[inline(never)]
fn start_receive(
    views: Result<Views>,
    from: c_int,
    tag: TagSelect,
    group: RgGroup,
    request: *mut RgRequest,
) -> c_int {
    let checked = output(request, "request").and(views);
    started(
        checked.and_then(|views| process::start_receive(views, from, tag, group.id())),
        request,
    )
}

#[unsafe(no_mangle)]
extern "C" fn rg_send(
    buf: *const c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
) -> c_int {
    match sent_in_line(buf, len, to, tag, group) {
        SentLine::Yes => OK,
        SentLine::ToSleeper => wake(to),
        SentLine::No => send_otherwise(buf, len, to, tag, group),
    }
}

#[inline(never)]
extern "C" fn send_otherwise(
    buf: *const c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
) -> c_int {
    if sent_at_once(buf, len, to, tag, group) {
        return OK;
    }
    send(block(buf, len), to, tag, group, Mode::Standard)
}

#[unsafe(no_mangle)]
extern "C" fn rg_ssend(
    buf: *const c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
) -> c_int {
    send(block(buf, len), to, tag, group, Mode::Synchronous)
}

#[unsafe(no_mangle)]
extern "C" fn rg_rsend(
    buf: *const c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
) -> c_int {
    rg_send(buf, len, to, tag, group)
}

/// Writes the status of a message that the fast path has received. Returns `OK`.
#[inline(always)]
fn received(from: c_int, tag: c_int, length: usize, status: *mut RgStatus) -> c_int {
    if !status.is_null() {
        let told = RgStatus {
            source: from,
            tag,
            length,
            error: OK,
            reserved: 0,
        };
        // SAFETY: the C program guarantees that `status` is valid, and it is not NULL.
        unsafe { status.write(told) };
    }
    OK
}

#[unsafe(no_mangle)]
extern "C" fn rg_recv(
    buf: *mut c_void,
    capacity: usize,
    from: c_int,
    tag: c_int,
    group: RgGroup,
    status: *mut RgStatus,
) -> c_int {
    if is_block(buf, capacity) {
        let into = block_unchecked(buf, capacity);
        if from != process::ANY && tag != process::ANY {
            if let Some(length) = process::try_receive_as_owner(&into, from, tag, group.id()) {
                return received(from, tag, length, status);
            }
        } else if let Some((from, tag, length)) =
            process::try_receive_any_as_owner(&into, from, tag, group.id(), true)
        {
            return received(from, tag, length, status);
        }
    }
    let tag = process::tag_select(tag);
    receive(block(buf, capacity), from, tag, group, status)
}

#[unsafe(no_mangle)]
extern "C" fn rg_recv_masked(
    buf: *mut c_void,
    capacity: usize,
    from: c_int,
    tag: c_int,
    mask: c_int,
    group: RgGroup,
    status: *mut RgStatus,
) -> c_int {
    let tag = TagSelect::Masked { wanted: tag, mask };
    receive(block(buf, capacity), from, tag, group, status)
}

#[unsafe(no_mangle)]
extern "C" fn rg_sendrecv(
    sbuf: *const c_void,
    slen: usize,
    to: c_int,
    stag: c_int,
    rbuf: *mut c_void,
    rcapacity: usize,
    from: c_int,
    rtag: c_int,
    group: RgGroup,
    status: *mut RgStatus,
) -> c_int {
    let result = sendrecv(
        (block(sbuf, slen), to, stag),
        (block(rbuf, rcapacity), from, process::tag_select(rtag)),
        group,
    );
    report_result(result, status)
}

fn sendrecv(
    (message, to, stag): (Result<Views>, c_int, c_int),
    (into, from, rtag): (Result<Views>, c_int, TagSelect),
    group: RgGroup,
) -> Result<(Status, Option<Error>)> {
    let (message, into) = (message?, into?);
    // Checks the receive before the send starts, because a failed call must have no effect.
    process::check_receive(from, rtag, group.id())?;
    let sent = process::start_send(message, to, stag, group.id(), Mode::Standard)?;
    let received = process::receive(into, from, rtag, group.id());
    let error = process::end_send(sent).err();
    let (status, own) = received?;
    Ok((status, own.or(error)))
}

#[unsafe(no_mangle)]
extern "C" fn rg_bsend(
    buf: *const c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
) -> c_int {
    match sent_in_line(buf, len, to, tag, group) {
        SentLine::Yes => OK,
        SentLine::ToSleeper => wake(to),
        SentLine::No => bsend_otherwise(buf, len, to, tag, group),
    }
}

#[inline(never)]
extern "C" fn bsend_otherwise(
    buf: *const c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
) -> c_int {
    if sent_at_once(buf, len, to, tag, group) {
        return OK;
    }
    send_kept(block(buf, len), to, tag, group)
}

#[inline(never)]
fn send_kept(views: Result<Views>, to: c_int, tag: c_int, group: RgGroup) -> c_int {
    answer(views.and_then(|views| process::send_kept(views, to, tag, group.id())))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_bsendv(
    views: *const RgView,
    n: c_int,
    to: c_int,
    tag: c_int,
    group: RgGroup,
) -> c_int {
    // SAFETY: the C program guarantees that `views` points to `n` views.
    let views = unsafe { strided(views, n) };
    let at_once = |views: &Views| process::try_send(views, to, tag, group.id());
    if views.as_ref().is_ok_and(at_once) {
        return OK;
    }
    send_kept(views, to, tag, group)
}

#[unsafe(no_mangle)]
extern "C" fn rg_recv_within(
    buf: *mut c_void,
    capacity: usize,
    from: c_int,
    tag: c_int,
    group: RgGroup,
    seconds: f64,
    status: *mut RgStatus,
) -> c_int {
    if is_block(buf, capacity)
        && let Some((source, tag, length)) = process::try_receive_any_as_owner(
            &block_unchecked(buf, capacity),
            from,
            tag,
            group.id(),
            seconds != 0.0,
        )
    {
        return received(source, tag, length, status);
    }
    let patience = Duration::try_from_secs_f64(seconds).ok();
    receive_within(block(buf, capacity), from, tag, group, patience, status)
}

#[inline(never)]
fn receive_within(
    views: Result<Views>,
    from: c_int,
    tag: c_int,
    group: RgGroup,
    patience: Option<Duration>,
    place: *mut RgStatus,
) -> c_int {
    let tag = process::tag_select(tag);
    let came = views.and_then(|views| {
        let capacity = views.len();
        let (came, error) = process::receive_within(views, from, tag, group.id(), patience)?;
        Ok((came, error, capacity))
    });
    report_came(came, place)
}

#[unsafe(no_mangle)]
extern "C" fn rg_recv_passed(
    buf: *mut c_void,
    capacity: usize,
    from: c_int,
    tag: c_int,
    group: RgGroup,
    status: *mut RgStatus,
) -> c_int {
    let tag = process::tag_select(tag);
    let came = block(buf, capacity).and_then(|views| {
        let (came, error) = process::receive_passed(views, from, tag, group.id())?;
        Ok((came, error, capacity))
    });
    report_came(came, status)
}

#[unsafe(no_mangle)]
extern "C" fn rg_pass_over() -> c_int {
    answer(process::pass_over())
}

/// Writes the status of a message that was received within a time, if any. Returns the code of the call.
fn report_came(came: Result<(Came, Option<Error>, usize)>, place: *mut RgStatus) -> c_int {
    match came {
        Ok((Came::Whole(status), error, _)) => report(&status, error.as_ref(), place),
        Ok((Came::TooLong(status), _, capacity)) => {
            let error = Error::Truncated {
                length: status.length,
                capacity,
            };
            report(&status, Some(&error), place)
        }
        Ok((Came::Nothing, ..)) => {
            // `NOTHING` does not set the thread's last error.
            let _ = report(&Status::EMPTY, None, place);
            NOTHING
        }
        Err(error) => report(&Status::EMPTY, Some(&error), place),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_isend(
    buf: *const c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
    request: *mut RgRequest,
) -> c_int {
    if request.is_null() {
        return isend_otherwise(buf, len, to, tag, group, request);
    }
    let sent = sent_in_line(buf, len, to, tag, group);
    if sent == SentLine::No {
        return isend_otherwise(buf, len, to, tag, group, request);
    }
    // SAFETY: the C program guarantees that `request` is valid, and it is not NULL.
    unsafe { (*request).id = process::Handle::COMPLETE.0 };
    match sent {
        SentLine::ToSleeper => wake(to),
        _ => OK,
    }
}

#[inline(never)]
extern "C" fn isend_otherwise(
    buf: *const c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
    request: *mut RgRequest,
) -> c_int {
    if !request.is_null() && sent_at_once(buf, len, to, tag, group) {
        // SAFETY: the C program guarantees that `request` is valid, and it is not NULL.
        unsafe { (*request).id = process::Handle::COMPLETE.0 };
        return OK;
    }
    start_send(block(buf, len), to, tag, group, Mode::Standard, request)
}

/// Tries to send a small message at once, in a line of the ring, by the fastest path.
#[inline(always)]
fn sent_in_line(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: RgGroup) -> SentLine {
    match len <= process::LINE && is_block(buf, len) {
        true => process::try_send_as_owner(&block_unchecked(buf, len), to, tag, group.id()),
        false => SentLine::No,
    }
}

/// Tries to send a message at once. Returns `false` if nothing has been sent.
#[inline(always)]
fn sent_at_once(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: RgGroup) -> bool {
    is_block(buf, len) && process::try_send(&block_unchecked(buf, len), to, tag, group.id())
}

/// Wakes the receiver of a message that was sent while it sleeps. Returns `OK`.
#[cold]
#[inline(never)]
extern "C" fn wake(to: c_int) -> c_int {
    process::wake_receiver(to);
    OK
}

#[unsafe(no_mangle)]
extern "C" fn rg_issend(
    buf: *const c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
    request: *mut RgRequest,
) -> c_int {
    start_send(block(buf, len), to, tag, group, Mode::Synchronous, request)
}

#[unsafe(no_mangle)]
extern "C" fn rg_irsend(
    buf: *const c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
    request: *mut RgRequest,
) -> c_int {
    rg_isend(buf, len, to, tag, group, request)
}

#[unsafe(no_mangle)]
extern "C" fn rg_irecv(
    buf: *mut c_void,
    capacity: usize,
    from: c_int,
    tag: c_int,
    group: RgGroup,
    request: *mut RgRequest,
) -> c_int {
    if !is_block(buf, capacity) || request.is_null() {
        return irecv_otherwise(buf, capacity, from, tag, group, request);
    }
    let into = block_unchecked(buf, capacity);
    match process::try_post_as_owner(&into, from, tag, group.id()) {
        Some(handle) => {
            // SAFETY: the C program guarantees that `request` is valid, and it is not NULL.
            unsafe { (*request).id = handle.0 };
            OK
        }
        None => irecv_otherwise(buf, capacity, from, tag, group, request),
    }
}

#[inline(never)]
extern "C" fn irecv_otherwise(
    buf: *mut c_void,
    capacity: usize,
    from: c_int,
    tag: c_int,
    group: RgGroup,
    request: *mut RgRequest,
) -> c_int {
    if is_block(buf, capacity)
        && !request.is_null()
        && let Some(handle) =
            process::try_post(&block_unchecked(buf, capacity), from, tag, group.id())
    {
        // SAFETY: the C program guarantees that `request` is valid, and it is not NULL.
        unsafe { (*request).id = handle.0 };
        return OK;
    }
    let tag = process::tag_select(tag);
    start_receive(block(buf, capacity), from, tag, group, request)
}

#[unsafe(no_mangle)]
extern "C" fn rg_irecv_masked(
    buf: *mut c_void,
    capacity: usize,
    from: c_int,
    tag: c_int,
    mask: c_int,
    group: RgGroup,
    request: *mut RgRequest,
) -> c_int {
    let tag = TagSelect::Masked { wanted: tag, mask };
    start_receive(block(buf, capacity), from, tag, group, request)
}

#[unsafe(no_mangle)]
extern "C" fn rg_probe(from: c_int, tag: c_int, group: RgGroup, status: *mut RgStatus) -> c_int {
    let found = process::probe(from, process::tag_select(tag), group.id());
    report_result(found.map(|status| (status, None)), status)
}

#[unsafe(no_mangle)]
extern "C" fn rg_iprobe(
    from: c_int,
    tag: c_int,
    group: RgGroup,
    found: *mut c_int,
    status: *mut RgStatus,
) -> c_int {
    let looked = process::probe_now(from, process::tag_select(tag), group.id());
    let looked = looked.and_then(|looked| Ok((looked, output(found, "found")?)));
    match looked {
        Ok((looked, found)) => {
            *found = looked.is_some() as c_int;
            match looked {
                Some(seen) => report(&seen, None, status),
                None => OK,
            }
        }
        Err(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_first_arrived(
    groups: *const RgGroup,
    n: c_int,
    index: *mut c_int,
) -> c_int {
    let looked = || -> Result<Option<usize>> {
        let n = usize::try_from(n).map_err(|_| argument("a negative number of groups"))?;
        if n > 0 && groups.is_null() {
            return Err(argument("groups is NULL and n positive"));
        }
        let index = output(index, "index")?;
        // SAFETY: the C program guarantees that `groups` points to `n` groups.
        let found = process::first_arrived((0..n).map(|at| unsafe { *groups.add(at) }.id()))?;
        *index = found.map_or(-1, |at| at as c_int);
        Ok(found)
    };
    match looked() {
        Ok(Some(_)) => OK,
        Ok(None) => NOTHING,
        Err(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_sendv(
    views: *const RgView,
    n: c_int,
    to: c_int,
    tag: c_int,
    group: RgGroup,
) -> c_int {
    // SAFETY: the C program guarantees that `views` points to `n` views.
    send(unsafe { strided(views, n) }, to, tag, group, Mode::Standard)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_recvv(
    views: *const RgView,
    n: c_int,
    from: c_int,
    tag: c_int,
    group: RgGroup,
    status: *mut RgStatus,
) -> c_int {
    // SAFETY: the C program guarantees that `views` points to `n` views.
    let views = unsafe { strided(views, n) };
    if let Ok(views) = &views
        && let Some(length) = process::try_receive_as_owner(views, from, tag, group.id())
    {
        return received(from, tag, length, status);
    }
    receive(views, from, process::tag_select(tag), group, status)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_isendv(
    views: *const RgView,
    n: c_int,
    to: c_int,
    tag: c_int,
    group: RgGroup,
    request: *mut RgRequest,
) -> c_int {
    // SAFETY: the C program guarantees that `views` points to `n` views.
    let views = unsafe { strided(views, n) };
    start_send(views, to, tag, group, Mode::Standard, request)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_irecvv(
    views: *const RgView,
    n: c_int,
    from: c_int,
    tag: c_int,
    group: RgGroup,
    request: *mut RgRequest,
) -> c_int {
    // SAFETY: the C program guarantees that `views` points to `n` views.
    let views = unsafe { strided(views, n) };
    start_receive(views, from, process::tag_select(tag), group, request)
}
