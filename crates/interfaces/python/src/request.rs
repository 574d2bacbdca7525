//! Started operations, which keep their memory until they are complete.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use regatta_sys::{self as rg, View};

use crate::error::check;
use crate::memory::Memory;
use crate::message::{NO_STATUS, Status};
use crate::waiting::blocking;

/// The memory of a request.
pub(crate) enum Kept {
    /// Borrowed memory.
    Lent(Memory),
    /// A packed copy to send.
    Packed(Vec<u8>),
    /// Several pieces and the block before them, with the views of all.
    Pieces {
        #[allow(dead_code, reason = "kept for its memory")]
        memories: Vec<Memory>,
        #[allow(dead_code, reason = "kept for its memory")]
        front: Vec<u8>,
        views: Vec<View>,
    },
    /// The owner of memory that is given by its address.
    Object(#[allow(dead_code, reason = "kept for its memory")] Py<PyAny>),
    /// The owner of memory that is given by its address, with the lengths and offsets of its parts.
    Lists(
        #[allow(dead_code, reason = "kept for its memory")] Py<PyAny>,
        #[allow(dead_code, reason = "kept for its memory")] [Vec<usize>; 4],
    ),
}

// SAFETY: the views point to memory that the same value keeps.
unsafe impl Send for Kept {}
// SAFETY: the views point to memory that the same value keeps, and nothing is written through a shared reference.
unsafe impl Sync for Kept {}

impl Kept {
    pub(crate) fn sent(py: Python<'_>, memory: Memory) -> PyResult<Kept> {
        match memory.block().is_some() || memory.views().is_some() {
            true => Ok(Kept::Lent(memory)),
            false => Ok(Kept::Packed(memory.pack(py)?)),
        }
    }

    pub(crate) fn received(memory: Memory) -> PyResult<Kept> {
        match memory.block().is_some() || memory.views().is_some() {
            true => Ok(Kept::Lent(memory)),
            false => Err(PyBufferError::new_err(
                "a nonblocking receive supports at most 65536 rows that are not adjacent in memory; receive into a contiguous array and copy that",
            )),
        }
    }

    pub(crate) fn block(&self) -> *mut c_void {
        match self {
            Kept::Lent(memory) => memory.block().unwrap_or(std::ptr::null_mut()),
            Kept::Packed(packed) => packed.as_ptr().cast_mut().cast(),
            Kept::Pieces { .. } | Kept::Object(_) | Kept::Lists(..) => std::ptr::null_mut(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Kept::Lent(memory) => memory.len(),
            Kept::Packed(packed) => packed.len(),
            Kept::Pieces { views, .. } => views.iter().map(|it| it.block * it.count).sum(),
            Kept::Object(_) | Kept::Lists(..) => 0,
        }
    }

    pub(crate) fn views(&self) -> Option<&[View]> {
        match self {
            Kept::Lent(memory) => memory.views(),
            Kept::Packed(_) | Kept::Object(_) | Kept::Lists(..) => None,
            Kept::Pieces { views, .. } => Some(views),
        }
    }
}

/// A started operation, which keeps the memory that it uses. Complete it with wait, test or await.
#[pyclass(frozen, weakref, module = "regatta_mpi")]
pub(crate) struct Request {
    inner: Mutex<Inner>,
}

struct Inner {
    /// REQUEST_NULL if the operation is complete.
    handle: rg::Request,
    kept: Option<Kept>,
    status: rg::Status,
    is_used: bool,
    is_receive: bool,
}

impl Request {
    /// Starts an operation on the memory in `kept`.
    #[inline(always)]
    pub(crate) fn start(
        py: Python<'_>,
        kept: Kept,
        is_receive: bool,
        start: impl FnOnce(&Kept, *mut rg::Request) -> c_int,
    ) -> PyResult<Request> {
        let mut handle = rg::REQUEST_NULL;
        check(py, blocking(py, || start(&kept, &mut handle)))?;
        let is_over = handle == rg::REQUEST_COMPLETE;
        Ok(Request {
            inner: Mutex::new(Inner {
                handle: if is_over { rg::REQUEST_NULL } else { handle },
                kept: (!is_over).then_some(kept),
                status: NO_STATUS,
                is_used: false,
                is_receive,
            }),
        })
    }

    fn inner(&self) -> PyResult<MutexGuard<'_, Inner>> {
        match self.inner.try_lock() {
            Ok(inner) => Ok(inner),
            Err(std::sync::TryLockError::Poisoned(error)) => Ok(error.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => Err(PyValueError::new_err(
                "another thread waits for this request, and only one thread at a time may use it; to be able to cancel it, let that thread call test in a loop, or await it in asyncio and cancel the task",
            )),
        }
    }
}

impl Inner {
    /// Releases the memory if a call has completed the operation. Raises the call's error.
    fn settle(&mut self, py: Python<'_>, code: c_int) -> PyResult<()> {
        if self.handle == rg::REQUEST_NULL {
            self.kept = None;
        }
        check(py, code).map(drop)
    }
}

#[pymethods]
impl Request {
    /// Blocks until the operation is complete. Returns the Status of the received message.
    ///
    /// Raises the error of the operation if it has failed.
    fn wait(&self, py: Python<'_>) -> PyResult<Status> {
        let mut inner = self.inner()?;
        if inner.handle != rg::REQUEST_NULL {
            let (mut handle, mut status) = (inner.handle, NO_STATUS);
            // SAFETY: the outputs are valid, and the memory is kept.
            let code = blocking(py, || unsafe { rg::rg_wait(&mut handle, &mut status) });
            (inner.handle, inner.status) = (handle, status);
            inner.settle(py, code)?;
        }
        inner.is_used = true;
        Ok(inner.status.into())
    }

