//! Reduction operators on raw elements: `inout[i] = in[i] op inout[i]`.

use std::ffi::c_void;

use crate::copy::copy;
use crate::views::Views;

/// The built-in element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 8-bit signed integer; the others are named alike.
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
    /// Returns the size of an element, in bytes.
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

/// A user-defined operator: `(in, inout, count, argument)`.
pub type UserCombine = extern "C" fn(*const c_void, *mut c_void, usize, *mut c_void);

/// The operation that a reduction applies to two elements.
#[derive(Clone, Copy, Debug)]
pub enum Operator {
    /// A built-in operation. All of them are commutative.
    Builtin(Builtin),
    /// A user-defined operation.
    User {
        #[allow(missing_docs)]
        combine: UserCombine,
        #[allow(missing_docs)]
        argument: *mut c_void,
        /// Whether the operands may be exchanged.
        commutative: bool,
    },
}

// SAFETY: the argument is only passed to the user's function; the caller of `Operator::user` guarantees that it may be
// used from any thread.
unsafe impl Send for Operator {}

impl Operator {
    /// Returns a user-defined operator.
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

    /// Returns whether the operands may be exchanged.
    pub fn commutative(&self) -> bool {
        match self {
            Operator::Builtin(_) => true,
            Operator::User { commutative, .. } => *commutative,
        }
    }

    /// Returns whether the operation is defined for these elements.
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

    /// Computes `out[i] = from[i] op own[i]` for `count` elements, for a built-in operation on contiguous memory of at
    /// least that size; `out` may be the same memory as `from` or `own`. Returns `false`, and does nothing, in all
    /// other cases.
    #[inline]
    pub fn combine(
        &self,
        element: Element,
        (from, own): (&Views, &Views),
        out: &Views,
        count: usize,
    ) -> bool {
        let bytes = count.saturating_mul(element.size());
        let blocks = (from.contiguous(), own.contiguous(), out.contiguous());
        let (Operator::Builtin(builtin), (Some(a), Some(b), Some(c))) = (self, blocks) else {
            return false;
        };
        if from.len() < bytes || own.len() < bytes || out.len() < bytes {
            return false;
        }
        let operands = Operands {
            from: a,
            own: b,
            out: c,
            count,
        };
        // SAFETY: the blocks hold `count` elements (checked above), and the makers of the views guarantee that they are
        // valid. The loops access them unaligned, and read elements before they write to the same memory.
        unsafe { builtin_apply(*builtin, element, operands) }
        true
    }

    /// Computes `inout[i] = from[i] op inout[i]` for `count` elements. Does nothing unless both views are contiguous
    /// and hold `count` elements.
    pub fn apply(&self, element: Element, from: &Views, inout: &Views, count: usize) {
        let Operator::User {
            combine, argument, ..
        } = self
        else {
            self.combine(element, (from, inout), inout, count);
            return;
        };
        let bytes = count.saturating_mul(element.size());
        let (Some(a), Some(b)) = (from.contiguous(), inout.contiguous()) else {
            return;
        };
        if from.len() >= bytes && inout.len() >= bytes {
            combine(a.cast(), b.cast(), count, *argument);
        }
    }
}

/// A reduction of elements as they are received: `out[i] = received[i] op own[i]`.
#[derive(Clone, Debug)]
pub struct Combination {
    own: *const u8,
    out: *mut u8,
    len: usize,
    builtin: Builtin,
    element: Element,
    /// Views that keep both blocks alive.
    _held: [Views; 2],
}

// SAFETY: the blocks belong to views, which may be sent; a combination is not changed after it is made.
unsafe impl Send for Combination {}
// SAFETY: the blocks belong to views, which may be shared; a combination is not changed after it is made.
unsafe impl Sync for Combination {}

impl Combination {
    /// Returns `None` if the two blocks overlap or do not hold whole elements, or the operator is not built in.
    ///
    /// # Safety
    /// As for [`View::new`](crate::views::View::new), for both blocks, and they must have the same length.
    pub(crate) unsafe fn new(
        given: &Views,
        results: &Views,
        operator: Operator,
        element: Element,
    ) -> Option<Combination> {
        let Operator::Builtin(builtin) = operator else {
            return None;
        };
        let (own, out) = (given.contiguous()?, results.contiguous()?);
        let len = results.len();
        let apart = own.addr().abs_diff(out.addr()) >= len;
        let whole = !matches!(element, Element::Bytes(_)) && len.is_multiple_of(element.size());
        (apart && whole).then_some(Combination {
            own,
            out,
            len,
            builtin,
            element,
            _held: [given.clone(), results.clone()],
        })
    }

