//! The contributions of all nodes, one behind the other in the order of the nodes, for every node.

use std::ffi::{c_int, c_long, c_void};

use crate::error::{Answer, EQLEN, EQMEM, EQPARAM, Fault, check};
use crate::forms::{c_forms, fortran_forms};
use crate::life::enrolled;
use crate::rg;
use crate::send::length;
use crate::state::Library;
use crate::world::global_group;

/// The lengths of all contributions become offsets; returns the length of the whole.
fn set_offsets(library: &mut Library) -> Option<usize> {
    let mut whole = 0usize;
    library.offsets.clear();
    for &length in &library.lengths {
        library.offsets.push(whole);
        whole = whole.checked_add(length)?;
    }
    Some(whole)
}

/// Gathers contributions whose lengths all nodes know.
///
/// # Safety
/// `mine` and `all` have the bytes that the lengths say.
unsafe fn gather(library: &Library, mine: *const c_void, all: *mut c_void) -> Result<(), Fault> {
    let group = global_group()?;
    let length = library.lengths[library.me as usize];
    // SAFETY: the caller's.
    check(unsafe {
        rg::rg_allgatherv(
            mine,
            length,
            all,
            library.lengths.as_ptr(),
            library.offsets.as_ptr(),
            group,
        )
    })
}

/// Gathers contributions of which each node knows its own length only. Returns the length of the whole.
///
/// # Safety
/// `mine` has `length` bytes and `all` has `room`.
unsafe fn concatenate(
    mine: *const c_void,
    own: c_long,
    all: *mut c_void,
    room: c_long,
) -> Result<usize, Fault> {
    let group = global_group()?;
    let library = enrolled()?;
    let (own, room) = (length(mine, own)?, length(all, room)?);
    library.lengths.resize(library.nodes as usize, 0);
    let size = size_of::<usize>();
    // SAFETY: a number of ours, and a place for as many as there are nodes.
    check(unsafe {
        rg::rg_allgather(
            (&raw const own).cast(),
            size,
            library.lengths.as_mut_ptr().cast(),
            group,
        )
    })?;
    let Some(whole) = set_offsets(library) else {
        return Err(Fault::plain(EQMEM));
    };
    if whole <= room {
        // SAFETY: the caller's; all of it fits.
        unsafe { gather(library, mine, all) }?;
        return Ok(whole);
    }
    // The others have room: they are not left alone with it.
    let mut enough = Vec::<u8>::new();
    if enough.try_reserve_exact(whole).is_err() {
        return Err(Fault::plain(EQMEM));
    }
    // SAFETY: room for the whole.
    unsafe { gather(library, mine, enough.as_mut_ptr().cast()) }?;
    Err(Fault::of(EQLEN, "result of length", whole as c_long))
}

unsafe fn concatenate_for_c(
    mine: *const c_void,
    own: c_long,
    all: *mut c_void,
    room: c_long,
    whole: *mut c_long,
) -> Answer {
    // SAFETY: the caller's.
    let length = unsafe { concatenate(mine, own, all, room) }?;
    if !whole.is_null() {
        // SAFETY: the C contract: a place for the length.
        unsafe { whole.write_unaligned(length as c_long) };
    }
    Ok(0)
}

unsafe fn concatenate_for_fortran(
    mine: *const c_void,
    own: c_long,
    all: *mut c_void,
    room: c_long,
    whole: *mut c_int,
) -> Answer {
    // SAFETY: the caller's.
    let length = unsafe { concatenate(mine, own, all, room) }?;
    if !whole.is_null() {
        // SAFETY: Fortran's contract: a reference to an INTEGER.
        unsafe { whole.write_unaligned(length as c_int) };
    }
    Ok(0)
}

/// # Safety
/// There are as many lengths as nodes, the same on every node; `mine` has as many bytes as ours, and `all` as many as all.
unsafe fn concatenate_known<T: Copy + Into<c_long>>(
    mine: *const c_void,
    lengths: *const T,
    all: *mut c_void,
) -> Answer {
    global_group()?;
    let library = enrolled()?;
    if lengths.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    library.lengths.clear();
    for node in 0..library.nodes as usize {
        // SAFETY: the caller's.
        let given = unsafe { lengths.add(node).read_unaligned() }.into();
        let Ok(length) = usize::try_from(given) else {
            return Err(Fault::of(EQLEN, "length", given));
        };
        library.lengths.push(length);
    }
    if set_offsets(library).is_none() {
        return Err(Fault::plain(EQMEM));
    }
    // SAFETY: the caller's.
    unsafe { gather(library, mine, all) }?;
    Ok(0)
}

c_forms! {
    gcol, _gcol: (mine: *const c_void, own: c_long, all: *mut c_void, room: c_long, whole: *mut c_long) = concatenate_for_c;
    gcolx, _gcolx: (mine: *const c_void, lengths: *const c_long, all: *mut c_void) = concatenate_known;
}

fortran_forms! {
    gcol_, _gcol_: (mine: *const c_void, own: c_long, all: *mut c_void, room: c_long, whole: *mut c_int) = concatenate_for_fortran;
    gcolx_, _gcolx_: (mine: *const c_void, lengths: *const c_int, all: *mut c_void) = concatenate_known;
}
