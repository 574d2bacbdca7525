//! Predefined operators on elements of one number.

use super::{Kernel, is_long_double, long_double};
use crate::abi::*;
use crate::datatype::builtin::{Basic, Kind};

/// Minimum number of elements for which the processor's features are checked.
#[cfg(target_arch = "x86_64")]
const MIN_VECTOR_ELEMENTS: usize = 32;

/// Combines elements one by one. Buffers may be unaligned; the compiler vectorizes the loop.
#[inline(always)]
unsafe fn each<T: Copy>(
    input: *const u8,
    inout: *mut u8,
    count: usize,
    combine: impl Fn(T, T) -> T,
) {
    let (input, inout) = (input.cast::<T>(), inout.cast::<T>());
    for index in 0..count {
        // SAFETY: the caller guarantees that the elements are valid.
        unsafe {
            let own = inout.add(index);
            let value = combine(input.add(index).read_unaligned(), own.read_unaligned());
            own.write_unaligned(value);
        }
    }
}

/// Returns a kernel for this type and this function of two elements.
macro_rules! kernel {
    ($type:ty, $combine:expr) => {{
        unsafe fn kernel(input: *const u8, inout: *mut u8, count: usize) {
            /// The same loop, compiled to wider vector instructions.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            unsafe fn wide(input: *const u8, inout: *mut u8, count: usize) {
                // SAFETY: the caller upholds the safety contract of this function.
                unsafe { each::<$type>(input, inout, count, $combine) }
            }
            #[cfg(target_arch = "x86_64")]
            if count >= MIN_VECTOR_ELEMENTS && std::is_x86_feature_detected!("avx2") {
                // SAFETY: the caller upholds the safety contract of this function; the processor has these
                // instructions.
                return unsafe { wide(input, inout, count) };
            }
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { each::<$type>(input, inout, count, $combine) }
        }
        Some(kernel as Kernel)
    }};
}

macro_rules! integers {
    ($op:ident, $type:ty) => {
        match $op {
            SUM => kernel!($type, |a, b| a.wrapping_add(b)),
            PROD => kernel!($type, |a, b| a.wrapping_mul(b)),
            MAX => kernel!($type, |a, b| a.max(b)),
            MIN => kernel!($type, |a, b| a.min(b)),
            _ => bits_and_truth!($op, $type),
        }
    };
}

macro_rules! bits_and_truth {
    ($op:ident, $type:ty) => {
        match $op {
            BAND => kernel!($type, |a, b| a & b),
            BOR => kernel!($type, |a, b| a | b),
            BXOR => kernel!($type, |a, b| a ^ b),
            _ => truth!($op, $type),
        }
    };
}

macro_rules! truth {
    ($op:ident, $type:ty) => {
        match $op {
            LAND => kernel!($type, |a, b| <$type>::from((a != 0) & (b != 0))),
            LOR => kernel!($type, |a, b| <$type>::from((a != 0) | (b != 0))),
            LXOR => kernel!($type, |a, b| <$type>::from((a != 0) ^ (b != 0))),
            _ => None,
        }
    };
}

macro_rules! reals {
    ($op:ident, $type:ty) => {
        match $op {
            SUM => kernel!($type, |a, b| a + b),
            PROD => kernel!($type, |a, b| a * b),
            MAX => kernel!($type, |a, b| if a > b { a } else { b }),
            MIN => kernel!($type, |a, b| if a < b { a } else { b }),
            _ => None,
        }
    };
}

macro_rules! complex {
    ($op:ident, $type:ty) => {
        match $op {
            SUM => kernel!([$type; 2], |[a, b], [c, d]| [a + c, b + d]),
            PROD => kernel!([$type; 2], |[a, b], [c, d]| [a * c - b * d, a * d + b * c]),
            _ => None,
        }
    };
}

/// Returns the kernel of an operator for such elements, if it supports them.
pub(super) const fn kernel(op: Op, basic: &Basic) -> Option<Kernel> {
    match (basic.kind, basic.size) {
        (Kind::Signed, 1) => integers!(op, i8),
        (Kind::Signed, 2) => integers!(op, i16),
        (Kind::Signed, 4) => integers!(op, i32),
        (Kind::Signed, 8) => integers!(op, i64),
        (Kind::Signed, 16) => integers!(op, i128),
        (Kind::Unsigned, 1) => integers!(op, u8),
        (Kind::Unsigned, 2) => integers!(op, u16),
        (Kind::Unsigned, 4) => integers!(op, u32),
        (Kind::Unsigned, 8) => integers!(op, u64),
        (Kind::Real, 4) => reals!(op, f32),
        (Kind::Real, 8) => reals!(op, f64),
        (Kind::Real, _) if is_long_double(basic) => extended(op),
        (Kind::Complex, 8) => complex!(op, f32),
        (Kind::Complex, 16) => complex!(op, f64),
        (Kind::Complex, _) if is_long_double(basic) => extended_complex(op),
        (Kind::Logical, 1) => truth!(op, u8),
        (Kind::Logical, 2) => truth!(op, u16),
        (Kind::Logical, 4) => truth!(op, u32),
        (Kind::Logical, 8) => truth!(op, u64),
        (Kind::Logical, 16) => truth!(op, u128),
        // The standard does not define this for characters. Other libraries treat MPI_CHAR as the small integer that it
        // is in C.
        (Kind::Letter, 1) if matches!(basic.datatype, CHAR) => integers!(op, i8),
        (Kind::Bytes, 1) if matches!(op, BAND | BOR | BXOR) => bits_and_truth!(op, u8),
        _ => None,
    }
}

const fn extended(op: Op) -> Option<Kernel> {
    use long_double::{Number, add, greater, multiply};
    match op {
        SUM => kernel!(Number, add),
        PROD => kernel!(Number, multiply),
        MAX => kernel!(Number, |a, b| if greater(a, b) { a } else { b }),
        MIN => kernel!(Number, |a, b| if greater(b, a) { a } else { b }),
        _ => None,
    }
}

const fn extended_complex(op: Op) -> Option<Kernel> {
    use long_double::{Number, add, multiply, negative};
    match op {
        SUM => kernel!([Number; 2], |[a, b], [c, d]| [add(a, c), add(b, d)]),
        PROD => kernel!([Number; 2], |[a, b], [c, d]| [
            add(multiply(a, c), negative(multiply(b, d))),
            add(multiply(a, d), multiply(b, c)),
        ]),
        _ => None,
    }
}

/// The operators for windows that keep one of the two values.
#[derive(Clone, Copy)]
pub(super) enum Kept {
    /// The new value (MPI_REPLACE).
    New,
    /// The old value (MPI_NO_OP).
    Old,
}

impl Kept {
    pub(super) const fn of(op: Op) -> Kept {
        match op {
            REPLACE => Kept::New,
            _ => Kept::Old,
        }
    }

    /// Returns the kernel for elements of `size` bytes.
    pub(super) const fn kernel(self, size: usize) -> Option<Kernel> {
        match (self, size) {
            (Kept::Old, _) => kernel!(u8, |_, old| old),
            (Kept::New, 1) => kernel!(u8, |new, _| new),
            (Kept::New, 2) => kernel!(u16, |new, _| new),
            (Kept::New, 4) => kernel!(u32, |new, _| new),
            (Kept::New, 8) => kernel!(u64, |new, _| new),
            (Kept::New, 16) => kernel!(u128, |new, _| new),
            (Kept::New, 32) => kernel!([u128; 2], |new, _| new),
            _ => None,
        }
    }
}
