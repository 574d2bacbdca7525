//! Sending.
//!
//! *Rules of `pvm_send` and `pvm_psend` for small messages:* no allocation, no system call, and no look-up except of
//! the buffer's number. (docs/hot-paths.md names the test.)

use std::ffi::{c_int, c_void};

use crate::contexts;
use crate::group::server;
use crate::head::Head;
use crate::life::enrol;
use crate::message::{self, HEAD, Outgoing, codes, error};
use crate::state::library;
use crate::trace::{self, Value, calls, ints, traced};
use crate::{rg, sharing, system, tid};

/// Maximum number of bytes of `pvm_psend` that are copied behind their header, which is cheaper than two views up to
/// this size.
const MAX_GATHERED_BYTES: usize = 4096;

/// Converts the result of a send as PVM does: a message to a task that is gone is lost without an error.
#[inline(always)]
pub fn outcome(code: c_int) -> Result<(), i32> {
    match code {
        rg::OK | rg::ERR_DEAD | rg::ERR_LEFT | rg::ERR_TASK => Ok(()),
        rg::ERR_MEMORY => Err(codes::NO_MEM),
        _ => Err(codes::SYS_ERR),
    }
}

/// Destination recorded in a buffer that was sent to several tasks: the bit that PVM's group addresses have.
pub const SEVERAL: c_int = 1 << 30;

/// The destination of a message.
#[derive(Clone, Copy)]
pub struct Destination {
    pub task: c_int,
    pub tag: c_int,
    pub group: rg::Group,
}

#[inline(always)]
pub fn destination(to: c_int, tag: c_int, context: i32) -> Result<Destination, i32> {
    let task = tid::named(to).ok_or(codes::BAD_PARAM)?;
    if tag < 0 && !library().options.reserved() {
        return Err(codes::BAD_PARAM);
    }
    Ok(Destination {
        task,
        tag: tag & i32::MAX,
        group: contexts::channel(context, tag),
    })
}

#[inline(always)]
fn send_out(out: &Outgoing, to: Destination) -> Result<(), i32> {
    let head = Head {
        encoding: out.encoding,
        wid: out.wid,
        host: library().host,
    };
    if !out.block.is_null()
        && let Some(code) = sharing::send(out, head, to)
    {
        return outcome(code);
    }
    // SAFETY: the header's bytes belong to this buffer; the block and the pieces are valid until the buffer changes.
    let code = unsafe {
        out.head.cast::<[u8; HEAD]>().write_unaligned(head.bytes());
        match out.pieces.is_null() {
            true => rg::rg_bsend(out.head.cast(), out.len, to.task, to.tag, to.group),
            false => rg::rg_bsendv(
                out.pieces.cast(),
                out.count as c_int,
                to.task,
                to.tag,
                to.group,
            ),
        }
    };
    outcome(code)
}

/// Sends bytes without a header, without waiting, and returns Regatta's code.
pub fn send_bytes(bytes: &[u8], to: Destination) -> c_int {
    // SAFETY: `bytes` is valid until this returns.
    unsafe {
        rg::rg_bsend(
            bytes.as_ptr().cast(),
            bytes.len(),
            to.task,
            to.tag,
            to.group,
        )
    }
}

/// Sends a buffer (0: the current send buffer) in this context.
pub fn send_buffer(buffer: c_int, to: c_int, tag: c_int, context: i32) -> Result<(), i32> {
    let destination = destination(to, tag, context)?;
    send_out(&message::outgoing(buffer)?, destination)?;
    message::sent(buffer, to, tag, context);
    Ok(())
}

