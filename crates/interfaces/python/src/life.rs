//! Joining and leaving, and what a task is asked about itself.

use std::ffi::{CStr, c_int};

use pyo3::prelude::*;
use regatta_sys as rg;

use crate::error::check;
use crate::waiting::{self, blocking};

/// Joins the job, or becomes a world of one; returns whether it was this call that did.
#[pyfunction]
pub(crate) fn init(py: Python<'_>) -> PyResult<bool> {
    // SAFETY: takes nothing.
    let joined = unsafe { rg::rg_initialized() } != 0;
    // SAFETY: takes nothing.
    check(py, blocking(py, || unsafe { rg::rg_init() }))?;
    waiting::begin();
    Ok(!joined)
}

/// Leaves the job.
#[pyfunction]
pub(crate) fn finalize(py: Python<'_>) -> PyResult<()> {
    // SAFETY: takes nothing.
    check(py, blocking(py, || unsafe { rg::rg_finalize() })).map(drop)
}

/// Whether this process is a task.
#[pyfunction]
pub(crate) fn initialized() -> bool {
    // SAFETY: takes nothing.
    unsafe { rg::rg_initialized() != 0 }
}

/// The version of the library that is loaded.
#[pyfunction]
pub(crate) fn version() -> String {
    // SAFETY: returns a text that stays.
    let text = unsafe { CStr::from_ptr(rg::rg_version()) };
    text.to_string_lossy().into_owned()
}

/// The id of this task.
#[pyfunction]
pub(crate) fn task(py: Python<'_>) -> PyResult<c_int> {
    // SAFETY: takes nothing.
    check(py, unsafe { rg::rg_tid() })
}

/// The id of the task that has started this one; None: the launcher has.
#[pyfunction]
pub(crate) fn parent(py: Python<'_>) -> PyResult<Option<c_int>> {
    // SAFETY: takes nothing.
    match unsafe { rg::rg_parent() } {
        rg::NONE => Ok(None),
        task => check(py, task).map(Some),
    }
}

/// Seconds since some moment in the past, the same for all tasks of a host.
#[pyfunction]
pub(crate) fn time() -> f64 {
    // SAFETY: takes nothing.
    unsafe { rg::rg_time() }
}

/// Advances what can advance.
#[pyfunction]
pub(crate) fn progress(py: Python<'_>) -> PyResult<()> {
    // SAFETY: takes nothing.
    check(py, blocking(py, || unsafe { rg::rg_progress() })).map(drop)
}

/// The descriptor that is readable when something may have come.
#[pyfunction]
pub(crate) fn fd(py: Python<'_>) -> PyResult<c_int> {
    let mut fd = -1;
    // SAFETY: a place for the answer.
    check(py, blocking(py, || unsafe { rg::rg_fd(&mut fd) }))?;
    Ok(fd)
}

/// Makes it unreadable until something comes.
#[pyfunction]
pub(crate) fn clear_fd(py: Python<'_>) -> PyResult<()> {
    // SAFETY: takes nothing.
    check(py, blocking(py, || unsafe { rg::rg_clear_fd() })).map(drop)
}
