//! Info objects. These functions may be called at any time.

use std::ffi::{CStr, c_char, c_int};

use crate::abi::*;
use crate::arguments::Out;
use crate::error::{Error, Result};
use crate::info::{self, Hints};
use crate::text;

/// Returns a key that the caller passes.
unsafe fn key_of<'a>(key: *const c_char) -> Result<&'a CStr> {
    if key.is_null() {
        return Err(Error::new(ERR_INFO_KEY, "the key is a null pointer"));
    }
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    let key = unsafe { text::given(key, "the key", MAX_INFO_KEY, ERR_INFO_KEY)? };
    match key.is_empty() {
        true => Err(Error::new(ERR_INFO_KEY, "the key is empty")),
        false => Ok(key),
    }
}

pub fn info_create(info: Out<Info>) -> Result {
    info.put(info::make(Hints::default())?);
    Ok(())
}

pub unsafe fn info_create_env(argc: c_int, argv: *mut *mut c_char, info: Out<Info>) -> Result {
    let count = match argv.is_null() {
        true => 0,
        false => usize::try_from(argc).unwrap_or(0),
    };
    let hints = if count == 0 {
        info::hints(INFO_ENV)?
    } else {
        // SAFETY: the caller guarantees that the array has this many texts.
        let texts = (0..count).map(|at| unsafe { *argv.add(at) });
        let texts = texts.take_while(|text| !text.is_null());
        // SAFETY: the caller guarantees that the array has this many texts.
        info::of_arguments(texts.map(|text| unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()))
    };
    info.put(info::make(hints)?);
    Ok(())
}

pub unsafe fn info_delete(info: Info, key: *const c_char) -> Result {
    let removed = info::with_object(info, |hints| {
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        let key = unsafe { key_of(key)? };
        Ok((key, hints.remove(key)))
    });
    let (key, was_there) = removed??;
    match was_there {
        true => Ok(()),
        false => Err(Error::new(
            ERR_INFO_NOKEY,
            format!("the info object has no key {key:?}"),
        )),
    }
}

pub fn info_dup(info: Info, newinfo: Out<Info>) -> Result {
    let hints = info::hints(info)?;
    newinfo.put(info::make(hints)?);
    Ok(())
}

pub unsafe fn info_free(info: Out<Info>) -> Result {
    info::remove(info.get())?;
    info.put(INFO_NULL);
    Ok(())
}

pub unsafe fn info_get(
    info: Info,
    key: *const c_char,
    valuelen: c_int,
    value: Out<c_char>,
    flag: Out<c_int>,
) -> Result {
    info::with_hints(info, |hints| {
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        let key = unsafe { key_of(key)? };
        if valuelen < 0 {
            let text = format!("valuelen is {valuelen}; it must be 0 or more");
            return Err(Error::new(ERR_ARG, text));
        }
        let found = hints.get(key);
        flag.put(c_int::from(found.is_some()));
        if let Some(found) = found {
            // SAFETY: the caller guarantees room for `valuelen` bytes and a terminating NUL.
            unsafe { text::give(found.to_bytes(), value, valuelen.saturating_add(1)) };
        }
        Ok(())
    })
}

pub fn info_get_nkeys(info: Info, nkeys: Out<c_int>) -> Result {
    nkeys.put(info::with_hints(info, |hints| Ok(hints.len() as c_int))?);
    Ok(())
}

pub unsafe fn info_get_nthkey(info: Info, n: c_int, key: Out<c_char>) -> Result {
    info::with_hints(info, |hints| {
        let found = usize::try_from(n).ok().and_then(|n| hints.key(n));
        let Some(found) = found else {
            let count = hints.len();
            return Err(Error::new(
                ERR_ARG,
                format!("n is {n}; the info object has {count} keys, counted from 0"),
            ));
        };
        // SAFETY: the caller guarantees room for the longest key.
        unsafe { text::give(found.to_bytes(), key, MAX_INFO_KEY) };
        Ok(())
    })
}

pub unsafe fn info_get_string(
    info: Info,
    key: *const c_char,
    buflen: Out<c_int>,
    value: *mut c_char,
    flag: Out<c_int>,
) -> Result {
    info::with_hints(info, |hints| {
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        let key = unsafe { key_of(key)? };
        let found = hints.get(key);
        flag.put(c_int::from(found.is_some()));
        let Some(found) = found else { return Ok(()) };
        if buflen.get() > 0 {
            // SAFETY: the caller guarantees that the buffer has this size.
            unsafe { text::give(found.to_bytes(), Out::at(value, "value")?, buflen.get()) };
        }
        buflen.put(found.count_bytes() as c_int + 1);
        Ok(())
    })
}

pub unsafe fn info_get_valuelen(
    info: Info,
    key: *const c_char,
    valuelen: Out<c_int>,
    flag: Out<c_int>,
) -> Result {
    info::with_hints(info, |hints| {
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        let key = unsafe { key_of(key)? };
        let found = hints.get(key);
        flag.put(c_int::from(found.is_some()));
        if let Some(found) = found {
            valuelen.put(found.count_bytes() as c_int);
        }
        Ok(())
    })
}

pub unsafe fn info_set(info: Info, key: *const c_char, value: *const c_char) -> Result {
    info::with_object(info, |hints| {
        // SAFETY: the caller guarantees that the texts are NUL-terminated.
        let (key, value) = unsafe {
            let key = key_of(key)?;
            (
                key,
                text::given(value, "the value", MAX_INFO_VAL, ERR_INFO_VALUE)?,
            )
        };
        hints.set(key, value);
        Ok(())
    })?
}
