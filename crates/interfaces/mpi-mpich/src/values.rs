//! Constants of MPICH's ABI that this library itself needs. Generated from the table.

use std::ffi::c_int;

include!(concat!(env!("OUT_DIR"), "/values.rs"));
