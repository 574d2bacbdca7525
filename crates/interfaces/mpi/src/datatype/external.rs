//! The external32 representation: elements one after the other, in big-endian order, with the sizes that the standard
//! defines.

use super::builtin::{Basic, Kind};
use super::signature::Signature;
use crate::abi::*;
use crate::error::{Error, Result};

/// Converts `count` sequences of these elements from packed native form to external32. Fails if a number does not fit.
pub fn encode(signature: &Signature, count: usize, from: &[u8], to: &mut [u8]) -> Result {
    convert(signature, count, |basic, elements, (memory, external)| {
        if let Some(size) = only_reversed(basic) {
            let bytes = elements * basic.size;
            reverse(size, &from[memory..][..bytes], &mut to[external..][..bytes]);
            return Ok(());
        }
        let from = from[memory..].chunks_exact(basic.size);
        let to = to[external..].chunks_exact_mut(basic.external);
        let mut pairs = from.zip(to).take(elements);
        pairs.try_for_each(|(from, to)| encode_one(basic, from, to))
    })
}

/// Converts `count` sequences of these elements from external32 to packed native form.
pub fn decode(signature: &Signature, count: usize, from: &[u8], to: &mut [u8]) -> Result {
    convert(signature, count, |basic, elements, (memory, external)| {
        if let Some(size) = only_reversed(basic) {
            let bytes = elements * basic.size;
            reverse(size, &from[external..][..bytes], &mut to[memory..][..bytes]);
            return Ok(());
        }
        let from = from[external..].chunks_exact(basic.external);
        let to = to[memory..].chunks_exact_mut(basic.size);
        let pairs = from.zip(to).take(elements);
        pairs.for_each(|(from, to)| decode_one(basic, from, to));
        Ok(())
    })
}

