//! Joining and leaving, and queries about this task.

use std::ffi::{CStr, c_int};

use pyo3::prelude::*;
use regatta_sys as rg;

use crate::error::check;
use crate::waiting::{self, blocking};

/// Joins the job, or becomes a world of one task. Returns False if the process had joined before.
#[pyfunction]
pub(crate) fn init(py: Python<'_>) -> PyResult<bool> {
    // SAFETY: the function has no preconditions.
    let joined = unsafe { rg::rg_initialized() } != 0;
    // SAFETY: the function has no preconditions.
    check(py, blocking(py, || unsafe { rg::rg_init() }))?;
    waiting::begin();
    Ok(!joined)
}

/// Leaves the job.
#[pyfunction]
pub(crate) fn finalize(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the function has no preconditions.
    check(py, blocking(py, || unsafe { rg::rg_finalize() })).map(drop)
}

/// Returns whether this process is a task.
#[pyfunction]
pub(crate) fn initialized() -> bool {
    // SAFETY: the function has no preconditions.
    unsafe { rg::rg_initialized() != 0 }
}

/// Returns the version of the loaded library.
#[pyfunction]
pub(crate) fn version() -> String {
    // SAFETY: the function returns a static NUL-terminated text.
    let text = unsafe { CStr::from_ptr(rg::rg_version()) };
    text.to_string_lossy().into_owned()
}

/// Returns the id of this task.
#[pyfunction]
pub(crate) fn task(py: Python<'_>) -> PyResult<c_int> {
    // SAFETY: the function has no preconditions.
    check(py, unsafe { rg::rg_tid() })
}

/// Returns the id of the task that has started this one, or None if the launcher has.
#[pyfunction]
pub(crate) fn parent(py: Python<'_>) -> PyResult<Option<c_int>> {
    // SAFETY: the function has no preconditions.
    match unsafe { rg::rg_parent() } {
        rg::NONE => Ok(None),
        task => check(py, task).map(Some),
    }
}

/// Returns the seconds since a moment in the past that is the same for all tasks of a host.
#[pyfunction]
pub(crate) fn time() -> f64 {
    // SAFETY: the function has no preconditions.
    unsafe { rg::rg_time() }
}

/// Advances all pending operations, without blocking.
#[pyfunction]
pub(crate) fn progress(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the function has no preconditions.
    check(py, blocking(py, || unsafe { rg::rg_progress() })).map(drop)
}

/// Returns the descriptor that becomes readable when a message may have arrived.
#[pyfunction]
pub(crate) fn fd(py: Python<'_>) -> PyResult<c_int> {
    let mut fd = -1;
    // SAFETY: `fd` is valid.
    check(py, blocking(py, || unsafe { rg::rg_fd(&mut fd) }))?;
    Ok(fd)
}

/// Makes the descriptor unreadable until the next message arrives.
#[pyfunction]
pub(crate) fn clear_fd(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the function has no preconditions.
    check(py, blocking(py, || unsafe { rg::rg_clear_fd() })).map(drop)
}
