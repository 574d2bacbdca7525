//! NX's 64-bit numbers, which consist of two halves: file offsets and sizes, and their arithmetic.

use std::ffi::{CStr, c_char, c_long};

use crate::error::{Answer, EQPARAM, Fault, value_or_errno, value_or_exit};
use crate::forms::c_forms;

/// `esize_t`: 32 bits in each half, even where a `long` has more.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    low: c_long,
    high: c_long,
}

impl Extended {
    pub const fn new(value: i64) -> Extended {
        Extended {
            low: (value & 0xffff_ffff) as c_long,
            high: (value >> 32) as c_long,
        }
    }

    /// Returns the number. If a program has put a number of more than 32 bits into the lower half, all of it counts.
    pub const fn value(self) -> i64 {
        let (low, high) = (wide(self.low), wide(self.high));
        if high == 0 || low > 0xffff_ffff {
            return (high << 32).wrapping_add(low);
        }
        high << 32 | low & 0xffff_ffff
    }
}

/// Widens a C `long` to 64 bits, which it already has on most machines.
#[allow(clippy::unnecessary_cast)]
pub const fn wide(number: c_long) -> i64 {
    number as i64
}

/// Both halves of -1: the result of a call that sets `errno`.
pub const FAILED: Extended = Extended::new(-1);

/// Returns the result of a call by its plain name, or ends the program.
pub fn extended_or_exit(name: &str, answer: Result<i64, Fault>) -> Extended {
    match answer {
        Ok(value) => Extended::new(value),
        Err(fault) => {
            value_or_exit(name, Err(fault));
            FAILED
        }
    }
}

/// Returns the result of a call by its underscored name, or sets `errno` and returns -1.
pub fn extended_or_errno(answer: Result<i64, Fault>) -> Extended {
    match answer {
        Ok(value) => Extended::new(value),
        Err(fault) => {
            value_or_errno(Err(fault));
            FAILED
        }
    }
}

/// Defines the two names of a call that returns an `esize_t`.
macro_rules! extended {
    ($($plain:ident, $underscored:ident: ($($name:ident: $type:ty),*) = $value:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $plain($($name: $type),*) -> Extended {
                extended_or_exit(stringify!($plain), $value)
            }

            #[unsafe(no_mangle)]
            extern "C" fn $underscored($($name: $type),*) -> Extended {
                extended_or_errno($value)
            }
        )*
    };
}

extended! {
    eadd, _eadd: (a: Extended, b: Extended) = Ok(a.value().wrapping_add(b.value()));
    esub, _esub: (a: Extended, b: Extended) = Ok(a.value().wrapping_sub(b.value()));
    emul, _emul: (a: Extended, b: c_long) = Ok(a.value().wrapping_mul(wide(b)));
}

/// A 64-bit number of a Fortran program: two INTEGERs, the lower half first.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Pair([i32; 2]);

impl Pair {
    /// Splits a number.
    pub const fn new(value: i64) -> Pair {
        Pair([value as i32, (value >> 32) as i32])
    }

    /// Joins the halves. The lower half is unsigned.
    pub const fn value(self) -> i64 {
        let Pair([low, high]) = self;
        (high as i64) << 32 | low as u32 as i64
    }
}

unsafe fn compare(a: Extended, b: Extended) -> Answer {
    Ok(a.value().cmp(&b.value()) as c_long)
}

fn divisor(b: c_long) -> Result<i64, Fault> {
    match b {
        0 => Err(Fault::of(EQPARAM, "divisor", 0)),
        b => Ok(wide(b)),
    }
}

pub unsafe fn divide(a: Extended, b: c_long) -> Answer {
    Ok(a.value().wrapping_div(divisor(b)?) as c_long)
}

pub unsafe fn remainder(a: Extended, b: c_long) -> Answer {
    Ok(a.value().wrapping_rem(divisor(b)?) as c_long)
}

/// # Safety
/// `text` has room for 21 characters or is NULL.
unsafe fn to_text(number: Extended, text: *mut c_char) -> Answer {
    if text.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    let digits = format!("{}\0", number.value());
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { std::ptr::copy_nonoverlapping(digits.as_ptr(), text.cast::<u8>(), digits.len()) };
    Ok(0)
}

/// # Safety
/// `text` is a NUL-terminated string or NULL.
unsafe fn from_text(text: *const c_char) -> Result<i64, Fault> {
    if text.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    // SAFETY: the caller guarantees that the memory is valid.
    let text = unsafe { CStr::from_ptr(text) }.to_str().ok();
    let number = text.and_then(|text| text.trim().parse().ok());
    number.ok_or(Fault::plain(EQPARAM))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn stoe(text: *const c_char) -> Extended {
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    extended_or_exit("stoe", unsafe { from_text(text) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _stoe(text: *const c_char) -> Extended {
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    extended_or_errno(unsafe { from_text(text) })
}

c_forms! {
    ecmp, _ecmp: (a: Extended, b: Extended) = compare;
    ediv, _ediv: (a: Extended, b: c_long) = divide;
    emod, _emod: (a: Extended, b: c_long) = remainder;
    etos, _etos: (number: Extended, text: *mut c_char) = to_text;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_the_same_in_halves() {
        for value in [
            0,
            1,
            -1,
            0xffff_ffff,
            1 << 32,
            -(1 << 40) - 3,
            i64::MAX,
            i64::MIN,
        ] {
            let number = Extended::new(value);
            assert_eq!(number.value(), value);
            assert!((0..=0xffff_ffff).contains(&number.low));
        }
    }

    #[test]
    fn fortrans_halves_are_the_same_number() {
        for value in [0, 7, -1, 3_000_000_000, 1 << 32, -(1 << 40) - 3, i64::MIN] {
            assert_eq!(Pair::new(value).value(), value);
        }
    }

    #[test]
    fn a_lower_half_may_be_a_whole_number() {
        let long = Extended {
            low: 5 << 33,
            high: 0,
        };
        assert_eq!(long.value(), 5 << 33);
        let negative = Extended { low: -4, high: 0 };
        assert_eq!(negative.value(), -4);
    }
}
