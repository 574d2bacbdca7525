//! Opening, closing and deleting files; their sizes and what else they are.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering;

use crate::abi::*;
use crate::communicator;
use crate::error::{Error, Object, Result, not_null};
use crate::files::{self, get, opening};
use crate::groups;
use crate::info;
use crate::process;

/// The name of a file, which a prefix for the kind of its file system may stand before.
unsafe fn name_of<'a>(filename: *const c_char) -> Result<&'a CStr> {
    not_null(filename, "filename")?;
    // SAFETY: the caller's text.
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

/// Errors without a file are handled as MPI_FILE_NULL's.
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
        // SAFETY: the caller's text.
        let name = unsafe { name_of(filename)? };
        Ok((name, info::optional(info)?))
    })();
    let opened = without_file(opening::open(&comm, amode, given))?;
    // SAFETY: the caller's pointer.
    unsafe { *fh = opened };
    Ok(())
}

pub unsafe fn file_close(fh: *mut File) -> Result {
    without_file(not_null(fh, "fh"))?;
    // SAFETY: the caller's pointer.
    let handle = unsafe { *fh };
    get(handle)?;
    let closed = opening::close(handle);
    if get(handle).is_err() {
        // SAFETY: the caller's pointer.
        unsafe { *fh = FILE_NULL };
    }
    closed
}

pub unsafe fn file_delete(filename: *const c_char, info: Info) -> Result {
    let deleted = (|| {
        info::optional(info)?;
        // SAFETY: the caller's text.
        opening::delete(unsafe { name_of(filename)? })
    })();
    without_file(deleted)
}

fn check_size(size: i64) -> Result {
    match size {
        0.. => Ok(()),
        _ => Err(Error::new(
            ERR_ARG,
            format!("the size is {size}; it is 0 or more"),
        )),
    }
}

pub unsafe fn file_set_size(fh: File, size: i64) -> Result {
    let file = get(fh)?;
    file.check_writable()?;
    file.check_same(size, "the size")?;
    check_size(size)?;
    file.by_first("setting the size", |posix| posix.set_size(size))
}

pub unsafe fn file_preallocate(fh: File, size: i64) -> Result {
    let file = get(fh)?;
    file.check_writable()?;
    file.check_same(size, "the size")?;
    check_size(size)?;
    file.by_first("preallocation", |posix| posix.preallocate(size))
}

pub unsafe fn file_get_size(fh: File, size: *mut i64) -> Result {
    let file = get(fh)?;
    not_null(size, "size")?;
    // SAFETY: the caller's pointer.
    unsafe { *size = file.checked(file.posix.size(), "the query")? };
    Ok(())
}

pub unsafe fn file_sync(fh: File) -> Result {
    let file = get(fh)?;
    let synced = file.checked(file.posix.sync(), "synchronization");
    file.barrier()?;
    synced
}

pub unsafe fn file_get_amode(fh: File, amode: *mut c_int) -> Result {
    let file = get(fh)?;
    not_null(amode, "amode")?;
    // SAFETY: the caller's pointer.
    unsafe { *amode = file.amode };
    Ok(())
}

pub unsafe fn file_get_group(fh: File, group: *mut Group) -> Result {
    let file = get(fh)?;
    not_null(group, "group")?;
    // SAFETY: the caller's pointer.
    unsafe { *group = groups::make(file.members.clone())? };
    Ok(())
}

pub unsafe fn file_set_info(fh: File, info: Info) -> Result {
    let file = get(fh)?;
    let hints = info::hints(info)?;
    file.state().hints.merge(&hints);
    Ok(())
}

/// The hints of files that the standard names; programs are not told of others.
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

pub unsafe fn file_get_info(fh: File, info_used: *mut Info) -> Result {
    let file = get(fh)?;
    not_null(info_used, "info_used")?;
    let hints = file.state().hints.among(&HINTS);
    // SAFETY: the caller's pointer.
    unsafe { *info_used = info::make(hints)? };
    Ok(())
}

pub unsafe fn file_set_atomicity(fh: File, flag: c_int) -> Result {
    let file = get(fh)?;
    let atomic = flag != 0;
    file.check_same(i64::from(atomic), "flag")?;
    file.atomic.store(atomic, Ordering::Release);
    file.barrier()
}

pub unsafe fn file_get_atomicity(fh: File, flag: *mut c_int) -> Result {
    let file = get(fh)?;
    not_null(flag, "flag")?;
    let atomic = file.atomic.load(Ordering::Acquire);
    // SAFETY: the caller's pointer.
    unsafe { *flag = c_int::from(atomic) };
    Ok(())
}

/// The file's error handler, or that of files to be opened.
pub(crate) fn with_errhandler<T>(
    file: File,
    act: impl FnOnce(&crate::errhandler::HandlerSlot) -> Result<T>,
) -> Result<T> {
    match file {
        FILE_NULL => act(&crate::errhandler::OF_NO_FILE),
        _ => act(&files::get(file)?.errhandler),
    }
}
