//! Matched probes, and receives of the message that such a probe has found.

use std::ffi::{c_int, c_void};

use regatta_process::{self as process, Error, Message, Result, Views};

use crate::error::{OK, fail};
use crate::memory::{
    GroupHandle, RgGroup, RgMessage, RgRequest, RgStatus, RgView, block, output, strided,
};
use crate::message::{report, report_result, started};

// RG_MESSAGE_NONE is the engine's empty message, which a probe of RG_NONE finds.
const _: () = assert!(Message::OF_NOBODY.0 == regatta_abi::MESSAGE_NONE.id);

#[unsafe(no_mangle)]
extern "C" fn rg_mprobe(
    from: c_int,
    tag: c_int,
    group: RgGroup,
    message: *mut RgMessage,
    status: *mut RgStatus,
) -> c_int {
    let found = output(message, "message").and_then(|place| {
        *place = regatta_abi::MESSAGE_NULL;
        let tag = process::tag_select(tag);
        let (seen, message) = process::match_probe(from, tag, group.id())?;
        place.id = message.0;
        Ok((seen, None))
    });
    report_result(found, status)
}

#[unsafe(no_mangle)]
extern "C" fn rg_improbe(
    from: c_int,
    tag: c_int,
    group: RgGroup,
    found: *mut c_int,
    message: *mut RgMessage,
    status: *mut RgStatus,
) -> c_int {
    let looked = || -> Result<_> {
        let (found, place) = (output(found, "found")?, output(message, "message")?);
        (*found, *place) = (0, regatta_abi::MESSAGE_NULL);
        let tag = process::tag_select(tag);
        let Some((seen, message)) = process::match_probe_now(from, tag, group.id())? else {
            return Ok(None);
        };
        (*found, place.id) = (1, message.0);
        Ok(Some(seen))
    };
    match looked() {
        Ok(Some(seen)) => report(&seen, None, status),
        Ok(None) => OK,
        Err(error) => fail(&error),
    }
}

/// Receives a matched message and sets it to RG_MESSAGE_NULL. Keeps the message if it can still be received.
fn take<R>(
    message: *mut RgMessage,
    views: Result<Views>,
    receive: impl FnOnce(Message, Views) -> Result<R>,
) -> Result<R> {
    let message = output(message, "message")?;
    let views = views?;
    let received = receive(Message(message.id), views);
    if !matches!(received, Err(Error::Handle(_) | Error::State(_))) {
        *message = regatta_abi::MESSAGE_NULL;
    }
    received
}

fn receive(message: *mut RgMessage, views: Result<Views>, status: *mut RgStatus) -> c_int {
    report_result(take(message, views, process::receive_matched), status)
}

fn start(message: *mut RgMessage, views: Result<Views>, request: *mut RgRequest) -> c_int {
    let views = output(request, "request").and(views);
    started(
        take(message, views, process::start_receive_matched),
        request,
    )
}

#[unsafe(no_mangle)]
extern "C" fn rg_mrecv(
    message: *mut RgMessage,
    buf: *mut c_void,
    capacity: usize,
    status: *mut RgStatus,
) -> c_int {
    receive(message, block(buf, capacity), status)
}

#[unsafe(no_mangle)]
extern "C" fn rg_imrecv(
    message: *mut RgMessage,
    buf: *mut c_void,
    capacity: usize,
    request: *mut RgRequest,
) -> c_int {
    start(message, block(buf, capacity), request)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_mrecvv(
    message: *mut RgMessage,
    views: *const RgView,
    n: c_int,
    status: *mut RgStatus,
) -> c_int {
    // SAFETY: the C program guarantees that `views` points to `n` views.
    receive(message, unsafe { strided(views, n) }, status)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_imrecvv(
    message: *mut RgMessage,
    views: *const RgView,
    n: c_int,
    request: *mut RgRequest,
) -> c_int {
    // SAFETY: the C program guarantees that `views` points to `n` views.
    start(message, unsafe { strided(views, n) }, request)
}
