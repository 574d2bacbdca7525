//! Numbers of messages between two tasks with one tag, by which their ends are put together afterwards.
//!
//! Messages of two tasks with one tag do not overtake each other, so the n-th that was sent is the n-th that is received. The
//! numbers are of the whole process; messages of different groups with one tag share them, and may then be put together wrongly.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Pairs of peer and tag that are told apart: a power of two.
const SLOTS: usize = 4096;
/// Places at which a pair may stand.
const PROBES: usize = 16;

/// The messages of one direction.
pub(crate) struct Numbers {
    /// Peer and tag, and 1.
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

    /// The number of the next message with this peer and tag, from 1; 0 if there is no room for the pair.
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
