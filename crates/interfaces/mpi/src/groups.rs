//! Groups: ordered sets of processes.

use std::ffi::c_int;

use regatta_sys as rg;
use rustc_hash::FxHashMap;

use crate::abi::*;
use crate::communicator::Members;
use crate::error::{Error, Result, checked};
use crate::objects::{Kind, Table};
use crate::process;

static GROUPS: Table<Members> = Table::new(Kind::Group);

/// Makes a group. An empty one is MPI_GROUP_EMPTY.
pub fn make(members: Members) -> Result<Group> {
    if members.is_empty() {
        return Ok(GROUP_EMPTY);
    }
    let made = GROUPS.insert(members);
    made.map(Group)
        .ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many groups"))
}

/// Returns the members of a group.
pub fn get(group: Group) -> Result<Members> {
    if group == GROUP_EMPTY {
        return Ok(Members::from(Vec::new()));
    }
    GROUPS.get(group.0).ok_or_else(|| none(group))
}

/// Frees a group.
pub fn remove(group: Group) -> Result {
    match group {
        GROUP_EMPTY => Ok(()),
        _ => GROUPS.remove(group.0).map(drop).ok_or_else(|| none(group)),
    }
}

#[cold]
fn none(group: Group) -> Error {
    if let Err(error) = process::require() {
        return error;
    }
    let text = match group {
        GROUP_NULL => "the group is MPI_GROUP_NULL".to_owned(),
        Group(value) => format!("{value:#x} is not a valid group; it may have been freed"),
    };
    Error::new(ERR_GROUP, text)
}

/// Returns this process's rank among the members, or MPI_UNDEFINED.
pub fn own_rank(members: &Members) -> Result<c_int> {
    // SAFETY: the call has no arguments and no preconditions.
    let own = unsafe { rg::rg_tid() };
    checked(own)?;
    Ok(members.rank_of(own).unwrap_or(UNDEFINED))
}

/// Maximum number of members for which a linear search is used.
const MAX_LINEAR_SEARCH_MEMBERS: usize = 8;

/// An index of the ranks of members by task number.
enum Ranks<'a> {
    /// Consecutive task numbers, as tasks have that are started together: the first one, and their number.
    Row(c_int, c_int),
    Few(&'a Members),
    Many(FxHashMap<c_int, c_int>),
}

impl Ranks<'_> {
    fn of(members: &Members) -> Ranks<'_> {
        let in_row = |pair: &[c_int]| pair[0].checked_add(1) == Some(pair[1]);
        match members.first() {
            Some(&first) if members.windows(2).all(in_row) => {
                Ranks::Row(first, members.len() as c_int)
            }
            _ if members.len() <= MAX_LINEAR_SEARCH_MEMBERS => Ranks::Few(members),
            _ => Ranks::Many(members.iter().copied().zip(0..).collect()),
        }
    }

    fn find(&self, task: c_int) -> Option<c_int> {
        match self {
            Ranks::Row(first, count) => {
                let rank = task.checked_sub(*first)?;
                (0..*count).contains(&rank).then_some(rank)
            }
            Ranks::Few(members) => members.rank_of(task),
            Ranks::Many(ranks) => ranks.get(&task).copied(),
        }
    }

    fn has(&self, task: c_int) -> bool {
        self.find(task).is_some()
    }
}

/// Returns the members of both groups, those of the first one first.
pub fn union(first: &Members, second: &Members) -> Members {
    let known = Ranks::of(first);
    let others = second.iter().copied().filter(|&it| !known.has(it));
    let all: Vec<c_int> = first.iter().copied().chain(others).collect();
    all.into()
}

/// Returns the members of the first group that are in the second (`among`) or are not.
pub fn filtered(first: &Members, second: &Members, among: bool) -> Members {
    let known = Ranks::of(second);
    let chosen = first.iter().copied();
    let chosen: Vec<c_int> = chosen.filter(|&it| known.has(it) == among).collect();
    chosen.into()
}

/// Compares two groups: MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
pub fn compare(first: &Members, second: &Members) -> c_int {
    if first.is_same_list(second) {
        return IDENT;
    }
    let are_similar = || {
        let known = Ranks::of(first);
        second.iter().all(|&it| known.has(it))
    };
    match first == second {
        true => IDENT,
        // No process is in a group twice.
        false if first.len() == second.len() && are_similar() => SIMILAR,
        false => UNEQUAL,
    }
}

/// Translates ranks of the first group to ranks of the second, or MPI_UNDEFINED.
pub fn translate(first: &Members, ranks: &[c_int], second: &Members) -> Result<Vec<c_int>> {
    let known = match ranks.len() {
        0..4 => Ranks::Few(second),
        _ => Ranks::of(second),
    };
    let one = |&rank: &c_int| match rank {
        PROC_NULL => Ok(PROC_NULL),
        _ => Ok(known.find(member(first, rank)?).unwrap_or(UNDEFINED)),
    };
    ranks.iter().map(one).collect()
}

