//! Reading and writing statuses.

use std::ffi::c_int;
use std::sync::Arc;

use crate::abi::*;
use crate::arguments::Out;
use crate::datatype::Type;
use crate::error::{Error, Result};

pub unsafe fn get_count(status: &Status, of: Arc<Type>, count: OutCount) -> Result {
    let bytes = status.bytes();
    if count.is_null() {
        return Err(Error::new(ERR_ARG, "count is a null pointer"));
    }
    let found = match of.size() as u64 {
        0 if bytes == 0 => 0,
        size if size != 0 && bytes.is_multiple_of(size) => (bytes / size) as i64,
        _ => i64::from(UNDEFINED),
    };
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { count.set(found) };
    Ok(())
}

pub fn test_cancelled(status: &Status, flag: Out<c_int>) -> Result {
    flag.put(c_int::from(status.cancelled()));
    Ok(())
}

pub fn status_set_cancelled(status: &mut Status, flag: c_int) -> Result {
    status.set_cancelled(flag != 0);
    Ok(())
}

pub fn status_get_source(status: &Status, source: Out<c_int>) -> Result {
    source.put(status.source);
    Ok(())
}

pub fn status_get_tag(status: &Status, tag: Out<c_int>) -> Result {
    tag.put(status.tag);
    Ok(())
}

pub fn status_get_error(status: &Status, error: Out<c_int>) -> Result {
    error.put(status.error);
    Ok(())
}

pub fn status_set_source(status: &mut Status, source: c_int) -> Result {
    status.source = source;
    Ok(())
}

pub fn status_set_tag(status: &mut Status, tag: c_int) -> Result {
    status.tag = tag;
    Ok(())
}

pub fn status_set_error(status: &mut Status, error: c_int) -> Result {
    status.error = error;
    Ok(())
}
