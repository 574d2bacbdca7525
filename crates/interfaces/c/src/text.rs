//! Texts and arrays of C.

use std::ffi::{CStr, c_char, c_int};

use regatta_process::Result;

use crate::error::argument;

/// Returns the text at a pointer. Fails if the pointer is NULL.
///
/// # Safety
/// `text` must be NULL or a NUL-terminated text that is valid for `'a`.
pub(crate) unsafe fn required<'a>(text: *const c_char, name: &str) -> Result<&'a CStr> {
    // SAFETY: the caller guarantees that `text` is NULL or NUL-terminated.
    unsafe { optional(text) }.ok_or_else(|| argument(&format!("{name} is NULL; it must be a text")))
}

/// Returns the text at a pointer, or `None` if the pointer is NULL.
///
/// # Safety
/// See [`required`].
pub(crate) unsafe fn optional<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller guarantees that `text` is NUL-terminated, and it is not NULL.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Returns the name at a pointer. Fails if the pointer is NULL or the name is not UTF-8.
///
/// # Safety
/// See [`required`].
pub(crate) unsafe fn name(text: *const c_char, what: &str) -> Result<String> {
    // SAFETY: the caller guarantees that `text` is NULL or NUL-terminated.
    let bytes = unsafe { required(text, what) }?;
    let text = bytes
        .to_str()
        .map_err(|_| argument(&format!("{what} is not UTF-8")))?;
    Ok(text.to_owned())
}

/// Copies the texts of an array that ends with NULL. Returns an empty list if the array is NULL.
///
/// # Safety
/// `list` must be NULL or an array of NUL-terminated texts that ends with NULL.
pub(crate) unsafe fn list(list: *const *const c_char) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    if list.is_null() {
        return texts;
    }
    // SAFETY: the caller guarantees that the array ends with NULL, and nothing after it is read.
    while let Some(text) = unsafe { optional(*list.add(texts.len())) } {
        texts.push(text.to_bytes().to_vec());
    }
    texts
}

/// Returns a text as a NUL-terminated array of C. A text that is too long is cut.
pub(crate) fn put<const N: usize>(text: &[u8]) -> [c_char; N] {
    let mut array = [0; N];
    for (place, &byte) in array.iter_mut().take(N - 1).zip(text) {
        *place = byte as c_char;
    }
    array
}

/// Writes at most `capacity` of `items` to `place`, and the number of items to `count`. Does not write to a NULL pointer. Fails
/// if `capacity` is negative.
///
/// # Safety
/// `place` must be NULL or have room for `capacity` items. `count` must be NULL or valid.
pub(crate) unsafe fn put_all<T>(
    items: impl ExactSizeIterator<Item = T>,
    place: *mut T,
    capacity: c_int,
    count: *mut c_int,
) -> Result<()> {
    let capacity = usize::try_from(capacity).map_err(|_| argument("capacity is negative"))?;
    // SAFETY: the caller guarantees that `count` is NULL or valid.
    if let Some(count) = unsafe { count.as_mut() } {
        *count = items.len() as c_int;
    }
    if place.is_null() {
        return Ok(());
    }
    for (at, item) in items.take(capacity).enumerate() {
        // SAFETY: `place` has room for `capacity` items, and `at < capacity`.
        unsafe { place.add(at).write(item) };
    }
    Ok(())
}
