//! Marks that say which of the rings opened towards a task must be polled.
//!
//! Polling a ring reads a cache line that another core writes. Between few tasks this costs little; but where
//! hundreds of tasks communicate, a task that waits for one message would read hundreds of lines again and again. So
//! the sender on a *marked* ring, after it has published a frame, sets a bit in the receiver's table entry, and the
//! receiver polls only rings whose bit is set. The class of a ring determines whether it is marked, so both ends
//! agree.
//!
//! *No frame is missed.* Bits are set and taken by read-modify-write operations on one word. If the receiver takes a
//! bit, it sees the frame for which the bit was set; otherwise the bit is still set when it polls next. A ring that
//! is polled stays *pending* until it is seen empty. A newly noticed ring is pending as well, because its first bit
//! may have been taken before it was noticed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of bits of a receiver. Where there are more senders, several share a bit.
pub const BITS: usize = 4 * 64;
/// Rings of this class and above are marked: those of jobs with so many tasks that rings are small.
const FROM_CLASS: u32 = 2;

/// The bits of one receiver, in the segment.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Marks([AtomicU64; BITS / 64]);

/// Layout, compared with `layout.txt` by a test.
#[cfg(test)]
pub(crate) const LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("marks", Marks { 0 } BITS FROM_CLASS);

/// Returns whether a ring of this class is marked.
pub fn is_marked(class: u32) -> bool {
    class >= FROM_CLASS
}

/// Returns the bit of a sender.
pub fn bit_of(sender: u32) -> usize {
    sender as usize % BITS
}

impl Marks {
    /// Sets the sender's bit. The sender calls it after it has published a frame.
    #[inline(always)]
    pub fn set(&self, sender: u32) {
        let bit = bit_of(sender);
        self.0[bit / 64].fetch_or(1 << (bit % 64), Ordering::AcqRel);
    }

    /// Takes all bits, and calls `found` for each that was set. The receiver calls it.
    pub fn take(&self, mut found: impl FnMut(usize)) {
        for (at, word) in self.0.iter().enumerate() {
            // Mostly no bit is set, and this load leaves the line in the senders' caches shared.
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut bits = word.swap(0, Ordering::AcqRel);
            while bits != 0 {
                found(at * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}
