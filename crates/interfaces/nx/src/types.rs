//! Message types, and how a receive selects by type. Pure.
//!
//! A type is a 31-bit number, and is the tag of the message. From [`FORCE_TYPE`] on it is a force type. Messages of
//! force types have a channel of their own, because a receive of any type does not match them.

use std::ffi::{c_int, c_long};

use crate::error::{EQTYPE, Fault};

/// The first force type. `nx.h` and `fnx.h` define it for programs.
pub const FORCE_TYPE: c_long = 1 << 30;
/// Bit of a mask for all types that have no bit of their own.
const OTHERS: u32 = 30;
/// The mask that selects all types.
const EVERY_CLASS: u32 = (1 << (OTHERS + 1)) - 1;

/// The selection of a receive by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeSelect {
    /// One type below the force types.
    Plain(c_int),
    /// One force type.
    Force(c_int),
    /// All types but force types.
    Any,
    /// Types 0 to 29 whose bit is set, and all larger ones except force types if bit 30 is set.
    Classes(u32),
}

impl TypeSelect {
    /// Returns whether a message of this type, which is not a force type, is selected.
    pub fn takes(self, tag: c_int) -> bool {
        match self {
            TypeSelect::Plain(wanted) => wanted == tag,
            TypeSelect::Force(_) => false,
            TypeSelect::Any => true,
            TypeSelect::Classes(mask) => mask >> (tag as u32).min(OTHERS) & 1 == 1,
        }
    }
}

/// Returns the tag of a message that is sent with this type, and whether it is a force type.
#[inline(always)]
pub fn sent(kind: c_long) -> Result<(c_int, bool), Fault> {
    match c_int::try_from(kind) {
        Ok(tag) if tag >= 0 => Ok((tag, kind >= FORCE_TYPE)),
        _ => Err(Fault::of(EQTYPE, "type", kind)),
    }
}

/// Converts a type selector. A mask is negative in 32 bits; where `long` has more, it may be written without sign
/// extension.
#[inline(always)]
pub fn select(selector: c_long) -> Result<TypeSelect, Fault> {
    if (0..FORCE_TYPE).contains(&selector) {
        return Ok(TypeSelect::Plain(selector as c_int));
    }
    other(selector)
}

fn other(selector: c_long) -> Result<TypeSelect, Fault> {
    let mask = match (c_int::try_from(selector), u32::try_from(selector)) {
        (Ok(tag), _) if tag >= 0 => return Ok(TypeSelect::Force(tag)),
        (Ok(mask), _) => mask as u32,
        (_, Ok(mask)) => mask,
        _ => return Err(Fault::of(EQTYPE, "type selector", selector)),
    };
    let classes = mask & EVERY_CLASS;
    Ok(match classes {
        EVERY_CLASS => TypeSelect::Any,
        one if one.is_power_of_two() && one < 1 << OTHERS => {
            TypeSelect::Plain(one.trailing_zeros() as c_int)
        }
        classes => TypeSelect::Classes(classes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_have_the_same_first_force_type() {
        let (c, fortran) = (
            include_str!("../include/nx.h"),
            include_str!("../include/fnx.h"),
        );
        assert!(c.contains(&format!("#define FORCE_TYPE {FORCE_TYPE:#x}\n")));
        assert!(fortran.contains(&format!("(FORCE_TYPE = {FORCE_TYPE},")));
    }

    #[test]
    fn a_type_is_a_number_of_31_bits() {
        assert_eq!(sent(0), Ok((0, false)));
        assert_eq!(sent(FORCE_TYPE - 1), Ok((0x3fff_ffff, false)));
        assert_eq!(sent(FORCE_TYPE), Ok((0x4000_0000, true)));
        assert_eq!(sent(0x7fff_ffff), Ok((0x7fff_ffff, true)));
        for wrong in [-1, 0x8000_0000, c_long::MIN, c_long::MAX] {
            assert_eq!(sent(wrong), Err(Fault::of(EQTYPE, "type", wrong)));
        }
    }

    #[test]
    fn minus_one_selects_all_but_force_types() {
        assert_eq!(select(-1), Ok(TypeSelect::Any));
        assert!(TypeSelect::Any.takes(0x3fff_ffff));
        assert_eq!(select(FORCE_TYPE + 5), Ok(TypeSelect::Force(0x4000_0005)));
    }

    #[test]
    fn a_mask_selects_types_below_30_by_their_bits_and_larger_ones_together() {
        let mask = select(c_long::from(c_int::MIN) + 0b1010).expect("a mask");
        assert_eq!(mask, TypeSelect::Classes(0b1010));
        let taken: Vec<c_int> = (0..100).filter(|&tag| mask.takes(tag)).collect();
        assert_eq!(taken, [1, 3]);
        let others = select(c_long::from(c_int::MIN) + (1 << 30) + 1).expect("a mask");
        let taken: Vec<c_int> = (0..33).filter(|&tag| others.takes(tag)).collect();
        assert_eq!(taken, [0, 30, 31, 32]);
    }

    #[test]
    fn a_mask_of_one_type_is_that_type() {
        let one = c_long::from(c_int::MIN) + (1 << 29);
        assert_eq!(select(one), Ok(TypeSelect::Plain(29)));
        // Bit 30 stands for many types.
        let others = c_long::from(c_int::MIN) + (1 << 30);
        assert_eq!(select(others), Ok(TypeSelect::Classes(1 << 30)));
    }

    #[test]
    fn a_mask_may_be_written_without_its_sign_where_long_is_wide() {
        assert_eq!(select(0x8000_000a), select(c_long::from(c_int::MIN) + 10));
        assert_eq!(select(0xffff_ffff), Ok(TypeSelect::Any));
        for wrong in [1 << 32, -(1 << 31) - 1, c_long::MAX] {
            let fault = Fault::of(EQTYPE, "type selector", wrong);
            assert_eq!(select(wrong), Err(fault));
        }
    }

    #[test]
    fn a_mask_without_bits_selects_nothing() {
        let nothing = select(c_long::from(c_int::MIN)).expect("a mask");
        assert!(!(0..100).any(|tag| nothing.takes(tag)));
    }
}
