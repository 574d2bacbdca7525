//! Codes of the C interface as exceptions, which are defined in `errors.py`.

use std::ffi::{CStr, c_int};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use regatta_sys as rg;

use crate::waiting;

/// Raises the exception for a code that is negative.
#[inline(always)]
pub(crate) fn check(py: Python<'_>, code: c_int) -> PyResult<c_int> {
    match code >= 0 {
        true => Ok(code),
        false => Err(raised(py, code)),
    }
}

/// The exception for the last error of this thread.
#[cold]
pub(crate) fn raised(py: Python<'_>, code: c_int) -> PyErr {
    if code == rg::ERR_CANCELLED
        && let Some(error) = waiting::take_pending()
    {
        return error;
    }
    // SAFETY: both return what belongs to this thread; the text is valid until its next failing call.
    let (text, task) = unsafe {
        (
            CStr::from_ptr(rg::rg_last_error()),
            rg::rg_last_error_task(),
        )
    };
    of_code(py, code, &text.to_string_lossy(), task)
}

/// The exception for a code, a sentence and the task that it is about, if there is one.
pub(crate) fn of_code(py: Python<'_>, code: c_int, sentence: &str, task: c_int) -> PyErr {
    static MADE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = MADE
        .import(py, "regatta_mpi.errors", "of_code")
        .and_then(|make| make.call1((code, sentence, (task >= 0).then_some(task))));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
