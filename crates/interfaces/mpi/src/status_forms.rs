//! The forms of a status: C's struct, and Fortran's array of ints and derived type. In each ABI all have the same
//! bytes.

use crate::abi::ERR_ARG;
use crate::error::{Error, Result, not_null};

/// Copies a status of any ABI to another form. Fails if `is_ignored`: then `from` is MPI_STATUS_IGNORE of that ABI.
///
/// # Safety
/// `from` is valid for reads unless it is ignored. `to` is null or valid for writes.
pub unsafe fn copy<S: Copy>(from: *const S, is_ignored: bool, to: *mut S) -> Result {
    if is_ignored {
        let text = "the status is MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE";
        return Err(Error::new(ERR_ARG, text));
    }
    not_null(to, "the pointer to the result")?;
    // SAFETY: the caller guarantees that the statuses are valid.
    unsafe { *to = *from };
    Ok(())
}
