//! Message ids: a table of started operations, by the ids that a program holds. Pure.
//!
//! An id is a positive 31-bit number: the index of a slot in the table and, in the higher bits, a count of the slot's
//! uses, so that a released id does not name the slot's next entry. An id is reused only after all others have been
//! used.

use std::collections::VecDeque;
use std::ffi::{c_int, c_long};

/// Number of bits of an id for the slot, which is counted from 1.
const PLACE: u32 = 16;
/// Maximum number of operations that can be in progress at a time.
pub const MAX_MIDS: usize = (1 << PLACE) - 1;
/// Number of uses of a slot before its ids repeat.
const USES: u16 = 1 << 14;

struct Slot<T> {
    uses: u16,
    entry: Option<T>,
}

/// Entries by id.
pub struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u16>,
    /// Slots that have used all their ids, in the order in which they did.
    resting: VecDeque<u16>,
}

impl<T> Table<T> {
    pub const fn new() -> Table<T> {
        Table {
            slots: Vec::new(),
            free: Vec::new(),
            resting: VecDeque::new(),
        }
    }

    /// Returns how many more entries fit.
    pub fn room(&self) -> usize {
        MAX_MIDS - self.slots.len() + self.free.len() + self.resting.len()
    }

    /// Inserts an entry, and returns its id. Returns `None` if the table is full.
    pub fn insert(&mut self, entry: T) -> Option<c_int> {
        let is_full = self.slots.len() >= MAX_MIDS;
        let free = match self.free.pop() {
            None if is_full => self.resting.pop_front(),
            free => free,
        };
        if let Some(at) = free {
            let slot = &mut self.slots[usize::from(at)];
            slot.entry = Some(entry);
            return Some(id(slot.uses, at));
        }
        let at = u16::try_from(self.slots.len()).ok().filter(|_| !is_full)?;
        self.slots.push(Slot {
            uses: 0,
            entry: Some(entry),
        });
        Some(id(0, at))
    }

    /// Returns the entry of an id, unless the id was released.
    pub fn get(&mut self, mid: c_int) -> Option<&mut T> {
        let at = self.place(mid)?;
        self.slots[at].entry.as_mut()
    }

    /// Releases an id, and returns its entry.
    pub fn remove(&mut self, mid: c_int) -> Option<T> {
        let at = self.place(mid)?;
        let slot = &mut self.slots[at];
        let entry = slot.entry.take()?;
        slot.uses = (slot.uses + 1) % USES;
        match slot.uses {
            0 => self.resting.push_back(at as u16),
            _ => self.free.push(at as u16),
        }
        Some(entry)
    }

    fn place(&self, mid: c_int) -> Option<usize> {
        let at = (mid as usize & MAX_MIDS).checked_sub(1)?;
        let slot = self.slots.get(at)?;
        (id(slot.uses, at as u16) == mid).then_some(at)
    }
}

fn id(uses: u16, at: u16) -> c_int {
    c_int::from(uses) << PLACE | (c_int::from(at) + 1)
}

/// Converts an id that a program passes.
pub fn from_program(mid: c_long) -> Option<c_int> {
    c_int::try_from(mid).ok().filter(|&mid| mid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_entry_until_it_is_released() {
        let mut table = Table::new();
        let (one, two) = (table.insert("one"), table.insert("two"));
        let (one, two) = (one.expect("an id"), two.expect("an id"));
        assert!(one > 0 && two > 0 && one != two);
        assert_eq!(table.get(one), Some(&mut "one"));
        assert_eq!(table.remove(one), Some("one"));
        assert_eq!(table.get(one), None);
        assert_eq!(table.remove(one), None);
        assert_eq!(table.get(two), Some(&mut "two"));
    }

    #[test]
    fn a_released_id_does_not_name_the_next_entry_of_its_place() {
        let mut table = Table::new();
        let old = table.insert(1).expect("an id");
        table.remove(old);
        let new = table.insert(2).expect("an id");
        assert_ne!(old, new);
        assert_eq!(table.get(old), None);
        assert_eq!(table.get(new), Some(&mut 2));
    }

    #[test]
    fn a_released_id_does_not_come_again_when_its_place_has_had_all_its_ids() {
        let mut table = Table::new();
        let old = table.insert(()).expect("an id");
        table.remove(old);
        for _ in 0..4 * u32::from(USES) {
            let next = table.insert(()).expect("an id");
            assert_ne!(next, old);
            table.remove(next);
        }
        assert_eq!(table.room(), MAX_MIDS);
        let all: Vec<_> = (0..MAX_MIDS).map(|_| table.insert(())).collect();
        assert!(
            all.iter().all(Option::is_some),
            "places that rest are taken at last"
        );
    }

    #[test]
    fn made_up_ids_name_nothing() {
        let mut table = Table::new();
        table.insert(());
        for mid in [0, -1, 2, 1 << PLACE, c_int::MAX, c_int::MIN] {
            assert_eq!(table.get(mid), None, "{mid}");
        }
        for mid in [0, -1, 1 << 31, c_long::MIN, c_long::MAX] {
            assert_eq!(from_program(mid), None, "{mid}");
        }
    }

    #[test]
    fn ids_stay_positive_however_often_a_place_is_used() {
        let mut table = Table::new();
        for _ in 0..=u32::from(USES) + 1 {
            let mid = table.insert(()).expect("an id");
            assert!(mid > 0);
            assert_eq!(from_program(c_long::from(mid)), Some(mid));
            table.remove(mid);
        }
    }

    #[test]
    fn a_full_table_takes_no_more() {
        let mut table = Table::new();
        let all: Vec<_> = (0..MAX_MIDS).map(|_| table.insert(())).collect();
        assert!(all.iter().all(Option::is_some));
        assert_eq!((table.room(), table.insert(())), (0, None));
        table.remove(all[7].expect("an id"));
        assert_eq!(table.room(), 1);
        assert!(table.insert(()).is_some());
    }
}
