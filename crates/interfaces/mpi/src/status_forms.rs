//! The forms of a status: C's structure, and the array of ints and the derived type of Fortran. In each ABI they have the same bytes.

use crate::abi::ERR_ARG;
use crate::error::{Error, Result, not_null};

/// Copies a status of any ABI to another form. `is_ignored`: it is MPI_STATUS_IGNORE of that ABI.
///
/// # Safety
/// The first may be read if it is a status, the second may be written.
pub unsafe fn copy<S: Copy>(from: *const S, is_ignored: bool, to: *mut S) -> Result {
    if is_ignored {
        let text = "the status is MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE, which is none";
        return Err(Error::new(ERR_ARG, text));
    }
    not_null(to, "the place of the result")?;
    // SAFETY: the caller guarantees that the statuses are valid.
    unsafe { *to = *from };
    Ok(())
}
