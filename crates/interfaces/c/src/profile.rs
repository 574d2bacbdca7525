//! Marks, toggles, and the request to be recorded. These functions do nothing. In a profiled task libregatta_recorder.so is
//! loaded first, and its functions of the same names are called instead.

use std::ffi::{c_char, c_int};

use regatta_abi::OK;

use crate::error::answer;
use crate::text::required;

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_mark(name: *const c_char) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    answer(unsafe { required(name, "name") }.map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_toggle(name: *const c_char, _on: c_int) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    answer(unsafe { required(name, "name") }.map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn rg_profile(_on: c_int) -> c_int {
    OK
}
