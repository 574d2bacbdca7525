//! libmpi_abi.so: the MPI functions of the standard ABI, each also under its profiling name. `build.rs` generates them
//! from the table of functions. Each one calls `regatta-mpi`, whose handles and constants already have the values of
//! this ABI.
#![allow(
    missing_docs,
    unused_variables,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    non_snake_case,
    non_upper_case_globals
)]

mod data;

use std::ffi::{c_char, c_int, c_void};

use regatta_mpi::abi::*;
use regatta_mpi::checked;
// Functions in the table that `regatta-mpi` does not implement call `unsupported`.
#[allow(unused_imports)]
use regatta_mpi::error::{Object, finish, finish_tool, pointed, unsupported};

include!(concat!(env!("OUT_DIR"), "/front.rs"));
