//! Concatenation (allgather): every node gets the contributions of all nodes, in order of nodes.

use std::ffi::{c_int, c_long, c_void};

use crate::error::{Answer, EQLEN, EQMEM, EQPARAM, Fault, check};
use crate::forms::{c_forms, fortran_forms};
use crate::life::enrolled;
use crate::rg;
use crate::send::length;
use crate::state::Library;
use crate::world::global_group;

/// Computes the offsets from the lengths of all contributions. Returns the total length, or `None` on overflow.
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
/// `mine` and `all` have the lengths in `library.lengths`.
unsafe fn gather(library: &Library, mine: *const c_void, all: *mut c_void) -> Result<(), Fault> {
    let group = global_group()?;
    let length = library.lengths[library.me as usize];
    // SAFETY: the caller guarantees that the memory is valid.
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

/// Gathers contributions of which each node knows only its own length. Returns the total length.
///
/// # Safety
/// `mine` has `own` bytes, and `all` has `room`.
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
    // SAFETY: `own` is a local number, and `lengths` has one entry for each node.
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
        // SAFETY: the caller guarantees the memory, and the result fits.
        unsafe { gather(library, mine, all) }?;
        return Ok(whole);
    }
    // Other nodes may have enough room. Take part in the collective, so that they do not wait forever.
    let mut enough = Vec::<u8>::new();
    if enough.try_reserve_exact(whole).is_err() {
        return Err(Fault::plain(EQMEM));
    }
    // SAFETY: `enough` has room for the whole result.
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
    // SAFETY: the caller guarantees that the memory is valid.
    let length = unsafe { concatenate(mine, own, all, room) }?;
    if !whole.is_null() {
        // SAFETY: by the C contract `whole` is writable.
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
    // SAFETY: the caller guarantees that the memory is valid.
    let length = unsafe { concatenate(mine, own, all, room) }?;
    if !whole.is_null() {
        // SAFETY: by the Fortran contract `whole` is a valid reference to an INTEGER.
        unsafe { whole.write_unaligned(length as c_int) };
    }
    Ok(0)
}

/// # Safety
/// `lengths` has one entry for each node, the same on every node; `mine` has the length of this node, and `all` the
/// total length.
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
        // SAFETY: the caller guarantees that the memory is valid.
        let given = unsafe { lengths.add(node).read_unaligned() }.into();
        let Ok(length) = usize::try_from(given) else {
            return Err(Fault::of(EQLEN, "length", given));
        };
        library.lengths.push(length);
    }
    if set_offsets(library).is_none() {
        return Err(Fault::plain(EQMEM));
    }
    // SAFETY: the caller guarantees that the memory is valid.
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
