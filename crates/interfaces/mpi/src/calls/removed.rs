//! Calls that MPI has removed since its first version, by those that took their places.

use std::ffi::{c_int, c_void};

use super::{errhandlers, packing, type_facts, types};
use crate::abi::*;
use crate::error::{Result, not_null};

pub unsafe fn address(location: *mut c_void, address: *mut i64) -> Result {
    // SAFETY: the caller's place, here and in all others.
    unsafe { packing::get_address(location, address) }
}

pub unsafe fn errhandler_create(
    comm_errhandler_fn: Comm_errhandler_function,
    errhandler: *mut Errhandler,
) -> Result {
    // SAFETY: as above.
    unsafe { errhandlers::comm_create_errhandler(comm_errhandler_fn, errhandler) }
}

pub unsafe fn errhandler_get(comm: Comm, errhandler: *mut Errhandler) -> Result {
    // SAFETY: as above.
    unsafe { errhandlers::comm_get_errhandler(comm, errhandler) }
}

pub unsafe fn errhandler_set(comm: Comm, errhandler: Errhandler) -> Result {
    // SAFETY: it takes handles.
    unsafe { errhandlers::comm_set_errhandler(comm, errhandler) }
}

/// Writes one of the numbers that the standard's call has two places for.
unsafe fn bound(datatype: Datatype, to: *mut i64, which: impl FnOnce(i64, i64) -> i64) -> Result {
    not_null(to, "the place of the result")?;
    let (mut lower, mut extent) = (0, 0);
    // SAFETY: places of this function's, and the caller's.
    unsafe {
        type_facts::type_get_extent(datatype, &mut lower, &mut extent)?;
        *to = which(lower, extent);
    }
    Ok(())
}

pub unsafe fn type_extent(datatype: Datatype, extent: *mut i64) -> Result {
    // SAFETY: the caller's place, here and below.
    unsafe { bound(datatype, extent, |_, extent| extent) }
}

pub unsafe fn type_lb(datatype: Datatype, displacement: *mut i64) -> Result {
    // SAFETY: as above.
    unsafe { bound(datatype, displacement, |lower, _| lower) }
}

pub unsafe fn type_ub(datatype: Datatype, displacement: *mut i64) -> Result {
    // SAFETY: as above.
    unsafe { bound(datatype, displacement, |lower, extent| lower + extent) }
}

pub unsafe fn type_hindexed(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const i64,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result {
    let lengths = Ints::Small(array_of_blocklengths);
    let places = array_of_displacements;
    // SAFETY: the caller's arrays and place.
    unsafe { types::type_create_hindexed(count.into(), lengths, places, oldtype, newtype, false) }
}

pub unsafe fn type_hvector(
    count: c_int,
    blocklength: c_int,
    stride: i64,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result {
    let (count, length) = (count.into(), blocklength.into());
    // SAFETY: the caller's place.
    unsafe { types::type_create_hvector(count, length, stride, oldtype, newtype, false) }
}

pub unsafe fn type_struct(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const i64,
    array_of_types: *const Datatype,
    newtype: *mut Datatype,
) -> Result {
    let lengths = Ints::Small(array_of_blocklengths);
    let (places, types) = (array_of_displacements, array_of_types);
    // SAFETY: the caller's arrays and place.
    unsafe { types::type_create_struct(count.into(), lengths, places, types, newtype, false) }
}
