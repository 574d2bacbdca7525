//! Memory of Python objects, borrowed by the buffer protocol or by DLPack, as blocks and views of the C interface.
//!
//! A message has the elements in the order of their indices, whatever their layout, so that a received array of the same shape is equal to
//! the one that was sent. Contiguous memory is one block. Other memory has one view per row, which the engine copies without packing. With
//! more than [`MAX_VIEWS`] rows it is packed first.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use regatta_sys::View;

use crate::dlpack;
use crate::element::Element;

/// Maximum number of views of one message, 2 MiB of memory.
const MAX_VIEWS: usize = 1 << 16;

/// How borrowed memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Memory of a Python object, borrowed until this is dropped.
pub(crate) struct Memory {
    base: *mut c_void,
    /// Length of all elements, in bytes.
    len: usize,
    layout: Layout,
    element: Element,
    lender: Lender,
}

// SAFETY: `lender` keeps the object that owns the memory, and is released only with the GIL.
unsafe impl Send for Memory {}
// SAFETY: `lender` keeps the object, and nothing is written through a shared reference.
unsafe impl Sync for Memory {}

enum Layout {
    Contiguous,
    Views(Vec<View>),
    /// The memory has more than [`MAX_VIEWS`] rows, and is packed.
    Packed,
}

enum Lender {
    Buffer(Box<ffi::Py_buffer>),
    Capsule(#[allow(dead_code, reason = "kept for its memory")] Py<PyAny>),
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Lender::Buffer(buffer) = &mut self.lender {
            // SAFETY: PyObject_GetBuffer filled the buffer, and it is released once, with the GIL.
            Python::attach(|_| unsafe { ffi::PyBuffer_Release(&mut **buffer) });
        }
    }
}

impl Memory {
    /// Borrows the memory of an object.
    pub(crate) fn of(object: &Bound<'_, PyAny>, access: Access) -> PyResult<Memory> {
        Memory::borrow(object, access, 0)
    }

    /// Borrows the memory of an object, with the type of its elements.
    pub(crate) fn typed(object: &Bound<'_, PyAny>, access: Access) -> PyResult<Memory> {
        Memory::borrow(object, access, ffi::PyBUF_FORMAT)
    }

