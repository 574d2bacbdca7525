//! `pvm_notify`: notifications of tasks and hosts.
//!
//! Regatta notifies by an event, a message of this task to itself in the requested context and with the requested tag.
//! It is converted to the message that a PVM program expects.

use std::ffi::c_int;

use crate::life::enrol;
use crate::message::{self, Body, Info, codes, error};
use crate::state::library;
use crate::system::{asking, manager, tracer};
use crate::trace::{self, Value, calls, traced};
use crate::{contexts, handlers, receive, rg, tid};

/// The kinds of events.
mod what {
    pub const TASK_EXIT: i32 = 1;
    pub const HOST_DELETE: i32 = 2;
    pub const HOST_ADD: i32 = 3;
    pub const ROUTE_ADD: i32 = 4;
    pub const ROUTE_DELETE: i32 = 5;
    /// Flag: cancels the notification.
    pub const CANCEL: i32 = 256;
}

/// A notification that this task has requested.
pub struct Watch {
    what: i32,
    /// The task or daemon.
    tid: i32,
    tag: i32,
    context: i32,
    /// Regatta's id of the notification.
    number: c_int,
    /// Number of notifications still to come; negative: unlimited.
    times: i32,
}

/// Parses an event. Returns `None` if these bytes are not an event.
pub fn event(bytes: &[u8]) -> Option<rg::Event> {
    let long = bytes.len() >= size_of::<rg::Event>();
    if !long || bytes[..4] != rg::EVENT_MARK.to_ne_bytes() {
        return None;
    }
    // SAFETY: `bytes` is long enough, and every bit pattern is a valid `Event`.
    Some(unsafe { bytes.as_ptr().cast::<rg::Event>().read_unaligned() })
}

/// Returns the buffer with the message that a program gets for an event, or `None` if it was cancelled or is for the
/// library itself.
pub fn happened(event: &rg::Event, tag: i32, context: i32) -> Result<Option<c_int>, i32> {
    if manager::concerns(event) {
        return manager::happened(event);
    }
    if tracer::concerns(event) {
        return tracer::happened(event, tag, context);
    }
    let watches = &mut library().watches;
    let Some(at) = watches.iter().position(|watch| watch.number == event.watch) else {
        return Ok(None);
    };
    let watch = &mut watches[at];
    let body = match watch.what {
        what::HOST_ADD => Body::new().int(1).int(tid::of_daemon(event.host)),
        _ => Body::new().int(watch.tid),
    };
    watch.times -= i32::from(watch.times > 0);
    if watch.times == 0 {
        let ended = watches.swap_remove(at);
        if ended.what == what::HOST_ADD {
            // SAFETY: the result may be NULL.
            unsafe { rg::rg_notify_cancel(ended.number, std::ptr::null_mut()) };
        }
    }
    told(body, tag, context).map(Some)
}

/// Makes a message from the daemon to this task.
pub fn told(body: Body, tag: i32, context: i32) -> Result<c_int, i32> {
    told_by(tid::DAEMON, body, tag, context)
}

/// Makes a message from the daemon to this task, as a reply with this wait id.
pub fn told_with(wid: i32, body: Body, tag: i32, context: i32) -> Result<c_int, i32> {
    make(tid::DAEMON, wid, body, tag, context)
}

fn told_by(src: i32, body: Body, tag: i32, context: i32) -> Result<c_int, i32> {
    make(src, 0, body, tag, context)
}

fn make(src: i32, wid: i32, body: Body, tag: i32, context: i32) -> Result<c_int, i32> {
    let library = library();
    let info = Info {
        src,
        wid,
        dst: library.tid,
        tag,
        ctx: context,
        encoding: codes::XDR,
        ..Info::default()
    };
    message::from_body(&body.into_vec(), info)
}

/// Delivers the notifications of this task's own exit, when it leaves. Only a handler can receive these.
pub fn own_end() {
    let me = library().tid;
    let ours = |watch: &&Watch| watch.what == what::TASK_EXIT && watch.tid == me;
    let ways = library().watches.iter().filter(ours);
    let ways: Vec<(i32, i32)> = ways.map(|watch| (watch.tag, watch.context)).collect();
    for (tag, context) in ways {
        if let Ok(buffer) = told_by(me, Body::new().int(me), tag, context) {
            handlers::offer(buffer);
        }
    }
}

fn watch(what: i32, subject: i32, tid: i32, tag: i32, times: i32) -> Result<(), i32> {
    let context = library().context;
    let kind = match what {
        what::TASK_EXIT => rg::TASK_EXIT,
        what::HOST_DELETE => rg::HOST_LOST,
        _ => rg::HOST_ADDED,
    };
    let mut number = 0;
    let group = contexts::channel(context, tag);
    // The event may arrive before this call returns, but it is processed only when a message is received.
    // SAFETY: the result points to a local variable.
    let code = unsafe { rg::rg_notify(kind, subject, tag & i32::MAX, group, &mut number) };
    match code {
        rg::OK => {}
        // A subject that never existed is reported like one that has ended.
        rg::ERR_HOST | rg::ERR_TASK => {
            let buffer = told(Body::new().int(tid), tag, context)?;
            receive::keep(buffer);
            return Ok(());
        }
        rg::ERR_ARGUMENT => return Err(codes::BAD_PARAM),
        _ => return Err(codes::SYS_ERR),
    }
    library().watches.push(Watch {
        what,
        tid,
        tag,
        context,
        number,
        times,
    });
    Ok(())
}

