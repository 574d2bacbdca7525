//! libmpiwrapper.so: Regatta's MPI for programs that reach MPI by MPItrampoline, such as JAX and Julia's packages.
//!
//! MPItrampoline is a library of MPI's functions without an MPI: it loads the file that MPITRAMPOLINE_LIB names and looks up in it
//! constants and functions under the names `MPIABI_...`. Here these are those of libmpi_abi.so.1, so a process that uses the
//! standard ABI as well has one MPI.
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

/// Whether this MPI moves the memory of graphics processors.
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
