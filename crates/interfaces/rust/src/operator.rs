//! Operators of reductions, which combine two elements.

use regatta_process::{self as process, Builtin, Element, Reduction};

use crate::memory::Data;
use crate::raw;

mod sealed {
    use super::Reduction;

    pub trait Operator<T> {
        /// Returns the reduction of `count` elements by this operator. It is valid while `self` is borrowed.
        fn reduction(&self, count: usize) -> Reduction;
    }

    pub trait Number {
        const ELEMENT: super::Element;
    }
}

pub(crate) use sealed::Operator as OperatorReduction;

/// An operator on elements of type `T`: [`Sum`], [`Product`], [`Max`] or [`Min`]; for integers also [`And`], [`Or`], [`Xor`],
/// [`BitAnd`], [`BitOr`] or [`BitXor`]; or your own function, made an operator by [`commutative`] or [`ordered`].
pub trait Operator<T>: sealed::Operator<T> {}

impl<T, O: sealed::Operator<T>> Operator<T> for O {}

impl<T, O: sealed::Operator<T>> sealed::Operator<T> for &O {
    #[inline(always)]
    fn reduction(&self, count: usize) -> Reduction {
        (*self).reduction(count)
    }
}

/// Integers and floating-point numbers.
pub trait Number: Data + sealed::Number {}

/// Integers.
pub trait Integer: Number {}

macro_rules! numbers {
    ($($number:ty: $element:expr),*) => {$(
        impl sealed::Number for $number {
            const ELEMENT: Element = $element;
        }
        impl Number for $number {}
    )*};
}

numbers!(
    i8: Element::I8, i16: Element::I16, i32: Element::I32, i64: Element::I64,
    u8: Element::U8, u16: Element::U16, u32: Element::U32, u64: Element::U64,
    f32: Element::F32, f64: Element::F64
);

#[cfg(target_pointer_width = "64")]
numbers!(isize: Element::I64, usize: Element::U64);

macro_rules! integers {
    ($($number:ty)*) => {$(impl Integer for $number {})*};
}

integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! builtin {
    ($($(#[$doc:meta])* $name:ident: $bound:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        impl<T: $bound> sealed::Operator<T> for $name {
            #[inline(always)]
            fn reduction(&self, count: usize) -> Reduction {
                Reduction {
                    operator: process::Operator::Builtin(Builtin::$name),
                    element: T::ELEMENT,
                    count,
                }
            }
        }
    )*};
}

builtin! {
    /// The sum. Integers wrap around.
    Sum: Number;
    /// The product. Integers wrap around.
    Product: Number;
    /// The maximum. If an operand is NaN, the result is one of the operands, unspecified which.
    Max: Number;
    /// The minimum. If an operand is NaN, the result is one of the operands, unspecified which.
    Min: Number;
    /// The logical AND: 1 if both operands are not 0, otherwise 0.
    And: Integer;
    /// The logical OR: 1 if at least one operand is not 0, otherwise 0.
    Or: Integer;
    /// The logical XOR: 1 if exactly one operand is not 0, otherwise 0.
    Xor: Integer;
    /// The bitwise AND.
    BitAnd: Integer;
    /// The bitwise OR.
    BitOr: Integer;
    /// The bitwise XOR.
    BitXor: Integer;
}

/// An operator that is a user's function, made by [`commutative`] or [`ordered`].
#[derive(Clone, Copy, Debug)]
pub struct Custom<F> {
    function: F,
    commutative: bool,
}

impl<T: Data, F: Fn(&T, &T) -> T + Sync> sealed::Operator<T> for Custom<F> {
    fn reduction(&self, count: usize) -> Reduction {
        Reduction {
            operator: raw::user_operator(&self.function, self.commutative),
            element: Element::Bytes(size_of::<T>()),
            count,
        }
    }
}

/// Makes a commutative operator of a function. The function must be associative.
///
/// The function must only compute: calls of Regatta inside it fail, and a panic inside it aborts the process. Any thread
/// that makes progress may run it.
///
/// ```
/// use regatta::commutative;
/// let task = regatta::init()?;
/// let mut longest = [[3.5, 17.0]]; // a value and where it was found
/// let further = commutative(|a: &[f64; 2], b: &[f64; 2]| if a[0] > b[0] { *a } else { *b });
/// task.world().allreduce_in_place(&mut longest, &further)?;
/// assert_eq!(longest, [[3.5, 17.0]]); // a world of one
/// # Ok::<(), regatta::Error>(())
/// ```
pub fn commutative<T, F: Fn(&T, &T) -> T + Sync>(f: F) -> Custom<F> {
    Custom {
        function: f,
        commutative: true,
    }
}

/// Makes a non-commutative operator, such as the product of matrices, of a function. The function must be associative, and
/// its first operand comes from lower ranks than its second. See [`commutative`] for what the function may do.
pub fn ordered<T, F: Fn(&T, &T) -> T + Sync>(f: F) -> Custom<F> {
    Custom {
        function: f,
        commutative: false,
    }
}
