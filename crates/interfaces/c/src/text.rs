//! C's texts and arrays.

use std::ffi::{CStr, c_char, c_int};

use regatta_process::Result;

use crate::error::argument;

/// A text that must be there.
///
/// # Safety
/// `text` is NULL or ends with a zero.
pub(crate) unsafe fn required<'a>(text: *const c_char, name: &str) -> Result<&'a CStr> {
    // SAFETY: as the caller promises.
    unsafe { optional(text) }.ok_or_else(|| argument(&format!("{name} is NULL; it must be a text")))
}

/// A text that may be NULL.
///
/// # Safety
/// As for [`required`].
pub(crate) unsafe fn optional<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the C contract: what is not NULL ends with a zero.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// The name of something, which is text for people too.
///
/// # Safety
/// As for [`required`].
pub(crate) unsafe fn name(text: *const c_char, what: &str) -> Result<String> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { required(text, what) }?;
    let text = bytes
        .to_str()
        .map_err(|_| argument(&format!("{what} is not UTF-8")))?;
    Ok(text.to_owned())
}

/// The texts of an array that ends with NULL.
///
/// # Safety
/// `list` is NULL or leads to texts and, behind them, NULL.
pub(crate) unsafe fn list(list: *const *const c_char) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    if list.is_null() {
        return texts;
    }
    // SAFETY: the C contract: there is a NULL, and nothing behind it is read.
    while let Some(text) = unsafe { optional(*list.add(texts.len())) } {
        texts.push(text.to_bytes().to_vec());
    }
    texts
}

/// Put a text into an array of C, cut if need be, with its end.
pub(crate) fn put<const N: usize>(text: &[u8]) -> [c_char; N] {
    let mut array = [0; N];
    for (place, &byte) in array.iter_mut().take(N - 1).zip(text) {
        *place = byte as c_char;
    }
    array
}

/// Put as many of `items` as fit where a C program wants them, and how many there are.
///
/// # Safety
/// `place` has room for `capacity` items, or is NULL; `count` is valid or NULL.
pub(crate) unsafe fn put_all<T>(
    items: impl ExactSizeIterator<Item = T>,
    place: *mut T,
    capacity: c_int,
    count: *mut c_int,
) -> Result<()> {
    let capacity = usize::try_from(capacity).map_err(|_| argument("capacity is negative"))?;
    // SAFETY: as the caller promises.
    if let Some(count) = unsafe { count.as_mut() } {
        *count = items.len() as c_int;
    }
    if place.is_null() {
        return Ok(());
    }
    for (at, item) in items.take(capacity).enumerate() {
        // SAFETY: `at < capacity`.
        unsafe { place.add(at).write(item) };
    }
    Ok(())
}