/// Returns the task with a rank.
fn member(members: &Members, rank: c_int) -> Result<c_int> {
    let found = usize::try_from(rank).ok().and_then(|it| members.get(it));
    found.copied().ok_or_else(|| {
        let size = members.len();
        Error::new(
            ERR_RANK,
            format!("rank {rank} is not in the group, which has {size} processes"),
        )
    })
}

/// Returns the members with these ranks. Fails if a rank occurs twice.
pub fn included(members: &Members, ranks: &[c_int]) -> Result<Members> {
    let chosen: Vec<c_int> = each(members, ranks)?;
    Ok(chosen.into())
}

/// Returns the members except those with these ranks. Fails if a rank occurs twice.
pub fn excluded(members: &Members, ranks: &[c_int]) -> Result<Members> {
    let left_out = Members::from(each(members, ranks)?);
    Ok(filtered(members, &left_out, false))
}

fn each(members: &Members, ranks: &[c_int]) -> Result<Vec<c_int>> {
    let mut seen = vec![false; members.len()];
    let one = |&rank: &c_int| {
        let task = member(members, rank)?;
        match std::mem::replace(&mut seen[rank as usize], true) {
            false => Ok(task),
            true => Err(Error::new(ERR_RANK, format!("rank {rank} is given twice"))),
        }
    };
    ranks.iter().map(one).collect()
}

/// Expands ranges of first rank, last rank and stride to ranks.
pub fn expand(ranges: &[[c_int; 3]], size: usize) -> Result<Vec<c_int>> {
    let mut ranks = Vec::new();
    for &[first, last, stride] in ranges {
        for rank in [first, last] {
            // The last rank need not be reached, but must be a rank of the group.
            if usize::try_from(rank).is_ok_and(|rank| rank < size) {
                continue;
            }
            let text = format!("a range ends at rank {rank}; the group has {size} processes");
            return Err(Error::new(ERR_RANK, text));
        }
        let leads = match stride {
            0 => false,
            1.. => first <= last,
            _ => first >= last,
        };
        if !leads {
            let text =
                format!("a range from {first} to {last} with stride {stride} is empty or endless");
            return Err(Error::new(ERR_ARG, text));
        }
        let (mut rank, last, step) = (i64::from(first), i64::from(last), i64::from(stride));
        while (step > 0 && rank <= last) || (step < 0 && rank >= last) {
            ranks.push(rank as c_int);
            rank += step;
        }
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(tasks: &[c_int]) -> Members {
        tasks.to_vec().into()
    }

    #[test]
    fn sets_keep_the_order_of_the_first() {
        let (first, second) = (members(&[4, 2, 7]), members(&[7, 9, 4]));
        assert_eq!(union(&first, &second), members(&[4, 2, 7, 9]));
        assert_eq!(filtered(&first, &second, true), members(&[4, 7]));
        assert_eq!(filtered(&first, &second, false), members(&[2]));
        assert_eq!(compare(&first, &members(&[2, 4, 7])), SIMILAR);
        assert_eq!(compare(&first, &second), UNEQUAL);
        assert_eq!(
            translate(&first, &[2, 1, PROC_NULL, 0], &second).expect("ranks"),
            [0, UNDEFINED, PROC_NULL, 2]
        );
        assert_eq!(included(&first, &[2, 0]).expect("ranks"), members(&[7, 4]));
        assert_eq!(excluded(&first, &[0]).expect("ranks"), members(&[2, 7]));
        assert!(included(&first, &[1, 1]).is_err() && included(&first, &[3]).is_err());
    }

    #[test]
    fn members_are_found_in_rows_and_in_any_order() {
        let row = members(&(5..40).collect::<Vec<_>>());
        let backward = members(&(5..40).rev().collect::<Vec<_>>());
        let ranks: Vec<c_int> = (0..35).collect();
        let mirrored: Vec<c_int> = (0..35).rev().collect();
        assert_eq!(translate(&row, &ranks, &backward).expect("ranks"), mirrored);
        assert_eq!(translate(&backward, &ranks, &row).expect("ranks"), mirrored);
        assert_eq!(compare(&row, &backward), SIMILAR);
        let beside = members(&[4, 5, 39, 40, c_int::MAX, c_int::MIN, 7, 8, 9]);
        let inside = members(&[5, 39, 7, 8, 9]);
        assert_eq!(filtered(&beside, &row, true), inside);
        assert_eq!(filtered(&beside, &backward, true), inside);
        let nobody = members(&[]);
        assert_eq!(filtered(&row, &nobody, true), nobody);
        assert_eq!(compare(&nobody, &nobody), IDENT);
    }

    #[test]
    fn ranges_lead_in_both_directions() {
        assert_eq!(
            expand(&[[0, 5, 2], [7, 6, -1]], 8).expect("ranges"),
            [0, 2, 4, 7, 6]
        );
        for (range, class) in [
            ([0, 3, 0], ERR_ARG),
            ([3, 1, 1], ERR_ARG),
            ([0, 8, 1], ERR_RANK),
            ([-1, 2, 1], ERR_RANK),
        ] {
            assert_eq!(expand(&[range], 8).expect_err("no range").class(), class);
        }
    }
}
