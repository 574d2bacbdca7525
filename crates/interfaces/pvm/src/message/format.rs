//! `pvm_packf` and its relatives.
//!
//! They take variable lists of arguments, so `csrc/format.c` has them; what it finds in a format it
//! brings here, item by item. A library made by Rust exports only what is written in Rust, therefore
//! the names of `pvm3.h` are jumps.

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

/// The types of a format, numbered as in `csrc/format.c`.
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

/// Is there a buffer to pack into (1) or to unpack from (0)?
#[unsafe(no_mangle)]
extern "C" fn regatta_pvm_has_buffer(packing: c_int) -> c_int {
    let (send, receive) = state().current();
    let current = if packing != 0 { send } else { receive };
    if current == 0 { NO_BUF } else { 0 }
}

/// Pack items by their address or, where they are arguments themselves, by their value.
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
    // SAFETY: the C contract: the items are there.
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
    // SAFETY: the C contract: there is room for the items.
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
    // SAFETY: the C contract: a string.
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
    // SAFETY: the C contract: there is room for the string.
    code(unsafe { buffer.unpack_string(text.cast()) })
}

/// How a tracer is told of the function as a whole.
fn call(packing: c_int) -> (&'static str, &'static Call) {
    match packing {
        0 => ("pvm_unpackf", calls::UNPACKF),
        _ => ("pvm_packf", calls::PACKF),
    }
}

/// A function begins.
#[unsafe(no_mangle)]
unsafe extern "C" fn regatta_pvm_format_begins(packing: c_int, format: *const c_char) {
    // SAFETY: the C contract: a text.
    trace::begins(call(packing).1, || [unsafe { trace::text(format) }]);
}

/// The result of the function as a whole.
#[unsafe(no_mangle)]
unsafe extern "C" fn regatta_pvm_format_result(
    packing: c_int,
    format: *const c_char,
    code: c_int,
) -> c_int {
    let (name, call) = call(packing);
    let code = result(name, code);
    // SAFETY: the C contract: a text.
    let entry = || [unsafe { trace::text(format) }];
    trace::ends(call, entry, || trace::code(code));
    code
}