/// Sends to a tid that is not a task's: the tracer, the group server, or a daemon.
#[cold]
fn send_elsewhere(to: c_int, tag: c_int) -> Result<(), i32> {
    match to {
        trace::TID => trace::user_event(tag),
        server::TID if library().context == server::CONTEXT => server::asked(tag),
        to if system::is_daemon(to) => system::send_to_daemon(to, tag),
        _ => Err(codes::BAD_PARAM),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pvm_send(to: c_int, tag: c_int) -> c_int {
    let sent = || -> Result<(), i32> {
        enrol()?;
        crate::handlers::run()?;
        if tid::task(to).is_none() {
            return send_elsewhere(to, tag);
        }
        send_buffer(0, to, tag, library().context)
    };
    let sent = || match sent() {
        Ok(()) => 0,
        Err(code) => error::result("pvm_send", code),
    };
    let entry = move || {
        let bytes = message::length(message::current().0);
        ints([bytes, to, tag, library().context])
    };
    traced(calls::SEND, entry, sent, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_mcast(tids: *const c_int, count: c_int, tag: c_int) -> c_int {
    let sent = || -> Result<(), i32> {
        let me = enrol()?;
        if message::current().0 == 0 {
            return Err(codes::NO_BUF);
        }
        let count = usize::try_from(count).map_err(|_| codes::BAD_PARAM)?;
        let strange = tag < 0 && !library().options.reserved();
        if strange || (tids.is_null() && count > 0) {
            return Err(codes::BAD_PARAM);
        }
        crate::handlers::run()?;
        let mut to = Vec::with_capacity(count);
        for index in 0..count {
            // SAFETY: by the C contract the array has this many numbers.
            to.push(unsafe { *tids.add(index) });
        }
        // If any tid is invalid, nothing is sent. Each task gets the message once, and the caller never does.
        if to.iter().any(|&to| tid::task(to).is_none()) {
            return Err(codes::BAD_PARAM);
        }
        to.sort_unstable();
        to.dedup();
        to.retain(|&to| to != me);
        let out = message::outgoing(0)?;
        for &to in &to {
            send_out(&out, destination(to, tag, library().context)?)?;
        }
        if !to.is_empty() {
            message::sent(0, SEVERAL, tag, library().context);
        }
        Ok(())
    };
    let sent = || error::result("pvm_mcast", sent().err().unwrap_or(0));
    let entry = move || {
        let bytes = message::length(message::current().0);
        let [bytes, tag, context] = ints([bytes, tag, library().context]);
        // SAFETY: by the C contract the array has this many numbers.
        [bytes, tag, context, unsafe { trace::numbers(tids, count) }]
    };
    traced(calls::MCAST, entry, sent, trace::code)
}

/// Returns the size of `count` items of a type in bytes.
pub fn length(data: *const c_void, count: c_int, datatype: c_int) -> Result<usize, i32> {
    if datatype == codes::datatype::STR {
        return Err(codes::NOT_IMPL);
    }
    let width = message::datatype_size(datatype).ok_or(codes::BAD_PARAM)?;
    // A negative count counts as 0.
    let count = usize::try_from(count).unwrap_or(0);
    if data.is_null() && count > 0 {
        return Err(codes::BAD_PARAM);
    }
    width.checked_mul(count).ok_or(codes::BAD_PARAM)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_psend(
    to: c_int,
    tag: c_int,
    data: *const c_void,
    count: c_int,
    datatype: c_int,
) -> c_int {
    let sent = || -> Result<(), i32> {
        enrol()?;
        let bytes = length(data, count, datatype)?;
        crate::handlers::run()?;
        let to = destination(to, tag, library().context)?;
        let head = Head {
            encoding: codes::RAW,
            wid: 0,
            host: library().host,
        };
        if bytes <= MAX_GATHERED_BYTES {
            return send_few(data.cast(), bytes, head, to);
        }
        let mut head = head.bytes();
        let view = |base: *mut c_void, block: usize| rg::View {
            base,
            block,
            count: 1,
            stride: 0,
        };
        let views = [
            view(head.as_mut_ptr().cast(), HEAD),
            view(data.cast_mut(), bytes),
        ];
        // SAFETY: `head` lives here, and by the C contract the data is valid until this returns.
        outcome(unsafe { rg::rg_bsendv(views.as_ptr(), 2, to.task, to.tag, to.group) })
    };
    let sent = || match sent() {
        Ok(()) => 0,
        Err(code) => error::result("pvm_psend", code),
    };
    let entry = move || {
        let [to, tag, context] = ints([to, tag, library().context]);
        let [count, datatype] = ints([count, datatype]);
        [
            to,
            tag,
            context,
            Value::Address(data.addr()),
            count,
            datatype,
        ]
    };
    traced(calls::PSEND, entry, sent, trace::code)
}

#[inline(always)]
fn send_few(data: *const u8, bytes: usize, head: Head, to: Destination) -> Result<(), i32> {
    let mut block = [std::mem::MaybeUninit::<u8>::uninit(); HEAD + MAX_GATHERED_BYTES];
    let at = block.as_mut_ptr().cast::<u8>();
    // SAFETY: the block has room for the header and these bytes; by the C contract `data` holds them.
    unsafe {
        at.cast::<[u8; HEAD]>().write_unaligned(head.bytes());
        if bytes > 0 {
            std::ptr::copy_nonoverlapping(data, at.add(HEAD), bytes);
        }
        outcome(rg::rg_bsend(
            at.cast(),
            HEAD + bytes,
            to.task,
            to.tag,
            to.group,
        ))
    }
}
