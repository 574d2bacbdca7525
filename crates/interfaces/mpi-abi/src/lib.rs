//! libmpi_abi.so: MPI's functions by their names in the standard ABI, each under its profiling name too. They are made by
//! `build.rs` of the table of all functions, and call the core, which speaks this ABI's values.
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
// A function of the table that the core does not have calls the last of these.
#[allow(unused_imports)]
use regatta_mpi::error::{Object, finish, finish_tool, pointed, unsupported};

include!(concat!(env!("OUT_DIR"), "/front.rs"));
