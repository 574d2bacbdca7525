//! Objects behind handles.
//!
//! A handle that the library gives out is a number of 31 bits: four bits of kind, five of generation, 22 of index. It is
//! checked at each use: one that was freed, or never was, leads to nothing. (After some million further objects a stale handle
//! may lead to another object of its kind: see [`Places`].) Values below 4096 are predefined objects, which each kind keeps by itself.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

/// The kind of an object, in a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[allow(missing_docs)]
pub enum Kind {
    Comm = 1,
    Datatype,
    Errhandler,
    File,
    Group,
    Info,
    Message,
    Op,
    Request,
    Session,
    Win,
    /// Of the tool interface.
    Tool,
}

const INDEX: u32 = 22;
const GENERATION: u32 = 5;
/// Generations that handles tell apart.
pub const GENERATIONS: u32 = 1 << GENERATION;
/// Places that have had all their generations and rest, at least: so many times [`GENERATIONS`] objects come between two with one handle.
pub const MIN_RESTING: usize = 1 << 15;
/// How far the kind is from the lowest bit of a handle.
pub const KIND_SHIFT: u32 = INDEX + GENERATION;
/// The first value that is no predefined handle.
pub const FIRST: usize = 0x1000;
/// Most objects of a kind at a time.
pub const MAX_OBJECTS: usize = 1 << INDEX;

/// The handle of the object of a kind in this place.
pub const fn handle(kind: Kind, generation: u32, index: usize) -> usize {
    let generation = (generation % GENERATIONS) as usize;
    ((kind as usize) << GENERATION | generation) << INDEX | index
}

/// The place that a handle of this kind names, if it is one.
#[inline(always)]
pub fn index(kind: Kind, handle: usize) -> Option<usize> {
    (handle >> KIND_SHIFT == kind as usize).then_some(handle & (MAX_OBJECTS - 1))
}

/// The places of a table, and their generations.
///
/// The place that was given back last is taken first. One that has had all its generations rests until [`MIN_RESTING`] others rest, too, so
/// that a handle does not soon come again.
pub struct Places {
    /// How many there may be.
    most: usize,
    generations: Vec<u8>,
    free: Vec<u32>,
    /// The one that has rested longest is in front.
    resting: VecDeque<u32>,
}

impl Places {
    /// No places yet, and at most so many.
    pub const fn new(most: usize) -> Places {
        Places {
            most,
            generations: Vec::new(),
            free: Vec::new(),
            resting: VecDeque::new(),
        }
    }

    /// Takes a place: its index, and its generation; `None` if all are in use.
    pub fn take(&mut self) -> Option<(usize, u32)> {
        let index = self.free.pop().or_else(|| self.rested()).or_else(|| {
            let next = self.generations.len();
            (next < self.most).then(|| {
                self.generations.push(0);
                next as u32
            })
        });
        let index = index.or_else(|| self.resting.pop_front())? as usize;
        Some((index, self.generations[index].into()))
    }

    fn rested(&mut self) -> Option<u32> {
        match self.resting.len() > MIN_RESTING {
            true => self.resting.pop_front(),
            false => None,
        }
    }

    /// Gives a place back: the handle that it had is stale from now on.
    pub fn give_back(&mut self, index: usize) {
        let generation = &mut self.generations[index];
        *generation = (*generation + 1) % GENERATIONS as u8;
        match *generation {
            0 => self.resting.push_back(index as u32),
            _ => self.free.push(index as u32),
        }
    }
}

/// All objects of a kind.
pub struct Table<T: ?Sized> {
    kind: Kind,
    entries: RwLock<Entries<T>>,
}

struct Entries<T: ?Sized> {
    places: Places,
    slots: Vec<TableEntry<T>>,
}

struct TableEntry<T: ?Sized> {
    /// While there is an object.
    handle: usize,
    object: Option<Arc<T>>,
}

impl<T: ?Sized> Table<T> {
    /// An empty one.
    pub const fn new(kind: Kind) -> Table<T> {
        Table {
            kind,
            entries: RwLock::new(Entries {
                places: Places::new(MAX_OBJECTS),
                slots: Vec::new(),
            }),
        }
    }

    /// Adds an object; its handle, or `None` if there are too many.
    pub fn insert(&self, object: Arc<T>) -> Option<usize> {
        self.insert_with(|_| object)
    }

    /// Adds an object that knows its own handle.
    pub fn insert_with(&self, make: impl FnOnce(usize) -> Arc<T>) -> Option<usize> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let (index, generation) = entries.places.take()?;
        let handle = handle(self.kind, generation, index);
        let entry = TableEntry {
            handle,
            object: Some(make(handle)),
        };
        match entries.slots.get_mut(index) {
            Some(slot) => *slot = entry,
            None => entries.slots.push(entry),
        }
        Some(handle)
    }

    /// The object, if the handle is right.
    pub fn get(&self, handle: usize) -> Option<Arc<T>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.find(self.kind, handle)?.object.clone()
    }

    /// Takes the object out; the handle is stale from now on.
    pub fn remove(&self, handle: usize) -> Option<Arc<T>> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.find(self.kind, handle)?;
        let index = handle & (MAX_OBJECTS - 1);
        let object = entries.slots[index].object.take();
        entries.places.give_back(index);
        object
    }

    /// All objects that are there.
    pub fn all(&self) -> Vec<Arc<T>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let objects = entries.slots.iter().filter_map(|slot| slot.object.clone());
        objects.collect()
    }
}

impl<T: ?Sized> Entries<T> {
    fn find(&self, kind: Kind, value: usize) -> Option<&TableEntry<T>> {
        let index = index(kind, value)?;
        let slot = self.slots.get(index)?;
        (slot.handle == value && slot.object.is_some()).then_some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_leads_to_its_object_until_that_is_removed() {
        let table = Table::new(Kind::Info);
        let first = table.insert(Arc::new(1)).expect("room");
        let second = table.insert(Arc::new(2)).expect("room");
        assert!(first >= FIRST && first != second);
        assert_eq!(table.get(first).as_deref(), Some(&1));
        assert_eq!(table.remove(first).as_deref(), Some(&1));
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        let third = table.insert(Arc::new(3)).expect("room");
        assert_ne!(third, first);
        assert_eq!(table.get(third).as_deref(), Some(&3));
        assert_eq!(table.get(second).as_deref(), Some(&2));
        assert_eq!(table.get(usize::MAX), None);
    }

    #[test]
    fn a_stale_handle_leads_to_none_of_the_next_million_objects() {
        let table = Table::new(Kind::Info);
        let stale = table.insert(Arc::new(0)).expect("room");
        table.remove(stale);
        for number in 1..1 << 20 {
            let next = table.insert(Arc::new(number)).expect("room");
            assert_ne!(next, stale, "after {number} others");
            table.remove(next);
        }
        let places = table.entries.read().expect("no panic").slots.len();
        assert!(places <= MIN_RESTING + 1, "{places} places for one object");
    }

    #[test]
    fn places_that_rest_are_taken_when_there_are_no_others() {
        let mut places = Places::new(1);
        for use_ in 0..2 * GENERATIONS {
            assert_eq!(places.take(), Some((0, use_ % GENERATIONS)));
            assert_eq!(places.take(), None);
            places.give_back(0);
        }
    }
}
