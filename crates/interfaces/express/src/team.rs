//! Nodes that act together: all of them, or a list.
//!
//! A list becomes a group of Regatta's when its nodes call together for the first time, and stays one: all of them make it in
//! the same call. Nodes may name the list in any order; the group is of the set.

use std::ffi::c_int;

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::own::Own;
use regatta_nodes::place::place;
use regatta_nodes::rg;

use crate::constants::{ALLNODES, ALLPROCS, HOST};
use crate::select::task_of;

static TEAMS: Own<Teams> = Own::new(Teams::new());

/// A list, and its group.
struct Listed {
    /// As the program has given it.
    given: Vec<c_int>,
    /// The origin of a broadcast that is not in the list.
    origin: Option<c_int>,
    /// All of these in order, each once: by their ranks.
    members: Vec<c_int>,
    group: rg::Group,
}

/// All lists that have been used. None is forgotten as long as its nodes are there: they would not forget it at the same time.
struct Teams {
    listed: Vec<Listed>,
    /// The one that was used last.
    last: usize,
}

impl Teams {
    const fn new() -> Teams {
        Teams {
            listed: Vec::new(),
            last: 0,
        }
    }

    fn find(&mut self, list: &[c_int], origin: Option<c_int>) -> Option<usize> {
        let is = |listed: &Listed| listed.origin == origin && listed.given == list;
        if self.listed.get(self.last).is_some_and(is) {
            return Some(self.last);
        }
        self.last = self.listed.iter().position(is)?;
        Some(self.last)
    }
}

/// Nodes of a call.
#[derive(Clone, Copy)]
pub enum Team {
    /// All nodes.
    All,
    /// A list of `Teams`.
    Listed(usize),
}

impl Team {
    /// From the arguments of a call. `origin` takes part, though the list may lack it.
    ///
    /// # Safety
    /// As many numbers as there are said to be.
    #[inline(always)]
    pub unsafe fn read(
        count: c_int,
        list: *const c_int,
        origin: Option<c_int>,
    ) -> Result<Team, Fault> {
        if count == ALLNODES && origin != Some(HOST) && place().node >= 0 {
            return Ok(Team::All);
        }
        // SAFETY: the caller's.
        unsafe { Team::listed(count, list, origin) }
    }

    /// # Safety
    /// As of `read`.
    #[inline(never)]
    unsafe fn listed(
        count: c_int,
        list: *const c_int,
        origin: Option<c_int>,
    ) -> Result<Team, Fault> {
        let everybody: Vec<c_int>;
        let list = match count {
            ALLNODES if origin != Some(HOST) => {
                return Err(Fault::says(
                    "the host program is none of the nodes; ALLPROCS are the nodes and the host program",
                ));
            }
            ALLNODES | ALLPROCS => {
                everybody = (HOST..place().nodes)
                    .filter(|&n| n >= 0 || n == HOST)
                    .collect();
                &everybody[..]
            }
            1.. if !list.is_null() => {
                // SAFETY: the caller's.
                unsafe { std::slice::from_raw_parts(list, count as usize) }
            }
            _ => return Err(Fault::says(format!("{count} nodes in no list"))),
        };
        let origin = origin.filter(|origin| !list.contains(origin));
        match TEAMS.get().find(list, origin) {
            Some(at) => Ok(Team::Listed(at)),
            None => make(list, origin),
        }
    }

    pub fn group(self) -> rg::Group {
        match self {
            Team::All => rg::WORLD,
            Team::Listed(at) => TEAMS.get().listed[at].group,
        }
    }

    /// How many tasks the group has.
    pub fn members(self) -> usize {
        match self {
            Team::All => place().nodes as usize,
            Team::Listed(at) => TEAMS.get().listed[at].members.len(),
        }
    }

    /// How many nodes were named.
    pub fn named(self) -> usize {
        match self {
            Team::All => place().nodes as usize,
            Team::Listed(at) => TEAMS.get().listed[at].given.len(),
        }
    }

    /// The rank of the node that was named in this place.
    pub fn rank_at(self, place: usize) -> usize {
        match self {
            Team::All => place,
            Team::Listed(at) => {
                let listed = &TEAMS.get().listed[at];
                let found = listed.members.binary_search(&listed.given[place]);
                found.unwrap_or_default()
            }
        }
    }

    /// The rank of a node.
    pub fn rank_of(self, node: c_int) -> Result<c_int, Fault> {
        match self {
            Team::All => task_of(node).map(|_| node),
            Team::Listed(at) => {
                let members = &TEAMS.get().listed[at].members;
                let found = members.binary_search(&node).ok();
                let rank =
                    found.ok_or_else(|| Fault::says(format!("node {node} takes no part")))?;
                Ok(rank as c_int)
            }
        }
    }
}

/// Other nodes have these numbers from now on: the host program's lists are of the old ones.
pub fn forget() {
    let teams = TEAMS.get();
    let mut groups: Vec<rg::Group> = teams.listed.iter().map(|listed| listed.group).collect();
    groups.sort_unstable_by_key(|group| group.id);
    groups.dedup_by_key(|group| group.id);
    for group in groups.into_iter().filter(|&group| group.id != rg::WORLD.id) {
        // SAFETY: a group of ours. If it cannot be forgotten it stays.
        unsafe { rg::rg_group_free(group) };
    }
    *teams = Teams::new();
}

/// Makes the group of a list, together with its other nodes.
#[cold]
fn make(list: &[c_int], origin: Option<c_int>) -> Result<Team, Fault> {
    let mut members = list.to_vec();
    members.extend(origin);
    members.sort_unstable();
    members.dedup();
    let tasks = members.iter().map(|&node| task_of(node));
    let tasks = tasks.collect::<Result<Vec<c_int>, Fault>>()?;
    let place = place();
    if members.binary_search(&place.node).is_err() {
        return Err(Fault::says("this node is not in the list"));
    }
    let known = TEAMS.get().listed.iter();
    let known = known.filter(|listed| listed.members == members);
    let mut group = rg::WORLD;
    if let Some(same) = known.map(|listed| listed.group).next() {
        group = same;
    } else if !members.iter().copied().eq(0..place.nodes) {
        // SAFETY: as many tasks as are said, and a place for the group.
        checked(unsafe {
            rg::rg_group_select(rg::ALL, tasks.len() as c_int, tasks.as_ptr(), &mut group)
        })?;
    }
    let teams = TEAMS.get();
    teams.last = teams.listed.len();
    teams.listed.push(Listed {
        given: list.to_vec(),
        origin,
        members,
        group,
    });
    Ok(Team::Listed(teams.last))
}
