//! Queues found by key: the data structure under matching.
//!
//! Every entry stands in `M` first-in-first-out lists at once, each found by a key through a hash
//! table. Insert, front, and remove of any entry are O(1) in the number of entries, which is what
//! keeps matching independent of how many receives are posted or messages are waiting.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

/// Context, source, tag; with [`ANY_SOURCE`] or [`ANY_TAG`] where a list does not tell them apart.
pub type Key = (u32, u32, i32);

/// In a key: any source.
pub const ANY_SOURCE: u32 = u32::MAX;
/// In a key: any tag.
pub const ANY_TAG: i32 = -1;

const NIL: u32 = u32::MAX;

struct Node<const M: usize, T> {
    value: Option<T>,
    keys: [Key; M],
    /// (previous, next) in each list; in a free node `links[0].1` is the next free one.
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
    /// Bytes of an entry.
    pub(crate) const ENTRY: usize = size_of::<Node<M, T>>();
    /// Bytes of a list, in a table that is half full.
    pub(crate) const LIST: usize = 2 * size_of::<(Key, (u32, u32))>() + 2;

    /// How many entries.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// No entries?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Append to the lists `keys` name; the entry's number is valid until it is removed.
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

    /// The oldest entry of a list.
    #[inline(always)]
    pub fn front(&self, list: usize, key: Key) -> Option<u32> {
        self.lists[list].get(&key).map(|&(first, _)| first)
    }

    /// The entry after `id` in a list.
    pub fn after(&self, list: usize, id: u32) -> Option<u32> {
        let next = self.nodes[id as usize].links[list].1;
        (next != NIL).then_some(next)
    }

    /// Entries are older the smaller this is.
    #[inline(always)]
    pub fn age(&self, id: u32) -> u64 {
        self.nodes[id as usize].age
    }

    /// The age that the next entry will have: all entries are older.
    #[inline(always)]
    pub fn next_age(&self) -> u64 {
        self.born
    }

    /// Look at an entry.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.nodes.get(id as usize)?.value.as_ref()
    }

    /// Change an entry's value.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.nodes.get_mut(id as usize)?.value.as_mut()
    }

    /// Take an entry out of all its lists.
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

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let values = self.nodes.iter().enumerate();
        values.filter_map(|(id, node)| Some((id as u32, node.value.as_ref()?)))
    }
}
