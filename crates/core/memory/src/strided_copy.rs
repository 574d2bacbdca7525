//! Copies of equal blocks at equal distances, such as every second number of an array.
//!
//! Blocks of one word are copied by a loop in which the compiler knows the size of the word: 8192 of 4 bytes take 1.8
//! us on a Zen 5 core. Copies with a length known only at run time, and a division for each address, took 34 us. If the
//! compiler knows the distance as well, it copies several words at once: reading every second word of an array takes
//! 0.6 us, and writing every second one 1.1 us. With a masked store (AVX-512) the latter takes 0.5 us.

use crate::copy::copy;

/// Copies `count` blocks of `block` bytes; block `k` is copied from `from + k * from_stride` to `to + k * to_stride`.
///
/// # Safety
/// As for [`copy`], for each block.
#[inline]
pub unsafe fn copy_blocks(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    block: usize,
    count: usize,
) {
    // SAFETY: in each arm, the caller guarantees that all blocks are valid.
    unsafe {
        match block {
            _ if count == 1 => copy(from, to, block),
            4 if (from_stride, to_stride) == (8, 4) => copy_apart::<u32, 2, 1>(from, to, count),
            8 if (from_stride, to_stride) == (16, 8) => copy_apart::<u64, 2, 1>(from, to, count),
            4 if (from_stride, to_stride) == (4, 8) => spread_words(from, to, count),
            8 if (from_stride, to_stride) == (8, 16) => copy_apart::<u64, 1, 2>(from, to, count),
            4 => copy_words::<u32>(from, from_stride, to, to_stride, count),
            8 => copy_words::<u64>(from, from_stride, to, to_stride, count),
            16 => copy_words::<u128>(from, from_stride, to, to_stride, count),
            _ => {
                for (from, to) in places(from, from_stride, to, to_stride, count) {
                    copy(from, to, block);
                }
            }
        }
    }
}

/// Copies `count` words.
///
/// # Safety
/// As for [`copy`], for each word.
unsafe fn copy_words<Word: Copy>(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    count: usize,
) {
    for (from, to) in places(from, from_stride, to, to_stride, count) {
        // SAFETY: the caller guarantees that the words are valid; they may be unaligned.
        unsafe {
            to.cast::<Word>()
                .write_unaligned(from.cast::<Word>().read_unaligned())
        };
    }
}

/// Copies words at constant distances: every `FROM`th word to every `TO`th word.
///
/// # Safety
/// As for [`copy`], for each word.
unsafe fn copy_apart<Word: Copy, const FROM: usize, const TO: usize>(
    from: *const u8,
    to: *mut u8,
    count: usize,
) {
    let (from, to) = (from.cast::<Word>(), to.cast::<Word>());
    for index in 0..count {
        // SAFETY: the caller guarantees that the words are valid; they may be unaligned.
        unsafe {
            let word = from.add(FROM * index).read_unaligned();
            to.add(TO * index).write_unaligned(word);
        }
    }
}

/// Copies adjacent words to every second word.
///
/// # Safety
/// As for [`copy`], for each word.
unsafe fn spread_words(from: *const u8, to: *mut u8, count: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the caller guarantees that the words are valid, and the processor has AVX-512.
        return unsafe { spread_words_at_once(from, to, count) };
    }
    // SAFETY: the caller guarantees that the words are valid.
    unsafe { copy_apart::<u32, 1, 2>(from, to, count) }
}

/// Does what `spread_words` does, eight words at a time.
///
/// # Safety
/// As for [`copy`], for each word; the processor must have AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn spread_words_at_once(from: *const u8, to: *mut u8, count: usize) {
    use std::arch::x86_64::{
        _mm256_loadu_si256, _mm512_castsi256_si512, _mm512_mask_storeu_epi32,
        _mm512_permutexvar_epi32, _mm512_set_epi32,
    };
    const AT_ONCE: usize = 8;
    /// The mask of the words that are written, every second one. The others belong to the program and are not touched.
    const SECOND: u16 = 0x5555;
    let doubled = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    let mut done = 0;
    while done + AT_ONCE <= count {
        // SAFETY: the words to be read and those that the mask lets through are valid.
        unsafe {
            let words = _mm256_loadu_si256(from.add(4 * done).cast());
            let spread = _mm512_permutexvar_epi32(doubled, _mm512_castsi256_si512(words));
            _mm512_mask_storeu_epi32(to.add(8 * done).cast(), SECOND, spread);
        }
        done += AT_ONCE;
    }
    // SAFETY: the caller guarantees that the words are valid.
    unsafe { copy_apart::<u32, 1, 2>(from.add(4 * done), to.add(8 * done), count - done) }
}

/// Returns the source and the destination of each block.
fn places(
    from: *const u8,
    from_stride: isize,
    to: *mut u8,
    to_stride: isize,
    count: usize,
) -> impl Iterator<Item = (*const u8, *mut u8)> {
    let (mut from, mut to) = (from, to);
    (0..count).map(move |_| {
        let now = (from, to);
        from = from.wrapping_offset(from_stride);
        to = to.wrapping_offset(to_stride);
        now
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every size around those of words, forwards and backwards, adjacent and with gaps.
    #[test]
    fn each_block_goes_to_its_place_and_nothing_else_is_written() {
        for block in 1..40_usize {
            // A gap as long as the block, and more blocks than are copied at once.
            let every_second = (block, 21.min(600 / (2 * block)));
            for (gap, count) in [(0, 1), (0, 9), (1, 9), (7, 2), (16, 5), every_second] {
                for backwards in [false, true] {
                    let from: Vec<u8> = (0..=255).cycle().take(600).collect();
                    let mut to = vec![0xEE_u8; 1200];
                    let apart = block + gap;
                    let (first, stride) = match backwards {
                        true => (apart * (count - 1), -(apart as isize)),
                        false => (0, apart as isize),
                    };
                    // SAFETY: both arrays hold all blocks.
                    unsafe {
                        let from = from.as_ptr().add(3);
                        let to = to.as_mut_ptr().add(first + 5);
                        copy_blocks(from, block as isize, to, stride, block, count);
                    }
                    let mut back = vec![0xEE_u8; count * block + 2];
                    // SAFETY: both arrays hold all blocks.
                    unsafe {
                        let apart = to.as_ptr().add(first + 5);
                        let to = back.as_mut_ptr().add(1);
                        copy_blocks(apart, stride, to, block as isize, block, count);
                    }
                    assert_eq!(back[1..=count * block], from[3..3 + count * block]);
                    assert_eq!((back[0], back[count * block + 1]), (0xEE, 0xEE));
                    let mut expected = vec![0xEE_u8; 1200];
                    for index in 0..count {
                        let at = first as isize + index as isize * stride + 5;
                        let bytes = &from[3 + index * block..3 + (index + 1) * block];
                        expected[at as usize..at as usize + block].copy_from_slice(bytes);
                    }
                    assert_eq!(
                        to, expected,
                        "{count} blocks of {block} bytes, {apart} apart"
                    );
                }
            }
        }
    }
}
