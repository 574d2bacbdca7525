//! A stack of pieces of shared memory that anybody pushes and pops: free pipes, collective buffers that were left.
//!
//! ```text
//! count of changes (32 bits) | place of the piece on top / UNIT (32 bits); 0: empty
//! ```
//!
//! Each piece has a [`Link`], the place of the piece under it in the same unit. A piece is pushed by one swap of the word, after its link
//! has been written, and popped by one swap, after its link has been read.
//!
//! *Reuse (ABA).* Between look and swap of a pop others may pop the piece, pop the one under it, and push the first again: the place
//! is the same and the link that was read is wrong. So each push and each pop counts the word up by one, and a swap from a word
//! that has been another meanwhile fails. Only a pop that is held up for exactly a multiple of 2^32 changes, and then finds the
//! same piece on top, could be deceived.
//!
//! *Orderings.* All changes of the word are read-modify-writes, so whoever acquires its value comes after every push before that: it
//! finds the piece as its pusher had left it, and the links of all pieces under it.
//!
//! *Tasks that die.* One that dies before the swap of a push or after the swap of a pop takes the piece with it, which costs that piece.
//! Nobody waits for anybody.
//!
//! *Others can write nonsense.* The stack says where to look and nothing more. A place is handed to the caller's `find`, which checks it;
//! links that lead in a circle hand out a piece twice, so whoever pops one must have another way to know that it is nobody's, or live with
//! what two users write there. A change that fails `TRIES` times is given up, so somebody who writes the word all the time holds up nobody for ever:
//! a pop finds nothing then, and a push costs the piece.

use crate::Corrupt;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Places are multiples of this.
pub const UNIT: u64 = 128;
/// From this bit on stands the count of changes.
const COUNT: u32 = 32;
/// A change fails only when another one succeeds, or by chance on some processors: nobody fails so often in a row.
const TRIES: u32 = 1 << 16;

/// The stack, as the module describes its word. Zeros are a valid start: it is empty.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Stack(AtomicU64);

/// The word of a piece that leads on while it is in a stack: the place of the piece under it / [`UNIT`], 0 for none.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Link(AtomicU32);

/// For the test that holds it to the version.
pub(crate) const LAYOUT: crate::layout::Layout = crate::layout!("stack", Stack { 0 } UNIT COUNT);

/// The place on top, by the stack's word.
fn top(word: u64) -> u32 {
    word as u32
}

/// The word after `word`, with that place on top.
fn next(word: u64, top: u32) -> u64 {
    ((word >> COUNT) + 1) << COUNT | top as u64
}

impl Stack {
    /// Puts a piece on top that is nobody else's and in no stack. `link` is its own. False: there is no such place, or see the module.
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

    /// Takes the piece on top: its place. `find` gives the link of the piece at a place.
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
            // If others have popped it meanwhile this is any number, and the swap fails.
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

    /// Writes what another process might write, for tests.
    #[doc(hidden)]
    pub fn scribble(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
