//! The functions, structs and constants of Regatta's C interface. `regatta.h` documents them, and `build.rs` generates the
//! declarations from it, in the same order.
//!
//! The libraries of other interfaces call these functions. A crate that depends on this one is linked with libregatta.so.
#![allow(missing_docs)]

use std::ffi::{c_char, c_double, c_int, c_void};

pub use regatta_abi::*;

mod jumps;

include!(concat!(env!("OUT_DIR"), "/functions.rs"));
