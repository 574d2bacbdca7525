//! Statuses, read and written.

use std::ffi::c_int;

use crate::abi::*;
use crate::datatype;
use crate::error::{Error, Result, not_null};

/// A status that is there.
unsafe fn given<'a>(status: *const Status) -> Result<&'a Status> {
    not_null(status, "status")?;
    // SAFETY: the caller's pointer.
    Ok(unsafe { &*status })
}

/// A status to be written.
unsafe fn place<'a>(status: *mut Status) -> Result<&'a mut Status> {
    not_null(status, "status")?;
    // SAFETY: the caller's pointer.
    Ok(unsafe { &mut *status })
}

pub unsafe fn get_count(status: *const Status, datatype: Datatype, count: OutCount) -> Result {
    // SAFETY: the caller's pointer.
    let bytes = unsafe { given(status)? }.bytes();
    let of = datatype::get(datatype)?;
    if count.is_null() {
        return Err(Error::new(ERR_ARG, "count is a null pointer"));
    }
    let found = match of.size() as u64 {
        0 if bytes == 0 => 0,
        size if size != 0 && bytes.is_multiple_of(size) => (bytes / size) as i64,
        _ => i64::from(UNDEFINED),
    };
    // SAFETY: the caller's pointer.
    unsafe { count.set(found) };
    Ok(())
}

pub unsafe fn test_cancelled(status: *const Status, flag: *mut c_int) -> Result {
    not_null(flag, "flag")?;
    // SAFETY: the caller's pointers.
    unsafe { *flag = c_int::from(given(status)?.cancelled()) };
    Ok(())
}

pub unsafe fn status_set_cancelled(status: *mut Status, flag: c_int) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { place(status)? }.set_cancelled(flag != 0);
    Ok(())
}

pub unsafe fn status_get_source(status: *const Status, source: *mut c_int) -> Result {
    not_null(source, "source")?;
    // SAFETY: the caller's pointers.
    unsafe { *source = given(status)?.source };
    Ok(())
}

pub unsafe fn status_get_tag(status: *const Status, tag: *mut c_int) -> Result {
    not_null(tag, "tag")?;
    // SAFETY: the caller's pointers.
    unsafe { *tag = given(status)?.tag };
    Ok(())
}

pub unsafe fn status_get_error(status: *const Status, error: *mut c_int) -> Result {
    not_null(error, "error")?;
    // SAFETY: the caller's pointers.
    unsafe { *error = given(status)?.error };
    Ok(())
}

pub unsafe fn status_set_source(status: *mut Status, source: c_int) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { place(status)? }.source = source;
    Ok(())
}

pub unsafe fn status_set_tag(status: *mut Status, tag: c_int) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { place(status)? }.tag = tag;
    Ok(())
}

pub unsafe fn status_set_error(status: *mut Status, error: c_int) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { place(status)? }.error = error;
    Ok(())
}
