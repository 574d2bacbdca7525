//! Error handlers of files. The handler of MPI_FILE_NULL is the default for files that are opened later, and handles
//! errors without a file.

use std::ffi::c_int;

use super::errhandlers::{not_none, raised};
use super::files::with_errhandler;
use crate::abi::*;
use crate::arguments::Out;
use crate::errhandler::{self, Function, Of};
use crate::error::{Object, Result};

pub fn file_create_errhandler(
    file_errhandler_fn: File_errhandler_function,
    errhandler: Out<Errhandler>,
) -> Result {
    not_none(file_errhandler_fn.is_some(), "file_errhandler_fn")?;
    errhandler.put(errhandler::make(Function::File(file_errhandler_fn))?);
    Ok(())
}

pub unsafe fn file_set_errhandler(file: File, errhandler: Errhandler) -> Result {
    with_errhandler(file, |place| place.set(errhandler, Of::File))
}

pub fn file_get_errhandler(file: File, errhandler: Out<Errhandler>) -> Result {
    let given = with_errhandler(file, |place| Ok(place.give()))?;
    errhandler.put(given);
    Ok(())
}

pub unsafe fn file_call_errhandler(fh: File, errorcode: c_int) -> Result {
    let text = raised(errorcode)?;
    with_errhandler(fh, |place| {
        errhandler::call(place, Object::File(fh), errorcode, &text);
        Ok(())
    })
}
