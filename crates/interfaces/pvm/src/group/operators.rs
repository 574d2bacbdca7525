//! The predefined operators of `pvm_reduce`.

use std::ffi::{c_double, c_float, c_int, c_long, c_schar, c_short, c_void};

use crate::message::codes::BAD_PARAM;
use crate::message::codes::datatype::{BYTE, CPLX, DCPLX, DOUBLE, FLOAT, INT, LONG, SHORT};

/// A complex number: real and imaginary part.
type Pair<T> = [T; 2];

/// Combines two arrays item by item.
///
/// # Safety
/// Both arrays have `count` items.
unsafe fn rows<T: Copy>(
    inout: *mut c_void,
    with: *const c_void,
    count: c_int,
    combine: impl Fn(T, T) -> T,
) {
    let (inout, with) = (inout.cast::<T>(), with.cast::<T>());
    for at in 0..count.max(0) as usize {
        // SAFETY: the caller guarantees `count` items in both; a program's arrays may be unaligned.
        unsafe {
            let combined = combine(
                inout.add(at).read_unaligned(),
                with.add(at).read_unaligned(),
            );
            inout.add(at).write_unaligned(combined);
        }
    }
}

/// Returns the square of the modulus.
fn modulus<T: Copy + Into<f64>>(pair: Pair<T>) -> f64 {
    let (real, imaginary) = (pair[0].into(), pair[1].into());
    real * real + imaginary * imaginary
}

macro_rules! product {
    ($a:ident, $b:ident) => {
        [$a[0] * $b[0] - $a[1] * $b[1], $a[0] * $b[1] + $a[1] * $b[0]]
    };
}

/// Defines an operator for bytes (optional), integers, reals, and the two types of pairs.
macro_rules! operator {
    ($(#[$doc:meta])* $name:ident, [$($byte:ident)?], |$a:ident, $b:ident| $whole:expr, $real:expr, $pair:expr) => {
        $(#[$doc])*
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            datatype: *mut c_int,
            inout: *mut c_void,
            with: *mut c_void,
            count: *mut c_int,
            info: *mut c_int,
        ) {
            // SAFETY: by the C contract the pointers are valid, and both arrays have `count` items of this type.
            unsafe {
                let count = *count;
                *info = 0;
                match *datatype {
                    $($byte => rows::<c_schar>(inout, with, count, |$a, $b| $whole),)?
                    SHORT => rows::<c_short>(inout, with, count, |$a, $b| $whole),
                    INT => rows::<c_int>(inout, with, count, |$a, $b| $whole),
                    LONG => rows::<c_long>(inout, with, count, |$a, $b| $whole),
                    FLOAT => rows::<c_float>(inout, with, count, |$a, $b| $real),
                    DOUBLE => rows::<c_double>(inout, with, count, |$a, $b| $real),
                    CPLX => rows::<Pair<c_float>>(inout, with, count, |$a, $b| $pair),
                    DCPLX => rows::<Pair<c_double>>(inout, with, count, |$a, $b| $pair),
                    _ => *info = BAD_PARAM,
                }
            }
        }
    };
}

operator! {
    /// Takes the larger item, or of two complex numbers the one with the larger modulus.
    PvmMax, [BYTE], |a, b| a.max(b), if b > a { b } else { a },
    if modulus(b) > modulus(a) { b } else { a }
}
operator! {
    /// Takes the smaller item, or of two complex numbers the one with the smaller modulus.
    PvmMin, [BYTE], |a, b| a.min(b), if b < a { b } else { a },
    if modulus(b) < modulus(a) { b } else { a }
}
operator! {
    /// Adds the items.
    PvmSum, [], |a, b| a.wrapping_add(b), a + b, [a[0] + b[0], a[1] + b[1]]
}
operator! {
    /// Multiplies the items.
    PvmProduct, [], |a, b| a.wrapping_mul(b), a * b, product!(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply<T: Copy>(
        operator: unsafe extern "C" fn(
            *mut c_int,
            *mut c_void,
            *mut c_void,
            *mut c_int,
            *mut c_int,
        ),
        datatype: c_int,
        mut inout: Vec<T>,
        mut with: Vec<T>,
    ) -> (Vec<T>, c_int) {
        let (mut datatype, mut count, mut info) = (datatype, inout.len() as c_int, 55);
        // SAFETY: both vectors have `count` items of this type.
        unsafe {
            operator(
                &mut datatype,
                inout.as_mut_ptr().cast(),
                with.as_mut_ptr().cast(),
                &mut count,
                &mut info,
            )
        };
        (inout, info)
    }

    #[test]
    fn operators_combine_item_by_item() {
        assert_eq!(
            apply(PvmMax, INT, vec![1, 5, -3], vec![2, 4, -4]),
            (vec![2, 5, -3], 0)
        );
        assert_eq!(
            apply(PvmMin, SHORT, vec![1i16, 5], vec![2, 4]),
            (vec![1, 4], 0)
        );
        assert_eq!(
            apply(PvmSum, DOUBLE, vec![1.5, 2.0], vec![2.0, 0.5]),
            (vec![3.5, 2.5], 0)
        );
        assert_eq!(
            apply(PvmProduct, LONG, vec![3i64], vec![-7]),
            (vec![-21], 0)
        );
        assert_eq!(apply(PvmMax, BYTE, vec![-5i8], vec![3]), (vec![3], 0));
    }

    #[test]
    fn pairs_are_complex_numbers() {
        assert_eq!(
            apply(PvmProduct, CPLX, vec![[1f32, 2.0]], vec![[3.0, 4.0]]),
            (vec![[-5.0, 10.0]], 0)
        );
        assert_eq!(
            apply(PvmMax, CPLX, vec![[3f32, 4.0]], vec![[-6.0, 0.0]]),
            (vec![[-6.0, 0.0]], 0)
        );
        assert_eq!(
            apply(PvmMax, DCPLX, vec![[3f64, 4.0]], vec![[5.0, 0.0]]),
            (vec![[3.0, 4.0]], 0)
        );
        assert_eq!(
            apply(PvmMin, DCPLX, vec![[3f64, 4.0]], vec![[1.0, 0.0]]),
            (vec![[1.0, 0.0]], 0)
        );
    }

    #[test]
    fn types_that_an_operator_does_not_have_are_refused() {
        for (operator, datatype) in [
            (PvmSum as unsafe extern "C" fn(_, _, _, _, _), BYTE),
            (PvmProduct, BYTE),
            (PvmMax, 0),
            (PvmMax, 9),
            (PvmSum, 99),
        ] {
            assert_eq!(
                apply(operator, datatype, vec![1i8], vec![2]),
                (vec![1], BAD_PARAM)
            );
        }
    }
}
