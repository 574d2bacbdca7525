//! The functions of `regatta.h` that are recorded, made by `build.rs`. Each calls the one of libregatta.so with the arguments as they
//! came, and notes what `build/note.rs` says of it.
#![allow(
    unused_mut,
    clippy::too_many_arguments,
    reason = "one form for all functions"
)]

mod completion;
mod note;

use std::ffi::{c_char, c_double, c_int, c_void};

use regatta_abi::*;
use regatta_record::Call;

use crate::real;
use crate::span::Span;

include!(concat!(env!("OUT_DIR"), "/wrap.rs"));