/// Calls `act` with each run of elements, and its offsets in native form and in external32. Stops at the first error.
fn convert(
    signature: &Signature,
    count: usize,
    mut act: impl FnMut(&'static Basic, usize, (usize, usize)) -> Result,
) -> Result {
    let (mut at, mut result) = ((0, 0), Ok(()));
    signature.walk(count, &mut |basic, elements| {
        if result.is_ok() {
            result = act(basic, elements, at);
            at.0 += basic.size * elements;
            at.1 += basic.external * elements;
        }
    });
    result
}

/// Returns whether its numbers have the 80-bit format of the x87 unit, which external32 does not have.
fn is_extended(basic: &Basic) -> bool {
    matches!(
        basic.datatype,
        LONG_DOUBLE | C_LONG_DOUBLE_COMPLEX | CXX_LONG_DOUBLE_COMPLEX
    ) && cfg!(target_arch = "x86_64")
}

fn parts(basic: &Basic) -> usize {
    if basic.kind == Kind::Complex { 2 } else { 1 }
}

/// Returns the size of an element's numbers if external32 has the same format in the opposite byte order.
fn only_reversed(basic: &Basic) -> Option<usize> {
    (basic.size == basic.external && !is_extended(basic)).then_some(basic.size / parts(basic))
}

/// Copies numbers of `size` bytes, reversing the bytes of each.
fn reverse(size: usize, from: &[u8], to: &mut [u8]) {
    match size {
        1 => to.copy_from_slice(from),
        2 => reverse_numbers::<2>(from, to),
        4 => reverse_numbers::<4>(from, to),
        8 => reverse_numbers::<8>(from, to),
        _ => {
            let pairs = from.chunks_exact(size).zip(to.chunks_exact_mut(size));
            for (from, to) in pairs {
                to.copy_from_slice(from);
                to.reverse();
            }
        }
    }
}

fn reverse_numbers<const SIZE: usize>(from: &[u8], to: &mut [u8]) {
    let (from, to) = (from.as_chunks::<SIZE>().0, to.as_chunks_mut::<SIZE>().0);
    for (from, to) in from.iter().zip(to) {
        *to = *from;
        to.reverse();
    }
}

fn encode_one(basic: &Basic, from: &[u8], to: &mut [u8]) -> Result {
    let (size, external) = (from.len() / parts(basic), to.len() / parts(basic));
    for (from, to) in from.chunks_exact(size).zip(to.chunks_exact_mut(external)) {
        if is_extended(basic) {
            let bytes: [u8; 16] = from.try_into().unwrap_or_default();
            to.copy_from_slice(&quadruple(u128::from_le_bytes(bytes)).to_be_bytes());
            continue;
        }
        let kept = &from[..external];
        let filling = match basic.kind {
            Kind::Signed if kept[external - 1] & 0x80 != 0 => 0xff,
            _ => 0,
        };
        if from[external..].iter().any(|&byte| byte != filling) {
            let name = basic.name;
            let text = format!(
                "a number of {name} needs more than the {external} bytes that external32 has for it"
            );
            return Err(Error::new(ERR_CONVERSION, text));
        }
        to.iter_mut()
            .zip(kept.iter().rev())
            .for_each(|(to, from)| *to = *from);
    }
    Ok(())
}

fn decode_one(basic: &Basic, from: &[u8], to: &mut [u8]) {
    let (size, external) = (to.len() / parts(basic), from.len() / parts(basic));
    for (from, to) in from.chunks_exact(external).zip(to.chunks_exact_mut(size)) {
        if is_extended(basic) {
            let bytes: [u8; 16] = from.try_into().unwrap_or_default();
            to.copy_from_slice(&extended(u128::from_be_bytes(bytes)).to_le_bytes());
            continue;
        }
        let filling = match basic.kind {
            Kind::Signed if from[0] & 0x80 != 0 => 0xff,
            _ => 0,
        };
        let bytes = from.iter().rev().copied();
        let bytes = bytes.chain(std::iter::repeat(filling));
        to.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    }
}

/// Converts an 80-bit number of the x87 unit, whose leading bit of the significand is explicit, to IEEE quadruple
/// precision with 112 bits of fraction. Both have the same exponents.
fn quadruple(extended: u128) -> u128 {
    let (sign, exponent) = (extended >> 79 & 1, extended >> 64 & 0x7fff);
    let fraction = extended as u64 & (u64::MAX >> 1);
    sign << 127 | exponent << 112 | u128::from(fraction) << 49
}

/// Converts a quadruple-precision number to the nearest number of the x87 unit.
fn extended(quadruple: u128) -> u128 {
    let sign = quadruple >> 127;
    let exponent = quadruple >> 112 & 0x7fff;
    let fraction = quadruple & ((1 << 112) - 1);
    let whole = if exponent == 0 { 0 } else { 1u128 << 112 };
    let exact = whole | fraction;
    // Ties round to even. Infinities and NaNs keep their bits.
    let (kept, lost) = (exact >> 49, exact & ((1 << 49) - 1));
    let up = exponent != 0x7fff && (lost > 1 << 48 || lost == 1 << 48 && kept & 1 != 0);
    let mut number = (exponent << 63) + (kept & (u128::from(u64::MAX) >> 1)) + u128::from(up);
    // A NaN must not become an infinity when low bits are lost.
    let is_nan = exponent == 0x7fff && fraction != 0;
    number |= u128::from(is_nan) << 62;
    let (exponent, fraction) = (number >> 63 & 0x7fff, number & (u128::from(u64::MAX) >> 1));
    let first = u128::from(exponent != 0) << 63;
    sign << 79 | exponent << 64 | first | fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::get;

    fn both(datatype: Datatype, native: &[u8], external: &[u8]) {
        let of = get(datatype).expect("predefined");
        let signature = &of.map().signature;
        let mut out = vec![0; external.len()];
        encode(signature, 1, native, &mut out).expect("fits");
        assert_eq!(out, external);
        let mut back = vec![0; native.len()];
        decode(signature, 1, external, &mut back).expect("fits");
        assert_eq!(back, native);
    }

    #[test]
    fn elements_have_the_standards_sizes_and_order() {
        both(INT, &(-2i32).to_le_bytes(), &(-2i32).to_be_bytes());
        both(LONG, &(-2i64).to_le_bytes(), &(-2i32).to_be_bytes());
        both(DOUBLE, &1.5f64.to_le_bytes(), &1.5f64.to_be_bytes());
        both(
            C_FLOAT_COMPLEX,
            &[1, 2, 3, 4, 5, 6, 7, 8],
            &[4, 3, 2, 1, 8, 7, 6, 5],
        );
        both(SHORT, &[1, 2], &[2, 1]);
        both(BYTE, &[1], &[1]);
        both(WCHAR, &0x20acu32.to_le_bytes(), &[0x20, 0xac]);
        let mut one = [0; 16];
        one[..10].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f]);
        let mut external = [0; 16];
        external[..2].copy_from_slice(&[0x3f, 0xff]);
        both(LONG_DOUBLE, &one, &external);
    }

    #[test]
    fn a_number_that_has_no_room_is_an_error() {
        let of = get(UNSIGNED_LONG).expect("predefined");
        let from = (1u64 << 40).to_le_bytes();
        let error = encode(&of.map().signature, 1, &from, &mut [0; 4]).expect_err("too great");
        assert_eq!(error.class(), ERR_CONVERSION);
    }

    #[test]
    fn numbers_of_the_x87_unit_survive() {
        for number in [
            0u128,
            1,
            1 << 79,
            0x7fff_8000_0000_0000_0000,
            0x3ffe_ffff_ffff_ffff_ffff,
            0x7fff_c000_0000_0000_0001,
        ] {
            assert_eq!(extended(quadruple(number)), number, "{number:#x}");
        }
        // The number just below 2 is rounded up to 2.
        let below = (0x3fffu128 << 112) | ((1 << 112) - 1);
        assert_eq!(extended(below), 0x4000_8000_0000_0000_0000);
    }
}
