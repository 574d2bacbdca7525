//! Slots in chunks, with marks for stretches that may have open slots: a search for open requests skips stretches whose
//! slots have all been closed.
//!
//! A thread that opens a slot sets the mark of its stretch, by a plain store after that to the slot. A search clears
//! the mark, checks the slots, and sets the mark again if any is open. So a slot that was opened before a search began
//! is found by it, and by all later ones. Only one search runs at a time ([`Chunk::open_slots`]).

use std::sync::atomic::{AtomicBool, Ordering};

/// Number of slots in a chunk.
pub(super) const SLOTS_PER_CHUNK: usize = 1024;
/// Number of slots that share a mark.
const SLOTS_PER_MARK: usize = 64;

/// A chunk of slots, which never move.
pub(super) struct Chunk<S> {
    slots: Box<[S]>,
    marks: [AtomicBool; SLOTS_PER_CHUNK / SLOTS_PER_MARK],
}

impl<S: Default> Chunk<S> {
    pub(super) fn new() -> Chunk<S> {
        Chunk {
            slots: (0..SLOTS_PER_CHUNK).map(|_| S::default()).collect(),
            marks: [const { AtomicBool::new(false) }; SLOTS_PER_CHUNK / SLOTS_PER_MARK],
        }
    }
}

impl<S> Chunk<S> {
    /// Returns the slot for index `index` of the table that this chunk is part of.
    #[inline(always)]
    pub(super) fn slot(&self, index: usize) -> &S {
        &self.slots[index % SLOTS_PER_CHUNK]
    }

    /// Marks the slot with this index as open.
    #[inline(always)]
    pub(super) fn mark(&self, index: usize) {
        self.marks[index % SLOTS_PER_CHUNK / SLOTS_PER_MARK].store(true, Ordering::Release);
    }

    /// Calls `visit` with the slots of all stretches that may have open ones. `visit` returns whether the slot is open.
    /// Only one caller at a time.
    pub(super) fn open_slots(&self, visit: &mut impl FnMut(&S) -> bool) {
        for (mark, stretch) in self.marks.iter().zip(self.slots.chunks(SLOTS_PER_MARK)) {
            if !mark.load(Ordering::Relaxed) {
                continue;
            }
            mark.swap(false, Ordering::AcqRel);
            let open = stretch.iter().filter(|slot| visit(slot)).count();
            if open > 0 {
                mark.store(true, Ordering::Release);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_search_looks_at_stretches_that_have_open_slots_alone() {
        let chunk = Chunk::<AtomicU32>::new();
        let open = |index: usize| {
            chunk.slot(index).store(1, Ordering::Relaxed);
            chunk.mark(index);
        };
        let search = || {
            let (mut looks, mut found) = (0, 0);
            chunk.open_slots(&mut |slot| {
                looks += 1;
                let is_open = slot.load(Ordering::Relaxed) != 0;
                found += u32::from(is_open);
                is_open
            });
            (looks, found)
        };
        assert_eq!(search(), (0, 0));
        (0..SLOTS_PER_CHUNK).for_each(open);
        assert_eq!(search(), (SLOTS_PER_CHUNK, SLOTS_PER_CHUNK as u32));
        (1..SLOTS_PER_CHUNK).for_each(|index| chunk.slot(index).store(0, Ordering::Relaxed));
        assert_eq!(
            search(),
            (SLOTS_PER_CHUNK, 1),
            "they are not known to be closed"
        );
        assert_eq!(search(), (SLOTS_PER_MARK, 1));
        assert_eq!(
            search(),
            (SLOTS_PER_MARK, 1),
            "an open one is found each time"
        );
        open(SLOTS_PER_CHUNK - 1);
        assert_eq!(search(), (2 * SLOTS_PER_MARK, 2));
    }
}
