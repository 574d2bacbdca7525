//! Numbers of C's long double: on x86 those of the x87 unit, 80 bits in 16 bytes. They are not used on other machines.

use std::cmp::Ordering;

/// The 16 bytes of a number.
pub(super) type Number = u128;

/// The bits that are significant, without the six bytes of padding.
const BITS: u128 = (1 << 80) - 1;

macro_rules! by_instruction {
    ($(#[$doc:meta])* $name:ident $instruction:literal) => {
        $(#[$doc])*
        #[cfg(target_arch = "x86_64")]
        pub(super) fn $name(a: Number, b: Number) -> Number {
            let mut result: Number = 0;
            // SAFETY: two numbers are loaded, and the one that remains is stored, so the stack of the floating-point
            // unit is unchanged.
            unsafe {
                std::arch::asm!(
                    "fld tbyte ptr [{a}]",
                    "fld tbyte ptr [{b}]",
                    $instruction,
                    "fstp tbyte ptr [{result}]",
                    a = in(reg) &a,
                    b = in(reg) &b,
                    result = in(reg) &mut result,
                    out("st(0)") _,
                    out("st(1)") _,
                    out("st(2)") _,
                    out("st(3)") _,
                    out("st(4)") _,
                    out("st(5)") _,
                    out("st(6)") _,
                    out("st(7)") _,
                    options(nostack),
                );
            }
            result
        }

        #[cfg(not(target_arch = "x86_64"))]
        pub(super) fn $name(a: Number, _b: Number) -> Number {
            a
        }
    };
}

by_instruction! {
    /// Returns a + b.
    add "faddp st(1), st"
}
by_instruction! {
    /// Returns a * b.
    multiply "fmulp st(1), st"
}

/// Returns -a.
pub(super) fn negative(a: Number) -> Number {
    a ^ 1 << 79
}

/// Compares two numbers. NaNs are beyond the infinities.
pub(super) fn order(a: Number, b: Number) -> Ordering {
    let key = |number: Number| {
        let bits = number & BITS;
        let magnitude = (bits & (BITS >> 1)) as i128;
        if bits >> 79 != 0 {
            -magnitude
        } else {
            magnitude
        }
    };
    key(a).cmp(&key(b))
}

/// Returns whether a > b.
pub(super) fn greater(a: Number, b: Number) -> bool {
    order(a, b) == Ordering::Greater
}
