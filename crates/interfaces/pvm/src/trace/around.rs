//! The reports around a call, for a tracer.
//!
//! As long as nobody traces it a call looks at one flag. Calls that it makes inside the library are not told.

use std::ffi::{CStr, c_char, c_int};

use super::calls::Call;
use super::record::{Value, record};
use super::{tally, wants, way};
use crate::head::Head;
use crate::message::{Body, codes};
use crate::send;
use crate::state::library;
use crate::system::events;

/// Which side of a call an event is, beside its number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Entry = 0x4000,
    Exit = 0x8000,
}

/// Where several events lie in one message, before the first and behind the last.
const SEVERAL: i32 = -1;
const SEVERAL_END: i32 = -2;

/// The reports of calls.
pub struct Telling {
    /// Calls have to look further: something is wanted, or we are no task yet and do not know.
    looks: bool,
    /// How many of them go on, each inside the one before.
    inside: u32,
    /// The first of them began when we were no task yet: it is told when we have become one by it.
    untold: bool,
    /// Events that wait for others to fill a message.
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

    /// From now on calls look, or do not.
    pub fn look(&mut self, looks: bool) {
        self.looks = looks;
        if !looks {
            self.inside = 0;
        }
    }
}

/// Make a call, and tell of it what is wanted. The place that is looked at behind it lies in memory, so that compilers keep one copy
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

/// The first half of [`traced`].
#[inline(always)]
pub fn begins<'a, const N: usize>(call: &'static Call, entry: impl Fn() -> [Value<'a>; N]) {
    if library().telling.looks {
        begin(call, entry);
    }
}

/// The second half of it.
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

/// Tell that something of the program's begins inside a call, and of the calls that it makes as if it were outside, if that
/// is wanted at all.
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
    // A task that has left with this call has nobody to notify.
    if telling.inside > 0 || library().tid == 0 {
        return;
    }
    if telling.untold {
        trace_call(call, Side::Entry, entry);
    }
    trace_call(call, Side::Exit, exit);
}

/// Tell this of a call, or count it, if it is wanted.
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

/// Send what waits for more, or what has been counted.
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

/// A message to the tracer. If it is gone nobody misses it.
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

/// Numbers, as most calls have them.
pub fn ints<const N: usize>(numbers: [c_int; N]) -> [Value<'static>; N] {
    numbers.map(Value::Int)
}

/// The value of a call's result.
pub fn code(code: c_int) -> [Value<'static>; 1] {
    ints([code])
}

/// A program's text; where there is none, an empty one.
///
/// # Safety
/// `at` is a text that outlives the value, or NULL.
pub unsafe fn text<'a>(at: *const c_char) -> Value<'a> {
    match at.is_null() {
        true => Value::Text(b""),
        // SAFETY: the caller's.
        false => Value::Text(unsafe { CStr::from_ptr(at) }.to_bytes()),
    }
}

/// A program's numbers; where there are none, no numbers.
///
/// # Safety
/// `at` points to so many, which outlive the value, or is NULL.
pub unsafe fn numbers<'a>(at: *const c_int, count: c_int) -> Value<'a> {
    match usize::try_from(count) {
        // SAFETY: the caller's.
        Ok(count) if !at.is_null() => Value::Ints(unsafe { std::slice::from_raw_parts(at, count) }),
        _ => Value::Ints(&[]),
    }
}

/// A program's texts, of which there are none where it has none.
///
/// # Safety
/// `at` points to so many texts or NULLs, which outlive the value, or is NULL.
pub unsafe fn texts<'a>(at: *const *const c_char, count: c_int) -> Value<'a> {
    let count = usize::try_from(count).unwrap_or(0);
    let count = if at.is_null() { 0 } else { count };
    // SAFETY: the caller's.
    let all = (0..count).map(|index| unsafe { *at.add(index) });
    let all = all.filter(|text| !text.is_null());
    // SAFETY: the caller's.
    Value::Texts(
        all.map(|text| unsafe { CStr::from_ptr(text) }.to_bytes())
            .collect(),
    )
}
