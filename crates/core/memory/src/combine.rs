//! Reduction operators on raw elements: `inout[i] = in[i] op inout[i]`.

use std::ffi::c_void;

use crate::views::Views;

/// The built-in element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 8-bit signed integer; the rest alike.
    I8,
    #[allow(missing_docs)]
    I16,
    #[allow(missing_docs)]
    I32,
    #[allow(missing_docs)]
    I64,
    #[allow(missing_docs)]
    U8,
    #[allow(missing_docs)]
    U16,
    #[allow(missing_docs)]
    U32,
    #[allow(missing_docs)]
    U64,
    #[allow(missing_docs)]
    F32,
    #[allow(missing_docs)]
    F64,
    /// C's `long double` (x87, 16 bytes in memory).
    LongDouble,
    /// Opaque bytes, for user operators only.
    Bytes(usize),
}

impl Element {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Element::I8 | Element::U8 => 1,
            Element::I16 | Element::U16 => 2,
            Element::I32 | Element::U32 | Element::F32 => 4,
            Element::I64 | Element::U64 | Element::F64 => 8,
            Element::LongDouble => 16,
            Element::Bytes(n) => n,
        }
    }
}

/// The built-in operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    #[allow(missing_docs)]
    Sum,
    #[allow(missing_docs)]
    Product,
    #[allow(missing_docs)]
    Max,
    #[allow(missing_docs)]
    Min,
    /// Logical, on integers.
    And,
    #[allow(missing_docs)]
    Or,
    #[allow(missing_docs)]
    Xor,
    /// Bitwise, on integers.
    BitAnd,
    #[allow(missing_docs)]
    BitOr,
    #[allow(missing_docs)]
    BitXor,
}

/// A user's operator: `(in, inout, count, argument)`.
pub type UserCombine = extern "C" fn(*const c_void, *mut c_void, usize, *mut c_void);

/// The operation of a reduction on two elements.
#[derive(Clone, Copy, Debug)]
pub enum Operator {
    /// One of the built-in ones. All are commutative.
    Builtin(Builtin),
    /// One of the user's.
    User {
        #[allow(missing_docs)]
        combine: UserCombine,
        #[allow(missing_docs)]
        argument: *mut c_void,
        /// May operands change places?
        commutative: bool,
    },
}

// SAFETY: the argument is only handed back to the user's function; sharing it between threads is
// the user's promise (see `Operator::user`).
unsafe impl Send for Operator {}

impl Operator {
    /// An operator of the user's.
    ///
    /// # Safety
    /// `combine` must be callable from any thread, with any elements, until the operator is freed.
    pub unsafe fn user(combine: UserCombine, argument: *mut c_void, commutative: bool) -> Operator {
        Operator::User {
            combine,
            argument,
            commutative,
        }
    }

    /// May operands change places?
    pub fn commutative(&self) -> bool {
        match self {
            Operator::Builtin(_) => true,
            Operator::User { commutative, .. } => *commutative,
        }
    }

    /// Is the operation defined on these elements?
    pub fn suits(&self, element: Element) -> bool {
        let Operator::Builtin(builtin) = self else {
            return true;
        };
        let floating = matches!(element, Element::F32 | Element::F64 | Element::LongDouble);
        match element {
            Element::Bytes(_) => false,
            _ if floating => matches!(
                builtin,
                Builtin::Sum | Builtin::Product | Builtin::Max | Builtin::Min
            ),
            _ => true,
        }
    }

    /// `inout[i] = from[i] op inout[i]` for `count` elements; both views must hold that many
    /// (what is missing is left alone) and be of one block.
    pub fn apply(&self, element: Element, from: &Views, inout: &Views, count: usize) {
        let bytes = count.saturating_mul(element.size());
        let (Some(a), Some(b)) = (from.contiguous(), inout.contiguous()) else {
            return;
        };
        if from.len() < bytes || inout.len() < bytes {
            return;
        }
        match self {
            Operator::User {
                combine, argument, ..
            } => combine(a.cast(), b.cast(), count, *argument),
            // SAFETY: both blocks hold `count` elements (checked above) and their makers promised
            // that they are valid; the loops read and write them unaligned.
            Operator::Builtin(builtin) => unsafe { builtin_apply(*builtin, element, a, b, count) },
        }
    }
}

