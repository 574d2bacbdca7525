//! libmpiwrapper.so: Regatta's MPI for programs that use MPI through MPItrampoline, such as JAX and Julia's packages.
//!
//! MPItrampoline has MPI's functions without an implementation: it loads the library that MPITRAMPOLINE_LIB names and
//! looks up constants and functions named `MPIABI_...` in it. This library calls those of libmpi_abi.so.1, so a process
//! that also uses the standard ABI has one MPI.
#![allow(
    missing_docs,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    clippy::unnecessary_cast,
    non_snake_case,
    non_camel_case_types,
    non_upper_case_globals
)]

mod abi;
mod generalized;
mod statuses;

use std::ffi::{c_char, c_int, c_void};

use abi::*;
use statuses::{Status, Statuses, standard};

include!(concat!(env!("OUT_DIR"), "/front.rs"));

/// Answers queries whether this MPI supports the memory of graphics processors: it does not.
macro_rules! no_device_memory {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> c_int {
                0
            }
        )*
    };
}

no_device_memory! {
    MPIXABI_Query_cuda_support MPIXABI_Query_hip_support MPIXABI_Query_rocm_support MPIXABI_Query_ze_support
}
