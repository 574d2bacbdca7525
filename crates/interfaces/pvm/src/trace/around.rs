//! The reports of calls to a tracer.
//!
//! While no tracer wants events, a call checks one flag. Calls that the library makes inside a call are not reported.

use std::ffi::{CStr, c_char, c_int};

use super::calls::Call;
use super::record::{Value, record};
use super::{tally, wants, way};
use crate::head::Head;
use crate::message::{Body, codes};
use crate::send;
use crate::state::library;
use crate::system::events;

/// The bit that is added to an event's number at the begin and at the end of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Entry = 0x4000,
    Exit = 0x8000,
}

/// Marks the beginning and the end of a message with several events.
const SEVERAL: i32 = -1;
const SEVERAL_END: i32 = -2;

/// State of the reports of calls.
pub struct Telling {
    /// Whether calls have to check for tracing: events are wanted, or the process is not a task yet and does not know.
    looks: bool,
    /// Number of calls in progress, nested in each other.
    inside: u32,
    /// The outermost call began before the process was a task. Its begin is reported when it ends, if it has made the
    /// process a task.
    untold: bool,
    /// Events that are buffered until they fill a message.
    waiting: Vec<u8>,
}

impl Telling {
    pub const fn new() -> Telling {
        Telling {
            looks: true,
            inside: 0,
            untold: false,
            waiting: Vec::new(),
        }
    }

    /// Sets whether calls have to check for tracing.
    pub fn look(&mut self, looks: bool) {
        self.looks = looks;
        if !looks {
            self.inside = 0;
        }
    }
}

