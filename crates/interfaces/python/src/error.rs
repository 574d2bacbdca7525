//! Conversion of the C interface's error codes to exceptions, which are defined in `errors.py`.

use std::ffi::{CStr, c_int};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use regatta_sys as rg;

use crate::waiting;

/// Returns the code. Raises an exception if it is negative.
#[inline(always)]
pub(crate) fn check(py: Python<'_>, code: c_int) -> PyResult<c_int> {
    match code >= 0 {
        true => Ok(code),
        false => Err(raised(py, code)),
    }
}

/// Returns the exception for the last error of this thread. After an interrupted wait this is the signal handler's exception.
#[cold]
pub(crate) fn raised(py: Python<'_>, code: c_int) -> PyErr {
    if code == rg::ERR_CANCELLED
        && let Some(error) = waiting::take_pending()
    {
        return error;
    }
    // SAFETY: the functions have no preconditions, and the text is valid until this thread's next failing call.
    let (text, task) = unsafe {
        (
            CStr::from_ptr(rg::rg_last_error()),
            rg::rg_last_error_task(),
        )
    };
    of_code(py, code, &text.to_string_lossy(), task)
}

/// Returns the exception for a code, a sentence and the task that it concerns, if any.
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
