//! A stack of pieces of shared memory that any task pushes and pops: free pipes, collective buffers that are no longer
//! used.
//!
//! ```text
//! count of changes (32 bits) | offset of the piece on top / UNIT (32 bits); 0: empty
//! ```
//!
//! Each piece has a [`Link`], the offset of the piece under it in the same unit. A piece is pushed by one
//! compare-and-swap of the word, after its link has been written, and popped by one compare-and-swap, after its link
//! has been read.
//!
//! *ABA.* Between the load and the swap of a pop, others may pop the piece, pop the one under it, and push the first
//! again: the offset is the same, and the link that was read is wrong. So each push and each pop increments the count,
//! and a swap from a word that has changed meanwhile fails. Only a pop that is delayed for exactly a multiple of 2^32
//! changes, and then finds the same piece on top, could be wrong.
//!
//! *Orderings.* All changes of the word are read-modify-writes, so acquiring its value synchronizes with every push
//! before that: the reader finds the piece as its pusher left it, and the links of all pieces under it.
//!
//! *Tasks that die.* A task that dies before the swap of a push or after the swap of a pop loses the piece. No task
//! waits for another.
//!
//! *Others can write invalid values.* The stack only says where to look. An offset is passed to the caller's `find`,
//! which checks it. Links that form a circle return a piece twice, so the task that pops one must have another way to
//! know that it is unused, or tolerate what two users write there. A change that fails `TRIES` times is given up, so a
//! task that constantly writes the word delays others only for a bounded time: a pop then finds nothing, and a push
//! loses the piece.

use crate::Corrupt;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Alignment of pieces, in bytes.
pub const UNIT: u64 = 128;
/// Position of the count of changes, in bits.
const COUNT: u32 = 32;
/// Maximum number of attempts of a change. An attempt fails only when another change succeeds, or spuriously on some
/// processors, so this many failures in a row do not occur.
const TRIES: u32 = 1 << 16;

/// A stack; the module describes its word. Zeros are a valid initial state: empty.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Stack(AtomicU64);

/// The link of a piece while it is on a stack: the offset of the piece under it / [`UNIT`], or 0 if there is none.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Link(AtomicU32);

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout = crate::layout!("stack", Stack { 0 } UNIT COUNT);

/// Returns the top from the stack's word.
fn top(word: u64) -> u32 {
    word as u32
}

/// Returns the word that follows `word`, with this top.
fn next(word: u64, top: u32) -> u64 {
    ((word >> COUNT) + 1) << COUNT | top as u64
}

impl Stack {
    /// Pushes a piece that is on no stack and that no other task uses. `link` is its own. Returns `false` if the offset
    /// is invalid, or after `TRIES` failures (see the module).
    pub fn push(&self, place: u64, link: &Link) -> bool {
        let Ok(own) = u32::try_from(place / UNIT) else {
            return false;
        };
        if !place.is_multiple_of(UNIT) || own == 0 {
            return false;
        }
        let mut seen = self.0.load(Ordering::Relaxed);
        for _ in 0..TRIES {
            link.0.store(top(seen), Ordering::Relaxed);
            // Releases the piece and its link. Partner: the loads of `pop`.
            let pushed = self.0.compare_exchange_weak(
                seen,
                next(seen, own),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match pushed {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Pops the piece on top and returns its offset, or `None` if the stack is empty. `find` returns the link of the
    /// piece at an offset.
    pub fn pop<'a>(
        &self,
        find: impl Fn(u64) -> Result<&'a Link, Corrupt>,
    ) -> Result<Option<u64>, Corrupt> {
        // Acquires the piece and its link. Partner: the swap of `push`.
        let mut seen = self.0.load(Ordering::Acquire);
        for _ in 0..TRIES {
            if top(seen) == 0 {
                return Ok(None);
            }
            let place = top(seen) as u64 * UNIT;
            // If another task has popped the piece meanwhile this is any number, and the swap fails.
            let under = find(place)?.0.load(Ordering::Relaxed);
            let popped = self.0.compare_exchange_weak(
                seen,
                next(seen, under),
                Ordering::Acquire,
                Ordering::Acquire,
            );
            match popped {
                Ok(_) => return Ok(Some(place)),
                Err(now) => seen = now,
            }
        }
        Ok(None)
    }

    /// Writes an arbitrary word, as another process might, for tests.
    #[doc(hidden)]
    pub fn scribble(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
