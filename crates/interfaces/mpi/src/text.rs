//! Texts that callers give and get.

use std::ffi::{CStr, c_char, c_int};

use crate::arguments::Out;
use crate::error::{Error, Result, not_null};

/// A text that the caller gives: at most this many bytes with its end, else an error of this class.
///
/// # Safety
/// It is null, or ends and stays.
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

/// Writes a text into the caller's room, cut if it does not fit; its length there.
///
/// # Safety
/// This many bytes may be written.
pub unsafe fn give(text: &[u8], to: Out<c_char>, room: c_int) -> c_int {
    let Some(most) = usize::try_from(room).ok().and_then(|it| it.checked_sub(1)) else {
        return 0;
    };
    let length = text.len().min(most);
    // SAFETY: the caller upholds the safety contract of this function; a byte is left for the end.
    unsafe {
        let to = to.address();
        std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), length);
        to.add(length).write(0);
    }
    length as c_int
}
