//! Statuses as Fortran has them: an array of ints, or a structure of the same form as in C.

use std::ffi::c_int;

use regatta_mpi::abi::ERR_ARG;
use regatta_mpi::error::{Error, Result, not_null};

use crate::outer::Status;
use crate::places::is_ignored;

/// Copies a status, which has the same bytes in all forms.
unsafe fn copy(from: *const Status, to: *mut Status) -> Result {
    if is_ignored(from) {
        let text = "the status is MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE, which is none";
        return Err(Error::new(ERR_ARG, text));
    }
    not_null(to, "the place of the result")?;
    // SAFETY: the caller's statuses.
    unsafe { *to = *from };
    Ok(())
}

pub unsafe fn status_c2f(c_status: *const Status, f_status: *mut c_int) -> Result {
    // SAFETY: the caller's statuses, here and below.
    unsafe { copy(c_status, f_status.cast()) }
}

pub unsafe fn status_f2c(f_status: *const c_int, c_status: *mut Status) -> Result {
    // SAFETY: as above.
    unsafe { copy(f_status.cast(), c_status) }
}

pub unsafe fn status_c2f08(c_status: *const Status, f08_status: *mut Status) -> Result {
    // SAFETY: as above.
    unsafe { copy(c_status, f08_status) }
}

pub unsafe fn status_f082c(f08_status: *const Status, c_status: *mut Status) -> Result {
    // SAFETY: as above.
    unsafe { copy(f08_status, c_status) }
}

pub unsafe fn status_f082f(f08_status: *const Status, f_status: *mut c_int) -> Result {
    // SAFETY: as above.
    unsafe { copy(f08_status, f_status.cast()) }
}

pub unsafe fn status_f2f08(f_status: *const c_int, f08_status: *mut Status) -> Result {
    // SAFETY: as above.
    unsafe { copy(f_status.cast(), f08_status) }
}
