//! Strings that callers pass and get.

use std::ffi::{CStr, c_char, c_int};

use crate::arguments::Out;
use crate::error::{Error, Result, not_null};

/// Returns a string that the caller passes. Fails with an error of this class if it is longer than `room` bytes,
/// including its NUL.
///
/// # Safety
/// The string is null, or NUL-terminated and valid for `'a`.
pub unsafe fn given<'a>(
    text: *const c_char,
    name: &str,
    room: c_int,
    class: c_int,
) -> Result<&'a CStr> {
    not_null(text, name)?;
    // SAFETY: the caller upholds the safety contract of this function.
    let text = unsafe { CStr::from_ptr(text) };
    let length = text.count_bytes();
    if length >= room as usize {
        let most = room - 1;
        let sentence = format!("{name} has {length} bytes; at most {most} are allowed");
        return Err(Error::new(class, sentence));
    }
    Ok(text)
}

/// Writes a string into the caller's buffer, truncated if it does not fit. Returns the length written.
///
/// # Safety
/// `to` is valid for writes of `room` bytes.
pub unsafe fn give(text: &[u8], to: Out<c_char>, room: c_int) -> c_int {
    let Some(most) = usize::try_from(room).ok().and_then(|it| it.checked_sub(1)) else {
        return 0;
    };
    let length = text.len().min(most);
    // SAFETY: the caller upholds the safety contract of this function; one byte is left for the NUL.
    unsafe {
        let to = to.address();
        std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), length);
        to.add(length).write(0);
    }
    length as c_int
}
