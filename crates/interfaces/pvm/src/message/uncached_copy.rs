//! Copies into messages that are too long for the caches.
//!
//! While two tasks send such messages to and fro, some seven memories of a message's length are touched in turn: two blocks of each
//! side, and what they pack from and unpack to. When all of that does not fit in the cache the cores share, an ordinary copy first
//! reads the lines it overwrites, and throws out others that are needed next. Measured on cores that share 32 MiB: 4 MiB are packed
//! and unpacked in 0.6 to 0.75 of the time when packing stores past the caches, 2 MiB in 1.0 to 1.1, 1 MiB in 1.8.

/// From this length on.
const FROM: usize = 3 << 20;

/// Copy to where the other end of a message is going to read.
///
/// # Safety
/// This many bytes can be read and written, and the two do not overlap.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    match len < FROM {
        // SAFETY: the caller's.
        true => unsafe { std::ptr::copy_nonoverlapping(from, to, len) },
        // SAFETY: the caller's.
        false => unsafe { copy_long(from, to, len) },
    }
}

#[cfg(target_arch = "x86_64")]
#[cold]
unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    /// A cache line, in four parts.
    const LINE: usize = 64;
    const PART: usize = size_of::<__m128i>();

    let before = to.align_offset(LINE).min(len);
    let lines = (len - before) / LINE;
    let behind = before + lines * LINE;
    // SAFETY: the caller's; the lines are aligned. A task that is told of the message later finds it whole: stores past the caches are
    // in order with those after the fence.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, before);
        for line in 0..lines {
            let at = before + line * LINE;
            let parts = [0, PART, 2 * PART, 3 * PART];
            let line = parts.map(|part| _mm_loadu_si128(from.add(at + part).cast()));
            for (part, value) in parts.into_iter().zip(line) {
                _mm_stream_si128(to.add(at + part).cast(), value);
            }
        }
        _mm_sfence();
        std::ptr::copy_nonoverlapping(from.add(behind), to.add(behind), len - behind);
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[cold]
unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_all_alignments_are_exact() {
        for len in [0, 1, 63, 64, 1000, FROM - 1, FROM, FROM + 77] {
            for (ahead, behind) in [(0, 0), (1, 0), (0, 1), (7, 63), (16, 48)] {
                let from: Vec<u8> = (0..ahead + len).map(|at| (at % 251) as u8 + 1).collect();
                let mut to = vec![0; behind + len + 1];
                // SAFETY: both have this many bytes from there.
                unsafe { copy(from[ahead..].as_ptr(), to[behind..].as_mut_ptr(), len) };
                assert!(to[..behind].iter().all(|&byte| byte == 0));
                assert!(to[behind..behind + len] == from[ahead..]);
                assert_eq!(to[behind + len], 0);
            }
        }
    }
}
