//! Lines asked for before they are written or read.
//!
//! A line that another core has read must be taken from its cache before this one may write it, which takes as long as a message. A task that waits
//! has that time: it asks for the lines of its next message, and finds them in its own cache when it writes them.

use crate::LINE;

/// Maximum number of lines prefetched: the misses that a core can have under way.
const MAX_LINES: usize = 64;

/// Asks for the lines of `len` bytes from `start` on, to be written. A hint: nothing is read or written, and any address is allowed.
#[inline(always)]
pub fn prefetch_to_write(start: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..len.div_ceil(LINE).min(MAX_LINES) {
        // SAFETY: prefetches access no memory; processors without this one take it for a no-op.
        unsafe {
            core::arch::asm!(
                "prefetchw [{}]",
                in(reg) start.wrapping_add(line * LINE),
                options(nostack, preserves_flags, readonly)
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, len, MAX_LINES, LINE);
}

/// Asks for the lines of `len` bytes from `start` on, to be read. A hint, as above: for bytes that another core has written, and that are read a few at a time
/// by a loop which does more than copy. All are on their way at once then.
#[inline(always)]
pub fn prefetch_to_read(start: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..len.div_ceil(LINE).min(MAX_LINES) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetches access no memory; every processor of this kind has them.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * LINE).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, len, MAX_LINES, LINE);
}
