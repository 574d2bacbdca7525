//! The functions of `pvm3.h` for buffers and packing.

use std::ffi::{
    CStr, c_char, c_double, c_float, c_int, c_long, c_short, c_uint, c_ulong, c_ushort,
};

use super::codes::{BAD_PARAM, NO_BUF};
use super::error::result;
use super::kind::Kind;
use super::state;

/// A result as C has it: 0 or more, or an error.
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
    result("pvm_mkbuf", number(state().make(encoding)))
}

#[unsafe(no_mangle)]
extern "C" fn pvm_initsend(encoding: c_int) -> c_int {
    let id = number(state().init_send(encoding));
    if id < 0 {
        // Programs that count lines of errors see two in PVM 3.4: it calls the other one.
        result("pvm_mkbuf", id);
    }
    result("pvm_initsend", id)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_freebuf(id: c_int) -> c_int {
    result("pvm_freebuf", code(state().free(id)))
}

#[unsafe(no_mangle)]
extern "C" fn pvm_getsbuf() -> c_int {
    state().current().0
}

#[unsafe(no_mangle)]
extern "C" fn pvm_getrbuf() -> c_int {
    state().current().1
}

#[unsafe(no_mangle)]
extern "C" fn pvm_setsbuf(id: c_int) -> c_int {
    result("pvm_setsbuf", number(state().set_send(id)))
}

#[unsafe(no_mangle)]
extern "C" fn pvm_setrbuf(id: c_int) -> c_int {
    result("pvm_setrbuf", number(state().set_receive(id)))
}

/// Write to a place of the user's, if there is one.
///
/// # Safety
/// The place is valid or NULL.
unsafe fn tell(place: *mut c_int, value: c_int) {
    if !place.is_null() {
        // SAFETY: the caller's.
        unsafe { place.write(value) };
    }
}

fn length(bytes: usize) -> c_int {
    c_int::try_from(bytes).unwrap_or(c_int::MAX)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_bufinfo(
    id: c_int,
    bytes: *mut c_int,
    tag: *mut c_int,
    tid: *mut c_int,
) -> c_int {
    let known = state().buffer(id).map(|buffer| {
        // SAFETY: the C contract: places are valid or NULL.
        unsafe {
            if !bytes.is_null() {
                tell(bytes, length(buffer.tell_length()));
            }
            tell(tag, buffer.info.tag);
            tell(tid, buffer.info.src);
        }
    });
    result("pvm_bufinfo", code(known))
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
    let known = state().buffer(id).and_then(|buffer| {
        let len = length(buffer.tell_length());
        let info = buffer.info;
        // SAFETY: the C contract: a place is valid or NULL.
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
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_setminfo(id: c_int, place: *const MessageInfo) -> c_int {
    let known = state().buffer(id).and_then(|buffer| {
        // SAFETY: the C contract: a place is valid or NULL.
        let given = unsafe { place.as_ref() }.ok_or(BAD_PARAM)?;
        buffer.info.ctx = given.ctx;
        buffer.info.tag = given.tag;
        buffer.info.wid = given.wid;
        buffer.info.src = given.src;
        buffer.info.dst = given.dst;
        Ok(())
    });
    result("pvm_setminfo", code(known))
}

#[inline(always)]
unsafe fn pack<T>(kind: Kind, items: *const T, count: c_int, stride: c_int) -> c_int {
    if count < 0 {
        return BAD_PARAM;
    }
    let Ok((buffer, shelf)) = state().sending() else {
        return NO_BUF;
    };
    // SAFETY: the C contract: the items are there.
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
    // SAFETY: the C contract: there is room for the items.
    code(unsafe { buffer.unpack(kind, items.cast(), count as usize, stride as isize) })
}

macro_rules! packing {
    ($($pack:ident $unpack:ident $kind:ident $type:ty),* $(,)?) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $pack(items: *const $type, count: c_int, stride: c_int) -> c_int {
            // SAFETY: the C contract: the items are there.
            result(stringify!($pack), unsafe { pack(Kind::$kind, items, count, stride) })
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $unpack(items: *mut $type, count: c_int, stride: c_int) -> c_int {
            // SAFETY: the C contract: there is room for the items.
            result(stringify!($unpack), unsafe { unpack(Kind::$kind, items, count, stride) })
        }
    )* };
}

packing! {
    pvm_pkbyte pvm_upkbyte Byte c_char,
    pvm_pkshort pvm_upkshort Short c_short,
    pvm_pkint pvm_upkint Int c_int,
    pvm_pklong pvm_upklong Long c_long,
    pvm_pkushort pvm_upkushort UShort c_ushort,
    pvm_pkuint pvm_upkuint UInt c_uint,
    pvm_pkulong pvm_upkulong ULong c_ulong,
    pvm_pkfloat pvm_upkfloat Float c_float,
    pvm_pkdouble pvm_upkdouble Double c_double,
    pvm_pkcplx pvm_upkcplx Complex c_float,
    pvm_pkdcplx pvm_upkdcplx DoubleComplex c_double,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_pkstr(text: *const c_char) -> c_int {
    let packed = match state().sending() {
        Err(code) => Err(code),
        Ok(_) if text.is_null() => Err(BAD_PARAM),
        // SAFETY: the C contract: a string.
        Ok((buffer, shelf)) => buffer.pack_string(shelf, unsafe { CStr::from_ptr(text) }),
    };
    result("pvm_pkstr", code(packed))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_upkstr(text: *mut c_char) -> c_int {
    let unpacked = state().receiving().and_then(|buffer| {
        // SAFETY: the C contract: there is room for the string.
        unsafe { buffer.unpack_string(text.cast()) }
    });
    result("pvm_upkstr", code(unpacked))
}

// Of these three PVM 3.4 says nothing when they fail, and remembers nothing.

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
