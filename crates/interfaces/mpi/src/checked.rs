//! The functions of MPI for the libraries to call. Each converts its arguments to valid values ([`crate::arguments`])
//! and then calls the function in [`crate::calls`]. The object whose error handler is called is converted first, the
//! other arguments in order.
//!
//! They are generated from the table of all functions.
#![allow(
    missing_docs,
    unused_unsafe,
    clippy::missing_safety_doc,
    clippy::too_many_arguments
)]

use std::ffi::{c_char, c_int, c_void};

use crate::abi::*;
use crate::arguments::Argument;
use crate::calls;
use crate::calls::processes::Codes;
use crate::error::Result;

include!(concat!(env!("OUT_DIR"), "/checked.rs"));
