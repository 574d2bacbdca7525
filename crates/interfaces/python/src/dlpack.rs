//! DLPack: CPU memory of arrays without the buffer protocol, such as tensors of PyTorch.
//!
//! The structs are those of `dlpack.h` 1.0, and that of the older versions, which most libraries still use.

use std::ffi::{CStr, c_void};

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::element::{Element, Kind};

/// Devices whose memory the CPU can read: the CPU, and pages that are pinned for a GPU.
const READABLE_DEVICES: [i32; 2] = [1, 3];
const READ_ONLY: u64 = 1;
const PLAIN: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

#[repr(C)]
#[allow(dead_code, reason = "written by others")]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    /// In elements. NULL stands for a contiguous tensor.
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
#[allow(dead_code, reason = "written by others")]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: Tensor,
}

/// The memory of a tensor. It is valid as long as the capsule exists.
pub(crate) struct Lent {
    pub(crate) capsule: Py<PyAny>,
    pub(crate) base: *mut c_void,
    pub(crate) element: Element,
    pub(crate) is_read_only: bool,
    /// Number of elements and stride in bytes, for each dimension.
    pub(crate) dimensions: Vec<(usize, isize)>,
}

/// Borrows an object's memory. Fails if it is not memory that the CPU can read.
pub(crate) fn lend(object: &Bound<'_, PyAny>) -> PyResult<Lent> {
    let py = object.py();
    let (device, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    if !READABLE_DEVICES.contains(&device) {
        return Err(PyBufferError::new_err(
            "the tensor is not in the processor's memory; copy it there first",
        ));
    }
    let newest = PyDict::new(py);
    newest.set_item("max_version", (1, 0))?;
    let capsule = object
        .call_method("__dlpack__", (), Some(&newest))
        .or_else(|_| object.call_method0("__dlpack__"))?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    // SAFETY: a capsule of this name has a pointer to this struct, which is valid as long as the capsule exists.
    let (tensor, flags) = unsafe {
        match capsule.is_valid_checked(Some(VERSIONED)) {
            true => {
                let whole = capsule.pointer_checked(Some(VERSIONED))?;
                let whole = &*whole.as_ptr().cast::<Versioned>();
                (&whole.tensor, whole.flags)
            }
            false => {
                let tensor = capsule.pointer_checked(Some(PLAIN))?;
                (&*tensor.as_ptr().cast::<Tensor>(), 0)
            }
        }
    };
    let size = usize::from(tensor.bits) * usize::from(tensor.lanes) / 8;
    let kind = match (tensor.code, tensor.lanes) {
        (0, 1) => Kind::Int,
        (1, 1) => Kind::Uint,
        (2, 1) => Kind::Float,
        (5, 1) => Kind::Complex,
        (6, 1) => Kind::Bool,
        _ => Kind::Other,
    };
    Ok(Lent {
        base: tensor.data.wrapping_byte_add(tensor.byte_offset as usize),
        element: Element { kind, size },
        is_read_only: flags & READ_ONLY != 0,
        dimensions: dimensions(tensor, size)?,
        capsule: capsule.into_any().unbind(),
    })
}

fn dimensions(tensor: &Tensor, size: usize) -> PyResult<Vec<(usize, isize)>> {
    let invalid = || PyBufferError::new_err("the tensor has an invalid shape");
    let ndim = usize::try_from(tensor.ndim).map_err(|_| invalid())?;
    let mut found = Vec::with_capacity(ndim);
    let mut packed = size as isize;
    for at in (0..ndim).rev() {
        // SAFETY: `dlpack.h` guarantees an entry for each dimension; only strides may be NULL.
        let (count, stride) = unsafe {
            let count = *tensor.shape.add(at);
            let stride = (!tensor.strides.is_null()).then(|| *tensor.strides.add(at));
            (count, stride)
        };
        let count = usize::try_from(count).map_err(|_| invalid())?;
        let stride = match stride {
            Some(stride) => isize::try_from(stride)
                .ok()
                .and_then(|stride| stride.checked_mul(size as isize)),
            None => Some(packed),
        };
        found.push((count, stride.ok_or_else(invalid)?));
        packed = packed.saturating_mul(count as isize);
    }
    found.reverse();
    Ok(found)
}
