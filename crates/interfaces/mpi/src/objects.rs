//! Objects behind handles.
//!
//! A handle that the library assigns is a number of 31 bits: 4 bits for the kind, 5 for the generation, 22 for the
//! index. It is checked at each use: a freed or invented handle is invalid. (After about a million more objects a stale
//! handle may refer to another object of its kind: see [`Places`].) Values below 4096 are predefined objects, which
//! each kind manages itself.

use std::collections::VecDeque;

use regatta_memory::biased::{Biased, Guard};

use crate::abi::ERR_OTHER;
use crate::error::Error;

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
    /// Objects of the tool interface.
    Tool,
    /// Keys of attributes of communicators; the next two are those of datatypes and windows. Programs hold these in an
    /// `int`.
    CommKey,
    DatatypeKey,
    WinKey,
}

const INDEX: u32 = 22;
const GENERATION: u32 = 5;
/// Number of generations that handles distinguish.
pub const GENERATIONS: u32 = 1 << GENERATION;
/// Minimum number of resting slots. A handle is reused only after this number times [`GENERATIONS`] objects.
pub const MIN_RESTING: usize = 1 << 15;
/// Position of the kind's lowest bit in a handle.
pub const KIND_SHIFT: u32 = INDEX + GENERATION;
/// The lowest value that is not a predefined handle.
pub const FIRST: usize = 0x1000;
/// Maximum number of objects of a kind at a time.
pub const MAX_OBJECTS: usize = 1 << INDEX;

/// Returns the handle of the object of a kind with this index.
pub const fn handle(kind: Kind, generation: u32, index: usize) -> usize {
    let generation = (generation % GENERATIONS) as usize;
    ((kind as usize) << GENERATION | generation) << INDEX | index
}

/// Returns the index in a handle of this kind.
#[inline(always)]
pub fn index(kind: Kind, handle: usize) -> Option<usize> {
    (handle >> KIND_SHIFT == kind as usize).then_some(handle & (MAX_OBJECTS - 1))
}

/// The slots of a table, and their generations.
///
/// The slot that was freed last is reused first. A slot that has used all its generations rests until [`MIN_RESTING`]
/// others rest too, so that a handle is not reused soon.
pub struct Places {
    /// Maximum number of slots.
    most: usize,
    generations: Vec<u8>,
    free: Vec<u32>,
    /// The slot that has rested longest is first.
    resting: VecDeque<u32>,
}

impl Places {
    /// Returns no slots, with a limit of `most`.
    pub const fn new(most: usize) -> Places {
        Places {
            most,
            generations: Vec::new(),
            free: Vec::new(),
            resting: VecDeque::new(),
        }
    }

    /// Takes a slot. Returns its index and generation, or `None` if all are in use.
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

    /// Frees a slot; its handle is invalid from now on.
    pub fn give_back(&mut self, index: usize) {
        let generation = &mut self.generations[index];
        *generation = (*generation + 1) % GENERATIONS as u8;
        match *generation {
            0 => self.resting.push_back(index as u32),
            _ => self.free.push(index as u32),
        }
    }
}

/// Returns the error of a call from a signal handler that has interrupted this thread while it had a table of objects
/// locked.
#[cold]
pub fn interrupted() -> Error {
    let text = "a signal handler called MPI while a call of MPI was in progress";
    Error::new(ERR_OTHER, text)
}

/// All objects of a kind, or values that stand for them.
///
/// A single-threaded program accesses them without an atomic instruction: the lock is [`Biased`]. So work under the
/// lock is short, and calls neither the program nor this table.
pub struct Table<V> {
    kind: Kind,
    entries: Biased<Entries<V>>,
}

struct Entries<V> {
    places: Places,
    slots: Vec<TableEntry<V>>,
}

struct TableEntry<V> {
    /// The handle of the object. It may be stale while there is no object.
    handle: usize,
    object: Option<V>,
}

impl<V> Table<V> {
    /// Returns an empty table.
    pub const fn new(kind: Kind) -> Table<V> {
        Table {
            kind,
            entries: Biased::new(Entries {
                places: Places::new(MAX_OBJECTS),
                slots: Vec::new(),
            }),
        }
    }

