//! Queues found by key: the data structure under matching.
//!
//! Every entry is in `M` first-in-first-out lists at once, each found by a key through a hash table. Inserting, finding the front, and removing any
//! entry take constant time, whatever the number of entries. So the cost of matching does not depend on how many receives are posted or messages are
//! waiting.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

/// Context, source and tag. [`ANY_SOURCE`] or [`ANY_TAG`] in lists that do not distinguish sources or tags.
pub type Key = (u32, u32, i32);

/// Stands for any source in a key.
pub const ANY_SOURCE: u32 = u32::MAX;
/// Stands for any tag in a key.
pub const ANY_TAG: i32 = -1;

const NIL: u32 = u32::MAX;

struct Node<const M: usize, T> {
    value: Option<T>,
    keys: [Key; M],
    /// (previous, next) in each list. In a free node, `links[0].1` is the next free node.
    links: [(u32, u32); M],
    age: u64,
}

/// Queues found by any of `M` keys.
pub struct Index<const M: usize, T> {
    nodes: Vec<Node<M, T>>,
    free: u32,
    lists: [FxHashMap<Key, (u32, u32)>; M],
    len: usize,
    born: u64,
}

impl<const M: usize, T> Default for Index<M, T> {
    fn default() -> Self {
        Index {
            nodes: Vec::new(),
            free: NIL,
            lists: std::array::from_fn(|_| FxHashMap::default()),
            len: 0,
            born: 0,
        }
    }
}

impl<const M: usize, T> Index<M, T> {
    /// Size of an entry, in bytes.
    pub(crate) const ENTRY: usize = size_of::<Node<M, T>>();
    /// Size of a list in a hash table that is half full, in bytes.
    pub(crate) const LIST: usize = 2 * size_of::<(Key, (u32, u32))>() + 2;

    /// Returns the number of entries.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no entries.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends an entry to the lists with these keys. Returns its number, which is valid until the entry is removed.
    pub fn insert(&mut self, keys: [Key; M], value: T) -> u32 {
        let node = Node {
            value: Some(value),
            keys,
            links: [(NIL, NIL); M],
            age: self.born,
        };
        self.born += 1;
        self.len += 1;
        let id = if self.free == NIL {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            let id = self.free;
            self.free = self.nodes[id as usize].links[0].1;
            self.nodes[id as usize] = node;
            id
        };
        for (list, &key) in keys.iter().enumerate() {
            match self.lists[list].entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert((id, id));
                }
                Entry::Occupied(mut entry) => {
                    let last = entry.get().1;
                    entry.get_mut().1 = id;
                    self.nodes[last as usize].links[list].1 = id;
                    self.nodes[id as usize].links[list].0 = last;
                }
            }
        }
        id
    }

    /// Returns the oldest entry of a list.
    #[inline(always)]
    pub fn front(&self, list: usize, key: Key) -> Option<u32> {
        self.lists[list].get(&key).map(|&(first, _)| first)
    }

    /// Returns the entry after `id` in a list.
    pub fn after(&self, list: usize, id: u32) -> Option<u32> {
        let next = self.nodes[id as usize].links[list].1;
        (next != NIL).then_some(next)
    }

    /// Returns the age of an entry: the smaller, the older.
    #[inline(always)]
    pub fn age(&self, id: u32) -> u64 {
        self.nodes[id as usize].age
    }

    /// Returns the age of the next entry to be inserted. All existing entries have smaller ages.
    #[inline(always)]
    pub fn next_age(&self) -> u64 {
        self.born
    }

    /// Returns the value of an entry.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.nodes.get(id as usize)?.value.as_ref()
    }

    /// Returns the value of an entry, to change it.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.nodes.get_mut(id as usize)?.value.as_mut()
    }

    /// Removes an entry from all its lists and returns its value.
    pub fn remove(&mut self, id: u32) -> Option<T> {
        let node = self.nodes.get_mut(id as usize)?;
        let value = node.value.take()?;
        let (keys, links) = (node.keys, node.links);
        for (list, &key) in keys.iter().enumerate() {
            let (before, after) = links[list];
            if before != NIL {
                self.nodes[before as usize].links[list].1 = after;
            }
            if after != NIL {
                self.nodes[after as usize].links[list].0 = before;
            }
            if before == NIL || after == NIL {
                self.mend_ends(list, key, before, after);
            }
        }
        self.nodes[id as usize].links[0].1 = self.free;
        self.free = id;
        self.len -= 1;
        Some(value)
    }

    fn mend_ends(&mut self, list: usize, key: Key, before: u32, after: u32) {
        if before == NIL && after == NIL {
            self.lists[list].remove(&key);
        } else if let Some(ends) = self.lists[list].get_mut(&key) {
            if before == NIL {
                ends.0 = after;
            } else {
                ends.1 = before;
            }
        }
    }

    /// Returns all entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let values = self.nodes.iter().enumerate();
        values.filter_map(|(id, node)| Some((id as u32, node.value.as_ref()?)))
    }
}