    /// Returns the size of all elements, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the address of the results.
    pub(crate) fn results(&self) -> *const u8 {
        self.out
    }

    /// Combines bytes `offset .. offset + len`, which were received and lie at `from`. All earlier bytes must have been
    /// received: if an element is split, its first part waits in the results.
    ///
    /// # Safety
    /// `from` must be readable for `len` bytes and in neither block; `offset + len <= self.len()`.
    pub(crate) unsafe fn take(&self, offset: usize, from: *const u8, len: usize) {
        let size = self.element.size();
        let (mut at, mut from, end) = (offset, from, offset + len);
        let front = (at.next_multiple_of(size) - at).min(len);
        if front > 0 {
            // SAFETY: the bytes lie inside the results, as `at + front <= end`; `from` has `front` bytes.
            unsafe {
                copy(from, self.out.add(at), front);
                from = from.add(front);
            }
            at += front;
            if at.is_multiple_of(size) {
                // SAFETY: the element before `at` lies inside the results.
                let element = unsafe { self.out.add(at - size) };
                self.combine(element, at - size, 1);
            }
        }
        let count = (end - at) / size;
        self.combine(from, at, count);
        let (at, from) = (at + count * size, from.wrapping_add(count * size));
        // SAFETY: this is the rest of `from` and of the results.
        unsafe { copy(from, self.out.add(at), end - at) };
    }

    /// Combines `count` elements at `from` with those from byte `at` on.
    fn combine(&self, from: *const u8, at: usize, count: usize) {
        let operands = Operands {
            from,
            own: self.own.wrapping_add(at),
            out: self.out.wrapping_add(at),
            count,
        };
        // SAFETY: `take` only passes elements inside the blocks.
        unsafe { builtin_apply(self.builtin, self.element, operands) }
    }
}

/// Prevents the compiler from working on several blocks of a loop at once, for which it would gather their elements one
/// by one.
#[inline(always)]
fn one_by_one() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the assembly contains no instruction.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

/// Computes `out[i] = from[i] op own[i]`, 64 bytes at a time. Each block is read completely before it is written, so
/// `out` may be `own`, and the compiler can use vectors without knowing whether the pointers overlap.
macro_rules! each {
    ($type:ty, $operands:expr, $combine:expr) => {{
        const LANES: usize = 64 / size_of::<$type>();
        let Operands {
            from,
            own,
            out,
            count,
        } = $operands;
        let (from, own, out) = (
            from.cast::<$type>(),
            own.cast::<$type>(),
            out.cast::<$type>(),
        );
        let whole = count / LANES * LANES;
        let mut at = 0;
        while at < whole {
            // SAFETY: `at + LANES <= count`, and the caller guarantees that all ranges are valid.
            unsafe {
                let a = from.add(at).cast::<[$type; LANES]>().read_unaligned();
                let b = own.add(at).cast::<[$type; LANES]>().read_unaligned();
                let combined: [$type; LANES] = std::array::from_fn(|i| $combine(a[i], b[i]));
                let to = out.add(at).cast::<[$type; LANES]>();
                to.write_unaligned(combined);
            }
            at += LANES;
            one_by_one();
        }
        for i in whole..count {
            // SAFETY: `i < count`, and the caller guarantees that all ranges are valid.
            unsafe {
                let (a, b) = (from.add(i).read_unaligned(), own.add(i).read_unaligned());
                out.add(i).write_unaligned($combine(a, b));
            }
        }
    }};
}

macro_rules! integers {
    ($type:ty, $op:expr, $operands:expr) => {{
        type T = $type;
        let truth = |x: bool| x as T;
        match $op {
            Builtin::Sum => each!(T, $operands, |a: T, b: T| a.wrapping_add(b)),
            Builtin::Product => each!(T, $operands, |a: T, b: T| a.wrapping_mul(b)),
            Builtin::Max => each!(T, $operands, |a: T, b: T| a.max(b)),
            Builtin::Min => each!(T, $operands, |a: T, b: T| a.min(b)),
            Builtin::And => each!(T, $operands, |a: T, b: T| truth(a != 0 && b != 0)),
            Builtin::Or => each!(T, $operands, |a: T, b: T| truth(a != 0 || b != 0)),
            Builtin::Xor => each!(T, $operands, |a: T, b: T| truth((a != 0) != (b != 0))),
            Builtin::BitAnd => each!(T, $operands, |a: T, b: T| a & b),
            Builtin::BitOr => each!(T, $operands, |a: T, b: T| a | b),
            Builtin::BitXor => each!(T, $operands, |a: T, b: T| a ^ b),
        }
    }};
}

