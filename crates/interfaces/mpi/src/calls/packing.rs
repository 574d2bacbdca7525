//! Packing and unpacking, addresses, and numbers of elements in messages.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::Route;
use crate::datatype::{self, Type, committed, external, memory};
use crate::error::{Error, Result};

/// A checked range of a packed buffer: its datatype, its length in bytes, and its position, from which the buffer has
/// room for it.
struct Packed {
    of: Arc<Type>,
    length: usize,
    position: usize,
}

impl Packed {
    unsafe fn new(
        of: Arc<Type>,
        length: usize,
        size: i64,
        position: OutCount,
        buffer: *const c_void,
    ) -> Result<Packed> {
        if position.is_null() {
            return Err(Error::new(ERR_ARG, "position is a null pointer"));
        }
        // SAFETY: the caller guarantees that the pointer is valid.
        let at = unsafe { position.get() };
        let left = size.checked_sub(at).filter(|&left| at >= 0 && left >= 0);
        if left.is_none_or(|left| (left as u64) < length as u64) {
            let text = format!(
                "{length} bytes do not fit in a packed buffer of {size} bytes from position {at} on"
            );
            return Err(Error::new(ERR_TRUNCATE, text));
        }
        datatype::address(buffer, 0, length)?;
        Ok(Packed {
            of,
            length,
            position: at as usize,
        })
    }

    /// Sets the caller's position to the end of the range.
    unsafe fn advance(&self, position: OutCount) {
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { position.set((self.position + self.length) as i64) };
    }
}

pub unsafe fn pack(
    inbuf: *const c_void,
    incount: i64,
    datatype: Datatype,
    outbuf: *mut c_void,
    outsize: i64,
    position: OutCount,
    _route: &Route,
) -> Result {
    let of = committed(datatype)?;
    let length = of.packed_size(incount)?;
    of.check_buffer(inbuf, length)?;
    // SAFETY: the caller guarantees that the buffers have these elements, and this many bytes.
    unsafe {
        let packed = Packed::new(of, length, outsize, position, outbuf)?;
        let out = outbuf.cast::<u8>().wrapping_add(packed.position);
        packed.of.pack(inbuf, 0, length, out);
        packed.advance(position);
    }
    Ok(())
}

pub unsafe fn unpack(
    inbuf: *const c_void,
    insize: i64,
    position: OutCount,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: Datatype,
    _route: &Route,
) -> Result {
    let of = committed(datatype)?;
    let length = of.packed_size(outcount)?;
    of.check_buffer(outbuf, length)?;
    // SAFETY: the caller guarantees that the buffers have these elements, and this many bytes.
    unsafe {
        let packed = Packed::new(of, length, insize, position, inbuf)?;
        let bytes = inbuf.cast::<u8>().wrapping_add(packed.position);
        packed.of.unpack(bytes, 0, length, outbuf);
        packed.advance(position);
    }
    Ok(())
}

pub unsafe fn pack_size(
    incount: i64,
    datatype: Datatype,
    _route: &Route,
    size: OutCount,
) -> Result {
    let length = committed(datatype)?.packed_size(incount)?;
    if size.is_null() {
        return Err(Error::new(ERR_ARG, "size is a null pointer"));
    }
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { size.set(length as i64) };
    Ok(())
}

/// Checks that the name is `external32`, the only data representation to pack to.
fn check_external32(name: &CStr) -> Result {
    match name.to_bytes() {
        b"external32" => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("the data representation is {name:?}; packing supports only external32"),
        )),
    }
}

/// Returns the length of `count` elements in external32, in bytes.
fn external_size(of: &Type, count: i64) -> Result<usize> {
    of.packed_size(count)?;
    let one = of.map().signature.totals().external;
    one.checked_mul(count as usize).ok_or_else(|| {
        let text = format!("{count} elements of this datatype exceed the address space");
        Error::new(ERR_COUNT, text)
    })
}

