//! Trees over the members of a group, first between hosts, then within each host.
//!
//! A message to another host costs about forty times as much as one on the same host. So data that goes to all members, or comes from all, crosses
//! between two hosts once: between their *leaders*, the first members of each host (for collectives with a root, the root leads its host). The
//! leaders form a binomial tree, and the members of each host form another one below their leader.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Maximum number of members, or hosts, among which short messages use a star instead of a tree.
const STAR: usize = 8;
/// Maximum length of a message for which hosts use a star, in bytes.
const STAR_BYTES: usize = 128;

/// A member's position in a tree of ranks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    /// `None` if this member is the root.
    pub(crate) parent: Option<u32>,
    /// The child with the deepest subtree is last.
    pub(crate) children: Vec<u32>,
}

/// The members of a group, by host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hosts {
    /// The ranks on each host, beginning with its leader. The root's host is first.
    lists: Vec<Vec<u32>>,
    /// Index of this task's host.
    number: usize,
}

impl Hosts {
    /// Groups the members `0..size` by host, as seen by `rank`, with `root` as the leader of its host.
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

    /// Returns one host that has all members.
    pub(crate) fn one(size: u32) -> Hosts {
        Hosts {
            lists: vec![(0..size).collect()],
            number: 0,
        }
    }

    /// Returns the number of hosts.
    pub(crate) fn count(&self) -> usize {
        self.lists.len()
    }

    /// Returns the index of this member's host.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Returns the rank of a host's leader.
    pub(crate) fn leader(&self, number: usize) -> u32 {
        self.lists[number][0]
    }

    /// Returns the ranks on a host, beginning with its leader.
    pub(crate) fn list(&self, number: usize) -> &[u32] {
        &self.lists[number]
    }

    /// Returns the ranks on this member's host, beginning with its leader.
    pub(crate) fn here(&self) -> &[u32] {
        &self.lists[self.number]
    }

    /// Returns the ranks with index `place` on their hosts. Hosts with fewer members are skipped.
    pub(crate) fn across(&self, place: usize) -> impl Iterator<Item = u32> {
        self.lists
            .iter()
            .filter_map(move |list| list.get(place).copied())
    }

    /// Returns the number of members of the host that has fewest.
    pub(crate) fn fewest(&self) -> usize {
        self.lists.iter().map(Vec::len).min().unwrap_or_default()
    }

    pub(crate) fn most(&self) -> usize {
        self.lists.iter().map(Vec::len).max().unwrap_or_default()
    }

    /// Returns the index of `rank` among the members of this host.
    pub(crate) fn place(&self, rank: u32) -> usize {
        let found = self.here().iter().position(|&other| other == rank);
        found.unwrap_or_default()
    }

    /// Returns the position of `rank`, which is on this host, in the tree of this host.
    pub(crate) fn within(&self, rank: u32) -> Tree {
        let here = self.here();
        binomial(here.len(), self.place(rank), |at| here[at])
    }

    /// Returns the position of `rank` in the tree for messages without data. If the host has few members, their leader is the parent of all, so that
    /// no member is woken only to pass a message on.
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
    /// A tree with few steps, in which each leader sends few messages.
    Binomial,
    /// The root's host is the parent of all others, so that one frame may go to all of them.
    Star,
}

impl Between {
    /// Returns the form for a message of this many bytes to this many hosts. All members choose the same. Seven sends one after the other take about
    /// as long as three steps of a tree, and less if they are sent as one frame. For longer messages, every copy takes time.
    pub(crate) fn for_message(bytes: usize, hosts: usize) -> Between {
        match bytes <= STAR_BYTES && hosts <= STAR {
            true => Between::Star,
            false => Between::Binomial,
        }
    }
}

/// Returns the position `place` in the tree in which the first of `size` members is the parent of all others. `rank` is as for [`binomial`].
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

/// Returns the position `place` in the binomial tree of `size` members whose root is position 0. `rank` returns the rank at a position.
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
    /// Returns this rank's position in the tree for a reduction within a host. The root of few members is the parent of all: it combines operands
    /// while others send theirs, and no member is woken only to pass sums on.
    pub(crate) fn near(rank: u32, size: u32, root: u32) -> Tree {
        let place = (rank + size - root) % size;
        match size as usize {
            members @ ..=STAR => star(members, place as usize, |at| (at as u32 + root) % size),
            _ => Tree::flat(rank, size, root),
        }
    }

    /// Returns this rank's position in the binomial tree of all ranks, regardless of hosts.
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

    #[test]
    fn few_members_on_a_host_reduce_straight_to_the_root() {
        for rank in 0..4 {
            let tree = Tree::near(rank, 4, 1);
            let expected = match rank {
                1 => (None, vec![2, 3, 0]),
                _ => (Some(1), vec![]),
            };
            assert_eq!((tree.parent, tree.children), expected);
        }
        let many = STAR as u32 + 1;
        assert_eq!(Tree::near(0, many, 0), Tree::flat(0, many, 0));
    }

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
