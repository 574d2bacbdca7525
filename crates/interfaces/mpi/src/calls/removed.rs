//! Functions that the standard has removed, implemented by their replacements.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::{errhandlers, packing, types};
use crate::abi::*;
use crate::arguments::Out;
use crate::datatype::Type;
use crate::error::Result;

pub fn address(location: *mut c_void, address: Out<i64>) -> Result {
    packing::get_address(location, address)
}

pub fn errhandler_create(
    comm_errhandler_fn: Comm_errhandler_function,
    errhandler: Out<Errhandler>,
) -> Result {
    errhandlers::comm_create_errhandler(comm_errhandler_fn, errhandler)
}

pub fn errhandler_get(comm: Comm, errhandler: Out<Errhandler>) -> Result {
    errhandlers::comm_get_errhandler(comm, errhandler)
}

pub fn errhandler_set(comm: Comm, errhandler: Errhandler) -> Result {
    errhandlers::comm_set_errhandler(comm, errhandler)
}

pub fn type_extent(of: Arc<Type>, extent: Out<i64>) -> Result {
    extent.put(of.extent());
    Ok(())
}

pub fn type_lb(of: Arc<Type>, displacement: Out<i64>) -> Result {
    displacement.put(of.lb());
    Ok(())
}

pub fn type_ub(of: Arc<Type>, displacement: Out<i64>) -> Result {
    displacement.put(of.lb() + of.extent());
    Ok(())
}

pub unsafe fn type_hindexed(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const i64,
    old: Arc<Type>,
    newtype: Out<Datatype>,
) -> Result {
    let lengths = Ints::Small(array_of_blocklengths);
    let places = array_of_displacements;
    // SAFETY: the caller guarantees that the arrays and the pointer are valid.
    unsafe { types::type_create_hindexed(count.into(), lengths, places, old, newtype, false) }
}

pub fn type_hvector(
    count: c_int,
    blocklength: c_int,
    stride: i64,
    old: Arc<Type>,
    newtype: Out<Datatype>,
) -> Result {
    let (count, length) = (count.into(), blocklength.into());
    types::type_create_hvector(count, length, stride, old, newtype, false)
}

pub unsafe fn type_struct(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const i64,
    array_of_types: *const Datatype,
    newtype: Out<Datatype>,
) -> Result {
    let lengths = Ints::Small(array_of_blocklengths);
    let (places, types) = (array_of_displacements, array_of_types);
    // SAFETY: the caller guarantees that the arrays and the pointer are valid.
    unsafe { types::type_create_struct(count.into(), lengths, places, types, newtype, false) }
}
