//! The functions of Regatta's C interface, and its structs and constants. `regatta.h` is their documentation; the declarations are
//! made of it by `build.rs`, in its order and with its types.
//!
//! The libraries of other interfaces call these; linking with this crate is linking with libregatta.so.
#![allow(missing_docs)]

use std::ffi::{c_char, c_double, c_int, c_void};

pub use regatta_abi::*;

mod jumps;

include!(concat!(env!("OUT_DIR"), "/functions.rs"));
