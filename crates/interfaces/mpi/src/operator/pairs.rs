//! MPI_MINLOC and MPI_MAXLOC on pairs of a value and an index.

use std::cmp::Ordering;

use super::{is_long_double, long_double};
use crate::abi::*;
use crate::datatype::Type;
use crate::datatype::builtin::{Basic, Kind};

/// A function that compares two elements.
type Compare = unsafe fn(*const u8, *const u8) -> Ordering;

/// Decides which of two pairs is the result.
pub(super) struct Order {
    value: Compare,
    index: Compare,
    /// Offset of the index in bytes.
    at: usize,
    value_size: usize,
    index_size: usize,
    extent: usize,
    wanted: Ordering,
}

/// Returns the order for an operator, if it supports such pairs.
pub(super) fn order(op: Op, value: &Basic, index: &Basic, of: &Type) -> Option<Order> {
    Some(Order {
        value: comparison(value)?,
        index: comparison(index)?,
        at: value.size.next_multiple_of(index.alignment()),
        value_size: value.size,
        index_size: index.size,
        extent: usize::try_from(of.extent()).ok()?,
        wanted: match op {
            MINLOC => Ordering::Less,
            _ => Ordering::Greater,
        },
    })
}

macro_rules! comparison {
    ($type:ty, $compare:expr) => {{
        unsafe fn compare(a: *const u8, b: *const u8) -> Ordering {
            // SAFETY: the caller guarantees that the elements are valid.
            let (a, b) = unsafe {
                (
                    a.cast::<$type>().read_unaligned(),
                    b.cast::<$type>().read_unaligned(),
                )
            };
            $compare(a, b)
        }
        Some(compare as Compare)
    }};
}

/// Compares numbers. A NaN is equal to all others.
fn partial<T: PartialOrd>(a: T, b: T) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

fn comparison(basic: &Basic) -> Option<Compare> {
    match (basic.kind, basic.size) {
        (Kind::Signed, 1) => comparison!(i8, partial),
        (Kind::Signed, 2) => comparison!(i16, partial),
        (Kind::Signed, 4) => comparison!(i32, partial),
        (Kind::Signed, 8) => comparison!(i64, partial),
        (Kind::Signed, 16) => comparison!(i128, partial),
        (Kind::Unsigned, 1) => comparison!(u8, partial),
        (Kind::Unsigned, 2) => comparison!(u16, partial),
        (Kind::Unsigned, 4) => comparison!(u32, partial),
        (Kind::Unsigned, 8) => comparison!(u64, partial),
        (Kind::Real, 4) => comparison!(f32, partial),
        (Kind::Real, 8) => comparison!(f64, partial),
        (Kind::Real, _) if is_long_double(basic) => comparison!(u128, long_double::order),
        _ => None,
    }
}

impl Order {
    /// Stores the resulting pairs in `inout`. For equal values the lower index is kept. Gaps are not written.
    ///
    /// # Safety
    /// The pairs are valid for reads and writes.
    pub(super) unsafe fn combine(&self, input: *const u8, inout: *mut u8, count: usize) {
        for number in 0..count {
            let from = input.wrapping_add(number * self.extent);
            let own = inout.wrapping_add(number * self.extent);
            let (index, own_index) = (from.wrapping_add(self.at), own.wrapping_add(self.at));
            // SAFETY: the caller guarantees that the pairs are valid.
            unsafe {
                let order = (self.value)(from, own);
                if order == self.wanted {
                    from.copy_to_nonoverlapping(own, self.value_size);
                    index.copy_to_nonoverlapping(own_index, self.index_size);
                } else if order == Ordering::Equal
                    && (self.index)(index, own_index) == Ordering::Less
                {
                    index.copy_to_nonoverlapping(own_index, self.index_size);
                }
            }
        }
    }
}
