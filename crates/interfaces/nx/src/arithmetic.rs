//! Gray codes, which map a ring or a grid onto the nodes of a cube so that neighbours stay neighbours.

use std::ffi::c_long;

use crate::error::Answer;
use crate::forms::{c_forms, fortran_forms};

/// Returns the binary reflected Gray code.
fn gray_of(number: c_long) -> c_long {
    number >> 1 ^ number
}

/// Returns the number with this Gray code.
fn inverse_of(code: c_long) -> c_long {
    let mut number = code;
    let mut shift = 1;
    while shift < c_long::BITS {
        number ^= number >> shift;
        shift <<= 1;
    }
    number
}

unsafe fn code(number: c_long) -> Answer {
    Ok(gray_of(number))
}

unsafe fn inverse(code: c_long) -> Answer {
    Ok(inverse_of(code))
}

c_forms! {
    gray, _gray: (number: c_long) = code;
    ginv, _ginv: (number: c_long) = inverse;
}

fortran_forms! {
    gray_, _gray_: (number: c_long) = code;
    ginv_, _ginv_: (number: c_long) = inverse;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_neighbours_differ_in_one_bit() {
        assert_eq!([0, 1, 2, 3, 4].map(gray_of), [0, 1, 3, 2, 6]);
        for number in 0..1000 {
            let changed = gray_of(number) ^ gray_of(number + 1);
            assert_eq!(changed.count_ones(), 1, "{number}");
        }
    }

    #[test]
    fn the_inverse_finds_the_number() {
        for number in (0..1000).chain([c_long::MAX, 1 << 30]) {
            assert_eq!(inverse_of(gray_of(number)), number);
        }
    }
}
