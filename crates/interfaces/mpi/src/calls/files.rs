//! Opening, closing and deleting files; their sizes and other properties.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::abi::*;
use crate::arguments::Out;
use crate::communicator;
use crate::error::{Error, Object, Result, not_null};
use crate::files::{self, Open, get, opening};
use crate::groups;
use crate::info;
use crate::process;

/// Returns the name of a file, without the prefix that names the kind of its file system.
unsafe fn name_of<'a>(filename: *const c_char) -> Result<&'a CStr> {
    not_null(filename, "filename")?;
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    let name = unsafe { CStr::from_ptr(filename) };
    if name.is_empty() {
        return Err(Error::new(ERR_BAD_FILE, "the name of the file is empty"));
    }
    for prefix in [c"ufs:", c"nfs:"] {
        let length = prefix.count_bytes();
        if name.to_bytes().starts_with(prefix.to_bytes()) && name.count_bytes() > length {
            return Ok(&name[length..]);
        }
    }
    Ok(name)
}

/// Raises errors without a file on MPI_FILE_NULL.
fn without_file<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| match process::require() {
        Ok(()) => error.on(Object::File(FILE_NULL)),
        Err(_) => error.on(Object::None),
    })
}

pub unsafe fn file_open(
    comm: Comm,
    filename: *const c_char,
    amode: c_int,
    info: Info,
    fh: *mut File,
) -> Result {
    let comm = without_file(communicator::get(comm))?;
    let given = (|| {
        not_null(fh, "fh")?;
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        let name = unsafe { name_of(filename)? };
        Ok((name, info::optional(info)?))
    })();
    let opened = without_file(opening::open(&comm, amode, given))?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *fh = opened };
    Ok(())
}

pub unsafe fn file_close(fh: *mut File) -> Result {
    without_file(not_null(fh, "fh"))?;
    // SAFETY: the caller guarantees that the pointer is valid.
    let handle = unsafe { *fh };
    get(handle)?;
    let closed = opening::close(handle);
    if get(handle).is_err() {
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { *fh = FILE_NULL };
    }
    closed
}

pub unsafe fn file_delete(filename: *const c_char, info: Info) -> Result {
    let deleted = (|| {
        info::optional(info)?;
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        opening::delete(unsafe { name_of(filename)? })
    })();
    without_file(deleted)
}

fn check_size(size: i64) -> Result {
    match size {
        0.. => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("the size is {size}; it must be 0 or more"),
        )),
    }
}

pub fn file_set_size(file: Arc<Open>, size: i64) -> Result {
    file.check_writable()?;
    file.check_same(size, "the size")?;
    check_size(size)?;
    file.by_first("setting the size", |posix| posix.set_size(size))
}

pub fn file_preallocate(file: Arc<Open>, size: i64) -> Result {
    file.check_writable()?;
    file.check_same(size, "the size")?;
    check_size(size)?;
    file.by_first("preallocation", |posix| posix.preallocate(size))
}

pub fn file_get_size(file: Arc<Open>, size: Out<i64>) -> Result {
    size.put(file.checked(file.posix.size(), "the query")?);
    Ok(())
}

pub fn file_sync(file: Arc<Open>) -> Result {
    file.checked(file.posix.sync(), "synchronization")
}

pub fn file_get_amode(file: Arc<Open>, amode: Out<c_int>) -> Result {
    amode.put(file.amode);
    Ok(())
}

pub fn file_get_group(file: Arc<Open>, group: Out<Group>) -> Result {
    group.put(groups::make(file.members.clone())?);
    Ok(())
}

pub fn file_set_info(file: Arc<Open>, info: Info) -> Result {
    let hints = info::hints(info)?;
    file.state().hints.merge(&hints);
    Ok(())
}

/// The hints of files that the standard defines; other hints are not returned to programs.
const HINTS: [&CStr; 15] = [
    c"access_style",
    c"cb_block_size",
    c"cb_buffer_size",
    c"cb_nodes",
    c"chunked",
    c"chunked_item",
    c"chunked_size",
    c"collective_buffering",
    c"file_perm",
    c"filename",
    c"io_node_list",
    c"nb_proc",
    c"num_io_nodes",
    c"striping_factor",
    c"striping_unit",
];

pub fn file_get_info(file: Arc<Open>, info_used: Out<Info>) -> Result {
    let hints = file.state().hints.among(&HINTS);
    info_used.put(info::make(hints)?);
    Ok(())
}

pub fn file_set_atomicity(file: Arc<Open>, flag: c_int) -> Result {
    let atomic = flag != 0;
    file.check_same(i64::from(atomic), "flag")?;
    file.atomic.store(atomic, Ordering::Release);
    file.barrier()
}

pub fn file_get_atomicity(file: Arc<Open>, flag: Out<c_int>) -> Result {
    let atomic = file.atomic.load(Ordering::Acquire);
    flag.put(c_int::from(atomic));
    Ok(())
}

/// Calls `act` with the error handler of the file, or for MPI_FILE_NULL with the default one.
pub(crate) fn with_errhandler<T>(
    file: File,
    act: impl FnOnce(&crate::errhandler::HandlerSlot) -> Result<T>,
) -> Result<T> {
    match file {
        FILE_NULL => act(&crate::errhandler::OF_NO_FILE),
        _ => act(&files::get(file)?.errhandler),
    }
}
