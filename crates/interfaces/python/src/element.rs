//! Element types of buffers, for reductions.

use std::ffi::{CStr, c_int};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use regatta_sys as rg;

/// A kind of elements, as [PEP 3118](https://peps.python.org/pep-3118/) and DLPack distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Signed integers.
    Int,
    /// Unsigned integers.
    Uint,
    /// Floating-point numbers.
    Float,
    /// Complex numbers: pairs of floating-point numbers.
    Complex,
    /// Booleans.
    Bool,
    /// Any other kind.
    Other,
}

/// The element type of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) kind: Kind,
    /// Size of an element, in bytes.
    pub(crate) size: usize,
}

impl Element {
    /// Parses the format of a buffer, which is one of the struct module. Only the byte order of this machine gives a known kind.
    pub(crate) fn of_format(format: Option<&CStr>, size: usize) -> Element {
        let text = format.map_or(&b"B"[..], CStr::to_bytes);
        let native = if cfg!(target_endian = "little") {
            b'<'
        } else {
            b'>'
        };
        let text = match text {
            [b'@' | b'=', rest @ ..] => rest,
            [order, rest @ ..] if *order == native => rest,
            text => text,
        };
        let kind = match text {
            b"b" | b"h" | b"i" | b"l" | b"q" | b"n" => Kind::Int,
            b"B" | b"H" | b"I" | b"L" | b"Q" | b"N" => Kind::Uint,
            b"f" | b"d" | b"g" => Kind::Float,
            b"Zf" | b"Zd" | b"Zg" => Kind::Complex,
            b"?" => Kind::Bool,
            _ => Kind::Other,
        };
        Element { kind, size }
    }

    /// Returns the type and the operator of the C interface for a reduction with operator `op`, and the number of values of that type in an
    /// element. Raises TypeError if there is no such reduction.
    pub(crate) fn reduced(self, op: c_int) -> PyResult<(c_int, c_int, usize)> {
        let (sum, product) = (rg::SUM.id, rg::PRODUCT.id);
        let found = match (self.kind, self.size) {
            (Kind::Int, 1) => Some((rg::INT8, op, 1)),
            (Kind::Int, 2) => Some((rg::INT16, op, 1)),
            (Kind::Int, 4) => Some((rg::INT32, op, 1)),
            (Kind::Int, 8) => Some((rg::INT64, op, 1)),
            (Kind::Uint, 1) => Some((rg::UINT8, op, 1)),
            (Kind::Uint, 2) => Some((rg::UINT16, op, 1)),
            (Kind::Uint, 4) => Some((rg::UINT32, op, 1)),
            (Kind::Uint, 8) => Some((rg::UINT64, op, 1)),
            (Kind::Float, 4) => Some((rg::FLOAT, op, 1)),
            (Kind::Float, 8) => Some((rg::DOUBLE, op, 1)),
            (Kind::Float, 16) => Some((rg::LONG_DOUBLE, op, 1)),
            (Kind::Complex, 8) if op == sum => Some((rg::FLOAT, op, 2)),
            (Kind::Complex, 16) if op == sum => Some((rg::DOUBLE, op, 2)),
            (Kind::Complex, 32) if op == sum => Some((rg::LONG_DOUBLE, op, 2)),
            // As in numpy, the sum of booleans is true if any is true, and their product if all are.
            (Kind::Bool, 1) if op == sum => Some((rg::UINT8, rg::OR.id, 1)),
            (Kind::Bool, 1) if op == product => Some((rg::UINT8, rg::AND.id, 1)),
            (Kind::Bool, 1) => Some((rg::UINT8, op, 1)),
            _ => None,
        };
        found.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "elements of {} bytes of kind {:?} do not support this reduction: it takes integers, floats of 4, 8 and 16 bytes and truth values in the byte order of this machine, and sums of complex numbers; convert the array with astype",
                self.size, self.kind
            ))
        })
    }
}
