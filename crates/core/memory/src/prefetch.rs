//! Prefetching of lines before they are written or read.
//!
//! A line that another core has read must be taken from its cache before this one may write it, which takes as long as
//! a message. A task that waits has that time: it prefetches the lines of its next message, and then finds them in its
//! own cache when it writes them.

use crate::LINE;

/// Maximum number of lines prefetched: the number of outstanding misses that a core can have.
const MAX_LINES: usize = 64;

/// Prefetches the lines of `len` bytes from `start` on, for writing. A hint: nothing is read or written, and any
/// address is allowed.
#[inline(always)]
pub fn prefetch_to_write(start: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..len.div_ceil(LINE).min(MAX_LINES) {
        // SAFETY: prefetches access no memory; processors without this instruction treat it as a no-op.
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

/// Prefetches the lines of `len` bytes from `start` on, for reading. A hint, as above: for bytes that another core has
/// written, and that a loop reads a few at a time while it does more than copy. The lines are then fetched in parallel.
#[inline(always)]
pub fn prefetch_to_read(start: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..len.div_ceil(LINE).min(MAX_LINES) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetches access no memory; every x86-64 processor has the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * LINE).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, len, MAX_LINES, LINE);
}
