//! Numbers in XDR: big-endian, at least four bytes each.
//!
//! Callers have checked the room; this module only loops. The program's memory may be unaligned.

use std::ptr::copy_nonoverlapping;

use super::uncached_copy;

/// A number type with its native and its XDR size.
pub trait Number {
    /// Size in memory in bytes.
    const HERE: usize;
    /// Size in XDR in bytes.
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
                // SAFETY: the caller guarantees that the memory is valid.
                unsafe {
                    let value = from.cast::<$here>().read_unaligned() as $there;
                    to.cast::<$there>().write_unaligned(value.to_be());
                }
            }
            #[inline(always)]
            unsafe fn decode(from: *const u8, to: *mut u8) {
                // SAFETY: the caller guarantees that the memory is valid.
                unsafe {
                    let value = <$there>::from_be(from.cast::<$there>().read_unaligned());
                    to.cast::<$here>().write_unaligned(value as $here);
                }
            }
        }
    };
}

number! {
    /// `short` and `unsigned short`. Both are sent sign-extended.
    Short, i16, i32
}
number! {
    /// Four bytes: `int`, `float`, half a complex number.
    Word, u32, u32
}
number! {
    /// `long` and `unsigned long`: as in PVM 3.4 on 64-bit Linux only the lower four bytes are sent, and the receiver
    /// zero-extends them.
    Long, libc::c_ulong, u32
}
number! {
    /// Eight bytes: `double`, half a complex double.
    Double, u64, u64
}

/// Minimum number of elements for which checking for vector instructions pays off.
#[cfg(target_arch = "x86_64")]
const MIN_VECTOR_ELEMENTS: usize = 16;

/// Encodes `count` numbers that are `step` bytes apart.
///
/// # Safety
/// All the numbers are readable, and `to` has room for `count * THERE` bytes.
#[inline(always)]
pub unsafe fn encode<N: Number>(from: *const u8, count: usize, step: isize, to: *mut u8) {
    if step == N::HERE as isize {
        #[cfg(target_arch = "x86_64")]
        if count >= MIN_VECTOR_ELEMENTS && std::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, and the caller guarantees that the memory is valid.
            return unsafe { encode_row_wide::<N>(from, count, to) };
        }
        // SAFETY: the caller guarantees that the memory is valid.
        return unsafe { encode_row::<N>(from, count, to) };
    }
    let mut from = from;
    for index in 0..count {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { N::encode(from, to.add(index * N::THERE)) };
        from = from.wrapping_offset(step);
    }
}

/// Decodes `count` numbers to addresses `step` bytes apart.
///
/// # Safety
/// `from` has `count * THERE` bytes, and all the addresses are writable.
#[inline(always)]
pub unsafe fn decode<N: Number>(from: *const u8, count: usize, step: isize, to: *mut u8) {
    if step == N::HERE as isize {
        #[cfg(target_arch = "x86_64")]
        if count >= MIN_VECTOR_ELEMENTS && std::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, and the caller guarantees that the memory is valid.
            return unsafe { decode_row_wide::<N>(from, count, to) };
        }
        // SAFETY: the caller guarantees that the memory is valid.
        return unsafe { decode_row::<N>(from, count, to) };
    }
    let mut to = to;
    for index in 0..count {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { N::decode(from.add(index * N::THERE), to) };
        to = to.wrapping_offset(step);
    }
}

/// Encodes `count` pairs of numbers; the pairs are `step` bytes apart.
///
/// # Safety
/// All the pairs are readable, and `to` has room for `2 * count * THERE` bytes.
pub unsafe fn encode_pairs<N: Number>(from: *const u8, count: usize, step: isize, to: *mut u8) {
    let mut from = from;
    for index in 0..count {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { encode_row::<N>(from, 2, to.add(2 * index * N::THERE)) };
        from = from.wrapping_offset(step);
    }
}

/// Decodes `numbers` numbers in pairs to addresses `step` bytes apart. The last pair may be incomplete.
///
/// # Safety
/// `from` has `numbers * THERE` bytes, and all the addresses are writable.
pub unsafe fn decode_pairs<N: Number>(from: *const u8, numbers: usize, step: isize, to: *mut u8) {
    let mut to = to;
    for index in (0..numbers).step_by(2) {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { decode_row::<N>(from.add(index * N::THERE), (numbers - index).min(2), to) };
        to = to.wrapping_offset(step);
    }
}

#[inline(always)]
unsafe fn encode_row<N: Number>(from: *const u8, count: usize, to: *mut u8) {
    for index in 0..count {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { N::encode(from.add(index * N::HERE), to.add(index * N::THERE)) };
    }
}

#[inline(always)]
unsafe fn decode_row<N: Number>(from: *const u8, count: usize, to: *mut u8) {
    for index in 0..count {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { N::decode(from.add(index * N::THERE), to.add(index * N::HERE)) };
    }
}

/// Encodes numbers with the same loop, compiled for processors that can swap the bytes of 32 bytes at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn encode_row_wide<N: Number>(from: *const u8, count: usize, to: *mut u8) {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { encode_row::<N>(from, count, to) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn decode_row_wide<N: Number>(from: *const u8, count: usize, to: *mut u8) {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { decode_row::<N>(from, count, to) }
}

/// Copies `count` elements of `width` bytes that are `step` bytes apart into contiguous memory.
///
/// # Safety
/// All the elements are readable, and `to` has room for `count * width` bytes that do not overlap them.
#[inline(always)]
pub unsafe fn gather(from: *const u8, count: usize, width: usize, step: isize, to: *mut u8) {
    if step == width as isize {
        // SAFETY: the caller guarantees that the memory is valid.
        return unsafe { uncached_copy::copy(from, to, count * width) };
    }
    let mut from = from;
    for index in 0..count {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { copy_nonoverlapping(from, to.add(index * width), width) };
        from = from.wrapping_offset(step);
    }
}

/// Copies `count` contiguous elements of `width` bytes to addresses `step` bytes apart.
///
/// # Safety
/// `from` has `count * width` bytes, and all the addresses are writable and do not overlap it.
#[inline(always)]
pub unsafe fn spread(from: *const u8, count: usize, width: usize, step: isize, to: *mut u8) {
    if step == width as isize {
        // SAFETY: the caller guarantees that the memory is valid.
        return unsafe { copy_nonoverlapping(from, to, count * width) };
    }
    let mut to = to;
    for index in 0..count {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { copy_nonoverlapping(from.add(index * width), to, width) };
        to = to.wrapping_offset(step);
    }
}
