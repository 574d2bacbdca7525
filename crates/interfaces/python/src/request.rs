//! Operations that were started: their memory is kept until they are complete.

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
    /// As it is lent.
    Lent(Memory),
    /// Sent from a packed copy.
    Packed(Vec<u8>),
    /// Several pieces and what stands before them, with the views of the whole.
    Pieces {
        #[allow(dead_code, reason = "kept for its memory")]
        memories: Vec<Memory>,
        #[allow(dead_code, reason = "kept for its memory")]
        front: Vec<u8>,
        views: Vec<View>,
    },
    /// Memory that is known by its address, and what has it.
    Object(#[allow(dead_code, reason = "kept for its memory")] Py<PyAny>),
    /// The same, with lengths and offsets of its parts.
    Lists(
        #[allow(dead_code, reason = "kept for its memory")] Py<PyAny>,
        #[allow(dead_code, reason = "kept for its memory")] [Vec<usize>; 4],
    ),
}

// SAFETY: the views lead into the memory that is kept beside them.
unsafe impl Send for Kept {}
// SAFETY: the same; nothing of it is written here.
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
                "a started receive takes memory of at most 65536 rows that do not follow each other; receive into a contiguous array and copy that",
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

/// An operation that was started, with the memory that it uses: wait for it, test it, or await it.
#[pyclass(frozen, weakref, module = "regatta_mpi")]
pub(crate) struct Request {
    inner: Mutex<Inner>,
}

struct Inner {
    /// Null: it is complete.
    handle: rg::Request,
    kept: Option<Kept>,
    status: rg::Status,
    is_used: bool,
    is_receive: bool,
}

impl Request {
    /// Starts an operation on memory.
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
                "another thread waits for this request; one at a time may use it: to be able to cancel it, have that thread call test in turn, or await it in asyncio and cancel the task",
            )),
        }
    }
}

impl Inner {
    /// Takes the outcome of a call that may have completed it.
    fn settle(&mut self, py: Python<'_>, code: c_int) -> PyResult<()> {
        if self.handle == rg::REQUEST_NULL {
            self.kept = None;
        }
        check(py, code).map(drop)
    }
}

#[pymethods]
impl Request {
    /// Blocks until the operation is complete; returns the Status of a message that was received.
    ///
    /// Raises what the operation ended with.
    fn wait(&self, py: Python<'_>) -> PyResult<Status> {
        let mut inner = self.inner()?;
        if inner.handle != rg::REQUEST_NULL {
            let (mut handle, mut status) = (inner.handle, NO_STATUS);
            // SAFETY: places for the answers; the memory is kept.
            let code = blocking(py, || unsafe { rg::rg_wait(&mut handle, &mut status) });
            (inner.handle, inner.status) = (handle, status);
            inner.settle(py, code)?;
        }
        inner.is_used = true;
        Ok(inner.status.into())
    }

    /// Returns whether the operation is complete, without waiting.
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        let mut inner = self.inner()?;
        if inner.handle == rg::REQUEST_NULL {
            inner.is_used = true;
            return Ok(true);
        }
        let (mut handle, mut status, mut done) = (inner.handle, NO_STATUS, 0);
        // SAFETY: places for the answers; the memory is kept.
        let code = blocking(py, || unsafe {
            rg::rg_test(&mut handle, &mut done, &mut status)
        });
        (inner.handle, inner.status) = (handle, status);
        inner.is_used = done != 0;
        inner.settle(py, code)?;
        Ok(done != 0)
    }

    /// Cancels a receive that has no message yet, or a send that was not received; returns whether it was a receive that is cancelled.
    ///
    /// It is complete afterwards or soon; wait raises Cancelled.
    fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner()?;
        if inner.handle == rg::REQUEST_NULL {
            return Ok(false);
        }
        let (handle, mut cancelled) = (inner.handle, 0);
        // SAFETY: a place for the answer.
        let code = blocking(py, || unsafe { rg::rg_cancel(handle, &mut cancelled) });
        check(py, code)?;
        Ok(cancelled != 0)
    }

    /// The Status, once it is complete.
    #[getter]
    fn status(&self) -> PyResult<Option<Status>> {
        let inner = self.inner()?;
        Ok((inner.handle == rg::REQUEST_NULL).then(|| inner.status.into()))
    }

    /// Whether it is a receive.
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

/// A request that nobody holds: what it has of memory stays until it is complete.
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
            // SAFETY: a receive that has no message yet ends; a send goes on. In any case the function below lets go of the memory, once.
            let code = blocking(py, || unsafe {
                let mut cancelled = 0;
                if is_receive {
                    rg::rg_cancel(handle, &mut cancelled);
                }
                rg::rg_on_complete(&mut handle, Some(let_go), argument.cast())
            });
            // After an error, such as that the task has left, nothing uses the memory and nobody is called.
            if code != rg::OK {
                // SAFETY: it was made above and nobody else has it.
                drop(unsafe { Box::from_raw(argument) });
            }
        });
    }
}

unsafe extern "C" fn let_go(_: *const rg::Status, kept: *mut c_void) {
    // SAFETY: the argument that the request was given, once.
    drop(unsafe { Box::from_raw(kept.cast::<Option<Kept>>()) });
}

/// Waits for one of several requests and returns its index. Those that are complete already are passed over.
#[pyfunction]
pub(crate) fn wait_any(
    py: Python<'_>,
    requests: Vec<PyRef<'_, Request>>,
) -> PyResult<Option<usize>> {
    let mut inners = Vec::with_capacity(requests.len());
    for request in &requests {
        inners.push(request.inner()?);
    }
    // One that was found complete when it was started is found here, once.
    if let Some(at) = inners
        .iter()
        .position(|it| it.handle == rg::REQUEST_NULL && !it.is_used)
    {
        inners[at].is_used = true;
        return Ok(Some(at));
    }
    let mut handles: Vec<rg::Request> = inners.iter().map(|it| it.handle).collect();
    let (mut index, mut status) = (-1, NO_STATUS);
    // SAFETY: as many requests as is said, and places for the answers.
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