/// Makes a call, and reports it if a tracer wants it. What is checked after the call is in memory, so that compilers
/// keep one copy of the call itself and inline it here.
/// of the call itself and put it here.
#[inline(always)]
pub fn traced<'a, 'b, R: Copy, const N: usize, const M: usize>(
    call: &'static Call,
    entry: impl Fn() -> [Value<'a>; N] + Copy,
    run: impl FnOnce() -> R,
    exit: impl FnOnce(R) -> [Value<'b>; M],
) -> R {
    begins(call, entry);
    let result = run();
    ends(call, entry, || exit(result));
    result
}

/// Reports the begin of a call, if it is wanted. The first half of [`traced`].
#[inline(always)]
pub fn begins<'a, const N: usize>(call: &'static Call, entry: impl Fn() -> [Value<'a>; N]) {
    if library().telling.looks {
        begin(call, entry);
    }
}

/// Reports the end of a call, if it is wanted. The second half of [`traced`].
#[inline(always)]
pub fn ends<'a, 'b, const N: usize, const M: usize>(
    call: &'static Call,
    entry: impl Fn() -> [Value<'a>; N],
    exit: impl FnOnce() -> [Value<'b>; M],
) {
    if library().telling.inside > 0 {
        end(call, entry, exit);
    }
}

/// Reports a function of the program that the library calls inside a call, if it is wanted. Calls that the function
/// makes are then reported as if they were not nested.
pub fn apart<'a, const N: usize>(
    call: &'static Call,
    entry: impl FnOnce() -> [Value<'a>; N],
    run: impl FnOnce(),
) {
    let telling = &mut library().telling;
    if !telling.looks || !wants(call.event) {
        return run();
    }
    trace_call(call, Side::Entry, entry);
    let inside = std::mem::take(&mut library().telling.inside);
    run();
    library().telling.inside = inside;
}

#[cold]
#[inline(never)]
fn begin<'a, const N: usize>(call: &Call, entry: impl Fn() -> [Value<'a>; N]) {
    let me = library().tid;
    let telling = &mut library().telling;
    telling.inside += 1;
    if telling.inside == 1 {
        telling.untold = me == 0;
        if me != 0 {
            trace_call(call, Side::Entry, entry);
        }
    }
}

#[cold]
#[inline(never)]
fn end<'a, 'b, const N: usize, const M: usize>(
    call: &Call,
    entry: impl Fn() -> [Value<'a>; N],
    exit: impl FnOnce() -> [Value<'b>; M],
) {
    let telling = &mut library().telling;
    telling.inside -= 1;
    // If this call has made the task leave, there is no tracer to notify.
    if telling.inside > 0 || library().tid == 0 {
        return;
    }
    if telling.untold {
        trace_call(call, Side::Entry, entry);
    }
    trace_call(call, Side::Exit, exit);
}

/// Reports a begin or an end of a call, or counts it, if it is wanted.
fn trace_call<'a, const N: usize>(
    call: &Call,
    side: Side,
    values: impl FnOnce() -> [Value<'a>; N],
) {
    if !library().telling.looks || !wants(call.event) {
        return;
    }
    match library().options.trace_way() {
        way::FULL => trace_fully(call, side, values),
        way::TIME => events::time(call.event, side == Side::Entry),
        way::COUNT => events::count(call.event),
        _ => {}
    }
}

fn trace_fully<'a, const N: usize>(
    call: &Call,
    side: Side,
    values: impl FnOnce() -> [Value<'a>; N],
) {
    let meanings = match side {
        Side::Entry => call.entry,
        Side::Exit => call.exit,
    };
    debug_assert_eq!(meanings.len(), N);
    let (event, side) = (call.event, side as i32);
    let described = events::describe(event, side);
    let values = meanings.iter().copied().zip(values());
    let body = record(event as i32 | side, described, library().tid, values);
    let room = library().options.trace_buffer();
    if room <= 0 {
        return send(&body.into_vec());
    }
    let waiting = &mut library().telling.waiting;
    if waiting.is_empty() {
        *waiting = Body::new().int(SEVERAL).into_vec();
    }
    waiting.extend_from_slice(&body.into_vec());
    if waiting.len() >= room as usize {
        flush();
    }
}

/// Sends the buffered events, or the counts.
pub fn flush() {
    let me = library().tid;
    let (to, _, _) = library().options.trace();
    if to <= 0 || me == 0 || to == me {
        return;
    }
    match library().options.trace_way() {
        way::FULL => {
            let mut all = std::mem::take(&mut library().telling.waiting);
            if !all.is_empty() {
                all.extend_from_slice(&Body::new().int(SEVERAL_END).into_vec());
                send(&all);
            }
        }
        way::TIME => send(&tally::times(me).into_vec()),
        way::COUNT => send(&tally::counts(me).into_vec()),
        _ => {}
    }
}

/// Sends a message to the tracer. A tracer that is gone is ignored.
fn send(body: &[u8]) {
    let (to, tag, context) = library().options.trace();
    let Ok(to) = send::destination(to, tag, context) else {
        return;
    };
    let head = Head {
        encoding: codes::XDR,
        wid: 0,
        host: library().host,
    };
    let bytes = [&head.bytes()[..], body].concat();
    send::send_bytes(&bytes, to);
}

/// Returns numbers as values. Most calls have only numbers.
pub fn ints<const N: usize>(numbers: [c_int; N]) -> [Value<'static>; N] {
    numbers.map(Value::Int)
}

/// Returns a call's result as values.
pub fn code(code: c_int) -> [Value<'static>; 1] {
    ints([code])
}

/// Returns a program's string as a value; NULL gives an empty string.
///
/// # Safety
/// `at` is a NUL-terminated string that outlives the value, or NULL.
pub unsafe fn text<'a>(at: *const c_char) -> Value<'a> {
    match at.is_null() {
        true => Value::Text(b""),
        // SAFETY: the caller guarantees that the memory is valid.
        false => Value::Text(unsafe { CStr::from_ptr(at) }.to_bytes()),
    }
}

/// Returns a program's numbers as a value; NULL gives no numbers.
///
/// # Safety
/// `at` points to `count` numbers that outlive the value, or is NULL.
pub unsafe fn numbers<'a>(at: *const c_int, count: c_int) -> Value<'a> {
    match usize::try_from(count) {
        // SAFETY: the caller guarantees that the memory is valid.
        Ok(count) if !at.is_null() => Value::Ints(unsafe { std::slice::from_raw_parts(at, count) }),
        _ => Value::Ints(&[]),
    }
}

/// Returns a program's strings as a value; NULL gives none, and NULL entries are skipped.
///
/// # Safety
/// `at` points to `count` NUL-terminated strings or NULLs, which outlive the value, or is NULL.
pub unsafe fn texts<'a>(at: *const *const c_char, count: c_int) -> Value<'a> {
    let count = usize::try_from(count).unwrap_or(0);
    let count = if at.is_null() { 0 } else { count };
    // SAFETY: the caller guarantees that the memory is valid.
    let all = (0..count).map(|index| unsafe { *at.add(index) });
    let all = all.filter(|text| !text.is_null());
    // SAFETY: the caller guarantees that the memory is valid.
    Value::Texts(
        all.map(|text| unsafe { CStr::from_ptr(text) }.to_bytes())
            .collect(),
    )
}
