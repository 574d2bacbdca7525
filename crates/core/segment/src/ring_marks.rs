//! Which of the rings opened towards a task must be looked at.
//!
//! A look at every ring costs a line of another core's each: nothing between few tasks, but where hundreds talk to hundreds a
//! task that waits for one message would read hundreds of lines again and again. So the sender of a *marked* ring, after it
//! has published a frame, sets a bit beside the receiver's words, and the receiver looks only at rings whose bit is set.
//! The class of a ring says whether it is marked, so both ends know alike.
//!
//! *No frame is missed.* Setting and taking bits are read-modify-writes of one word. If the receiver takes a bit it sees the
//! frame for which it was set; if it does not, the bit is still there at its next look. A ring that is looked at stays
//! *pending* until it is seen empty, and a ring is pending when it is first noticed: its first bit may have been taken
//! before that.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a task, where many senders share one.
pub const BITS: usize = 4 * 64;
/// Rings of this class and above are marked: where there are so many tasks that small rings serve them.
const FROM_CLASS: u32 = 2;

/// The bits of one receiver, in the segment.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Marks([AtomicU64; BITS / 64]);

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("marks", Marks { 0 } BITS FROM_CLASS);

/// Is a ring of this class marked?
pub fn is_marked(class: u32) -> bool {
    class >= FROM_CLASS
}

/// The bit of a sender.
pub fn bit_of(sender: u32) -> usize {
    sender as usize % BITS
}

impl Marks {
    /// Sender: after a frame has been published.
    #[inline(always)]
    pub fn set(&self, sender: u32) {
        let bit = bit_of(sender);
        self.0[bit / 64].fetch_or(1 << (bit % 64), Ordering::AcqRel);
    }

    /// Receiver: takes all bits, and hands out each that is set.
    pub fn take(&self, mut found: impl FnMut(usize)) {
        for (at, word) in self.0.iter().enumerate() {
            // Mostly there is none, and the line stays where it is.
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