pub unsafe fn pack_external(
    datarep: &CStr,
    inbuf: *const c_void,
    incount: i64,
    datatype: Datatype,
    outbuf: *mut c_void,
    outsize: i64,
    position: *mut i64,
) -> Result {
    check_external32(datarep)?;
    let of = committed(datatype)?;
    let (length, native) = (external_size(&of, incount)?, of.packed_size(incount)?);
    of.check_buffer(inbuf, native)?;
    let position = OutCount::Large(position);
    let mut bytes = memory(native)?;
    // SAFETY: the caller guarantees that the buffers have these elements, and this many bytes; `pack` fills the bytes.
    unsafe {
        let packed = Packed::new(of, length, outsize, position, outbuf)?;
        packed.of.pack(inbuf, 0, native, bytes.as_mut_ptr());
        bytes.set_len(native);
        if length != 0 {
            let out = outbuf.cast::<u8>().wrapping_add(packed.position);
            let out = std::slice::from_raw_parts_mut(out, length);
            external::encode(&packed.of.map().signature, incount as usize, &bytes, out)?;
        }
        packed.advance(position);
    }
    Ok(())
}

pub unsafe fn unpack_external(
    datarep: &CStr,
    inbuf: *const c_void,
    insize: i64,
    position: *mut i64,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: Datatype,
) -> Result {
    check_external32(datarep)?;
    let of = committed(datatype)?;
    let (length, native) = (external_size(&of, outcount)?, of.packed_size(outcount)?);
    of.check_buffer(outbuf, native)?;
    let position = OutCount::Large(position);
    let mut bytes = memory(native)?;
    bytes.resize(native, 0);
    // SAFETY: the caller guarantees that the buffers have these elements, and this many bytes.
    unsafe {
        let packed = Packed::new(of, length, insize, position, inbuf)?;
        if length != 0 {
            let from = inbuf.cast::<u8>().wrapping_add(packed.position);
            let from = std::slice::from_raw_parts(from, length);
            let signature = &packed.of.map().signature;
            external::decode(signature, outcount as usize, from, &mut bytes)?;
        }
        packed.of.unpack(bytes.as_ptr(), 0, native, outbuf);
        packed.advance(position);
    }
    Ok(())
}

pub unsafe fn pack_external_size(
    datarep: &CStr,
    incount: i64,
    datatype: Datatype,
    size: Out<i64>,
) -> Result {
    check_external32(datarep)?;
    let of = committed(datatype)?;
    size.put(external_size(&of, incount)? as i64);
    Ok(())
}

pub fn get_address(location: *const c_void, address: Out<i64>) -> Result {
    address.put(location as i64);
    Ok(())
}

pub unsafe fn aint_add(base: i64, disp: i64) -> i64 {
    base.wrapping_add(disp)
}

pub unsafe fn aint_diff(addr1: i64, addr2: i64) -> i64 {
    addr1.wrapping_sub(addr2)
}

pub unsafe fn get_elements(status: &Status, datatype: Datatype, count: OutCount) -> Result {
    if count.is_null() {
        return Err(Error::new(ERR_ARG, "count is a null pointer"));
    }
    let of = committed(datatype)?;
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        let elements = of.elements_in(status.bytes());
        count.set(elements.unwrap_or(i64::from(UNDEFINED)));
    }
    Ok(())
}

pub unsafe fn get_elements_x(status: &Status, datatype: Datatype, count: *mut i64) -> Result {
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe { get_elements(status, datatype, OutCount::Large(count)) }
}

pub fn status_set_elements(status: &mut Status, datatype: Datatype, count: i64) -> Result {
    let of = committed(datatype)?;
    let signature = &of.map().signature;
    let one = signature.totals().elements as i64;
    let wrong = || {
        let text = format!("{count} is not a valid number of elements of this datatype");
        Error::new(ERR_COUNT, text)
    };
    let bytes = match (count, one) {
        (0, _) => 0,
        (..0, _) | (_, 0) => return Err(wrong()),
        _ => {
            let rest = signature.bytes_of((count % one) as usize) as i64;
            let whole = of.size().checked_mul(count / one);
            whole
                .and_then(|it| it.checked_add(rest))
                .ok_or_else(wrong)?
        }
    };
    status.set_bytes(bytes as u64);
    Ok(())
}

pub fn status_set_elements_x(status: &mut Status, datatype: Datatype, count: i64) -> Result {
    status_set_elements(status, datatype, count)
}
