//! Trees over the members of a group: once between hosts, then within each.
//!
//! A message to another host costs some forty times one on the same host. So what goes to all, or comes from all,
//! crosses between two hosts once: between their *leaders*, the first members of each (for collectives with a root,
//! the root leads its host). Leaders form a binomial tree, and the members of each host another below their leader.

use std::hash::Hash;

use rustc_hash::FxHashSet;

use crate::engine::Engine;
use crate::error::Result;
use crate::group::GroupId;
use crate::schedule::{Step, Steps};
use crate::transport::Transport;
use regatta_memory::views::Views;

/// So many members of a host need no tree for a barrier.
const STAR: usize = 8;

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
    /// The leaders' ranks; the root's host first.
    pub(crate) leaders: Vec<u32>,
    /// Ranks on this task's host, its leader first.
    pub(crate) here: Vec<u32>,
}

impl Hosts {
    /// The members `0..size` as `rank` sees them, with `root` leading its host.
    fn of<H: Eq + Hash>(host: impl Fn(u32) -> H, size: u32, root: u32, rank: u32) -> Hosts {
        let mine = host(rank);
        let mut seen = FxHashSet::default();
        let (mut leaders, mut here) = (vec![], vec![]);
        for other in std::iter::once(root).chain((0..size).filter(|&other| other != root)) {
            let theirs = host(other);
            if theirs == mine {
                here.push(other);
            }
            if seen.insert(theirs) {
                leaders.push(other);
            }
        }
        Hosts { leaders, here }
    }

    /// Where this member's host stands among the leaders.
    pub(crate) fn number(&self) -> usize {
        let leader = self.here.first();
        let found = self.leaders.iter().position(|rank| Some(rank) == leader);
        found.unwrap_or_default()
    }

    /// The place of `rank`, which is one of `here`, in the tree of its host.
    pub(crate) fn within(&self, rank: u32) -> Tree {
        let place = self.here.iter().position(|&other| other == rank);
        binomial(self.here.len(), place.unwrap_or_default(), |at| {
            self.here[at]
        })
    }

    /// The same for words without data: few members have their leader for parent, all of them, so that none is woken for
    /// another's sake.
    fn star(&self, rank: u32) -> Tree {
        let (leader, others) = match self.here.split_first() {
            Some(parts) if self.here.len() <= STAR => parts,
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

    fn tree(&self, rank: u32) -> Tree {
        let mut tree = self.within(rank);
        if tree.parent.is_none() {
            let between = binomial(self.leaders.len(), self.number(), |at| self.leaders[at]);
            tree.parent = between.parent;
            tree.children.extend(between.children);
        }
        tree
    }
}

/// The binomial tree over `size` members, rooted at the first, at `place`; `rank` says who stands where.
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
    /// The binomial tree over all ranks as they come, wherever they are.
    pub(crate) fn flat(rank: u32, size: u32, root: u32) -> Tree {
        let place = (rank + size - root) % size;
        binomial(size as usize, place as usize, |place| {
            (place as u32 + root) % size
        })
    }
}

impl<T: Transport> Engine<T> {
    /// The members of a group by host, with `root` leading its own. `None`: all are on one.
    pub(crate) fn hosts(&self, id: GroupId, root: u32) -> Result<Option<Hosts>> {
        if self.transport.hosts() < 2 {
            return Ok(None);
        }
        let group = self.group(id)?;
        let host = |rank: u32| group.peer(rank).map(|peer| self.transport.host(peer));
        let hosts = Hosts::of(host, group.size(), root, group.rank);
        Ok((hosts.leaders.len() > 1).then_some(hosts))
    }

    /// This member's place in the tree from `root` to all members of a group.
    pub(crate) fn tree(&self, id: GroupId, root: u32) -> Result<Tree> {
        let group = self.group(id)?;
        if let Some(hosts) = self.hosts(id, root)? {
            return Ok(hosts.tree(group.rank));
        }
        Ok(Tree::flat(group.rank, group.size(), root))
    }
}

/// A barrier across hosts: all tell their leader, the leaders each other, and each leader its host.
pub(crate) fn barrier(hosts: &Hosts, rank: u32) -> Steps {
    let Tree { parent, children } = hosts.star(rank);
    let mut steps = Steps::default();
    for &child in &children {
        steps.push(Step::Receive(child, Views::none()));
    }
    steps.push(Step::Wait);
    match parent {
        Some(parent) => {
            steps.push(Step::Send(parent, Views::none()));
            steps.push(Step::Receive(parent, Views::none()));
            steps.push(Step::Wait);
        }
        None => {
            let (size, place) = (hosts.leaders.len(), hosts.number());
            let mut distance = 1;
            while distance < size {
                let after = hosts.leaders[(place + distance) % size];
                let before = hosts.leaders[(place + size - distance) % size];
                steps.push(Step::Send(after, Views::none()));
                steps.push(Step::Receive(before, Views::none()));
                steps.push(Step::Wait);
                distance *= 2;
            }
        }
    }
    let told = children.iter().rev();
    steps.extend(told.map(|&child| Step::Send(child, Views::none())));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tree_reaches_everybody_once_and_crosses_to_each_host_once(
            host_of in prop::collection::vec(0u32..5, 1..40), root in any::<usize>(),
        ) {
            let size = host_of.len() as u32;
            let root = (root % host_of.len()) as u32;
            let trees: Vec<Tree> = (0..size).map(|rank| Hosts::of(|other| host_of[other as usize], size, root, rank).tree(rank)).collect();
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
