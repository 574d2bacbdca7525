//! Names and mailboxes.

use std::ffi::{c_char, c_int, c_void};

use regatta_abi::{self as abi, Entry as RgEntry};
use regatta_process::control::{NameInfo, flags};
use regatta_process::{self as process, Error, Result};

use crate::error::{answer, argument};
use crate::memory::{block, output};
use crate::text::{name, put, put_all};

// The launcher's flags have the same values as the header's, because they are passed on unchanged.
const _: () = assert!(
    flags::PERSISTENT == abi::PERSISTENT as u32
        && flags::SEVERAL == abi::SEVERAL as u32
        && flags::OVERWRITABLE == abi::OVERWRITABLE as u32
        && flags::FIRST == abi::FIRST as u32
        && flags::DELETE == abi::TAKE as u32
        && flags::WAIT == abi::AWAIT as u32
);

fn index_from(index: c_int) -> Result<u32> {
    u32::try_from(index).map_err(|_| argument("index is negative"))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_put(
    text: *const c_char,
    value: *const c_void,
    len: usize,
    index: c_int,
    flags: c_int,
    placed: *mut c_int,
) -> c_int {
    let put = || -> Result<()> {
        // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
        let name = unsafe { name(text, "name") }?;
        let index = match index {
            process::ANY => None,
            index => Some(index_from(index)?),
        };
        let bytes = block(value, len)?.try_to_vec()?;
        let at = process::put(name, index, flags as u32, bytes)?;
        if let Ok(placed) = output(placed, "placed") {
            *placed = at as c_int;
        }
        Ok(())
    };
    answer(put())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_get(
    text: *const c_char,
    index: c_int,
    flags: c_int,
    value: *mut c_void,
    capacity: usize,
    len: *mut usize,
    found: *mut c_int,
) -> c_int {
    let get = || -> Result<()> {
        // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
        let name = unsafe { name(text, "name") }?;
        let into = block(value, capacity)?;
        let (at, bytes) = process::get(name, index_from(index)?, flags as u32)?;
        if let Ok(len) = output(len, "len") {
            *len = bytes.len();
        }
        if let Ok(found) = output(found, "found") {
            *found = at as c_int;
        }
        into.fill(&bytes[..bytes.len().min(capacity)]);
        match bytes.len() > capacity {
            true => Err(Error::Truncated {
                length: bytes.len(),
                capacity,
            }),
            false => Ok(()),
        }
    };
    answer(get())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_add(
    text: *const c_char,
    index: c_int,
    amount: i64,
    before: *mut i64,
) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    let name = unsafe { name(text, "name") };
    answer(name.and_then(|name| {
        let found = process::add(name, index_from(index)?, amount)?;
        if let Ok(before) = output(before, "before") {
            *before = found;
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_delete(text: *const c_char, index: c_int) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    let name = unsafe { name(text, "name") };
    answer(name.and_then(|name| process::delete(name, index_from(index)?)))
}

fn entry(info: NameInfo) -> RgEntry {
    RgEntry {
        index: info.index as i32,
        owner: info.owner.map_or(process::NONE, |owner| owner as i32),
        flags: info.flags as i32,
        length: info.length,
        name: put(info.name.as_bytes()),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_names(
    pattern: *const c_char,
    entries: *mut RgEntry,
    capacity: c_int,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    let names = unsafe { name(pattern, "pattern") }.and_then(process::names);
    answer(names.and_then(|infos| {
        // SAFETY: the C program guarantees room for `capacity` entries; pointers are valid or NULL.
        unsafe { put_all(infos.into_iter().map(entry), entries, capacity, count) }
    }))
}
