//! Receiving the very message that a probe has found. Its group is that of the probe.

use std::ffi::{c_int, c_void};

use regatta_abi::{ERR_TRUNCATED, Group, MESSAGE_NULL, Message, OK, Request, Status, View};
use regatta_record::Call;

use crate::real::real;
use crate::requests;
use crate::span::Span;
use crate::wrap::message::NO_STATUS;
use crate::wrap::wrap;

/// Notes what a probe has found; false: nothing.
///
/// # Safety
/// `message` is NULL or was written.
unsafe fn found(message: *const Message, group: Group) -> bool {
    // SAFETY: as the caller promises.
    let message = unsafe { message.as_ref() }.copied();
    let message = message.unwrap_or(MESSAGE_NULL);
    requests::found(message, group);
    message != MESSAGE_NULL
}

wrap! {
    fn rg_mprobe(from: c_int, tag: c_int, group: Group, message: *mut Message, status: *mut Status)
        about(group, from) note |_span, result| {
        if result == OK {
            // SAFETY: the C contract, and the call has succeeded.
            unsafe { found(message, group) };
        }
    }
    fn rg_improbe(from: c_int, tag: c_int, group: Group, found_one: *mut c_int, message: *mut Message, status: *mut Status)
        about(group, from) note |span, result| {
        // SAFETY: likewise.
        if result != OK || !unsafe { found(message, group) } {
            span.found_nothing();
        }
    }
}

/// The group of the message that is to be received, if it is used up by that.
///
/// # Safety
/// `message` is NULL or valid.
unsafe fn group(before: Message, message: *const Message) -> Option<Group> {
    // SAFETY: as the caller promises.
    let now = unsafe { message.as_ref() }?;
    match now.id {
        0 => requests::taken(before),
        _ => None,
    }
}

/// Receives of a message, which write a status in any case.
macro_rules! receives {
    ($(fn $name:ident($($argument:ident: $type:ty),*))*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(message: *mut Message, $($argument: $type,)* status: *mut Status) -> c_int {
            const CALL: Call = Call::named(stringify!($name));
            let mut span = Span::enter(CALL);
            let mut own = NO_STATUS;
            let status = match status.is_null() {
                true => &raw mut own,
                false => status,
            };
            // SAFETY: the C contract: NULL, or a message.
            let before = unsafe { message.as_ref() }.copied().unwrap_or(MESSAGE_NULL);
            // SAFETY: the function of this name has this signature; the arguments are as they came, or the status is ours.
            let result = unsafe {
                real!($name(message: *mut Message, $($argument: $type,)* status: *mut Status))
            };
            // SAFETY: likewise.
            if let Some(group) = unsafe { group(before, message) }
                && (result == OK || result == ERR_TRUNCATED)
            {
                // SAFETY: a status, which the call has written.
                span.received(group, unsafe { &*status });
            }
            span.leave(result)
        }
    )*};
}

receives! {
    fn rg_mrecv(buf: *mut c_void, capacity: usize)
    fn rg_mrecvv(views: *const View, n: c_int)
}

/// Receives of a message that are begun.
macro_rules! begins {
    ($(fn $name:ident($($argument:ident: $type:ty),*))*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(message: *mut Message, $($argument: $type,)* request: *mut Request) -> c_int {
            const CALL: Call = Call::named(stringify!($name));
            let span = Span::enter(CALL);
            // SAFETY: the C contract: NULL, or a message.
            let before = unsafe { message.as_ref() }.copied().unwrap_or(MESSAGE_NULL);
            // SAFETY: the function of this name has this signature, and the arguments are as they came.
            let result = unsafe {
                real!($name(message: *mut Message, $($argument: $type,)* request: *mut Request))
            };
            // SAFETY: likewise; NULL, or a request that was written if the call has succeeded.
            let (group, request) = unsafe { (group(before, message), request.as_ref()) };
            if let (OK, Some(group), Some(request)) = (result, group, request) {
                requests::began(*request, group);
            }
            span.leave(result)
        }
    )*};
}

begins! {
    fn rg_imrecv(buf: *mut c_void, capacity: usize)
    fn rg_imrecvv(views: *const View, n: c_int)
}
