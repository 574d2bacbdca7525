//! The list of files that are mapped as code, with which `regatta profile` looks up addresses.

use std::ffi::{CStr, c_int, c_void};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering::Release;

use regatta_record::{MODULE_WORDS, MODULES_AT, head};

use crate::file;
use crate::map::Map;

/// Records the files that are mapped now.
pub(crate) fn note(map: Map) {
    let mut list = String::new();
    // SAFETY: `add_module` gets a pointer to `list`, and does not keep it.
    unsafe { libc::dl_iterate_phdr(Some(add_module), (&raw mut list).cast()) };
    // Cuts a list that is too long at the end of a line.
    let mut bytes = list.len().min(MODULE_WORDS * 8);
    if bytes < list.len() {
        bytes = list.as_bytes()[..bytes]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
    }
    map[head::MODULE_BYTES].store(0, Release);
    file::write_text(map, MODULES_AT, bytes, list.as_bytes());
    map[head::MODULE_BYTES].store(bytes as u64, Release);
}

/// Adds a line for each part of a file that is mapped as code.
unsafe extern "C" fn add_module(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    list: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid `info`, and `list` is the `String` of `note`.
    let (info, list) = unsafe { (&*info, &mut *list.cast::<String>()) };
    // SAFETY: the name is NULL or NUL-terminated.
    let name = (!info.dlpi_name.is_null()).then(|| unsafe { CStr::from_ptr(info.dlpi_name) });
    let name = name.map(CStr::to_bytes).unwrap_or_default();
    let path = match name.is_empty() {
        // The program itself has no name.
        true => std::fs::read_link("/proc/self/exe").unwrap_or_default(),
        false => std::ffi::OsStr::from_bytes(name).into(),
    };
    for number in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: `dlpi_phdr` points to `dlpi_phnum` headers.
        let part = unsafe { &*info.dlpi_phdr.add(number) };
        if part.p_type != libc::PT_LOAD || part.p_flags & libc::PF_X == 0 {
            continue;
        }
        let base = info.dlpi_addr;
        let begin = base.wrapping_add(part.p_vaddr);
        let end = begin.wrapping_add(part.p_memsz);
        let path = path.to_string_lossy();
        let _ = writeln!(
            list,
            "{begin:x} {end:x} {base:x} {}",
            path.replace('\n', "?")
        );
    }
    0
}
