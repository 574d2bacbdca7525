//! The functions of MPI as libraries call them: each makes its arguments valid ([`crate::arguments`]), then calls its function in
//! [`crate::calls`]. The object whose error handler is called comes first, the others in their order.
//!
//! They are made of the table of all functions, whose parameters they have.
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
