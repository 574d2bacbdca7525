//! Statuses in Fortran: an array of ints, or a structure with C's layout.

use std::ffi::c_int;

use regatta_mpi::error::Result;
use regatta_mpi::status_forms;

use crate::outer::Status;
use crate::places::is_ignored;

unsafe fn copy(from: *const Status, to: *mut Status) -> Result {
    // SAFETY: by the C contract the statuses are valid.
    unsafe { status_forms::copy(from, is_ignored(from), to) }
}

pub unsafe fn status_c2f(c_status: *const Status, f_status: *mut c_int) -> Result {
    // SAFETY: by the C contract the statuses are valid.
    unsafe { copy(c_status, f_status.cast()) }
}

pub unsafe fn status_f2c(f_status: *const c_int, c_status: *mut Status) -> Result {
    // SAFETY: by the C contract the statuses are valid.
    unsafe { copy(f_status.cast(), c_status) }
}

pub unsafe fn status_c2f08(c_status: *const Status, f08_status: *mut Status) -> Result {
    // SAFETY: by the C contract the statuses are valid.
    unsafe { copy(c_status, f08_status) }
}

pub unsafe fn status_f082c(f08_status: *const Status, c_status: *mut Status) -> Result {
    // SAFETY: by the C contract the statuses are valid.
    unsafe { copy(f08_status, c_status) }
}

pub unsafe fn status_f082f(f08_status: *const Status, f_status: *mut c_int) -> Result {
    // SAFETY: by the C contract the statuses are valid.
    unsafe { copy(f08_status, f_status.cast()) }
}

pub unsafe fn status_f2f08(f_status: *const c_int, f08_status: *mut Status) -> Result {
    // SAFETY: by the C contract the statuses are valid.
    unsafe { copy(f_status.cast(), f08_status) }
}
