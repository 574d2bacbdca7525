//! Messages of several pieces, as the package sends objects: the pickle, and the memory of the object's arrays without a copy.
//!
//! A message begins with a header of 8-byte little-endian numbers: the number of pieces of memory after the pickle and, if there are any,
//! the lengths of the pickle and of each piece. The pickle follows, and then the pieces, each at a multiple of 64 bytes.

use std::ffi::{c_int, c_void};

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use regatta_sys::{self as rg, View};

use crate::collective::collect;
use crate::error::check;
use crate::groups::Group;
use crate::memory::{Access, Memory};
use crate::message::{NO_STATUS, Status};
use crate::request::{Kept, Request};
use crate::waiting::blocking;

/// Alignment of pieces within a message, in bytes.
const ALIGNMENT: usize = 64;
static PADDING: [u8; ALIGNMENT] = [0; ALIGNMENT];
/// Size of a number of the header, in bytes.
const WORD: usize = 8;

fn padding(len: usize) -> usize {
    len.wrapping_neg() % ALIGNMENT
}

/// Makes a message of a pickle and pieces: header and pickle in one block, and views of this block and of the pieces.
fn gathered(pickle: &Bound<'_, PyAny>, pieces: &[Bound<'_, PyAny>]) -> PyResult<Kept> {
    let text = Memory::of(pickle, Access::Read)?;
    let memories = pieces.iter().map(|piece| Memory::of(piece, Access::Read));
    let memories = memories.collect::<PyResult<Vec<Memory>>>()?;
    let mut front = Vec::with_capacity(WORD * (2 + pieces.len()) + text.len());
    front.extend((pieces.len() as u64).to_le_bytes());
    if !pieces.is_empty() {
        let lengths = std::iter::once(&text).chain(&memories);
        front.extend(lengths.flat_map(|memory| (memory.len() as u64).to_le_bytes()));
    }
    // SAFETY: `text` is borrowed contiguous memory of `text.len()` bytes.
    front.extend_from_slice(unsafe {
        std::slice::from_raw_parts(text.contiguous()?.cast_const().cast(), text.len())
    });
    if pieces.is_empty() {
        return Ok(Kept::Packed(front));
    }
    let view = |base: *const c_void, block| View {
        base: base.cast_mut(),
        block,
        count: 1,
        stride: 0,
    };
    let mut views = vec![view(front.as_ptr().cast(), front.len())];
    let mut len = front.len();
    for memory in &memories {
        if padding(len) > 0 {
            views.push(view(PADDING.as_ptr().cast(), padding(len)));
        }
        len = len.next_multiple_of(ALIGNMENT) + memory.len();
        if memory.len() > 0 {
            views.push(view(memory.contiguous()?, memory.len()));
        }
    }
    Ok(Kept::Pieces {
        memories,
        front,
        views,
    })
}

/// Returns the begin and end of the pickle and of each piece of the message at `begin..end` of a block. Raises ValueError if the message
/// holds no object.
#[pyfunction]
pub(crate) fn places(
    message: &Bound<'_, PyByteArray>,
    begin: usize,
    end: usize,
) -> PyResult<Vec<(usize, usize)>> {
    let invalid = || {
        PyValueError::new_err(
            "this message does not contain an object; receive it with recv, because it was sent with send",
        )
    };
    // SAFETY: the GIL is held, so no other code changes the bytes meanwhile.
    let bytes = unsafe { message.as_bytes() };
    let bytes = bytes.get(begin..end).ok_or_else(invalid)?;
    let word = |at: usize| -> PyResult<usize> {
        let bytes = bytes.get(at * WORD..(at + 1) * WORD).ok_or_else(invalid)?;
        let number = u64::from_le_bytes(bytes.try_into().map_err(|_| invalid())?);
        usize::try_from(number).map_err(|_| invalid())
    };
    let pieces = word(0)?;
    if pieces == 0 {
        return Ok(vec![(begin + WORD, end)]);
    }
    // Each piece has a number in the header.
    if pieces > bytes.len() / WORD {
        return Err(invalid());
    }
    let mut at = WORD * (2 + pieces);
    let mut places = Vec::with_capacity(1 + pieces);
    for piece in 0..=pieces {
        let behind = at.checked_add(word(1 + piece)?).ok_or_else(invalid)?;
        if behind > bytes.len() {
            return Err(invalid());
        }
        places.push((begin + at, begin + behind));
        at = behind + padding(behind);
    }
    Ok(places)
}

/// Returns the whole message as one block, for collectives.
#[pyfunction]
pub(crate) fn joined<'py>(
    pickle: &Bound<'py, PyAny>,
    pieces: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyByteArray>> {
    let kept = gathered(pickle, &pieces)?;
    let views = match (&kept, kept.views()) {
        (Kept::Packed(packed), _) => return Ok(PyByteArray::new(pickle.py(), packed)),
        (_, views) => views.unwrap_or_default(),
    };
    let made = uninitialized(pickle.py(), kept.len())?;
    let mut to = made.data();
    for view in views {
        // SAFETY: the views point to memory that `kept` holds, and their lengths add up to that of the new block.
        unsafe {
            std::ptr::copy_nonoverlapping(view.base.cast_const().cast(), to, view.block);
            to = to.add(view.block);
        }
    }
    Ok(made)
}

/// Makes an uninitialized block, which the caller must fill. Zeroing it would cost as much as receiving into it.
fn uninitialized(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyByteArray>> {
    let len = ffi::Py_ssize_t::try_from(len)
        .map_err(|_| PyValueError::new_err("a message that is too long for this machine"))?;
    // SAFETY: the function returns a new object, or NULL with an error set.
    unsafe {
        let made = ffi::PyByteArray_FromStringAndSize(std::ptr::null(), len);
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
    }
}

/// The messages of all members in one block, with the begin and end of each.
type Gathered<'py> = (Bound<'py, PyByteArray>, Vec<(usize, usize)>);

