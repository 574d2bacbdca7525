//! `exvread`, `exvwrite`, `exvchange`: messages of scattered items.

use std::ffi::{c_int, c_void};

use regatta_nodes::items::Items;

use crate::life::call;
use crate::message::{read, write};

/// Writes scattered items. Returns their total size in bytes, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exvwrite(
    buf: *const c_void,
    size: c_int,
    offset: c_int,
    items: c_int,
    dest: *const c_int,
    kind: *const c_int,
) -> c_int {
    call("exvwrite", || {
        let items = Items::new(buf.cast_mut(), size, offset, items)?;
        // SAFETY: by the C contract the arguments are valid.
        unsafe { write(items, dest, kind) }
    })
}

/// Reads scattered items. Returns the size of the message in bytes, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exvread(
    buf: *mut c_void,
    size: c_int,
    offset: c_int,
    items: c_int,
    src: *mut c_int,
    kind: *mut c_int,
) -> c_int {
    call("exvread", || {
        let items = Items::new(buf, size, offset, items)?;
        // SAFETY: by the C contract the arguments are valid.
        unsafe { read(items, src, kind) }
    })
}

/// Writes scattered items, then reads some. Returns the size of what was read in bytes, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exvchange(
    ibuf: *mut c_void,
    isize: c_int,
    ioffset: c_int,
    iitems: c_int,
    src: *mut c_int,
    itype: *mut c_int,
    obuf: *const c_void,
    osize: c_int,
    ooffset: c_int,
    oitems: c_int,
    dest: *const c_int,
    otype: *const c_int,
) -> c_int {
    call("exvchange", || {
        let to = Items::new(ibuf, isize, ioffset, iitems)?;
        let from = Items::new(obuf.cast_mut(), osize, ooffset, oitems)?;
        // SAFETY: by the C contract the arguments are valid.
        unsafe {
            write(from, dest, otype)?;
            read(to, src, itype)
        }
    })
}