macro_rules! floats {
    ($type:ty, $op:expr, $operands:expr) => {{
        type T = $type;
        match $op {
            Builtin::Sum => each!(T, $operands, |a: T, b: T| a + b),
            Builtin::Product => each!(T, $operands, |a: T, b: T| a * b),
            // Like a comparison in C: if an operand is NaN, it is unspecified which of the two is returned.
            Builtin::Max => each!(T, $operands, |a: T, b: T| if a > b { a } else { b }),
            Builtin::Min => each!(T, $operands, |a: T, b: T| if a < b { a } else { b }),
            _ => {}
        }
    }};
}

/// The operands of a loop, and the destination of its results: `own`, or memory that overlaps neither operand.
#[derive(Clone, Copy)]
struct Operands {
    from: *const u8,
    own: *const u8,
    out: *mut u8,
    count: usize,
}

/// Minimum number of elements for which wide vectors are used.
const VECTORS_FROM: usize = 64;

/// Computes `out[i] = from[i] op own[i]`, with the widest vectors that this processor has.
///
/// # Safety
/// `from` and `own` must hold `count` elements each, and `out` room for them.
unsafe fn builtin_apply(op: Builtin, element: Element, operands: Operands) {
    #[cfg(target_arch = "x86_64")]
    if operands.count >= VECTORS_FROM {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has these features; the caller guarantees that the operands are valid.
            return unsafe { apply_avx512(op, element, operands) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has these features; the caller guarantees that the operands are valid.
            return unsafe { apply_avx2(op, element, operands) };
        }
    }
    // SAFETY: the caller guarantees that the operands are valid.
    unsafe { apply_loop(op, element, operands) }
}

/// # Safety
/// As for [`builtin_apply`], on a processor that has these vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn apply_avx512(op: Builtin, element: Element, operands: Operands) {
    // SAFETY: the caller guarantees that the operands are valid.
    unsafe { apply_loop(op, element, operands) }
}

/// # Safety
/// As for [`builtin_apply`], on a processor that has these vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn apply_avx2(op: Builtin, element: Element, operands: Operands) {
    // SAFETY: the caller guarantees that the operands are valid.
    unsafe { apply_loop(op, element, operands) }
}

/// # Safety
/// As for [`builtin_apply`].
#[inline(always)]
unsafe fn apply_loop(op: Builtin, element: Element, operands: Operands) {
    match element {
        Element::I8 => integers!(i8, op, operands),
        Element::I16 => integers!(i16, op, operands),
        Element::I32 => integers!(i32, op, operands),
        Element::I64 => integers!(i64, op, operands),
        Element::U8 => integers!(u8, op, operands),
        Element::U16 => integers!(u16, op, operands),
        Element::U32 => integers!(u32, op, operands),
        Element::U64 => integers!(u64, op, operands),
        Element::F32 => floats!(f32, op, operands),
        Element::F64 => floats!(f64, op, operands),
        // SAFETY: the caller guarantees that the operands are valid.
        Element::LongDouble => unsafe { long_double_apply(op, operands) },
        Element::Bytes(_) => {}
    }
}

/// Computes with the x87 unit, because Rust has no `long double`.
///
/// # Safety
/// As for [`builtin_apply`], for elements of 16 bytes.
#[cfg(target_arch = "x86_64")]
unsafe fn long_double_apply(op: Builtin, operands: Operands) {
    use std::arch::asm;
    let Operands {
        from,
        own,
        out,
        count,
    } = operands;
    for i in 0..count {
        // SAFETY: `i < count`. Each block loads two numbers, leaves one and stores it, so the register stack is
        // unchanged afterwards.
        unsafe {
            let (a, b, c) = (from.add(16 * i), own.add(16 * i), out.add(16 * i));
            match op {
                Builtin::Sum => {
                    asm!("fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", "faddp st(1), st",
                    "fstp tbyte ptr [{c}]", a = in(reg) a, b = in(reg) b, c = in(reg) c, options(nostack))
                }
                Builtin::Product => {
                    asm!("fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", "fmulp st(1), st",
                    "fstp tbyte ptr [{c}]", a = in(reg) a, b = in(reg) b, c = in(reg) c, options(nostack))
                }
                // The top of the stack is b, below it a; keep a if a > b (or b < a).
                Builtin::Max => {
                    asm!("fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", "fcomi st, st(1)",
                    "fcmovb st, st(1)", "fstp tbyte ptr [{c}]", "fstp st(0)",
                    a = in(reg) a, b = in(reg) b, c = in(reg) c, options(nostack))
                }
                Builtin::Min => {
                    asm!("fld tbyte ptr [{b}]", "fld tbyte ptr [{a}]", "fcomi st, st(1)",
                    "fcmovnb st, st(1)", "fstp tbyte ptr [{c}]", "fstp st(0)",
                    a = in(reg) a, b = in(reg) b, c = in(reg) c, options(nostack))
                }
                _ => {}
            }
        }
    }
}

