//! Copies between a task's own memory and memory shared with another core.
//!
//! Measured on a Zen 5 pair of cores sharing an L3 (docs/decisions/2026-11-25-rep-movsb.md): to and from lines that the
//! *other* core touched last, `rep movsb` copies 4 KiB in 0.87x and 64 KiB in 0.45x the time of a loop of vector
//! stores, because the core then requests whole lines without reading them first. Below about 2 KiB its start-up costs
//! more than it saves.

/// Minimum length for which the string instruction is used, in bytes.
const STRING_COPY_FROM: usize = 2048;

/// Copies `len` bytes between memory of this task and shared memory.
///
/// # Safety
/// `from` must be readable and `to` writable for `len` bytes, and the two must not overlap. Another process may write
/// to the shared side meanwhile: the copied bytes are then arbitrary, which is why they are never interpreted here.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    if len <= 32 {
        // SAFETY: the caller guarantees that both ranges are valid for `len` bytes.
        unsafe { copy_small(from, to, len) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if len >= STRING_COPY_FROM {
        // SAFETY: the caller guarantees that both ranges are valid; the direction flag is clear by the ABI.
        unsafe {
            core::arch::asm!(
                "rep movsb",
                inout("rcx") len => _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    // SAFETY: the caller guarantees that both ranges are valid.
    unsafe { core::ptr::copy_nonoverlapping(from, to, len) }
}

/// Copies bytes to or from a line of a ring, usually one word. Makes no call, so that its caller does not have to save
/// registers: each of these is a store that waits in line with those to shared memory.
///
/// # Safety
/// As for [`copy`]; at most 48 bytes.
#[inline(always)]
pub unsafe fn copy_line(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller guarantees that both ranges are valid for `len` bytes.
    unsafe {
        if len == size_of::<u64>() {
            let word = from.cast::<u64>().read_unaligned();
            return to.cast::<u64>().write_unaligned(word);
        }
        if len <= 32 {
            return copy_small(from, to, len);
        }
        copy_small(from, to, 32);
        copy_small(from.add(len - 16), to.add(len - 16), 16);
    }
}

/// Whether this architecture has stores that bypass the caches.
pub const HAS_NON_TEMPORAL: bool = cfg!(target_arch = "x86_64");

/// Copies `len` bytes from memory of this task to shared memory with stores that bypass this core's caches, if there
/// are such stores. The destination lines are not read first: where another core holds them, and shares no cache with
/// this one, reading takes most of the time of a copy. When this returns, the bytes are in memory, or on their way
/// there, ordered before later stores.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub unsafe fn copy_non_temporal(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
        const BLOCK: usize = size_of::<__m128i>();
        let head = to.align_offset(BLOCK).min(len);
        let blocks = (len - head) / BLOCK;
        let tail = head + blocks * BLOCK;
        // SAFETY: all accesses are inside the ranges that the caller guarantees; the stores of blocks are aligned; the
        // fence orders them before later stores.
        unsafe {
            copy(from, to, head);
            for at in (head..tail).step_by(BLOCK) {
                let block = _mm_loadu_si128(from.add(at).cast());
                _mm_stream_si128(to.add(at).cast(), block);
            }
            copy(from.add(tail), to.add(tail), len - tail);
            _mm_sfence();
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller guarantees that both ranges are valid for `len` bytes.
    unsafe {
        copy(from, to, len)
    }
}

/// Copies at most 32 bytes without a call: two words that may overlap cover any such length.
///
/// # Safety
/// As for [`copy`].
#[inline(always)]
unsafe fn copy_small(from: *const u8, to: *mut u8, len: usize) {
    macro_rules! two {
        ($word:ty) => {{
            let last = len - size_of::<$word>();
            // SAFETY: `len` is at least one and at most two words.
            unsafe {
                let head = from.cast::<$word>().read_unaligned();
                let tail = from.add(last).cast::<$word>().read_unaligned();
                to.cast::<$word>().write_unaligned(head);
                to.add(last).cast::<$word>().write_unaligned(tail);
            }
        }};
    }
    match len {
        8..=16 => two!(u64),
        17.. => two!(u128),
        4..=7 => two!(u32),
        2..=3 => two!(u16),
        1 => two!(u8),
        0 => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_every_length_around_the_switch() {
        for len in (0..130).chain(STRING_COPY_FROM - 3..STRING_COPY_FROM + 3) {
            let from: Vec<u8> = (0..len).map(|i| (i * 7 + 1) as u8).collect();
            let mut to = vec![0u8; len + 1];
            // SAFETY: both vectors hold `len` bytes and are distinct.
            unsafe { copy(from.as_ptr(), to.as_mut_ptr(), len) };
            assert_eq!(&to[..len], &from[..]);
            assert_eq!(to[len], 0, "nothing written past the end");
        }
    }

    #[test]
    fn copies_every_length_from_anywhere_by_non_temporal_stores() {
        let from: Vec<u8> = (0..300).map(|i| (i * 7 + 1) as u8).collect();
        for (start, place) in (0..20).flat_map(|start| (0..20).map(move |place| (start, place))) {
            for len in (0..70).chain(250..270) {
                let mut to = vec![0u8; 300];
                // SAFETY: both vectors hold that many bytes and are distinct.
                unsafe {
                    copy_non_temporal(from.as_ptr().add(start), to.as_mut_ptr().add(place), len)
                };
                assert_eq!(to[place..place + len], from[start..start + len]);
                let untouched = to[..place].iter().chain(&to[place + len..]);
                assert!(untouched.into_iter().all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    fn lines_are_copied_whole_and_nothing_beside_them() {
        let from: Vec<u8> = (1..=64).collect();
        for len in 0..=48 {
            for (at, place) in [(0, 0), (1, 0), (0, 3), (7, 8), (8, 5)] {
                let mut to = [0xee; 64];
                // SAFETY: both ranges hold `len` bytes.
                unsafe { copy_line(from[at..].as_ptr(), to[place..].as_mut_ptr(), len) };
                assert_eq!(to[place..place + len], from[at..at + len]);
                let mut others = to[..place].iter().chain(&to[place + len..]);
                assert!(others.all(|&byte| byte == 0xee), "{len} bytes");
            }
        }
    }
}
