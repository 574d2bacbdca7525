//! Sequence numbers of messages with one tag between two tasks. `regatta profile` uses them to match sends with receives.
//!
//! Messages with one tag between two tasks do not overtake each other, so the n-th that is sent is the n-th that is received. The
//! numbers count for the whole process. Messages of different groups with the same tag share them, and may be matched wrongly.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Maximum number of pairs of peer and tag. A power of two.
const SLOTS: usize = 4096;
/// Maximum number of slots that are tried for a pair.
const PROBES: usize = 16;

/// The sequence numbers of one direction.
pub(crate) struct Numbers {
    /// Peer (upper half) and tag, plus 1, or 0 for a free slot.
    keys: [AtomicU64; SLOTS],
    counts: [AtomicU32; SLOTS],
}

pub(crate) static SENT: Numbers = Numbers::new();
pub(crate) static RECEIVED: Numbers = Numbers::new();

impl Numbers {
    const fn new() -> Numbers {
        Numbers {
            keys: [const { AtomicU64::new(0) }; SLOTS],
            counts: [const { AtomicU32::new(0) }; SLOTS],
        }
    }

    /// Returns the number of the next message with this peer and tag, from 1, or 0 if there is no room for the pair.
    pub(crate) fn next(&self, peer: i32, tag: i32) -> u32 {
        let key = (u64::from(peer as u32) << 32 | u64::from(tag as u32)).wrapping_add(1);
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
        for at in (first..first + PROBES).map(|at| at % SLOTS) {
            let found = match self.keys[at].load(Relaxed) {
                0 => match self.keys[at].compare_exchange(0, key, Relaxed, Relaxed) {
                    Ok(_) => key,
                    Err(other) => other,
                },
                found => found,
            };
            if found == key {
                return self.counts[at].fetch_add(1, Relaxed).wrapping_add(1);
            }
        }
        0
    }
}
