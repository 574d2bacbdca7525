//! Calls of MPI-1 that the standard has removed and that need more than a conversion.

use std::ffi::c_int;

use regatta_mpi::abi::Ints;
use regatta_mpi::error::Result;

use super::types as own_types;
use crate::outer::Datatype;

/// Makes a structure. The types MPI_LB and MPI_UB are markers and not elements: they set where the type begins and
/// ends.
pub unsafe fn type_struct(
    count: c_int,
    array_of_blocklengths: *const c_int,
    array_of_displacements: *const i64,
    array_of_types: *const Datatype,
    newtype: *mut Datatype,
) -> Result {
    // SAFETY: by the C contract the arrays and the result are valid.
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
