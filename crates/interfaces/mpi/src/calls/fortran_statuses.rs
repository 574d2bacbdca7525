//! Statuses in Fortran: an array of ints and a derived type, both with the same bytes as in C.

use std::ffi::c_int;

use crate::abi::*;
use crate::error::Result;
use crate::status_forms;

unsafe fn copy(from: *const Status, to: *mut Status) -> Result {
    // SAFETY: the caller guarantees that the statuses are valid.
    unsafe { status_forms::copy(from, from.is_null(), to) }
}

pub unsafe fn status_c2f(c_status: *const Status, f_status: *mut c_int) -> Result {
    // SAFETY: the caller guarantees that the statuses are valid.
    unsafe { copy(c_status, f_status.cast()) }
}

pub unsafe fn status_f2c(f_status: *const c_int, c_status: *mut Status) -> Result {
    // SAFETY: the caller guarantees that the statuses are valid.
    unsafe { copy(f_status.cast(), c_status) }
}

pub unsafe fn status_c2f08(c_status: *const Status, f08_status: *mut Status) -> Result {
    // SAFETY: the caller guarantees that the statuses are valid.
    unsafe { copy(c_status, f08_status) }
}

pub unsafe fn status_f082c(f08_status: *const Status, c_status: *mut Status) -> Result {
    // SAFETY: the caller guarantees that the statuses are valid.
    unsafe { copy(f08_status, c_status) }
}

pub unsafe fn status_f082f(f08_status: *const Status, f_status: *mut c_int) -> Result {
    // SAFETY: the caller guarantees that the statuses are valid.
    unsafe { copy(f08_status, f_status.cast()) }
}

pub unsafe fn status_f2f08(f_status: *const c_int, f08_status: *mut Status) -> Result {
    // SAFETY: the caller guarantees that the statuses are valid.
    unsafe { copy(f_status.cast(), f08_status) }
}
