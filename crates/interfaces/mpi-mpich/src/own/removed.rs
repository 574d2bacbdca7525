//! The calls that MPI has removed since its first version and that need more than a translation.

use std::ffi::c_int;

use regatta_mpi::abi::Ints;
use regatta_mpi::error::Result;

use super::types as own_types;
use crate::outer::Datatype;

/// The markers MPI_LB and MPI_UB among the types are no elements: they say where the type begins and ends.
pub unsafe fn type_struct(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const i64,
    array_of_types: *const Datatype,
    newtype: *mut Datatype,
) -> Result {
    // SAFETY: the caller's arrays and place.
    unsafe {
        own_types::type_create_struct(
            count.into(),
            Ints::Small(array_of_blocklengths),
            array_of_displacements,
            array_of_types,
            newtype,
            false,
        )
    }
}
