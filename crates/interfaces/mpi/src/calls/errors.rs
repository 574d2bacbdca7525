//! Codes of errors and their texts. All of these may be called at any time.

use std::ffi::{c_char, c_int};

use crate::abi::*;
use crate::error::{Result, codes, last, not_null};
use crate::text;

pub unsafe fn error_class(errorcode: c_int, errorclass: *mut c_int) -> Result {
    not_null(errorclass, "errorclass")?;
    // SAFETY: the caller's pointer.
    unsafe { *errorclass = codes::class(errorcode)? };
    Ok(())
}

pub unsafe fn error_string(errorcode: c_int, string: *mut c_char, resultlen: *mut c_int) -> Result {
    not_null(string, "string")?;
    not_null(resultlen, "resultlen")?;
    // A code that the program has added has the program's text.
    let text = match last(errorcode) {
        Some(text) if errorcode <= ERR_LASTCODE => text.into_bytes(),
        _ => codes::text(errorcode)?.into_bytes(),
    };
    // SAFETY: the caller has room for the longest text.
    unsafe { *resultlen = text::give(&text, string, MAX_ERROR_STRING) };
    Ok(())
}

pub unsafe fn add_error_class(errorclass: *mut c_int) -> Result {
    not_null(errorclass, "errorclass")?;
    // SAFETY: the caller's pointer.
    unsafe { *errorclass = codes::add_class() };
    Ok(())
}

pub unsafe fn add_error_code(errorclass: c_int, errorcode: *mut c_int) -> Result {
    not_null(errorcode, "errorcode")?;
    // SAFETY: the caller's pointer.
    unsafe { *errorcode = codes::add_code(errorclass)? };
    Ok(())
}

pub unsafe fn add_error_string(errorcode: c_int, string: *const c_char) -> Result {
    // SAFETY: the caller's text.
    let text = unsafe { text::given(string, "string", MAX_ERROR_STRING, ERR_ARG)? };
    codes::set_text(errorcode, text)
}

pub unsafe fn remove_error_class(errorclass: c_int) -> Result {
    codes::remove(errorclass, true)
}

pub unsafe fn remove_error_code(errorcode: c_int) -> Result {
    codes::remove(errorcode, false)
}

pub unsafe fn remove_error_string(errorcode: c_int) -> Result {
    codes::set_text(errorcode, c"")
}
