//! Constants of MPICH's ABI that this library itself has to know. Made of the table.

use std::ffi::c_int;

include!(concat!(env!("OUT_DIR"), "/values.rs"));
