//! Transfers and accumulates of few predefined elements in mapped memory: no lock, no allocation, no object but the window.
//!
//! Calls with other arguments, wrong ones among them, take the general way.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use regatta_sys as rg;

use super::{Reach, Window};
use crate::abi::*;
use crate::datatype::builtin;
use crate::operator;

/// The elements of a target that a call names.
#[derive(Clone, Copy)]
pub struct Aim {
    /// The target.
    pub rank: c_int,
    /// Its displacement.
    pub displacement: i64,
    /// How many elements.
    pub count: i64,
    /// Their type.
    pub datatype: Datatype,
}

impl Aim {
    /// Address and length of the elements in this process' memory, if they may be reached now.
    #[inline]
    pub fn mapped(self, window: &Window) -> Option<(usize, usize)> {
        let size = builtin::size(self.datatype)?;
        let target = window.targets.get(usize::try_from(self.rank).ok()?)?;
        let Reach::Mapped(base) = target.reach else {
            return None;
        };
        let offset = self.displacement.checked_mul(target.unit)?;
        let length = self.count.checked_mul(size as i64)?;
        // The unit of a dynamic window is 0, and so is the offset.
        let fits = target.unit != 0
            && offset >= 0
            && length > 0
            && offset.checked_add(length)? <= target.size;
        if !fits || window.check_access(self.rank).is_err() {
            return None;
        }
        Some((base + offset as usize, length as usize))
    }
}

/// An operator that the machine has an instruction for.
#[derive(Clone, Copy)]
enum How {
    Load,
    Swap,
    Add,
    And,
    Or,
    Xor,
    AddReal,
}

fn how(op: Op, datatype: Datatype) -> Option<How> {
    let simple = match op {
        NO_OP => return Some(How::Load),
        REPLACE => return Some(How::Swap),
        SUM => How::Add,
        BAND => How::And,
        BOR => How::Or,
        BXOR => How::Xor,
        _ => return None,
    };
    let engine = operator::engine(op, datatype)?;
    match (simple, engine.kind) {
        _ if engine.times != 1 => None,
        (How::Add, rg::FLOAT | rg::DOUBLE) => Some(How::AddReal),
        (_, kind) if kind < rg::FLOAT => Some(simple),
        _ => None,
    }
}

/// Updates elements; `false` if nothing was done. What was there goes to `old`, if that is not null.
///
/// # Safety
/// `input` has as many elements, unless it is null; `old` has room for them.
#[inline]
pub unsafe fn update(
    window: &Window,
    aim: Aim,
    op: Op,
    input: *const c_void,
    old: *mut c_void,
) -> bool {
    let Some(how) = how(op, aim.datatype).filter(|_| window.is_atomic()) else {
        return false;
    };
    if input.is_null() && !matches!(how, How::Load) {
        return false;
    }
    let Some((at, length)) = aim.mapped(window) else {
        return false;
    };
    let size = length / aim.count as usize;
    let is_word = matches!(size, 1 | 2 | 4 | 8) && at.is_multiple_of(size);
    if !is_word {
        return false;
    }
    for done in (0..length).step_by(size) {
        let given = input.cast::<u8>().wrapping_add(done);
        // SAFETY: the caller's promise; the place is aligned and within the target's memory.
        unsafe {
            let before = one(at + done, size, how, given);
            if !old.is_null() {
                let to = old.cast::<u8>().wrapping_add(done);
                std::ptr::copy_nonoverlapping((&raw const before).cast(), to, size);
            }
        }
    }
    true
}

/// Updates one element; what was there, in the first bytes.
///
/// # Safety
/// The element may be reached; its value may be read, unless it is only loaded.
#[inline]
unsafe fn one(at: usize, size: usize, how: How, input: *const u8) -> u64 {
    macro_rules! word {
        ($word:ident $atomic:ident) => {{
            // SAFETY: the caller's promise.
            let place = unsafe { &*(at as *const $atomic) };
            let given = || {
                // SAFETY: as above.
                unsafe { input.cast::<$word>().read_unaligned() }
            };
            let before = match how {
                How::Load => place.load(Ordering::Acquire),
                How::Swap => place.swap(given(), Ordering::AcqRel),
                How::Add => place.fetch_add(given(), Ordering::AcqRel),
                How::And => place.fetch_and(given(), Ordering::AcqRel),
                How::Or => place.fetch_or(given(), Ordering::AcqRel),
                How::Xor => place.fetch_xor(given(), Ordering::AcqRel),
                How::AddReal => {
                    let given = given();
                    let sum = |before: $word| {
                        Some(sum_of(u64::from(before), u64::from(given), size) as $word)
                    };
                    let updated = place.fetch_update(Ordering::AcqRel, Ordering::Acquire, sum);
                    let (Ok(before) | Err(before)) = updated;
                    before
                }
            };
            u64::from_ne_bytes(first_bytes(&before.to_ne_bytes()))
        }};
    }
    match size {
        1 => word!(u8 AtomicU8),
        2 => word!(u16 AtomicU16),
        4 => word!(u32 AtomicU32),
        _ => word!(u64 AtomicU64),
    }
}

/// The bits of a sum of two numbers of this size.
fn sum_of(first: u64, second: u64, size: usize) -> u64 {
    match size {
        4 => {
            let sum = f32::from_bits(first as u32) + f32::from_bits(second as u32);
            u64::from(sum.to_bits())
        }
        _ => (f64::from_bits(first) + f64::from_bits(second)).to_bits(),
    }
}

/// A word that begins with these bytes.
fn first_bytes(bytes: &[u8]) -> [u8; 8] {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    word
}
