//! The functions of `pvm3.h` for buffers and packing.

use std::ffi::{
    CStr, c_char, c_double, c_float, c_int, c_long, c_short, c_uint, c_ulong, c_ushort,
};

use super::codes::{BAD_PARAM, NO_BUF};
use super::error::result;
use super::kind::Kind;
use super::state;
use crate::trace::{self, Value, calls, ints, traced};

/// Converts a result to C's form: 0, or an error code.
#[inline(always)]
pub(super) fn code(result: Result<(), i32>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(code) => code,
    }
}

#[inline(always)]
fn number(result: Result<i32, i32>) -> i32 {
    result.unwrap_or_else(|code| code)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_mkbuf(encoding: c_int) -> c_int {
    let made = || result("pvm_mkbuf", number(state().make(encoding)));
    traced(calls::MKBUF, move || ints([encoding]), made, trace::code)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_initsend(encoding: c_int) -> c_int {
    let begun = || {
        let id = number(state().init_send(encoding));
        if id < 0 {
            // Programs that count lines of errors see two in PVM 3.4, because its pvm_initsend calls pvm_mkbuf.
            result("pvm_mkbuf", id);
        }
        result("pvm_initsend", id)
    };
    traced(
        calls::INITSEND,
        move || ints([encoding]),
        begun,
        trace::code,
    )
}

/// Frees a buffer.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_freebuf(id: c_int) -> c_int {
    let freed = || result("pvm_freebuf", code(state().free(id)));
    traced(calls::FREEBUF, || ints([id]), freed, trace::code)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_getsbuf() -> c_int {
    traced(calls::GETSBUF, || [], || state().current().0, trace::code)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_getrbuf() -> c_int {
    traced(calls::GETRBUF, || [], || state().current().1, trace::code)
}

/// Selects the send buffer, and returns the previous one.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_setsbuf(id: c_int) -> c_int {
    let set = || result("pvm_setsbuf", number(state().set_send(id)));
    traced(calls::SETSBUF, || ints([id]), set, trace::code)
}

/// Selects the receive buffer, and returns the previous one.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_setrbuf(id: c_int) -> c_int {
    let set = || result("pvm_setrbuf", number(state().set_receive(id)));
    traced(calls::SETRBUF, || ints([id]), set, trace::code)
}

/// Writes to a program's variable unless the pointer is NULL.
///
/// # Safety
/// `place` is valid or NULL.
unsafe fn write_to(place: *mut c_int, value: c_int) {
    if !place.is_null() {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { place.write(value) };
    }
}

pub(super) fn length(bytes: usize) -> c_int {
    c_int::try_from(bytes).unwrap_or(c_int::MAX)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_bufinfo(
    id: c_int,
    bytes: *mut c_int,
    tag: *mut c_int,
    tid: *mut c_int,
) -> c_int {
    let known = || {
        let known = state().buffer(id).map(|buffer| {
            // SAFETY: by the C contract the pointers are valid or NULL.
            unsafe {
                if !bytes.is_null() {
                    write_to(bytes, length(buffer.reported_length()));
                }
                write_to(tag, buffer.info.tag);
                write_to(tid, buffer.info.src);
            }
        });
        result("pvm_bufinfo", code(known))
    };
    let told = |code| {
        let info = super::info(id).unwrap_or_default();
        ints([code, super::length(id), info.tag, info.src])
    };
    traced(calls::BUFINFO, || ints([id]), known, told)
}

/// `struct pvmminfo`
#[repr(C)]
pub struct MessageInfo {
    len: c_int,
    ctx: c_int,
    tag: c_int,
    wid: c_int,
    enc: c_int,
    crc: c_int,
    src: c_int,
    dst: c_int,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_getminfo(id: c_int, place: *mut MessageInfo) -> c_int {
    let known = || {
        let known = state().buffer(id).and_then(|buffer| {
            let len = length(buffer.reported_length());
            let info = buffer.info;
            // SAFETY: by the C contract the pointer is valid or NULL.
            let place = unsafe { place.as_mut() }.ok_or(BAD_PARAM)?;
            *place = MessageInfo {
                len,
                ctx: info.ctx,
                tag: info.tag,
                wid: info.wid,
                enc: info.encoding,
                crc: info.crc,
                src: info.src,
                dst: info.dst,
            };
            Ok(())
        });
        result("pvm_getminfo", code(known))
    };
    traced(calls::GETMINFO, || ints([id]), known, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_setminfo(id: c_int, place: *const MessageInfo) -> c_int {
    let known = || {
        let known = state().buffer(id).and_then(|buffer| {
            // SAFETY: by the C contract the pointer is valid or NULL.
            let given = unsafe { place.as_ref() }.ok_or(BAD_PARAM)?;
            buffer.info.ctx = given.ctx;
            buffer.info.tag = given.tag;
            buffer.info.wid = given.wid;
            buffer.info.src = given.src;
            buffer.info.dst = given.dst;
            Ok(())
        });
        result("pvm_setminfo", code(known))
    };
    traced(calls::SETMINFO, || ints([id]), known, trace::code)
}

#[inline(always)]
unsafe fn pack<T>(kind: Kind, items: *const T, count: c_int, stride: c_int) -> c_int {
    if count < 0 {
        return BAD_PARAM;
    }
    let Ok((buffer, shelf)) = state().sending() else {
        return NO_BUF;
    };
    // SAFETY: by the C contract the items are readable.
    code(unsafe { buffer.pack(shelf, kind, items.cast(), count as usize, stride as isize) })
}

#[inline(always)]
unsafe fn unpack<T>(kind: Kind, items: *mut T, count: c_int, stride: c_int) -> c_int {
    if count < 0 {
        return BAD_PARAM;
    }
    let Ok(buffer) = state().receiving() else {
        return NO_BUF;
    };
    // SAFETY: by the C contract there is room for the items.
    code(unsafe { buffer.unpack(kind, items.cast(), count as usize, stride as isize) })
}

/// Returns the values that a tracer gets for items.
fn items_told<T>(items: *const T, count: c_int, stride: c_int) -> [Value<'static>; 3] {
    [
        Value::Address(items.addr()),
        Value::Int(count),
        Value::Int(stride),
    ]
}

macro_rules! packing {
    ($($pack:ident $packing:ident $unpack:ident $unpacking:ident $kind:ident $type:ty),* $(,)?) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $pack(items: *const $type, count: c_int, stride: c_int) -> c_int {
            // SAFETY: by the C contract the items are readable.
            let packed = || result(stringify!($pack), unsafe { pack(Kind::$kind, items, count, stride) });
            traced(calls::$packing, move || items_told(items, count, stride), packed, trace::code)
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $unpack(items: *mut $type, count: c_int, stride: c_int) -> c_int {
            // SAFETY: by the C contract there is room for the items.
            let unpacked = || result(stringify!($unpack), unsafe { unpack(Kind::$kind, items, count, stride) });
            traced(calls::$unpacking, move || items_told(items, count, stride), unpacked, trace::code)
        }
    )* };
}

packing! {
    pvm_pkbyte PKBYTE pvm_upkbyte UPKBYTE Byte c_char,
    pvm_pkshort PKSHORT pvm_upkshort UPKSHORT Short c_short,
    pvm_pkint PKINT pvm_upkint UPKINT Int c_int,
    pvm_pklong PKLONG pvm_upklong UPKLONG Long c_long,
    pvm_pkushort PKUSHORT pvm_upkushort UPKUSHORT UShort c_ushort,
    pvm_pkuint PKUINT pvm_upkuint UPKUINT UInt c_uint,
    pvm_pkulong PKULONG pvm_upkulong UPKULONG ULong c_ulong,
    pvm_pkfloat PKFLOAT pvm_upkfloat UPKFLOAT Float c_float,
    pvm_pkdouble PKDOUBLE pvm_upkdouble UPKDOUBLE Double c_double,
    pvm_pkcplx PKCPLX pvm_upkcplx UPKCPLX Complex c_float,
    pvm_pkdcplx PKDCPLX pvm_upkdcplx UPKDCPLX DoubleComplex c_double,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_pkstr(text: *const c_char) -> c_int {
    let packed = || {
        let packed = match state().sending() {
            Err(code) => Err(code),
            Ok(_) if text.is_null() => Err(BAD_PARAM),
            // SAFETY: by the C contract the string is NUL-terminated.
            Ok((buffer, shelf)) => buffer.pack_string(shelf, unsafe { CStr::from_ptr(text) }),
        };
        result("pvm_pkstr", code(packed))
    };
    let entry = move || [Value::Address(text.addr())];
    traced(calls::PKSTR, entry, packed, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_upkstr(text: *mut c_char) -> c_int {
    let unpacked = || {
        let unpacked = state().receiving().and_then(|buffer| {
            // SAFETY: by the C contract there is room for the string.
            unsafe { buffer.unpack_string(text.cast()) }
        });
        result("pvm_upkstr", code(unpacked))
    };
    let entry = move || [Value::Address(text.addr())];
    traced(calls::UPKSTR, entry, unpacked, trace::code)
}

// In PVM 3.4 a failure of these three is neither printed nor stored in `pvm_errno`.

#[unsafe(no_mangle)]
extern "C" fn pvm_pkmesg(id: c_int) -> c_int {
    code(state().pack_message(id))
}

#[unsafe(no_mangle)]
extern "C" fn pvm_pkmesgbody(id: c_int) -> c_int {
    code(state().pack_body(id))
}

#[unsafe(no_mangle)]
extern "C" fn pvm_upkmesg() -> c_int {
    number(state().unpack_message())
}
