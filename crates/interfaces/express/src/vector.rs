//! `exvread`, `exvwrite`, `exvchange`: items that lie apart in memory.

use std::ffi::{c_int, c_void};

use regatta_nodes::items::Items;

use crate::life::call;
use crate::message::{read, write};

/// Write items that lie apart. Returns how many bytes they are, or -1.
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
        // SAFETY: the C contract.
        unsafe { write(items, dest, kind) }
    })
}

/// Read items to where they lie apart. Returns the bytes of the message, or -1.
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
        // SAFETY: the C contract.
        unsafe { read(items, src, kind) }
    })
}

/// Write items, then read some. Returns the bytes of what was read, or -1.
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
        // SAFETY: the C contract.
        unsafe {
            write(from, dest, otype)?;
            read(to, src, itype)
        }
    })
}