    /// Returns whether the operation is complete. Does not block. Raises the error of the operation if it has failed.
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        let mut inner = self.inner()?;
        if inner.handle == rg::REQUEST_NULL {
            inner.is_used = true;
            return Ok(true);
        }
        let (mut handle, mut status, mut done) = (inner.handle, NO_STATUS, 0);
        // SAFETY: the outputs are valid, and the memory is kept.
        let code = blocking(py, || unsafe {
            rg::rg_test(&mut handle, &mut done, &mut status)
        });
        (inner.handle, inner.status) = (handle, status);
        inner.is_used = done != 0;
        inner.settle(py, code)?;
        Ok(done != 0)
    }

    /// Cancels a receive that has no message yet, or asks the receiver to return a message that it has not received yet. Does not block.
    ///
    /// Returns whether a receive was cancelled. The request still has to be completed; if it was cancelled, wait raises Cancelled.
    fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner()?;
        if inner.handle == rg::REQUEST_NULL {
            return Ok(false);
        }
        let (handle, mut cancelled) = (inner.handle, 0);
        // SAFETY: `cancelled` is valid.
        let code = blocking(py, || unsafe { rg::rg_cancel(handle, &mut cancelled) });
        check(py, code)?;
        Ok(cancelled != 0)
    }

    /// The Status if the operation is complete, otherwise None.
    #[getter]
    fn status(&self) -> PyResult<Option<Status>> {
        let inner = self.inner()?;
        Ok((inner.handle == rg::REQUEST_NULL).then(|| inner.status.into()))
    }

    /// Whether the operation is a receive.
    #[getter]
    fn is_receive(&self) -> PyResult<bool> {
        Ok(self.inner()?.is_receive)
    }

    fn __await__<'py>(slf: &Bound<'py, Request>) -> PyResult<Bound<'py, PyAny>> {
        let events = slf.py().import("regatta_mpi.loop")?;
        events
            .call_method1("completion", (slf,))?
            .call_method0("__await__")
    }
}

/// Leaves the memory of an incomplete request to its completion callback.
impl Drop for Request {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if inner.handle == rg::REQUEST_NULL {
            return;
        }
        let (mut handle, kept) = (inner.handle, inner.kept.take());
        let is_receive = inner.is_receive;
        let argument = Box::into_raw(Box::new(kept));
        Python::attach(|py| {
            // Cancels a receive that has no message yet. A send continues.
            // SAFETY: the handle is valid, and `let_go` frees the argument once.
            let code = blocking(py, || unsafe {
                let mut cancelled = 0;
                if is_receive {
                    rg::rg_cancel(handle, &mut cancelled);
                }
                rg::rg_on_complete(&mut handle, Some(let_go), argument.cast())
            });
            // After an error, for example because the task has left, nothing uses the memory and `let_go` is not called.
            if code != rg::OK {
                // SAFETY: `argument` was made above and has no other owner.
                drop(unsafe { Box::from_raw(argument) });
            }
        });
    }
}

unsafe extern "C" fn let_go(_: *const rg::Status, kept: *mut c_void) {
    // SAFETY: `kept` is the argument that was made for the request, and this is called once.
    drop(unsafe { Box::from_raw(kept.cast::<Option<Kept>>()) });
}

/// Waits for one of several requests and returns its index. Ignores those whose completion was already returned. Returns None if none is left.
#[pyfunction]
pub(crate) fn wait_any(
    py: Python<'_>,
    requests: Vec<PyRef<'_, Request>>,
) -> PyResult<Option<usize>> {
    let mut inners = Vec::with_capacity(requests.len());
    for request in &requests {
        inners.push(request.inner()?);
    }
    // Returns a request that was complete when it was started, once.
    if let Some(at) = inners
        .iter()
        .position(|it| it.handle == rg::REQUEST_NULL && !it.is_used)
    {
        inners[at].is_used = true;
        return Ok(Some(at));
    }
    let mut handles: Vec<rg::Request> = inners.iter().map(|it| it.handle).collect();
    let (mut index, mut status) = (-1, NO_STATUS);
    // SAFETY: `handles` has `n` requests, and the outputs are valid.
    let code = blocking(py, || unsafe {
        let n = handles.len() as c_int;
        rg::rg_waitany(n, handles.as_mut_ptr(), &mut index, &mut status)
    });
    let Ok(at) = usize::try_from(index) else {
        check(py, code)?;
        return Ok(None);
    };
    let inner = &mut inners[at];
    (inner.handle, inner.status, inner.is_used) = (handles[at], status, true);
    inner.settle(py, code)?;
    Ok(Some(at))
}
