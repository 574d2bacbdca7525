//! The types of items that can be packed.

use libc::{c_int, c_long, c_short};

/// A type of items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `char`, never converted.
    Byte,
    /// `short`
    Short,
    /// `int`
    Int,
    /// `long`
    Long,
    /// `unsigned short`
    UShort,
    /// `unsigned int`
    UInt,
    /// `unsigned long`
    ULong,
    /// `float`
    Float,
    /// `double`
    Double,
    /// Two `float`s.
    Complex,
    /// Two `double`s.
    DoubleComplex,
}

impl Kind {
    /// Returns the size of an item in memory in bytes.
    #[inline(always)]
    pub const fn width(self) -> usize {
        match self {
            Kind::Byte => 1,
            Kind::Short | Kind::UShort => size_of::<c_short>(),
            Kind::Int | Kind::UInt => size_of::<c_int>(),
            Kind::Long | Kind::ULong => size_of::<c_long>(),
            Kind::Float => 4,
            Kind::Double | Kind::Complex => 8,
            Kind::DoubleComplex => 16,
        }
    }

    /// Returns the number that precedes items of this type in a trace message.
    pub const fn mark(self) -> i32 {
        match self {
            Kind::Byte => 1,
            Kind::Complex => 2,
            Kind::DoubleComplex => 3,
            Kind::Double => 4,
            Kind::Float => 5,
            Kind::Int => 6,
            // In PVM 3.4 unsigned ints and shorts have the signed mark; only `unsigned long` has its own.
            Kind::UInt => 6,
            Kind::Long => 8,
            Kind::ULong => 9,
            Kind::Short | Kind::UShort => 10,
        }
    }
}
