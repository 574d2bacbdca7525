//! `exread`, `exwrite`, `exchange`, `extest`: blocking messages, from memory to memory.
//!
//! Express buffers messages between nodes: a write does not wait for its read (`rg_bsend`). So two nodes may write to
//! each other before either reads, and messages of one sender may be read in any order of their types.

use std::ffi::{c_int, c_void};

use regatta_nodes::fault::Fault;
use regatta_nodes::items::Items;
use regatta_nodes::rg;

use crate::handlers;
use crate::left;
use crate::life::call;
use crate::look;
use crate::select::{Address, CHANNEL, Choice, tell};

/// Sends items. Returns the number of bytes, 0 for `NONODE`.
///
/// # Safety
/// The items are readable; `dest` and `kind` are valid or NULL.
#[inline(always)]
pub unsafe fn write(items: Items, dest: *const c_int, kind: *const c_int) -> Result<c_int, Fault> {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe {
        if let Some(to) = Address::read(dest, kind)? {
            items.send(to.task, to.tag, CHANNEL)?;
            return Ok(items.bytes() as c_int);
        }
    }
    Ok(0)
}

/// Receives items. Returns the number of bytes, 0 from `NONODE`.
///
/// # Safety
/// There is room for the items; `src` and `kind` are valid or NULL.
#[inline(always)]
pub unsafe fn read(items: Items, src: *mut c_int, kind: *mut c_int) -> Result<c_int, Fault> {
    // SAFETY: the caller guarantees that the memory is valid.
    let Some(choice) = (unsafe { Choice::read(src, kind)? }) else {
        return Ok(0);
    };
    let mut choice = handlers::meanwhile(choice)?;
    if choice.task == rg::ANY && (left::is_host() || look::may_be_of_former_node(choice)) {
        choice = left::await_some(choice)?;
    }
    // SAFETY: the caller guarantees that the memory is valid.
    let (message, end) = unsafe { items.receive(choice.task, choice.tag, CHANNEL) };
    let Some(status) = message else {
        return end.map(|()| 0);
    };
    handlers::note_read(status.source, status.tag);
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { tell(src, kind, &status) };
    end.map(|()| status.length as c_int)
}

/// Writes a message. Returns its length, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exwrite(
    buf: *const c_void,
    len: c_int,
    dest: *const c_int,
    kind: *const c_int,
) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("exwrite", || unsafe {
        write(Items::block(buf.cast_mut(), len)?, dest, kind)
    })
}

/// Reads a message. Returns its length, or -1; if there is too little room, the front is kept.
#[unsafe(no_mangle)]
unsafe extern "C" fn exread(
    buf: *mut c_void,
    len: c_int,
    src: *mut c_int,
    kind: *mut c_int,
) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("exread", || unsafe {
        read(Items::block(buf, len)?, src, kind)
    })
}

/// Writes a message, then reads one. Returns the length of what was read, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exchange(
    ibuf: *mut c_void,
    ilen: c_int,
    src: *mut c_int,
    itype: *mut c_int,
    obuf: *const c_void,
    olen: c_int,
    dest: *const c_int,
    otype: *const c_int,
) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("exchange", || unsafe {
        let to = Items::block(ibuf, ilen)?;
        write(Items::block(obuf.cast_mut(), olen)?, dest, otype)?;
        read(to, src, itype)
    })
}

/// Probes for a message without waiting. Returns its length, or -1, and sets sender and type as `exread` does.
///
/// # Safety
/// `src` and `kind` are valid or NULL.
unsafe fn test(src: *mut c_int, kind: *mut c_int) -> Result<c_int, Fault> {
    // SAFETY: the caller guarantees that the memory is valid.
    let Some(choice) = (unsafe { Choice::read(src, kind)? }) else {
        return Ok(-1);
    };
    let Some(status) = handlers::look_past(choice)? else {
        return Ok(-1);
    };
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { tell(src, kind, &status) };
    Ok(c_int::try_from(status.length).unwrap_or(c_int::MAX))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn extest(src: *mut c_int, kind: *mut c_int) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("extest", || unsafe { test(src, kind) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn exprobe(src: *mut c_int, kind: *mut c_int) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("exprobe", || unsafe { test(src, kind) })
}
