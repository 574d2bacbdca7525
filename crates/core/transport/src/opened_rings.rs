//! The rings opened towards a task, and which of them it must poll (see `ring_marks`).

use regatta_engine::Peer;

use regatta_segment::ring_marks::{BITS, Marks, bit_of};

/// The rings opened towards a task, by their senders.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// Senders of rings that are polled each time, oldest first.
    plain: Vec<Peer>,
    /// Senders of marked rings, by bit. Empty while there is no marked ring.
    marked: Vec<Vec<Peer>>,
    /// Senders of marked rings that may hold a frame.
    pending: Vec<Peer>,
    /// A bit for each sender in `pending`.
    is_pending: Vec<u64>,
}

impl Opened {
    /// Adds a ring that has been noticed.
    pub(crate) fn add(&mut self, sender: Peer, marked: bool) {
        if !marked {
            return self.plain.push(sender);
        }
        if self.marked.is_empty() {
            self.marked.resize_with(BITS, Vec::new);
        }
        self.marked[bit_of(sender)].push(sender);
        self.expect(sender);
    }

    /// Removes the ring of a sender, which is not read any more.
    pub(crate) fn remove(&mut self, sender: Peer) {
        self.plain.retain(|&other| other != sender);
        self.pending.retain(|&other| other != sender);
        if let Some(word) = self.is_pending.get_mut(sender as usize / 64) {
            *word &= !(1 << (sender % 64));
        }
        if let Some(same) = self.marked.get_mut(bit_of(sender)) {
            same.retain(|&other| other != sender);
        }
    }

    /// Returns the number of rings that [`Opened::next`] goes through.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.plain.len() + self.pending.len()
    }

    /// Takes the marks, and notes which marked rings may now hold frames.
    #[inline(always)]
    pub(crate) fn look(&mut self, marks: &Marks) {
        if !self.marked.is_empty() {
            self.look_at(marks);
        }
    }

    #[inline(never)]
    fn look_at(&mut self, marks: &Marks) {
        marks.take(|bit| {
            for at in 0..self.marked[bit].len() {
                self.expect(self.marked[bit][at]);
            }
        });
    }

    fn expect(&mut self, sender: Peer) {
        let (at, bit) = (sender as usize / 64, 1 << (sender % 64));
        if self.is_pending.len() <= at {
            self.is_pending.resize(at + 1, 0);
        }
        if self.is_pending[at] & bit == 0 {
            self.is_pending[at] |= bit;
            self.pending.push(sender);
        }
    }

    /// Returns the sender of the next ring from `cursor` on that has a frame, or `None` if there is no further one.
    #[inline(always)]
    pub(crate) fn next(
        &mut self,
        cursor: &mut usize,
        has_frame: impl Fn(Peer) -> bool,
    ) -> Option<Peer> {
        while let Some(&sender) = self.plain.get(*cursor) {
            *cursor += 1;
            if has_frame(sender) {
                return Some(sender);
            }
        }
        while let Some(&sender) = self.pending.get(*cursor - self.plain.len()) {
            if has_frame(sender) {
                *cursor += 1;
                return Some(sender);
            }
            // The ring was seen empty after its bit was taken; the next frame sets the bit again.
            self.pending.swap_remove(*cursor - self.plain.len());
            self.is_pending[sender as usize / 64] &= !(1 << (sender % 64));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use super::*;

    fn all(opened: &mut Opened, has_frame: impl Fn(Peer) -> bool) -> BTreeSet<Peer> {
        let mut cursor = 0;
        let found = std::iter::from_fn(|| opened.next(&mut cursor, &has_frame)).collect();
        assert_eq!(cursor, opened.len());
        found
    }

    #[test]
    fn only_rings_that_were_marked_are_looked_at() {
        let (mut opened, marks) = (Opened::default(), Marks::default());
        (0..1000).for_each(|peer| opened.add(peer, true));
        opened.add(2000, false);
        assert!(all(&mut opened, |_| false).is_empty());
        for peer in [3, 700] {
            marks.set(peer);
        }
        opened.look(&marks);
        let looked = RefCell::new(BTreeSet::new());
        let has_frame = |peer| {
            looked.borrow_mut().insert(peer);
            [3, 700, 2000].contains(&peer)
        };
        assert_eq!(all(&mut opened, has_frame), [3, 700, 2000].into());
        // Besides these rings, only those that share their bits were polled.
        assert!(looked.borrow().len() <= 1 + 2 * (1000 / BITS + 1));
        // A ring that was not emptied is found again although its bit is not set.
        assert_eq!(all(&mut opened, |peer| peer == 700), [700].into());
    }

    #[test]
    fn a_ring_noticed_after_its_bit_was_taken_is_looked_at() {
        let (mut opened, marks) = (Opened::default(), Marks::default());
        opened.add(1, true);
        marks.set(2);
        opened.look(&marks);
        opened.add(2, true);
        assert_eq!(all(&mut opened, |peer| peer == 2), [2].into());
    }

    #[test]
    fn a_ring_that_is_read_no_more_is_not_found() {
        let (mut opened, marks) = (Opened::default(), Marks::default());
        opened.add(5, true);
        opened.add(5 + BITS as Peer, true);
        opened.remove(5);
        marks.set(5);
        opened.look(&marks);
        assert_eq!(all(&mut opened, |_| true), [5 + BITS as Peer].into());
    }
}