/// Does nothing: on other architectures `long double` is not `f64` either, and no portable instruction adds it.
///
/// # Safety
/// Always safe.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn long_double_apply(_: Builtin, _: Operands) {}

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

    // not a skip: only this processor has these long doubles.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn long_doubles() {
        fn ld(x: f64) -> [u8; 16] {
            let mut out = [0u8; 16];
            // SAFETY: loads 8 bytes, and stores 10 into 16.
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
    fn every_width_of_vector_has_the_same_results() {
        use Builtin::*;
        for count in [0, 1, 7, 63, 64, 65, 128, 1000] {
            let a: Vec<f64> = (0..count).map(|i| ((i * 7919) % 1013) as f64).collect();
            let b: Vec<f64> = (0..count).map(|i| ((i * 104_729) % 997) as f64).collect();
            let both = || a.iter().zip(&b);
            let sums: Vec<f64> = both().map(|(a, b)| a + b).collect();
            let most: Vec<f64> = both().map(|(a, b)| a.max(*b)).collect();
            let run = |op| run(op, Element::F64, &mut a.clone(), &mut b.clone());
            assert_eq!((run(Sum), run(Max)), (sums, most), "{count} numbers");
            let a: Vec<i16> = a.iter().map(|x| *x as i16).collect();
            let b: Vec<i16> = b.iter().map(|x| *x as i16).collect();
            let xors: Vec<i16> = a.iter().zip(&b).map(|(a, b)| a ^ b).collect();
            let mut into = b.clone();
            let found = super::tests::run(BitXor, Element::I16, &mut a.clone(), &mut into);
            assert_eq!(found, xors, "{count} integers");
        }
    }

    #[test]
    fn elements_are_combined_as_they_come_however_they_are_cut() {
        let count = 1000usize;
        let mut own: Vec<u32> = (0..count as u32).map(|i| i * 3).collect();
        let come: Vec<u32> = (0..count as u32).map(|i| i ^ 0x5555).collect();
        let sums: Vec<u32> = own.iter().zip(&come).map(|(a, b)| a + b).collect();
        for cut in [1, 3, 4, 63, 64, 1001, 4000] {
            let mut out = vec![0u32; count];
            let block = |bytes: &mut [u32]| {
                // SAFETY: the vectors live across the calls.
                unsafe { Views::block(bytes.as_mut_ptr().cast(), size_of_val(bytes)) }
            };
            let into = Views::combined(
                &block(&mut own),
                &block(&mut out),
                Operator::Builtin(Builtin::Sum),
                Element::U32,
            );
            let into = into.expect("two blocks of whole elements");
            for at in (0..count * 4).step_by(cut) {
                let n = cut.min(count * 4 - at);
                // SAFETY: `at + n` lies in `come` and in the results.
                unsafe { into.scatter(at, come.as_ptr().cast::<u8>().add(at), n) };
            }
            assert_eq!(out, sums, "cut at each {cut}");
        }
        let (first, second) = own.split_at_mut(500);
        // SAFETY: the vectors live across the calls.
        let [first, second] = [first, second]
            .map(|half| unsafe { Views::block(half.as_mut_ptr().cast(), size_of_val(half)) });
        let sum = Operator::Builtin(Builtin::Sum);
        assert!(Views::combined(&first, &first, sum, Element::U32).is_none());
        assert!(Views::combined(&first, &second, sum, Element::LongDouble).is_some());
        assert!(Views::combined(&first, &second, sum, Element::Bytes(4)).is_none());
    }

    #[test]
    fn what_does_not_suit_is_known() {
        assert!(!Operator::Builtin(Builtin::BitOr).suits(Element::F64));
        assert!(!Operator::Builtin(Builtin::Sum).suits(Element::Bytes(3)));
        assert!(Operator::Builtin(Builtin::BitOr).suits(Element::U8));
    }
}