/// Cancels a notification with the same arguments. For an exit, the message is delivered immediately.
fn cancel(what: i32, tid: i32, tag: i32) -> Result<(), i32> {
    let context = library().context;
    let watches = &mut library().watches;
    let same = |watch: &Watch| {
        (watch.what, watch.tag, watch.context) == (what, tag, context)
            && (what == what::HOST_ADD || watch.tid == tid)
    };
    let Some(at) = watches.iter().position(same) else {
        return Ok(());
    };
    let number = watches[at].number;
    let mut pending = 0;
    // SAFETY: the result points to a local variable.
    if unsafe { rg::rg_notify_cancel(number, &mut pending) } != rg::OK {
        return Err(codes::SYS_ERR);
    }
    if what == what::HOST_ADD {
        watches.swap_remove(at);
    } else if pending != 0 {
        watches.swap_remove(at);
        let buffer = told(Body::new().int(tid), tag, context)?;
        receive::keep(buffer);
    }
    Ok(())
}

/// Returns the tids that a program passes.
///
/// # Safety
/// `tids` points to `count` numbers if `count` is positive.
unsafe fn numbers(tids: *const c_int, count: c_int) -> Result<Vec<c_int>, i32> {
    let count = usize::try_from(count).map_err(|_| codes::BAD_PARAM)?;
    if count == 0 || tids.is_null() {
        return Err(codes::BAD_PARAM);
    }
    // SAFETY: the caller guarantees valid pointers.
    Ok((0..count)
        .map(|index| unsafe { *tids.add(index) })
        .collect())
}

fn ends(kind: i32, cancels: bool, tag: i32, tids: &[c_int]) -> Result<(), i32> {
    let subject = |&tid: &c_int| match kind {
        // A task's tid stands for its host. A tid that belongs to no host counts as a host that is gone.
        what::HOST_DELETE => Some(tid::host_of(tid)),
        _ => tid::named(tid),
    };
    let subjects: Option<Vec<i32>> = tids.iter().map(subject).collect();
    let subjects = subjects.ok_or(codes::BAD_PARAM)?;
    for (&tid, subject) in tids.iter().zip(subjects) {
        match (kind, cancels) {
            // There is no route whose end could be reported: messages use shared memory or a path that no task owns. So
            // report it closed at once.
            (what::ROUTE_DELETE, false) => {
                let (me, context) = (library().tid, library().context);
                let buffer = told_by(me, Body::new().int(tid).int(-1), tag, context)?;
                receive::keep(buffer);
            }
            (what::ROUTE_DELETE, true) => {}
            (_, true) => cancel(kind, tid, tag)?,
            (_, false) => watch(kind, subject, tid, tag, 1)?,
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_notify(
    what: c_int,
    tag: c_int,
    count: c_int,
    tids: *const c_int,
) -> c_int {
    let asked = || -> Result<(), i32> {
        enrol()?;
        let (kind, cancels) = (what & !what::CANCEL, what & what::CANCEL != 0);
        if tag < 0 && !library().options.reserved() {
            return Err(codes::BAD_PARAM);
        }
        match kind {
            what::TASK_EXIT | what::HOST_DELETE | what::ROUTE_DELETE => {
                // SAFETY: by the C contract the arguments are valid.
                let tids = unsafe { numbers(tids, count) }?;
                if kind != what::ROUTE_DELETE && asking::notify(what, tag, count, &tids)? {
                    return Ok(());
                }
                ends(kind, cancels, tag, &tids)
            }
            what::HOST_ADD if asking::notify(what, tag, count, &[])? => Ok(()),
            what::HOST_ADD => {
                cancel(kind, 0, tag)?;
                match cancels || count == 0 {
                    true => Ok(()),
                    false => watch(kind, 0, 0, tag, count),
                }
            }
            // As on PVM when no direct routes are requested: no message will come.
            what::ROUTE_ADD => Ok(()),
            _ => Err(codes::BAD_PARAM),
        }
    };
    let asked = || error::result("pvm_notify", asked().err().unwrap_or(0));
    let entry = || {
        let listed = match what & !what::CANCEL {
            what::TASK_EXIT | what::HOST_DELETE => count,
            _ => 0,
        };
        // SAFETY: by the C contract the array has this many numbers.
        let tids = unsafe { trace::numbers(tids, listed) };
        [Value::Int(what), Value::Int(tag), tids]
    };
    traced(calls::NOTIFY, entry, asked, trace::code)
}
