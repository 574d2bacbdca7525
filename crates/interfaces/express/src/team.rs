//! Nodes that act together: all of them, or a list.
//!
//! A list becomes a Regatta group in the first call for which its nodes use it, and the group is kept. Nodes may pass
//! the list in any order; the group depends only on the set.

use std::ffi::c_int;

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::own::Own;
use regatta_nodes::place::place;
use regatta_nodes::rg;

use crate::constants::{ALLNODES, ALLPROCS, HOST};
use crate::select::task_of;

static TEAMS: Own<Teams> = Own::new(Teams::new());

/// A list of nodes and its group.
struct Listed {
    /// The list as the program has passed it.
    given: Vec<c_int>,
    /// The origin of a broadcast, if it is not in the list.
    origin: Option<c_int>,
    /// All of these without duplicates, in ascending order: the index is the rank.
    members: Vec<c_int>,
    group: rg::Group,
}

/// All lists that have been used. They are kept as long as the nodes exist: the members would not free a group at the
/// same time.
struct Teams {
    listed: Vec<Listed>,
    /// Index of the list that was used last.
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

/// The nodes of a call.
#[derive(Clone, Copy)]
pub enum Team {
    /// All nodes.
    All,
    /// The list with this index in `Teams`.
    Listed(usize),
}

impl Team {
    /// Converts the arguments of a call. `origin` takes part even if it is not in the list.
    ///
    /// # Safety
    /// `list` has `count` numbers.
    #[inline(always)]
    pub unsafe fn read(
        count: c_int,
        list: *const c_int,
        origin: Option<c_int>,
    ) -> Result<Team, Fault> {
        if count == ALLNODES && origin != Some(HOST) && place().node >= 0 {
            return Ok(Team::All);
        }
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { Team::listed(count, list, origin) }
    }

    /// # Safety
    /// The same as for `read`.
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
                    "the host program is not a node; ALLPROCS means the nodes and the host program",
                ));
            }
            ALLNODES | ALLPROCS => {
                everybody = (HOST..place().nodes)
                    .filter(|&n| n >= 0 || n == HOST)
                    .collect();
                &everybody[..]
            }
            1.. if !list.is_null() => {
                // SAFETY: the caller guarantees that the memory is valid.
                unsafe { std::slice::from_raw_parts(list, count as usize) }
            }
            _ => return Err(Fault::says(format!("{count} nodes, but the list is NULL"))),
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

    /// Returns the number of tasks in the group.
    pub fn members(self) -> usize {
        match self {
            Team::All => place().nodes as usize,
            Team::Listed(at) => TEAMS.get().listed[at].members.len(),
        }
    }

    /// Returns the number of nodes that were named.
    pub fn named(self) -> usize {
        match self {
            Team::All => place().nodes as usize,
            Team::Listed(at) => TEAMS.get().listed[at].given.len(),
        }
    }

    /// Returns the rank of the node at this index of the list.
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

    /// Returns the rank of a node.
    pub fn rank_of(self, node: c_int) -> Result<c_int, Fault> {
        match self {
            Team::All => task_of(node).map(|_| node),
            Team::Listed(at) => {
                let members = &TEAMS.get().listed[at].members;
                let found = members.binary_search(&node).ok();
                let rank =
                    found.ok_or_else(|| Fault::says(format!("node {node} does not take part")))?;
                Ok(rank as c_int)
            }
        }
    }
}

/// Frees all groups, when the host program's nodes change: its lists refer to the old ones.
pub fn forget() {
    let teams = TEAMS.get();
    let mut groups: Vec<rg::Group> = teams.listed.iter().map(|listed| listed.group).collect();
    groups.sort_unstable_by_key(|group| group.id);
    groups.dedup_by_key(|group| group.id);
    for group in groups.into_iter().filter(|&group| group.id != rg::WORLD.id) {
        // SAFETY: the group was made by this module. If it cannot be freed, it stays.
        unsafe { rg::rg_group_free(group) };
    }
    *teams = Teams::new();
}

/// Makes the group of a list, collectively with its other nodes.
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
        // SAFETY: `tasks` has the given length, and `group` is writable.
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
