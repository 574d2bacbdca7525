//! Structs, constants and error codes of `regatta.h`, defined once for the Rust code that implements the header and the
//! Rust code that calls it.
//!
//! The header documents them. [`layouts`] and [`constants()`] list everything, for the test that compares it with the
//! header as C and C++ compilers see it.

#![forbid(unsafe_code)]

mod constants;
mod layout;
mod structs;

pub use constants::*;
pub use layout::{Constant, Field, InC, Layout, Value};
pub use structs::*;
