//! Trees over the members of a group: once between hosts, then within each.
//!
//! A message to another host costs some forty times one on the same host. So what goes to all, or comes from all,
//! crosses between two hosts once: between their *leaders*, the first members of each (for collectives with a root,
//! the root leads its host). Leaders form a binomial tree, and the members of each host another below their leader.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Maximum number of members, or hosts, that have no tree among them for what is short.
const STAR: usize = 8;
/// Maximum length, in bytes, of a message for which hosts have none.
const STAR_BYTES: usize = 128;

/// A member's place in a tree of ranks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Nobody: this is the root.
    pub(crate) parent: Option<u32>,
    /// The one with the deepest subtree last.
    pub(crate) children: Vec<u32>,
}

/// The members by host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hosts {
    /// The ranks on each host, its leader first; the root's host first.
    lists: Vec<Vec<u32>>,
    /// Which of them this task is on.
    number: usize,
}

impl Hosts {
    /// Returns the members `0..size` as `rank` sees them, with `root` leading its host.
    pub(crate) fn of<H: Eq + Hash>(
        host: impl Fn(u32) -> H,
        size: u32,
        root: u32,
        rank: u32,
    ) -> Hosts {
        let mut known = FxHashMap::default();
        let mut lists: Vec<Vec<u32>> = vec![];
        for other in std::iter::once(root).chain((0..size).filter(|&other| other != root)) {
            let number = *known.entry(host(other)).or_insert(lists.len());
            match lists.get_mut(number) {
                Some(list) => list.push(other),
                None => lists.push(vec![other]),
            }
        }
        let number = known.get(&host(rank)).copied().unwrap_or_default();
        Hosts { lists, number }
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.lists.len()
    }

    /// Returns which of them this member is on.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Returns the rank that leads a host.
    pub(crate) fn leader(&self, number: usize) -> u32 {
        self.lists[number][0]
    }

    /// Returns the ranks on a host, its leader first.
    pub(crate) fn list(&self, number: usize) -> &[u32] {
        &self.lists[number]
    }

    /// Returns the ranks on this member's host, its leader first.
    pub(crate) fn here(&self) -> &[u32] {
        &self.lists[self.number]
    }

    /// Returns the ranks in place `place` of every host, as far as all have this many members.
    pub(crate) fn across(&self, place: usize) -> impl Iterator<Item = u32> {
        self.lists
            .iter()
            .filter_map(move |list| list.get(place).copied())
    }

    /// Returns the number of members of the host that has fewest, and of the one that has most.
    pub(crate) fn fewest(&self) -> usize {
        self.lists.iter().map(Vec::len).min().unwrap_or_default()
    }

    pub(crate) fn most(&self) -> usize {
        self.lists.iter().map(Vec::len).max().unwrap_or_default()
    }

    /// Returns the place of `rank`, which is on this host, among its members there.
    pub(crate) fn place(&self, rank: u32) -> usize {
        let found = self.here().iter().position(|&other| other == rank);
        found.unwrap_or_default()
    }

    /// Returns the place of `rank`, which is on this host, in the tree of its host.
    pub(crate) fn within(&self, rank: u32) -> Tree {
        let here = self.here();
        binomial(here.len(), self.place(rank), |at| here[at])
    }

    /// Returns the place of `rank` in the tree for words without data: if there are few members, their leader is the parent of all, so that none is woken for
    /// another's sake.
    pub(crate) fn star(&self, rank: u32) -> Tree {
        let (leader, others) = match self.here().split_first() {
            Some(parts) if self.here().len() <= STAR => parts,
            _ => return self.within(rank),
        };
        match rank == *leader {
            true => Tree {
                parent: None,
                children: others.to_vec(),
            },
            false => Tree {
                parent: Some(*leader),
                children: vec![],
            },
        }
    }

    pub(crate) fn tree(&self, rank: u32, between: Between) -> Tree {
        let mut tree = self.within(rank);
        if tree.parent.is_none() {
            let leader = |at| self.leader(at);
            let between = match between {
                Between::Binomial => binomial(self.count(), self.number, leader),
                Between::Star => star(self.count(), self.number, leader),
            };
            tree.parent = between.parent;
            tree.children.extend(between.children);
        }
        tree
    }
}

/// The form of a tree between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    /// Few steps, and few messages of each leader.
    Binomial,
    /// The root's is the parent of all, so that one frame may go to them all.
    Star,
}

impl Between {
    /// Returns the form for a message of this many bytes to all of this many hosts, which all members choose alike. Seven sends one after the other take about as
    /// long as three steps of a tree, and less if they go as one frame; of a longer message each copy takes its time.
    pub(crate) fn for_message(bytes: usize, hosts: usize) -> Between {
        match bytes <= STAR_BYTES && hosts <= STAR {
            true => Between::Star,
            false => Between::Binomial,
        }
    }
}

/// Returns the tree in which the first of `size` members is the parent of all others; as [`binomial`].
fn star(size: usize, place: usize, rank: impl Fn(usize) -> u32) -> Tree {
    match place {
        0 => Tree {
            parent: None,
            children: (1..size).map(rank).collect(),
        },
        _ => Tree {
            parent: Some(rank(0)),
            children: vec![],
        },
    }
}

/// Returns the binomial tree over `size` members, rooted at the first, at `place`; `rank` says who stands where.
fn binomial(size: usize, place: usize, rank: impl Fn(usize) -> u32) -> Tree {
    let mut tree = Tree::default();
    let mut bit = 1;
    while bit < size && place & bit == 0 {
        if place + bit < size {
            tree.children.push(rank(place + bit));
        }
        bit *= 2;
    }
    tree.parent = (place != 0).then(|| rank(place & (place - 1)));
    tree
}

impl Tree {
    /// Returns the binomial tree over all ranks as they come, wherever they are.
    pub(crate) fn flat(rank: u32, size: u32, root: u32) -> Tree {
        let place = (rank + size - root) % size;
        binomial(size as usize, place as usize, |place| {
            (place as u32 + root) % size
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tree_reaches_everybody_once_and_crosses_to_each_host_once(
            host_of in prop::collection::vec(0u32..5, 1..40), root in any::<usize>(), star: bool,
        ) {
            let between = if star { Between::Star } else { Between::Binomial };
            let size = host_of.len() as u32;
            let root = (root % host_of.len()) as u32;
            let trees: Vec<Tree> = (0..size).map(|rank| Hosts::of(|other| host_of[other as usize], size, root, rank).tree(rank, between)).collect();
            let mut crossings = 0;
            let mut reached = vec![false; host_of.len()];
            let mut next = vec![root];
            while let Some(rank) = next.pop() {
                prop_assert!(!std::mem::replace(&mut reached[rank as usize], true));
                for &child in &trees[rank as usize].children {
                    prop_assert_eq!(trees[child as usize].parent, Some(rank));
                    crossings += (host_of[child as usize] != host_of[rank as usize]) as usize;
                    next.push(child);
                }
            }
            prop_assert!(reached.into_iter().all(|reached| reached));
            let mut hosts = host_of.clone();
            hosts.sort();
            hosts.dedup();
            prop_assert_eq!(crossings, hosts.len() - 1);
        }
    }
}
