//! Structs, constants and error codes of `regatta.h`, defined once for all Rust code that stands on either side of it.
//!
//! The header is their documentation. [`layouts`] and [`constants()`] list all that is here, for the test that compares it with
//! the header as C and C++ compilers understand it.

#![forbid(unsafe_code)]

mod constants;
mod layout;
mod structs;

pub use constants::*;
pub use layout::{Constant, Field, InC, Layout, Value};
pub use structs::*;
