//! Error codes, error classes and their texts. These functions may be called at any time.

use std::ffi::{c_char, c_int};

use crate::abi::*;
use crate::arguments::Out;
use crate::error::{Result, codes, last};
use crate::text;

pub fn error_class(errorcode: c_int, errorclass: Out<c_int>) -> Result {
    errorclass.put(codes::class(errorcode)?);
    Ok(())
}

pub unsafe fn error_string(errorcode: c_int, string: Out<c_char>, resultlen: Out<c_int>) -> Result {
    // A code that the program has added has the text that the program has set.
    let text = match last(errorcode) {
        Some(text) if errorcode <= ERR_LASTCODE => text.into_bytes(),
        _ => codes::text(errorcode)?.into_bytes(),
    };
    // SAFETY: the caller guarantees room for the longest text.
    resultlen.put(unsafe { text::give(&text, string, MAX_ERROR_STRING) });
    Ok(())
}

pub fn add_error_class(errorclass: Out<c_int>) -> Result {
    errorclass.put(codes::add_class());
    Ok(())
}

pub fn add_error_code(errorclass: c_int, errorcode: Out<c_int>) -> Result {
    errorcode.put(codes::add_code(errorclass)?);
    Ok(())
}

pub unsafe fn add_error_string(errorcode: c_int, string: *const c_char) -> Result {
    // SAFETY: the caller guarantees that the text is NUL-terminated.
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
