//! Reads and writes of scattered memory: `creadv` and the related calls. Nodes that share a file take turns per read or
//! write. Therefore all parts are one transfer, through one contiguous buffer.

use std::ffi::{c_int, c_uint, c_void};

use crate::error::{Answer, EQLEN, EQPARAM, EQPBUF, Fault};
use crate::files::{begun, read, write};
use crate::forms::c_forms;

/// Returns the parts that a program passes.
///
/// # Safety
/// `list` has `count` entries.
unsafe fn parts<'a>(list: *const libc::iovec, count: c_int) -> Result<&'a [libc::iovec], Fault> {
    let wrong = Fault::of(EQPARAM, "iovcnt", count.into());
    let count = usize::try_from(count).map_err(|_| wrong)?;
    match (count, list.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(wrong),
        // SAFETY: the caller guarantees that the memory is valid.
        (_, false) => Ok(unsafe { std::slice::from_raw_parts(list, count) }),
    }
}

/// Returns the total length of the parts.
fn length_of(parts: &[libc::iovec]) -> Result<c_uint, Fault> {
    let lengths = parts.iter().map(|part| part.iov_len);
    let sum = lengths
        .into_iter()
        .try_fold(0usize, |sum, length| sum.checked_add(length));
    let sum = sum.and_then(|sum| c_uint::try_from(sum).ok());
    sum.ok_or(Fault::plain(EQLEN))
}

/// Returns the memory of a part.
///
/// # Safety
/// The memory has the part's length.
unsafe fn memory<'a>(part: &libc::iovec) -> Result<&'a mut [u8], Fault> {
    match (part.iov_len, part.iov_base.is_null()) {
        (0, _) => Ok(&mut []),
        (_, true) => Err(Fault::plain(EQPBUF)),
        (length, false) => {
            // SAFETY: the caller guarantees that the memory is valid.
            let memory = unsafe { std::slice::from_raw_parts_mut(part.iov_base.cast(), length) };
            Ok(memory)
        }
    }
}

pub unsafe fn read_parts(fd: c_int, list: *const libc::iovec, count: c_int) -> Answer {
    // SAFETY: by the C contract the arguments are valid.
    let parts = unsafe { parts(list, count) }?;
    let mut all = vec![0u8; length_of(parts)? as usize];
    // SAFETY: the memory has this length.
    let done = unsafe { read(fd, all.as_mut_ptr().cast::<c_void>(), all.len() as c_uint) }?;
    let mut left = &all[..done as usize];
    for part in parts {
        // SAFETY: by the C contract the arguments are valid.
        let memory = unsafe { memory(part) }?;
        let (here, behind) = left.split_at(memory.len().min(left.len()));
        memory[..here.len()].copy_from_slice(here);
        left = behind;
    }
    Ok(done)
}

pub unsafe fn write_parts(fd: c_int, list: *const libc::iovec, count: c_int) -> Answer {
    // SAFETY: by the C contract the arguments are valid.
    let parts = unsafe { parts(list, count) }?;
    let mut all = Vec::with_capacity(length_of(parts)? as usize);
    for part in parts {
        // SAFETY: by the C contract the arguments are valid.
        all.extend_from_slice(unsafe { memory(part) }?);
    }
    // SAFETY: the memory has this length.
    unsafe { write(fd, all.as_ptr().cast::<c_void>(), all.len() as c_uint) }
}

unsafe fn begin_read(fd: c_int, list: *const libc::iovec, count: c_int) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    begun(unsafe { read_parts(fd, list, count) })
}

unsafe fn begin_write(fd: c_int, list: *const libc::iovec, count: c_int) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    begun(unsafe { write_parts(fd, list, count) })
}

c_forms! {
    creadv, _creadv: (fd: c_int, list: *const libc::iovec, count: c_int) = read_parts;
    cwritev, _cwritev: (fd: c_int, list: *const libc::iovec, count: c_int) = write_parts;
    ireadv, _ireadv: (fd: c_int, list: *const libc::iovec, count: c_int) = begin_read;
    iwritev, _iwritev: (fd: c_int, list: *const libc::iovec, count: c_int) = begin_write;
}