#[pymethods]
impl Group {
    /// Gathers the messages of all members at the root. Returns None elsewhere. Blocks.
    fn gather_parts<'py>(
        &self,
        message: &Bound<'py, PyByteArray>,
        root: c_int,
    ) -> PyResult<Option<Gathered<'py>>> {
        let (py, group) = (message.py(), self.handle());
        let memory = Memory::of(message.as_any(), Access::Read)?;
        let (from, len) = (memory.contiguous()?.cast_const(), memory.len());
        // SAFETY: the functions check the handle.
        let (rank, size) = unsafe { (rg::rg_rank(group), rg::rg_size(group)) };
        let mut lens = vec![0usize; check(py, size)? as usize];
        let (given, told) = (std::ptr::from_ref(&len).cast(), lens.as_mut_ptr().cast());
        // SAFETY: `given` is valid, and `told` has room for one length per member.
        collect(py, group, || unsafe {
            rg::rg_gather(given, size_of::<usize>(), told, root, group)
        })?;
        if rank != root {
            let nothing = std::ptr::null();
            // SAFETY: the memory is borrowed until the call returns; the lists are only used at the root.
            collect(py, group, || unsafe {
                rg::rg_gatherv(
                    from,
                    len,
                    std::ptr::null_mut(),
                    nothing,
                    nothing,
                    root,
                    group,
                )
            })?;
            return Ok(None);
        }
        let mut end = 0;
        let begun = lens.iter().map(|len| {
            end += len;
            end - len
        });
        let offsets: Vec<usize> = begun.collect();
        let made = uninitialized(py, end)?;
        let room: *mut c_void = made.data().cast();
        // SAFETY: there is one length and offset per member, and room for the sum of the lengths.
        collect(py, group, || unsafe {
            rg::rg_gatherv(
                from,
                len,
                room,
                lens.as_ptr(),
                offsets.as_ptr(),
                root,
                group,
            )
        })?;
        let places = offsets.iter().zip(lens).map(|(&at, len)| (at, at + len));
        Ok(Some((made, places.collect())))
    }

    fn send_parts(
        &self,
        pickle: &Bound<'_, PyAny>,
        pieces: Vec<Bound<'_, PyAny>>,
        to: c_int,
        tag: c_int,
    ) -> PyResult<()> {
        let (py, group) = (pickle.py(), self.handle());
        let kept = gathered(pickle, &pieces)?;
        let (block, len) = (kept.block(), kept.len());
        // SAFETY: `kept` holds the memory until the call returns.
        let code = blocking(py, || unsafe {
            match kept.views() {
                None => rg::rg_send(block, len, to, tag, group),
                Some(views) => rg::rg_sendv(views.as_ptr(), views.len() as c_int, to, tag, group),
            }
        });
        check(py, code).map(drop)
    }

    fn isend_parts(
        &self,
        pickle: &Bound<'_, PyAny>,
        pieces: Vec<Bound<'_, PyAny>>,
        to: c_int,
        tag: c_int,
    ) -> PyResult<Request> {
        let (py, group) = (pickle.py(), self.handle());
        Request::start(py, gathered(pickle, &pieces)?, false, |kept, request| {
            let (block, len) = (kept.block(), kept.len());
            // SAFETY: the request keeps the memory until it is complete.
            unsafe {
                match kept.views() {
                    None => rg::rg_isend(block, len, to, tag, group, request),
                    Some(views) => {
                        let n = views.len() as c_int;
                        rg::rg_isendv(views.as_ptr(), n, to, tag, group, request)
                    }
                }
            }
        })
    }

    /// Receives a message of any length. Blocks.
    fn recv_parts<'py>(
        &self,
        py: Python<'py>,
        source: c_int,
        tag: c_int,
    ) -> PyResult<(Bound<'py, PyByteArray>, Status)> {
        let (group, mut message, mut status) = (self.handle(), rg::MESSAGE_NULL, NO_STATUS);
        // SAFETY: the outputs are valid.
        let code = blocking(py, || unsafe {
            rg::rg_mprobe(source, tag, group, &mut message, &mut status)
        });
        check(py, code)?;
        receive(py, message, status)
    }

    /// Receives a message of any length, or returns None if there is none.
    fn irecv_parts<'py>(
        &self,
        py: Python<'py>,
        source: c_int,
        tag: c_int,
    ) -> PyResult<Option<(Bound<'py, PyByteArray>, Status)>> {
        let (group, mut message, mut status) = (self.handle(), rg::MESSAGE_NULL, NO_STATUS);
        let mut found = 0;
        // SAFETY: the outputs are valid.
        let code = blocking(py, || unsafe {
            rg::rg_improbe(source, tag, group, &mut found, &mut message, &mut status)
        });
        check(py, code)?;
        match found {
            0 => Ok(None),
            _ => receive(py, message, status).map(Some),
        }
    }
}

/// Receives a message that a matched probe has found.
fn receive(
    py: Python<'_>,
    message: rg::Message,
    found: rg::Status,
) -> PyResult<(Bound<'_, PyByteArray>, Status)> {
    let (mut message, len, mut status) = (message, found.length, NO_STATUS);
    let made = uninitialized(py, len)?;
    let room: *mut c_void = made.data().cast();
    // SAFETY: `made` is a new object of `len` bytes that no other code uses.
    let code = blocking(py, || unsafe {
        rg::rg_mrecv(&mut message, room, len, &mut status)
    });
    check(py, code)?;
    Ok((made, status.into()))
}