    /// Locks the table. Returns `None` in a signal handler that has interrupted this thread while it had the table
    /// locked.
    pub fn locked(&self) -> Option<Locked<'_, V>> {
        Some(Locked {
            kind: self.kind,
            entries: self.entries.lock().ok()?,
        })
    }

    /// Adds an object and returns its handle. Returns `None` if there are too many.
    pub fn insert(&self, object: V) -> Option<usize> {
        self.insert_with(|_| object)
    }

    /// Adds an object that `make` returns for its handle. Returns the handle, or `None` if there are too many.
    pub fn insert_with(&self, make: impl FnOnce(usize) -> V) -> Option<usize> {
        let mut entries = self.entries.lock().ok()?;
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

    /// Calls `act` with the object. Returns `None` if the handle is invalid.
    pub fn with<T>(&self, handle: usize, act: impl FnOnce(&mut V) -> T) -> Option<T> {
        self.locked()?.get(handle).map(act)
    }

    /// Returns the object. Returns `None` if the handle is invalid.
    pub fn get(&self, handle: usize) -> Option<V>
    where
        V: Clone,
    {
        self.with(handle, |object| object.clone())
    }

    /// Removes the object; its handle is invalid from now on.
    pub fn remove(&self, handle: usize) -> Option<V> {
        self.remove_if(handle, |_| true)?
    }

    /// Removes the object if `is_over` returns true for it, and returns it. Returns `None` if the handle is invalid.
    pub fn remove_if(
        &self,
        handle: usize,
        is_over: impl FnOnce(&mut V) -> bool,
    ) -> Option<Option<V>> {
        let mut locked = self.locked()?;
        // The object is dropped after the lock is released.
        match is_over(locked.get(handle)?) {
            true => Some(locked.remove(handle)),
            false => Some(None),
        }
    }

    /// Returns all objects.
    pub fn all(&self) -> Vec<V>
    where
        V: Clone,
    {
        let entries = self.entries.lock().ok();
        let slots = entries.iter().flat_map(|entries| &entries.slots);
        slots.filter_map(|slot| slot.object.clone()).collect()
    }
}

/// A locked table.
pub struct Locked<'a, V> {
    kind: Kind,
    entries: Guard<'a, Entries<V>>,
}

impl<V> Locked<'_, V> {
    /// Returns the object. Returns `None` if the handle is invalid.
    pub fn get(&mut self, handle: usize) -> Option<&mut V> {
        let slot = self.entries.slots.get_mut(index(self.kind, handle)?)?;
        slot.object.as_mut().filter(|_| slot.handle == handle)
    }

    /// Removes the object; its handle is invalid from now on.
    pub fn remove(&mut self, handle: usize) -> Option<V> {
        self.get(handle)?;
        let place = handle & (MAX_OBJECTS - 1);
        let object = self.entries.slots[place].object.take();
        self.entries.places.give_back(place);
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_leads_to_its_object_until_that_is_removed() {
        let table = Table::new(Kind::Info);
        let first = table.insert(1).expect("room");
        let second = table.insert(2).expect("room");
        assert!(first >= FIRST && first != second);
        assert_eq!(table.get(first).as_ref(), Some(&1));
        assert_eq!(table.remove(first).as_ref(), Some(&1));
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        let third = table.insert(3).expect("room");
        assert_ne!(third, first);
        assert_eq!(table.get(third).as_ref(), Some(&3));
        assert_eq!(table.get(second).as_ref(), Some(&2));
        assert_eq!(table.get(usize::MAX), None);
    }

    #[test]
    fn an_object_stays_until_its_last_user_lets_it_go() {
        let table = Table::new(Kind::Errhandler);
        let handle = table.insert(2).expect("room");
        let let_go = |users: &mut u32| {
            *users -= 1;
            *users == 0
        };
        assert_eq!(table.remove_if(handle, let_go), Some(None));
        assert_eq!(table.with(handle, |users| *users), Some(1));
        assert_eq!(table.remove_if(handle, let_go), Some(Some(0)));
        assert_eq!(table.remove_if(handle, let_go), None);
        assert_eq!(table.with(handle, |users| *users), None);
    }

    #[test]
    fn threads_add_and_remove_at_once() {
        let table = Table::new(Kind::Op);
        let work = |thread: u32| {
            for round in 0..1000 {
                let number = thread * 1000 + round;
                let handle = table.insert(number).expect("room");
                assert_eq!(table.get(handle), Some(number));
                assert_eq!(table.remove(handle), Some(number));
            }
        };
        work(0);
        std::thread::scope(|scope| {
            (1..4).for_each(|thread| drop(scope.spawn(move || work(thread))));
            work(4);
        });
        assert!(table.all().is_empty());
    }

    #[test]
    fn a_stale_handle_leads_to_none_of_the_next_million_objects() {
        let table = Table::new(Kind::Info);
        let stale = table.insert(0).expect("room");
        table.remove(stale);
        for number in 1..1 << 20 {
            let next = table.insert(number).expect("room");
            assert_ne!(next, stale, "after {number} others");
            table.remove(next);
        }
        let places = table.entries.lock().expect("no signal").slots.len();
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
