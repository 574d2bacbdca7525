//! Marks, toggles, and the wish to be recorded. In a task that is profiled the functions of libregatta_recorder.so, which is loaded
//! first, are called in place of these, which do nothing.

use std::ffi::{c_char, c_int};

use regatta_abi::OK;

use crate::error::answer;
use crate::text::required;

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_mark(name: *const c_char) -> c_int {
    // SAFETY: the C contract: a text, or NULL.
    answer(unsafe { required(name, "name") }.map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_toggle(name: *const c_char, _on: c_int) -> c_int {
    // SAFETY: the C contract: a text, or NULL.
    answer(unsafe { required(name, "name") }.map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn rg_profile(_on: c_int) -> c_int {
    OK
}
