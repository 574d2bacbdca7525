//! The Fortran calls of a host that have strings or results. A string is padded with blanks, and its length is passed
//! after all other arguments.

use std::ffi::{c_char, c_int, c_long};

use crate::error::{Answer, EQPARAM, Fault};
use crate::forms::{Argument, fortran_raw_forms};
use crate::host;

/// Maximum length of a Fortran program's string, in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// Returns a string of a Fortran program, without surrounding blanks.
///
/// # Safety
/// `text` has this length.
pub unsafe fn text(text: *const c_char, length: usize) -> Result<String, Fault> {
    if text.is_null() || length > MAX_TEXT_BYTES {
        return Err(Fault::plain(EQPARAM));
    }
    // SAFETY: the caller guarantees that the memory is valid.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(bytes).trim().to_owned())
}

unsafe fn get(
    name: *const c_char,
    kind: *const c_char,
    _: *const c_char,
    _: *const c_int,
    name_length: usize,
    kind_length: usize,
    _: usize,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let (name, kind) = unsafe { (text(name, name_length)?, text(kind, kind_length)?) };
    host::get(&name, &kind)
}

unsafe fn attach(name: *const c_char, length: usize) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    host::attach(&unsafe { text(name, length) }?)
}

unsafe fn release(name: *const c_char, length: usize) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    host::release(&unsafe { text(name, length) }?)
}

unsafe fn load(
    file: *const c_char,
    node: *const c_int,
    pid: *const c_int,
    length: usize,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let (file, node, pid) = unsafe { (text(file, length)?, c_long::take(node), c_long::take(pid)) };
    host::load_file(&file, node, pid)
}

unsafe fn wait_one(
    node: *const c_int,
    pid: *const c_int,
    its_node: *mut c_int,
    its_pid: *mut c_int,
    code: *mut c_int,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let (node, pid) = unsafe { (c_long::take(node), c_long::take(pid)) };
    let (process, ended) = host::wait_for_one(node, pid)?;
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe {
        its_node.write_unaligned(process.node);
        its_pid.write_unaligned(process.pid);
        code.write_unaligned(ended as c_int);
    }
    Ok(0)
}

fortran_raw_forms! {
    getcube_, _getcube_: (name: *const c_char, kind: *const c_char, machine: *const c_char, keep: *const c_int, name_length: usize, kind_length: usize, machine_length: usize) = get;
    attachcube_, _attachcube_: (name: *const c_char, length: usize) = attach;
    relcube_, _relcube_: (name: *const c_char, length: usize) = release;
    load_, _load_: (file: *const c_char, node: *const c_int, pid: *const c_int, length: usize) = load;
    waitone_, _waitone_: (node: *const c_int, pid: *const c_int, its_node: *mut c_int, its_pid: *mut c_int, code: *mut c_int) = wait_one;
}