    #[inline]
    fn borrow(object: &Bound<'_, PyAny>, access: Access, format: c_int) -> PyResult<Memory> {
        let writable = match access {
            Access::Read => 0,
            Access::Write => ffi::PyBUF_WRITABLE,
        };
        let flags = ffi::PyBUF_STRIDES | writable | format;
        let mut buffer = Box::new(ffi::Py_buffer::new());
        // SAFETY: `object` is valid, and the boxed buffer does not move.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *buffer, flags) } != 0 {
            return Memory::of_another(object, access);
        }
        Ok(Memory::of_buffer(buffer))
    }

    fn of_buffer(buffer: Box<ffi::Py_buffer>) -> Memory {
        let (item, ndim) = (buffer.itemsize as usize, buffer.ndim as usize);
        let list = |list: *const ffi::Py_ssize_t| match ndim == 0 || list.is_null() {
            true => &[][..],
            // SAFETY: the buffer protocol guarantees an entry for each dimension.
            false => unsafe { std::slice::from_raw_parts(list, ndim) },
        };
        let (shape, strides) = (list(buffer.shape), list(buffer.strides));
        let dimensions = shape.iter().zip(strides);
        let dimensions = dimensions.map(|(&count, &stride)| (count as usize, stride));
        // SAFETY: the buffer protocol guarantees that the format is NULL or NUL-terminated.
        let format = (!buffer.format.is_null()).then(|| unsafe { CStr::from_ptr(buffer.format) });
        Memory {
            base: buffer.buf,
            len: buffer.len as usize,
            layout: layout(buffer.buf, item, dimensions),
            element: Element::of_format(format, item),
            lender: Lender::Buffer(buffer),
        }
    }

    /// Borrows the memory of an object without such a buffer by DLPack. Fails with the reason if that is not possible.
    #[cold]
    fn of_another(object: &Bound<'_, PyAny>, access: Access) -> PyResult<Memory> {
        let py = object.py();
        let refused = PyErr::fetch(py);
        // SAFETY: `object` is valid.
        let has_buffers = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
        if has_buffers || !object.hasattr("__dlpack__")? {
            if has_buffers && access == Access::Write {
                let error = PyBufferError::new_err(
                    "the receive buffer must be writable, but this one is not; use a bytearray or a writable array",
                );
                error.set_cause(py, Some(refused));
                return Err(error);
            }
            return Err(refused);
        }
        let lent = dlpack::lend(object)?;
        if lent.is_read_only && access == Access::Write {
            return Err(PyBufferError::new_err(
                "the receive buffer must be writable, but this tensor is not",
            ));
        }
        let size = lent.element.size;
        let count: usize = lent.dimensions.iter().map(|&(count, _)| count).product();
        Ok(Memory {
            base: lent.base,
            len: count * size,
            layout: layout(lent.base, size, lent.dimensions.into_iter()),
            element: lent.element,
            lender: Lender::Capsule(lent.capsule),
        })
    }

    /// Returns the number of bytes of all elements.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the type of the elements. It is only correct if the memory was borrowed by [`Memory::typed`].
    pub(crate) fn element(&self) -> Element {
        self.element
    }

    /// Returns the start of the memory if it is contiguous.
    #[inline]
    pub(crate) fn block(&self) -> Option<*mut c_void> {
        matches!(self.layout, Layout::Contiguous).then_some(self.base)
    }

    /// Returns the start of the memory. Raises BufferError if it is not contiguous.
    pub(crate) fn contiguous(&self) -> PyResult<*mut c_void> {
        self.block().ok_or_else(|| {
            PyBufferError::new_err(
                "collectives need C-contiguous memory; copy it with numpy.ascontiguousarray first",
            )
        })
    }

    /// Returns the views of the rows. Returns `None` if the memory is contiguous or has to be packed.
    pub(crate) fn views(&self) -> Option<&[View]> {
        match &self.layout {
            Layout::Views(views) => Some(views),
            _ => None,
        }
    }

    /// Copies all elements, in the order of their indices.
    pub(crate) fn pack(&self, _py: Python<'_>) -> PyResult<Vec<u8>> {
        let mut packed = vec![0; self.len];
        self.copy_packed(|buffer, len| {
            let (to, order) = (packed.as_mut_ptr().cast(), b'C' as c_char);
            // SAFETY: the buffer is borrowed, and `packed` has room for `len` bytes.
            unsafe { ffi::PyBuffer_ToContiguous(to, buffer, len, order) }
        })?;
        Ok(packed)
    }

    /// Copies a packed message, which may be shorter than the memory, into the elements.
    pub(crate) fn unpack(&self, _py: Python<'_>, packed: &[u8]) -> PyResult<()> {
        self.copy_packed(|buffer, _| {
            let (len, order) = (packed.len() as ffi::Py_ssize_t, b'C' as c_char);
            // SAFETY: the buffer is borrowed for writing, and `packed` is valid for `len` bytes.
            unsafe { ffi::PyBuffer_FromContiguous(buffer, packed.as_ptr().cast(), len, order) }
        })
    }

    fn copy_packed(
        &self,
        copy: impl FnOnce(*mut ffi::Py_buffer, ffi::Py_ssize_t) -> c_int,
    ) -> PyResult<()> {
        let Lender::Buffer(buffer) = &self.lender else {
            return Err(PyBufferError::new_err(
                "the tensor has too many rows that are not adjacent in memory; make it contiguous first",
            ));
        };
        match copy(ptr::from_ref(&**buffer).cast_mut(), self.len as isize) {
            0 => Ok(()),
            _ => Python::attach(|py| Err(PyErr::fetch(py))),
        }
    }
}

/// Returns the layout of memory. Consecutive elements form a block, and the last dimension that is not contiguous forms a view of blocks.
/// Each index of the dimensions before it has a view of its own.
fn layout(
    base: *mut c_void,
    item: usize,
    dimensions: impl DoubleEndedIterator<Item = (usize, isize)> + Clone,
) -> Layout {
    let mut block = item;
    let mut left = dimensions.clone().rev().skip_while(|&(count, stride)| {
        let follows = count == 1 || stride == block as isize;
        if follows {
            block *= count;
        }
        follows
    });
    let Some((count, stride)) = left.next() else {
        return Layout::Contiguous;
    };
    if dimensions.clone().any(|(count, _)| count == 0) {
        return Layout::Contiguous;
    }
    let outer: Vec<(usize, isize)> = left.collect();
    let rows = outer
        .iter()
        .try_fold(1usize, |rows, (count, _)| rows.checked_mul(*count));
    if rows.is_none_or(|rows| rows > MAX_VIEWS) {
        return Layout::Packed;
    }
    let mut bases = vec![base];
    for &(count, stride) in outer.iter().rev() {
        let starts = bases.iter();
        let starts = starts.flat_map(|start| {
            (0..count as isize).map(move |at| start.wrapping_byte_offset(at * stride))
        });
        bases = starts.collect();
    }
    let view = |base| View {
        base,
        block,
        count,
        stride,
    };
    Layout::Views(bases.into_iter().map(view).collect())
}
