//! Numbers in XDR: big end first, nothing shorter than four bytes.
//!
//! Callers have checked that there is room; here are only loops. Memory of users has any alignment.

use std::ptr::copy_nonoverlapping;

use super::uncached_copy;

/// A type as it is here and as it travels.
pub trait Number {
    /// Bytes in memory.
    const HERE: usize;
    /// Bytes in XDR.
    const THERE: usize;
    /// # Safety
    /// `from` has [`Number::HERE`] bytes and `to` has [`Number::THERE`].
    unsafe fn encode(from: *const u8, to: *mut u8);
    /// # Safety
    /// `from` has [`Number::THERE`] bytes and `to` has [`Number::HERE`].
    unsafe fn decode(from: *const u8, to: *mut u8);
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $here:ty, $there:ty) => {
        $(#[$doc])*
        pub struct $name;
        impl Number for $name {
            const HERE: usize = size_of::<$here>();
            const THERE: usize = size_of::<$there>();
            #[inline(always)]
            unsafe fn encode(from: *const u8, to: *mut u8) {
                // SAFETY: the caller's.
                unsafe {
                    let value = from.cast::<$here>().read_unaligned() as $there;
                    to.cast::<$there>().write_unaligned(value.to_be());
                }
            }
            #[inline(always)]
            unsafe fn decode(from: *const u8, to: *mut u8) {
                // SAFETY: the caller's.
                unsafe {
                    let value = <$there>::from_be(from.cast::<$there>().read_unaligned());
                    to.cast::<$here>().write_unaligned(value as $here);
                }
            }
        }
    };
}

number! {
    /// `short`, also the unsigned one, which travels with its sign as well.
    Short, i16, i32
}
number! {
    /// Four bytes: `int`, `float`, half a `complex`.
    Word, u32, u32
}
number! {
    /// `long`, also the unsigned one: as in PVM 3.4 on 64-bit Linux its lower four bytes travel, and
    /// arrive without a sign.
    Long, libc::c_ulong, u32
}
number! {
    /// Eight bytes: `double`, half a double `complex`.
    Double, u64, u64
}

/// Number of elements from which on it pays to look for wider instructions.
#[cfg(target_arch = "x86_64")]
const MIN_VECTOR_ELEMENTS: usize = 16;

/// Encode `count` numbers that lie `step` bytes apart.
///
/// # Safety
/// All of them can be read, and `to` has room for `count * THERE` bytes.
#[inline(always)]
pub unsafe fn encode<N: Number>(from: *const u8, count: usize, step: isize, to: *mut u8) {
    if step == N::HERE as isize {
        #[cfg(target_arch = "x86_64")]
        if count >= MIN_VECTOR_ELEMENTS && std::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has it; for the rest the caller's.
            return unsafe { encode_row_wide::<N>(from, count, to) };
        }
        // SAFETY: the caller's.
        return unsafe { encode_row::<N>(from, count, to) };
    }
    let mut from = from;
    for index in 0..count {
        // SAFETY: the caller's.
        unsafe { N::encode(from, to.add(index * N::THERE)) };
        from = from.wrapping_offset(step);
    }
}

/// Decode `count` numbers to places `step` bytes apart.
///
/// # Safety
/// `from` has `count * THERE` bytes, and all the places can be written.
#[inline(always)]
pub unsafe fn decode<N: Number>(from: *const u8, count: usize, step: isize, to: *mut u8) {
    if step == N::HERE as isize {
        #[cfg(target_arch = "x86_64")]
        if count >= MIN_VECTOR_ELEMENTS && std::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has it; for the rest the caller's.
            return unsafe { decode_row_wide::<N>(from, count, to) };
        }
        // SAFETY: the caller's.
        return unsafe { decode_row::<N>(from, count, to) };
    }
    let mut to = to;
    for index in 0..count {
        // SAFETY: the caller's.
        unsafe { N::decode(from.add(index * N::THERE), to) };
        to = to.wrapping_offset(step);
    }
}

/// Encode `count` pairs of numbers; the pairs lie `step` bytes apart.
///
/// # Safety
/// All of them can be read, and `to` has room for `2 * count * THERE` bytes.
pub unsafe fn encode_pairs<N: Number>(from: *const u8, count: usize, step: isize, to: *mut u8) {
    let mut from = from;
    for index in 0..count {
        // SAFETY: the caller's.
        unsafe { encode_row::<N>(from, 2, to.add(2 * index * N::THERE)) };
        from = from.wrapping_offset(step);
    }
}

/// Decode `numbers` numbers, two to each place; the places are `step` bytes apart.
///
/// # Safety
/// `from` has `numbers * THERE` bytes, and all the places can be written.
pub unsafe fn decode_pairs<N: Number>(from: *const u8, numbers: usize, step: isize, to: *mut u8) {
    let mut to = to;
    for index in (0..numbers).step_by(2) {
        // SAFETY: the caller's.
        unsafe { decode_row::<N>(from.add(index * N::THERE), (numbers - index).min(2), to) };
        to = to.wrapping_offset(step);
    }
}

#[inline(always)]
unsafe fn encode_row<N: Number>(from: *const u8, count: usize, to: *mut u8) {
    for index in 0..count {
        // SAFETY: the caller's.
        unsafe { N::encode(from.add(index * N::HERE), to.add(index * N::THERE)) };
    }
}

#[inline(always)]
unsafe fn decode_row<N: Number>(from: *const u8, count: usize, to: *mut u8) {
    for index in 0..count {
        // SAFETY: the caller's.
        unsafe { N::decode(from.add(index * N::THERE), to.add(index * N::HERE)) };
    }
}

/// The loop above, for a processor that swaps the bytes of 32 at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn encode_row_wide<N: Number>(from: *const u8, count: usize, to: *mut u8) {
    // SAFETY: the caller's.
    unsafe { encode_row::<N>(from, count, to) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn decode_row_wide<N: Number>(from: *const u8, count: usize, to: *mut u8) {
    // SAFETY: the caller's.
    unsafe { decode_row::<N>(from, count, to) }
}

/// Copy `count` elements of `width` bytes that lie `step` bytes apart to a row.
///
/// # Safety
/// All of them can be read, and `to` has room for `count * width` bytes apart from them.
#[inline(always)]
pub unsafe fn gather(from: *const u8, count: usize, width: usize, step: isize, to: *mut u8) {
    if step == width as isize {
        // SAFETY: the caller's.
        return unsafe { uncached_copy::copy(from, to, count * width) };
    }
    let mut from = from;
    for index in 0..count {
        // SAFETY: the caller's.
        unsafe { copy_nonoverlapping(from, to.add(index * width), width) };
        from = from.wrapping_offset(step);
    }
}

/// Copy a row of `count` elements of `width` bytes to places `step` bytes apart.
///
/// # Safety
/// `from` has `count * width` bytes, and all the places can be written and are apart from it.
#[inline(always)]
pub unsafe fn spread(from: *const u8, count: usize, width: usize, step: isize, to: *mut u8) {
    if step == width as isize {
        // SAFETY: the caller's.
        return unsafe { copy_nonoverlapping(from, to, count * width) };
    }
    let mut to = to;
    for index in 0..count {
        // SAFETY: the caller's.
        unsafe { copy_nonoverlapping(from.add(index * width), to, width) };
        to = to.wrapping_offset(step);
    }
}
