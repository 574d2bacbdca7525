//! Objects behind handles.
//!
//! A handle that the library gives out is a number of 31 bits: four bits of kind, five of generation, 22 of index. It is
//! checked at each use: one that was freed, or never was, leads to nothing. (After 32 further objects in one place a stale handle
//! may lead to another object of its kind.) Values below 4096 are predefined objects, which each kind keeps by itself.

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
/// How far the kind is from the lowest bit of a handle.
pub const KIND_SHIFT: u32 = INDEX + GENERATION;
/// The first value that is no predefined handle.
pub const FIRST: usize = 0x1000;
/// Most objects of a kind at a time.
pub const MOST: usize = 1 << INDEX;

/// The handle of the object of a kind in this place.
pub const fn handle(kind: Kind, generation: u32, index: usize) -> usize {
    let generation = generation as usize & ((1 << GENERATION) - 1);
    ((kind as usize) << GENERATION | generation) << INDEX | index
}

/// The place that a handle of this kind names, if it is one.
#[inline(always)]
pub fn index(kind: Kind, handle: usize) -> Option<usize> {
    (handle >> KIND_SHIFT == kind as usize).then_some(handle & (MOST - 1))
}

/// All objects of a kind.
pub struct Table<T: ?Sized> {
    kind: Kind,
    entries: RwLock<Entries<T>>,
}

struct Entries<T: ?Sized> {
    slots: Vec<TableEntry<T>>,
    free: Vec<usize>,
}

struct TableEntry<T: ?Sized> {
    generation: u32,
    object: Option<Arc<T>>,
}

impl<T: ?Sized> Table<T> {
    /// An empty one.
    pub const fn new(kind: Kind) -> Table<T> {
        Table {
            kind,
            entries: RwLock::new(Entries {
                slots: Vec::new(),
                free: Vec::new(),
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
        let index = match entries.free.pop() {
            Some(index) => index,
            None if entries.slots.len() < MOST => {
                entries.slots.push(TableEntry {
                    generation: 0,
                    object: None,
                });
                entries.slots.len() - 1
            }
            None => return None,
        };
        let slot = &mut entries.slots[index];
        let handle = handle(self.kind, slot.generation, index);
        slot.object = Some(make(handle));
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
        let index = handle & (MOST - 1);
        let slot = &mut entries.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        let object = slot.object.take();
        entries.free.push(index);
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
        (handle(kind, slot.generation, index) == value).then_some(slot)
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
}
