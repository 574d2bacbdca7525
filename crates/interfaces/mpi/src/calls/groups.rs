//! Groups.

use std::ffi::c_int;

use crate::abi::*;
use crate::communicator::Members;
use crate::error::{Error, Result, not_null};
use crate::groups::{self, get};

/// So many ranks that the caller gives.
pub(crate) unsafe fn ranks_of<'a>(n: c_int, ranks: *const c_int) -> Result<&'a [c_int]> {
    match usize::try_from(n) {
        Ok(0) => Ok(&[]),
        Ok(n) => {
            not_null(ranks, "the array of ranks")?;
            // SAFETY: the caller's array.
            Ok(unsafe { std::slice::from_raw_parts(ranks, n) })
        }
        Err(_) => Err(Error::new(ERR_ARG, format!("n is {n}; it is 0 or more"))),
    }
}

unsafe fn ranges_of<'a>(n: c_int, ranges: *const [c_int; 3]) -> Result<&'a [[c_int; 3]]> {
    match usize::try_from(n) {
        Ok(0) => Ok(&[]),
        Ok(n) => {
            not_null(ranges, "ranges")?;
            // SAFETY: the caller's array.
            Ok(unsafe { std::slice::from_raw_parts(ranges, n) })
        }
        Err(_) => Err(Error::new(ERR_ARG, format!("n is {n}; it is 0 or more"))),
    }
}

/// Gives the caller a new group.
unsafe fn give(members: Members, to: *mut Group) -> Result {
    not_null(to, "newgroup")?;
    // SAFETY: the caller's pointer.
    unsafe { *to = groups::make(members)? };
    Ok(())
}

pub unsafe fn group_size(group: Group, size: *mut c_int) -> Result {
    let members = get(group)?;
    not_null(size, "size")?;
    // SAFETY: the caller's pointer.
    unsafe { *size = members.len() as c_int };
    Ok(())
}

pub unsafe fn group_rank(group: Group, rank: *mut c_int) -> Result {
    let members = get(group)?;
    not_null(rank, "rank")?;
    // SAFETY: the caller's pointer.
    unsafe { *rank = groups::own_rank(&members)? };
    Ok(())
}

pub unsafe fn group_translate_ranks(
    group1: Group,
    n: c_int,
    ranks1: *const c_int,
    group2: Group,
    ranks2: *mut c_int,
) -> Result {
    let (first, second) = (get(group1)?, get(group2)?);
    // SAFETY: the caller's array.
    let ranks = unsafe { ranks_of(n, ranks1)? };
    if ranks.is_empty() {
        return Ok(());
    }
    not_null(ranks2, "ranks2")?;
    let found = groups::translate(&first, ranks, &second)?;
    // SAFETY: the caller's array of `n` elements.
    unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), ranks2, found.len()) };
    Ok(())
}

pub unsafe fn group_compare(group1: Group, group2: Group, result: *mut c_int) -> Result {
    let (first, second) = (get(group1)?, get(group2)?);
    not_null(result, "result")?;
    // SAFETY: the caller's pointer.
    unsafe { *result = groups::compare(&first, &second) };
    Ok(())
}

pub unsafe fn group_union(group1: Group, group2: Group, newgroup: *mut Group) -> Result {
    let (first, second) = (get(group1)?, get(group2)?);
    // SAFETY: the caller's pointer.
    unsafe { give(groups::union(&first, &second), newgroup) }
}

pub unsafe fn group_intersection(group1: Group, group2: Group, newgroup: *mut Group) -> Result {
    let (first, second) = (get(group1)?, get(group2)?);
    // SAFETY: the caller's pointer.
    unsafe { give(groups::filtered(&first, &second, true), newgroup) }
}

pub unsafe fn group_difference(group1: Group, group2: Group, newgroup: *mut Group) -> Result {
    let (first, second) = (get(group1)?, get(group2)?);
    // SAFETY: the caller's pointer.
    unsafe { give(groups::filtered(&first, &second, false), newgroup) }
}

pub unsafe fn group_incl(
    group: Group,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut Group,
) -> Result {
    let members = get(group)?;
    not_null(newgroup, "newgroup")?;
    // SAFETY: the caller's array and pointer.
    unsafe { give(groups::included(&members, ranks_of(n, ranks)?)?, newgroup) }
}

pub unsafe fn group_excl(
    group: Group,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut Group,
) -> Result {
    let members = get(group)?;
    not_null(newgroup, "newgroup")?;
    // SAFETY: the caller's array and pointer.
    unsafe { give(groups::excluded(&members, ranks_of(n, ranks)?)?, newgroup) }
}

pub unsafe fn group_range_incl(
    group: Group,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: *mut Group,
) -> Result {
    let members = get(group)?;
    not_null(newgroup, "newgroup")?;
    // SAFETY: the caller's array and pointer.
    unsafe {
        let ranks = groups::expand(ranges_of(n, ranges)?, members.len())?;
        give(groups::included(&members, &ranks)?, newgroup)
    }
}

pub unsafe fn group_range_excl(
    group: Group,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: *mut Group,
) -> Result {
    let members = get(group)?;
    not_null(newgroup, "newgroup")?;
    // SAFETY: the caller's array and pointer.
    unsafe {
        let ranks = groups::expand(ranges_of(n, ranges)?, members.len())?;
        give(groups::excluded(&members, &ranks)?, newgroup)
    }
}

pub unsafe fn group_free(group: *mut Group) -> Result {
    not_null(group, "group")?;
    // SAFETY: the caller's pointer.
    unsafe {
        groups::remove(*group)?;
        *group = GROUP_NULL;
    }
    Ok(())
}
