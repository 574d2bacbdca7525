//! Sending and receiving.

use std::ffi::{c_int, c_void};

use regatta_abi::{ERR_TRUNCATED, Group, OK, Request, Status, View};
use regatta_record::Call;

use crate::real::real;
use crate::requests;
use crate::span::Span;
use crate::wrap::wrap;

/// A status to which nothing has been written.
pub(crate) const NO_STATUS: Status = Status {
    source: -1,
    tag: 0,
    length: 0,
    error: 0,
    reserved: 0,
};

/// Bytes of views.
///
/// # Safety
/// There are `n` of them, if it is positive.
unsafe fn length(views: *const View, n: c_int) -> usize {
    let Ok(n) = usize::try_from(n) else { return 0 };
    if views.is_null() {
        return 0;
    }
    // SAFETY: as the caller promises.
    let views = unsafe { std::slice::from_raw_parts(views, n) };
    let bytes = views.iter().map(|view| view.block.wrapping_mul(view.count));
    bytes.fold(0, usize::wrapping_add)
}

/// Notes a receive that was begun.
///
/// # Safety
/// `request` is NULL or was written.
unsafe fn begun(result: c_int, request: *const Request, group: Group) {
    // SAFETY: as the caller promises.
    if let (OK, Some(request)) = (result, unsafe { request.as_ref() }) {
        requests::began(*request, group);
    }
}

wrap! {
    fn rg_send(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group)
        about(group, to) note |span, result| {
        if result == OK {
            span.sent(group, to, tag, len);
        }
    }
    fn rg_ssend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group)
        about(group, to) note |span, result| {
        if result == OK {
            span.sent(group, to, tag, len);
        }
    }
    fn rg_rsend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group)
        about(group, to) note |span, result| {
        if result == OK {
            span.sent(group, to, tag, len);
        }
    }
    fn rg_bsend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group)
        about(group, to) note |span, result| {
        if result == OK {
            span.sent(group, to, tag, len);
        }
    }
    fn rg_sendv(views: *const View, n: c_int, to: c_int, tag: c_int, group: Group)
        about(group, to) note |span, result| {
        if result == OK {
            // SAFETY: the C contract: there are so many views.
            span.sent(group, to, tag, unsafe { length(views, n) });
        }
    }
    fn rg_bsendv(views: *const View, n: c_int, to: c_int, tag: c_int, group: Group)
        about(group, to) note |span, result| {
        if result == OK {
            // SAFETY: likewise.
            span.sent(group, to, tag, unsafe { length(views, n) });
        }
    }
    fn rg_isend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group, request: *mut Request)
        about(group, to) note |span, result| {
        if result == OK {
            span.sent(group, to, tag, len);
        }
    }
    fn rg_issend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group, request: *mut Request)
        about(group, to) note |span, result| {
        if result == OK {
            span.sent(group, to, tag, len);
        }
    }
    fn rg_irsend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group, request: *mut Request)
        about(group, to) note |span, result| {
        if result == OK {
            span.sent(group, to, tag, len);
        }
    }
    fn rg_isendv(views: *const View, n: c_int, to: c_int, tag: c_int, group: Group, request: *mut Request)
        about(group, to) note |span, result| {
        if result == OK {
            // SAFETY: likewise.
            span.sent(group, to, tag, unsafe { length(views, n) });
        }
    }
    fn rg_irecv(buf: *mut c_void, capacity: usize, from: c_int, tag: c_int, group: Group, request: *mut Request)
        about(group, from) note |_span, result| {
        // SAFETY: the C contract, and the call has succeeded.
        unsafe { begun(result, request, group) };
    }
    fn rg_irecv_masked(buf: *mut c_void, capacity: usize, from: c_int, tag: c_int, mask: c_int, group: Group, request: *mut Request)
        about(group, from) note |_span, result| {
        // SAFETY: likewise.
        unsafe { begun(result, request, group) };
    }
    fn rg_irecvv(views: *const View, n: c_int, from: c_int, tag: c_int, group: Group, request: *mut Request)
        about(group, from) note |_span, result| {
        // SAFETY: likewise.
        unsafe { begun(result, request, group) };
    }
    fn rg_probe(from: c_int, tag: c_int, group: Group, status: *mut Status) about(group, from)
    fn rg_iprobe(from: c_int, tag: c_int, group: Group, found: *mut c_int, status: *mut Status)
        about(group, from) note |span, _result| {
        // SAFETY: the C contract: NULL, or a number that the call has written.
        if unsafe { found.as_ref() }.is_none_or(|found| *found == 0) {
            span.found_nothing();
        }
    }
    fn rg_first_arrived(groups: *const Group, n: c_int, index: *mut c_int)
    fn rg_pass_over()
}

/// Receives, which write a status in any case. `whole`: a message that does not fit is received all the same.
macro_rules! receives {
    ($(fn $name:ident($($argument:ident: $type:ty),*; $group:ident, $from:ident; whole $whole:literal))*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type,)* status: *mut Status) -> c_int {
            const CALL: Call = Call::named(stringify!($name));
            let mut span = Span::enter_about(CALL, $group, $from);
            let mut own = NO_STATUS;
            let status = match status.is_null() {
                true => &raw mut own,
                false => status,
            };
            // SAFETY: the function of this name has this signature; the arguments are as they came, or the status is ours.
            let result = unsafe { real!($name($($argument: $type,)* status: *mut Status)) };
            if result == OK || $whole && result == ERR_TRUNCATED {
                // SAFETY: a status, which the call has written.
                span.received($group, unsafe { &*status });
            }
            span.leave(result)
        }
    )*};
}

receives! {
    fn rg_recv(buf: *mut c_void, capacity: usize, from: c_int, tag: c_int, group: Group; group, from; whole true)
    fn rg_recv_within(buf: *mut c_void, capacity: usize, from: c_int, tag: c_int, group: Group, seconds: f64; group, from; whole false)
    fn rg_recv_passed(buf: *mut c_void, capacity: usize, from: c_int, tag: c_int, group: Group; group, from; whole false)
    fn rg_recv_masked(buf: *mut c_void, capacity: usize, from: c_int, tag: c_int, mask: c_int, group: Group; group, from; whole true)
    fn rg_recvv(views: *const View, n: c_int, from: c_int, tag: c_int, group: Group; group, from; whole true)
    fn rg_loan_recv(block: *mut *mut c_void, from: c_int, tag: c_int, group: Group; group, from; whole true)
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn rg_sendrecv(
    sbuf: *const c_void,
    slen: usize,
    to: c_int,
    stag: c_int,
    rbuf: *mut c_void,
    rcapacity: usize,
    from: c_int,
    rtag: c_int,
    group: Group,
    status: *mut Status,
) -> c_int {
    const CALL: Call = Call::named("rg_sendrecv");
    let mut span = Span::enter_about(CALL, group, from);
    let mut own = NO_STATUS;
    let status = match status.is_null() {
        true => &raw mut own,
        false => status,
    };
    // SAFETY: the function of this name has this signature; the arguments are as they came, or the status is ours.
    let result = unsafe {
        real!(rg_sendrecv(
            sbuf: *const c_void,
            slen: usize,
            to: c_int,
            stag: c_int,
            rbuf: *mut c_void,
            rcapacity: usize,
            from: c_int,
            rtag: c_int,
            group: Group,
            status: *mut Status,
        ))
    };
    if result == OK || result == ERR_TRUNCATED {
        // SAFETY: a status, which the call has written.
        span.received(group, unsafe { &*status });
        span.sent(group, to, stag, slen);
    }
    span.leave(result)
}
