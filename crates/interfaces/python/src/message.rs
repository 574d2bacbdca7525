//! Sends and receives of one piece of memory.

use std::ffi::{c_int, c_void};

use pyo3::prelude::*;
use regatta_sys as rg;

use crate::error::check;
use crate::groups::Group;
use crate::memory::{Access, Memory};
use crate::request::{Kept, Request};
use crate::waiting::blocking;

/// An empty status.
pub(crate) const NO_STATUS: rg::Status = rg::Status {
    source: rg::NONE,
    tag: rg::ANY,
    length: 0,
    error: rg::OK,
    reserved: 0,
};

/// The sender's rank, tag and length of a message.
#[pyclass(frozen, module = "regatta_mpi")]
pub(crate) struct Status {
    /// The sender's rank in the group.
    #[pyo3(get)]
    source: c_int,
    #[pyo3(get)]
    tag: c_int,
    /// The length in bytes.
    #[pyo3(get)]
    length: usize,
}

impl From<rg::Status> for Status {
    #[inline(always)]
    fn from(status: rg::Status) -> Status {
        Status {
            source: status.source,
            tag: status.tag,
            length: status.length,
        }
    }
}

#[pymethods]
impl Status {
    fn __repr__(&self) -> String {
        format!(
            "Status(source={}, tag={}, length={})",
            self.source, self.tag, self.length
        )
    }
}

#[pymethods]
impl Group {
    /// Sends the elements of a buffer, in the order of their indices, to a rank.
    ///
    /// buffer: bytes, an array of any shape and layout, or any other object with the buffer protocol or DLPack in CPU memory.
    /// Blocks until the buffer may be changed: not at all while there is room for the message, otherwise until the receiver takes it.
    /// Raises TaskDied if the receiver is known to be dead.
    #[pyo3(signature = (buffer, to, tag = 0))]
    fn send(&self, buffer: &Bound<'_, PyAny>, to: c_int, tag: c_int) -> PyResult<()> {
        self.send_by(buffer, to, tag, false)
    }

    /// Like send, but blocks until the receiver has begun to receive.
    #[pyo3(signature = (buffer, to, tag = 0))]
    fn ssend(&self, buffer: &Bound<'_, PyAny>, to: c_int, tag: c_int) -> PyResult<()> {
        self.send_by(buffer, to, tag, true)
    }

    /// Receives a message into writable memory, from a rank with a tag; ANY stands for any rank or tag. Blocks. Returns its Status.
    ///
    /// The elements arrive in the order of their indices: an array of the same shape becomes equal to the one that was sent. A message that
    /// is shorter than the memory fills the beginning of it.
    /// Raises Truncated if the message is longer than the memory, and TaskDied or TaskLeft if no task is left that could send it.
    #[pyo3(signature = (buffer, source = -1, tag = -1), text_signature = "($self, buffer, source=-1, tag=-1)")]
    fn recv(&self, buffer: &Bound<'_, PyAny>, source: c_int, tag: c_int) -> PyResult<Status> {
        let (py, group) = (buffer.py(), self.handle());
        let memory = Memory::of(buffer, Access::Write)?;
        let (len, mut status) = (memory.len(), NO_STATUS);
        let code = match (memory.block(), memory.views()) {
            // SAFETY: the memory is borrowed until the call returns.
            (Some(block), _) => blocking(py, || unsafe {
                rg::rg_recv(block, len, source, tag, group, &mut status)
            }),
            // SAFETY: the memory of the views is borrowed until the call returns.
            (None, Some(views)) => blocking(py, || unsafe {
                let n = views.len() as c_int;
                rg::rg_recvv(views.as_ptr(), n, source, tag, group, &mut status)
            }),
            (None, None) => {
                let mut packed = vec![0u8; len];
                let room = packed.as_mut_ptr().cast();
                // SAFETY: `packed` is valid for `len` bytes.
                let code = blocking(py, || unsafe {
                    rg::rg_recv(room, len, source, tag, group, &mut status)
                });
                if matches!(code, rg::OK | rg::ERR_TRUNCATED) {
                    memory.unpack(py, &packed[..len.min(status.length)])?;
                }
                code
            }
        };
        check(py, code)?;
        Ok(status.into())
    }

