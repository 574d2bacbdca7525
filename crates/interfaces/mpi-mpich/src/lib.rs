//! libmpi.so.12: MPI's functions by their names, with the values of MPICH's ABI. They are made by `build.rs` of the table of
//! all functions: each translates what it is given into the standard ABI's values, calls the core, and translates back.
//!
//! Rules of the paths that small messages take: no lock, no allocation, no table that is written to.
#![allow(
    missing_docs,
    unused_variables,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    non_snake_case,
    non_upper_case_globals
)]
// One text makes the functions of both widths of a count.
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
// A function of the table that the core does not have calls the last of these.
#[allow(unused_imports)]
use regatta_mpi::error::{Object, finish, finish_tool, unsupported};

use crate::arrays::{Handles, Room, Statuses};
use crate::outer::Handle;
use crate::places::{Number, Outcome, Place};

include!(concat!(env!("OUT_DIR"), "/front.rs"));