macro_rules! each {
    ($type:ty, $from:expr, $inout:expr, $count:expr, $combine:expr) => {{
        let (from, inout) = ($from.cast::<$type>(), $inout.cast::<$type>());
        for i in 0..$count {
            // SAFETY: `i < count`, and the caller vouches for both ranges.
            unsafe {
                let (a, b) = (from.add(i).read_unaligned(), inout.add(i).read_unaligned());
                inout.add(i).write_unaligned($combine(a, b));
            }
        }
    }};
}

macro_rules! integers {
    ($type:ty, $op:expr, $from:expr, $inout:expr, $count:expr) => {{
        type T = $type;
        let truth = |x: bool| x as T;
        match $op {
            Builtin::Sum => each!(T, $from, $inout, $count, |a: T, b: T| a.wrapping_add(b)),
            Builtin::Product => each!(T, $from, $inout, $count, |a: T, b: T| a.wrapping_mul(b)),
            Builtin::Max => each!(T, $from, $inout, $count, |a: T, b: T| a.max(b)),
            Builtin::Min => each!(T, $from, $inout, $count, |a: T, b: T| a.min(b)),
            Builtin::And => each!(T, $from, $inout, $count, |a: T, b: T| truth(
                a != 0 && b != 0
            )),
            Builtin::Or => each!(T, $from, $inout, $count, |a: T, b: T| truth(
                a != 0 || b != 0
            )),
            Builtin::Xor => each!(T, $from, $inout, $count, |a: T, b: T| truth(
                (a != 0) != (b != 0)
            )),
            Builtin::BitAnd => each!(T, $from, $inout, $count, |a: T, b: T| a & b),
            Builtin::BitOr => each!(T, $from, $inout, $count, |a: T, b: T| a | b),
            Builtin::BitXor => each!(T, $from, $inout, $count, |a: T, b: T| a ^ b),
        }
    }};
}

macro_rules! floats {
    ($type:ty, $op:expr, $from:expr, $inout:expr, $count:expr) => {{
        type T = $type;
        match $op {
            Builtin::Sum => each!(T, $from, $inout, $count, |a: T, b: T| a + b),
            Builtin::Product => each!(T, $from, $inout, $count, |a: T, b: T| a * b),
            // As a comparison in C does it: where an operand is not a number, which of the two
            // stays is not said.
            Builtin::Max => each!(T, $from, $inout, $count, |a: T, b: T| if a > b {
                a
            } else {
                b
            }),
            Builtin::Min => each!(T, $from, $inout, $count, |a: T, b: T| if a < b {
                a
            } else {
                b
            }),
            _ => {}
        }
    }};
}

/// # Safety
/// `from` and `inout` must hold `count` elements each.
unsafe fn builtin_apply(
    op: Builtin,
    element: Element,
    from: *mut u8,
    inout: *mut u8,
    count: usize,
) {
    match element {
        Element::I8 => integers!(i8, op, from, inout, count),
        Element::I16 => integers!(i16, op, from, inout, count),
        Element::I32 => integers!(i32, op, from, inout, count),
        Element::I64 => integers!(i64, op, from, inout, count),
        Element::U8 => integers!(u8, op, from, inout, count),
        Element::U16 => integers!(u16, op, from, inout, count),
        Element::U32 => integers!(u32, op, from, inout, count),
        Element::U64 => integers!(u64, op, from, inout, count),
        Element::F32 => floats!(f32, op, from, inout, count),
        Element::F64 => floats!(f64, op, from, inout, count),
        // SAFETY: as this function's.
        Element::LongDouble => unsafe { long_double_apply(op, from, inout, count) },
        Element::Bytes(_) => {}
    }
}

