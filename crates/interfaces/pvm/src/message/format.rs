//! `pvm_packf` and its relatives.
//!
//! They are variadic and therefore implemented in `csrc/format.c`, which calls the functions here for each item of a
//! format. A Rust library exports only symbols defined in Rust, therefore the names of `pvm3.h` are jumps to the C
//! functions.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::calls::code;
use super::codes::{BAD_PARAM, NO_BUF, NO_MEM};
use super::error::result;
use super::kind::Kind;
use super::state;
use crate::trace;
use crate::trace::calls::{self, Call};

unsafe extern "C" {
    fn regatta_pvm_packf();
    fn regatta_pvm_vpackf();
    fn regatta_pvm_unpackf();
    fn regatta_pvm_vunpackf();
}

regatta_sys::jumps! {
    pvm_packf => regatta_pvm_packf,
    pvm_vpackf => regatta_pvm_vpackf,
    pvm_unpackf => regatta_pvm_unpackf,
    pvm_vunpackf => regatta_pvm_vunpackf,
}

/// Returns the type with this number in `csrc/format.c`.
fn kind(number: c_int) -> Option<Kind> {
    Some(match number {
        0 => Kind::Byte,
        1 => Kind::Short,
        2 => Kind::Int,
        3 => Kind::Long,
        4 => Kind::UShort,
        5 => Kind::UInt,
        6 => Kind::ULong,
        7 => Kind::Float,
        8 => Kind::Double,
        9 => Kind::Complex,
        10 => Kind::DoubleComplex,
        _ => return None,
    })
}

/// Returns 0 if there is a buffer to pack into (`packing` is 1) or to unpack from (0), otherwise `NO_BUF`.
#[unsafe(no_mangle)]
extern "C" fn regatta_pvm_has_buffer(packing: c_int) -> c_int {
    let (send, receive) = state().current();
    let current = if packing != 0 { send } else { receive };
    if current == 0 { NO_BUF } else { 0 }
}

/// Packs items that are passed by address or, if `by_value`, copies one that is an argument itself.
#[unsafe(no_mangle)]
unsafe extern "C" fn regatta_pvm_pack_item(
    number: c_int,
    items: *const c_void,
    count: c_int,
    stride: c_int,
    by_value: c_int,
) -> c_int {
    let Some(kind) = kind(number) else {
        return BAD_PARAM;
    };
    let Ok((buffer, shelf)) = state().sending() else {
        return NO_BUF;
    };
    let (count, stride) = (count.max(0) as usize, stride as isize);
    // SAFETY: by the C contract the items are readable.
    code(unsafe {
        match by_value {
            0 => buffer.pack(shelf, kind, items, count, stride),
            _ => buffer.pack_value(shelf, kind, items, count),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn regatta_pvm_unpack_item(
    number: c_int,
    items: *mut c_void,
    count: c_int,
    stride: c_int,
) -> c_int {
    let (Some(kind), Ok(buffer)) = (kind(number), state().receiving()) else {
        return BAD_PARAM;
    };
    // SAFETY: by the C contract there is room for the items.
    code(unsafe { buffer.unpack(kind, items, count.max(0) as usize, stride as isize) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn regatta_pvm_pack_text(text: *const c_char) -> c_int {
    let Ok((buffer, shelf)) = state().sending() else {
        return NO_BUF;
    };
    if text.is_null() {
        return BAD_PARAM;
    }
    // SAFETY: by the C contract the string is NUL-terminated.
    let text = unsafe { CStr::from_ptr(text) };
    let Ok(length) = c_int::try_from(text.count_bytes() + 1) else {
        return NO_MEM;
    };
    code(buffer.pack_formatted_string(shelf, text, length))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn regatta_pvm_unpack_text(text: *mut c_char) -> c_int {
    let Ok(buffer) = state().receiving() else {
        return NO_BUF;
    };
    // SAFETY: by the C contract there is room for the string.
    code(unsafe { buffer.unpack_string(text.cast()) })
}

/// Returns the name and the trace event of the whole call.
fn call(packing: c_int) -> (&'static str, &'static Call) {
    match packing {
        0 => ("pvm_unpackf", calls::UNPACKF),
        _ => ("pvm_packf", calls::PACKF),
    }
}

/// Reports the begin of a call to a tracer.
#[unsafe(no_mangle)]
unsafe extern "C" fn regatta_pvm_format_begins(packing: c_int, format: *const c_char) {
    // SAFETY: by the C contract the string is NUL-terminated.
    trace::begins(call(packing).1, || [unsafe { trace::text(format) }]);
}

/// Reports the end of a call to a tracer, and returns its result to the program.
#[unsafe(no_mangle)]
unsafe extern "C" fn regatta_pvm_format_result(
    packing: c_int,
    format: *const c_char,
    code: c_int,
) -> c_int {
    let (name, call) = call(packing);
    let code = result(name, code);
    // SAFETY: by the C contract the string is NUL-terminated.
    let entry = || [unsafe { trace::text(format) }];
    trace::ends(call, entry, || trace::code(code));
    code
}
