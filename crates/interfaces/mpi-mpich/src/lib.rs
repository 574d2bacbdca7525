//! libmpi.so.12: the MPI functions with the values of MPICH's ABI. `build.rs` generates them from the table of
//! functions. Each one converts its arguments to the standard ABI's values, calls the core (`regatta-mpi`), and
//! converts the results back.
//!
//! Rules for the paths of small messages: no lock, no allocation, and no table that is written to.
#![allow(
    missing_docs,
    unused_variables,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    non_snake_case,
    non_upper_case_globals
)]
// The same generated text serves for both widths of a count.
#![allow(clippy::useless_conversion)]

mod arrays;
mod callbacks;
mod data;
mod outer;
mod own;
mod peers;
mod places;
mod roles;
mod values;

use std::ffi::{c_char, c_int, c_void};

use regatta_mpi::abi::*;
use regatta_mpi::calls::processes::Codes;
use regatta_mpi::checked;
// Functions in the table that `regatta-mpi` does not implement call `unsupported`.
#[allow(unused_imports)]
use regatta_mpi::error::{Object, finish, finish_tool, unsupported};

use crate::arrays::{Handles, Room, Statuses};
use crate::outer::Handle;
use crate::places::{Number, Outcome, Place};

include!(concat!(env!("OUT_DIR"), "/front.rs"));
