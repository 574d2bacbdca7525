//! Rings that are not used any more: given back, and used again.
//!
//! A ring belongs to a pair of tasks. When one of the two is gone for good, the other has taken out what was in it and
//! gives it back. So a task that starts a thousand others, one after the other, needs the memory of one.
//!
//! *Why nobody is confused.* A ring is given back only after the launcher has written down that the process at its other
//! end is no more, so nobody writes into it; and only by its one survivor, once. It is cleared before it is used again.
//! Rings between tasks of one world are given back by the launcher when all of that world are gone. Rings of two tasks of
//! different worlds that went before either noticed stay as they are, until the job ends.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use regatta_memory::segment::Segment;
use regatta_memory::{Corrupt, LINE};

use crate::job::CLASSES;

/// Rings begin on pages.
pub(crate) const ALIGN: u64 = 4096;

/// The stacks, one for each class of geometry, with a counter against reuse between look and swap:
/// counter (32 bits) | place of the first ring / `ALIGN` (32 bits).
pub(crate) struct Free<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) heads: &'a [AtomicU64; CLASSES.len()],
}

impl Free<'_> {
    /// The word of a ring that links it to the next one; an opened ring has the same use for it.
    fn link(&self, ring: u64) -> Result<&AtomicU64, Corrupt> {
        // SAFETY: an atomic.
        unsafe { self.segment.words(ring + 8) }
    }

    /// A ring of this class, if there is one, with `clear` bytes at its start cleared.
    pub(crate) fn take(&self, class: u32, clear: usize) -> Result<Option<u64>, Corrupt> {
        let head = &self.heads[class as usize];
        let mut seen = head.load(Ordering::Acquire);
        while seen as u32 != 0 {
            let ring = (seen as u32 as u64) * ALIGN;
            let next = self.link(ring)?.load(Ordering::Relaxed);
            let new = ((seen >> 32) + 1) << 32 | (next & 0xffff_ffff);
            match head.compare_exchange_weak(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let start = self.segment.at(ring, clear)?;
                    // SAFETY: inside the segment, and nobody's but ours until it is opened.
                    unsafe { start.write_bytes(0, clear) };
                    return Ok(Some(ring));
                }
                Err(now) => seen = now,
            }
        }
        Ok(None)
    }

    /// Nobody uses this ring any more.
    pub(crate) fn give(&self, class: u32, ring: u64) {
        let Ok(link) = self.link(ring) else { return };
        // SAFETY: an atomic.
        if let Ok(source) = unsafe { self.segment.words::<AtomicU32>(ring) } {
            // It is nobody's, so nobody gives it back again.
            source.store(u32::MAX, Ordering::Relaxed);
        }
        let head = &self.heads[class as usize];
        let mut seen = head.load(Ordering::Relaxed);
        loop {
            link.store(seen & 0xffff_ffff, Ordering::Relaxed);
            let new = ((seen >> 32) + 1) << 32 | (ring / ALIGN);
            match head.compare_exchange_weak(seen, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

const _: () = assert!(ALIGN.is_multiple_of(LINE as u64));