    /// Starts a send and returns a Request. Does not block. The memory must not be changed until the request is complete.
    #[pyo3(signature = (buffer, to, tag = 0))]
    fn isend(&self, buffer: &Bound<'_, PyAny>, to: c_int, tag: c_int) -> PyResult<Request> {
        let (py, group) = (buffer.py(), self.handle());
        let kept = Kept::sent(py, Memory::of(buffer, Access::Read)?)?;
        Request::start(py, kept, false, |kept, request| {
            let (block, len) = (kept.block(), kept.len());
            match kept.views() {
                // SAFETY: the request keeps the memory until it is complete.
                None => unsafe { rg::rg_isend(block, len, to, tag, group, request) },
                // SAFETY: the request keeps the memory of the views until it is complete.
                Some(views) => unsafe {
                    rg::rg_isendv(
                        views.as_ptr(),
                        views.len() as c_int,
                        to,
                        tag,
                        group,
                        request,
                    )
                },
            }
        })
    }

    /// Starts a receive and returns a Request. Does not block. The memory must not be used until the request is complete.
    #[pyo3(signature = (buffer, source = -1, tag = -1), text_signature = "($self, buffer, source=-1, tag=-1)")]
    fn irecv(&self, buffer: &Bound<'_, PyAny>, source: c_int, tag: c_int) -> PyResult<Request> {
        let (py, group) = (buffer.py(), self.handle());
        let kept = Kept::received(Memory::of(buffer, Access::Write)?)?;
        Request::start(py, kept, true, |kept, request| {
            let (block, len) = (kept.block(), kept.len());
            match kept.views() {
                // SAFETY: the request keeps the memory until it is complete.
                None => unsafe { rg::rg_irecv(block, len, source, tag, group, request) },
                // SAFETY: the request keeps the memory of the views until it is complete.
                Some(views) => unsafe {
                    let n = views.len() as c_int;
                    rg::rg_irecvv(views.as_ptr(), n, source, tag, group, request)
                },
            }
        })
    }

    /// Blocks until there is a message to receive, and returns its Status. Does not receive it.
    #[pyo3(signature = (source = -1, tag = -1), text_signature = "($self, source=-1, tag=-1)")]
    fn probe(&self, py: Python<'_>, source: c_int, tag: c_int) -> PyResult<Status> {
        let (group, mut status) = (self.handle(), NO_STATUS);
        // SAFETY: `status` is valid.
        let code = blocking(py, || unsafe {
            rg::rg_probe(source, tag, group, &mut status)
        });
        check(py, code)?;
        Ok(status.into())
    }

    /// Returns the Status of a message that can be received, or None. Does not receive it, and does not block.
    #[pyo3(signature = (source = -1, tag = -1), text_signature = "($self, source=-1, tag=-1)")]
    fn iprobe(&self, py: Python<'_>, source: c_int, tag: c_int) -> PyResult<Option<Status>> {
        let (group, mut status, mut found) = (self.handle(), NO_STATUS, 0);
        // SAFETY: the outputs are valid.
        let code = blocking(py, || unsafe {
            rg::rg_iprobe(source, tag, group, &mut found, &mut status)
        });
        check(py, code)?;
        Ok((found != 0).then(|| status.into()))
    }
}

impl Group {
    #[inline(always)]
    fn send_by(
        &self,
        buffer: &Bound<'_, PyAny>,
        to: c_int,
        tag: c_int,
        synchronous: bool,
    ) -> PyResult<()> {
        let (py, group) = (buffer.py(), self.handle());
        let memory = Memory::of(buffer, Access::Read)?;
        let len = memory.len();
        // SAFETY: the memory is borrowed, or packed in this function, until the call returns.
        let send = |block: *const c_void, len: usize| unsafe {
            match synchronous {
                false => rg::rg_send(block, len, to, tag, group),
                true => rg::rg_ssend(block, len, to, tag, group),
            }
        };
        let code = match (memory.block(), memory.views()) {
            (Some(block), _) => blocking(py, || send(block.cast_const(), len)),
            // SAFETY: the memory of the views is borrowed until the call returns.
            (None, Some(views)) if !synchronous => blocking(py, || unsafe {
                rg::rg_sendv(views.as_ptr(), views.len() as c_int, to, tag, group)
            }),
            _ => {
                let packed = memory.pack(py)?;
                blocking(py, || send(packed.as_ptr().cast(), len))
            }
        };
        check(py, code).map(drop)
    }
}