/// Rust has no `long double`: the x87 unit is asked directly.
///
/// # Safety
/// `from` and `inout` must hold `count` elements of 16 bytes each.
#[cfg(target_arch = "x86_64")]
unsafe fn long_double_apply(op: Builtin, from: *mut u8, inout: *mut u8, count: usize) {
    use std::arch::asm;
    for i in 0..count {
        // SAFETY: `i < count`; each block loads two numbers, leaves one, stores it, and so leaves
        // the register stack as it found it.
        unsafe {
            let (a, b) = (from.add(16 * i), inout.add(16 * i));
            match op {
                Builtin::Sum => {
                    asm!("fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", "faddp st(1), st",
                    "fstp tbyte ptr [{b}]", a = in(reg) a, b = in(reg) b, options(nostack))
                }
                Builtin::Product => {
                    asm!("fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", "fmulp st(1), st",
                    "fstp tbyte ptr [{b}]", a = in(reg) a, b = in(reg) b, options(nostack))
                }
                // Top of stack is b, below it a; keep a where a > b (or b < a).
                Builtin::Max => {
                    asm!("fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", "fcomi st, st(1)",
                    "fcmovb st, st(1)", "fstp tbyte ptr [{b}]", "fstp st(0)",
                    a = in(reg) a, b = in(reg) b, options(nostack))
                }
                Builtin::Min => {
                    asm!("fld tbyte ptr [{b}]", "fld tbyte ptr [{a}]", "fcomi st, st(1)",
                    "fcmovnb st, st(1)", "fstp tbyte ptr [{b}]", "fstp st(0)",
                    a = in(reg) a, b = in(reg) b, options(nostack))
                }
                _ => {}
            }
        }
    }
}

/// Elsewhere `long double` is not `f64` either, and no portable instruction adds it.
///
/// # Safety
/// None needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn long_double_apply(_: Builtin, _: *mut u8, _: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T: Copy>(op: Builtin, element: Element, a: &mut [T], b: &mut [T]) -> Vec<T> {
        // SAFETY: the slices live across `apply`.
        let (from, inout) = unsafe {
            (
                Views::block(a.as_mut_ptr().cast(), size_of_val(a)),
                Views::block(b.as_mut_ptr().cast(), size_of_val(b)),
            )
        };
        Operator::Builtin(op).apply(element, &from, &inout, a.len());
        b.to_vec()
    }

    #[test]
    fn integers_and_floats() {
        use Builtin::*;
        assert_eq!(
            run(Sum, Element::I32, &mut [1, i32::MAX], &mut [2, 1]),
            [3, i32::MIN]
        );
        assert_eq!(run(Product, Element::U8, &mut [3u8], &mut [5]), [15]);
        assert_eq!(
            run(Max, Element::I64, &mut [-3i64, 4], &mut [2, -9]),
            [2, 4]
        );
        assert_eq!(run(Min, Element::U16, &mut [3u16, 4], &mut [2, 9]), [2, 4]);
        assert_eq!(run(And, Element::I8, &mut [7i8, 0], &mut [2, 1]), [1, 0]);
        assert_eq!(run(Xor, Element::U32, &mut [7u32, 0], &mut [2, 1]), [0, 1]);
        assert_eq!(run(BitXor, Element::U64, &mut [7u64], &mut [2]), [5]);
        assert_eq!(run(Sum, Element::F64, &mut [0.5], &mut [0.25]), [0.75]);
        assert_eq!(
            run(Max, Element::F32, &mut [1f32, 9.0], &mut [2.0, 3.0]),
            [2.0, 9.0]
        );
    }

    // not a skip: only this processor has long doubles
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn long_doubles() {
        fn ld(x: f64) -> [u8; 16] {
            let mut out = [0u8; 16];
            // SAFETY: loads 8 bytes, stores 10 into 16.
            unsafe {
                std::arch::asm!("fld qword ptr [{x}]", "fstp tbyte ptr [{o}]",
                    x = in(reg) &x, o = in(reg) &mut out, options(nostack));
            }
            out
        }
        let (three, five) = (ld(3.0), ld(5.0));
        for (a, b) in [(three, five), (five, three)] {
            let go = |op| run(op, Element::LongDouble, &mut [a], &mut [b]);
            assert_eq!(go(Builtin::Sum), [ld(8.0)]);
            assert_eq!(go(Builtin::Product), [ld(15.0)]);
            assert_eq!(go(Builtin::Max), [five]);
            assert_eq!(go(Builtin::Min), [three]);
        }
    }

    #[test]
    fn what_does_not_suit_is_known() {
        assert!(!Operator::Builtin(Builtin::BitOr).suits(Element::F64));
        assert!(!Operator::Builtin(Builtin::Sum).suits(Element::Bytes(3)));
        assert!(Operator::Builtin(Builtin::BitOr).suits(Element::U8));
    }
}
