//! Slots in chunks, with marks of the stretches that may have an open one: a search among open requests skips slots that were open long ago.
//!
//! Whoever opens a slot sets the mark of its stretch, by a plain store after that of the slot. A search takes the mark off, looks at the slots, and sets it again if one
//! of them is open. So a slot that was opened before the search began is found by it, and by all later ones. One search goes on at a time ([`Chunk::open_slots`]).

use std::sync::atomic::{AtomicBool, Ordering};

/// Slots of a chunk.
pub(super) const CHUNK: usize = 1024;
/// Slots that share a mark.
const STRETCH: usize = 64;

/// A chunk of slots, which never move.
pub(super) struct Chunk<S> {
    slots: Box<[S]>,
    marks: [AtomicBool; CHUNK / STRETCH],
}

impl<S: Default> Chunk<S> {
    pub(super) fn new() -> Chunk<S> {
        Chunk {
            slots: (0..CHUNK).map(|_| S::default()).collect(),
            marks: [const { AtomicBool::new(false) }; CHUNK / STRETCH],
        }
    }
}

impl<S> Chunk<S> {
    /// The slot in place `index` of the table, of which this is a chunk.
    #[inline(always)]
    pub(super) fn slot(&self, index: usize) -> &S {
        &self.slots[index % CHUNK]
    }

    /// The slot in this place is open.
    #[inline(always)]
    pub(super) fn mark(&self, index: usize) {
        self.marks[index % CHUNK / STRETCH].store(true, Ordering::Release);
    }

    /// Calls `visit` with the slots of all stretches that may have open ones; it returns whether the slot is open. One caller at a time.
    pub(super) fn open_slots(&self, visit: &mut impl FnMut(&S) -> bool) {
        for (mark, stretch) in self.marks.iter().zip(self.slots.chunks(STRETCH)) {
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
        (0..CHUNK).for_each(open);
        assert_eq!(search(), (CHUNK, CHUNK as u32));
        (1..CHUNK).for_each(|index| chunk.slot(index).store(0, Ordering::Relaxed));
        assert_eq!(search(), (CHUNK, 1), "they are not known to be closed");
        assert_eq!(search(), (STRETCH, 1));
        assert_eq!(search(), (STRETCH, 1), "an open one is found each time");
        open(CHUNK - 1);
        assert_eq!(search(), (2 * STRETCH, 2));
    }
}
