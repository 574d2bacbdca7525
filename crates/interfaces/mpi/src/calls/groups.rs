//! Groups.

use std::ffi::c_int;

use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::Members;
use crate::error::{Error, Result, not_null};
use crate::groups;

/// Returns an array of `n` ranks that the caller passes.
pub(crate) unsafe fn ranks_of<'a>(n: c_int, ranks: *const c_int) -> Result<&'a [c_int]> {
    match usize::try_from(n) {
        Ok(0) => Ok(&[]),
        Ok(n) => {
            not_null(ranks, "the array of ranks")?;
            // SAFETY: the caller guarantees that the array has this many elements.
            Ok(unsafe { std::slice::from_raw_parts(ranks, n) })
        }
        Err(_) => Err(Error::new(
            ERR_ARG,
            format!("n is {n}; it must be 0 or more"),
        )),
    }
}

unsafe fn ranges_of<'a>(n: c_int, ranges: *const [c_int; 3]) -> Result<&'a [[c_int; 3]]> {
    match usize::try_from(n) {
        Ok(0) => Ok(&[]),
        Ok(n) => {
            not_null(ranges, "ranges")?;
            // SAFETY: the caller guarantees that the array has this many elements.
            Ok(unsafe { std::slice::from_raw_parts(ranges, n) })
        }
        Err(_) => Err(Error::new(
            ERR_ARG,
            format!("n is {n}; it must be 0 or more"),
        )),
    }
}

/// Returns a new group to the caller.
fn give(members: Members, to: Out<Group>) -> Result {
    to.put(groups::make(members)?);
    Ok(())
}

pub fn group_size(members: Members, size: Out<c_int>) -> Result {
    size.put(members.len() as c_int);
    Ok(())
}

pub fn group_rank(members: Members, rank: Out<c_int>) -> Result {
    rank.put(groups::own_rank(&members)?);
    Ok(())
}

pub unsafe fn group_translate_ranks(
    first: Members,
    n: c_int,
    ranks1: *const c_int,
    second: Members,
    ranks2: *mut c_int,
) -> Result {
    // SAFETY: the caller guarantees that the array has this many elements.
    let ranks = unsafe { ranks_of(n, ranks1)? };
    if ranks.is_empty() {
        return Ok(());
    }
    not_null(ranks2, "ranks2")?;
    let found = groups::translate(&first, ranks, &second)?;
    // SAFETY: the caller guarantees that the array has `n` elements.
    unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), ranks2, found.len()) };
    Ok(())
}

pub fn group_compare(first: Members, second: Members, result: Out<c_int>) -> Result {
    result.put(groups::compare(&first, &second));
    Ok(())
}

pub fn group_union(first: Members, second: Members, newgroup: Out<Group>) -> Result {
    give(groups::union(&first, &second), newgroup)
}

pub fn group_intersection(first: Members, second: Members, newgroup: Out<Group>) -> Result {
    give(groups::filtered(&first, &second, true), newgroup)
}

pub fn group_difference(first: Members, second: Members, newgroup: Out<Group>) -> Result {
    give(groups::filtered(&first, &second, false), newgroup)
}

pub unsafe fn group_incl(
    members: Members,
    n: c_int,
    ranks: *const c_int,
    newgroup: Out<Group>,
) -> Result {
    // SAFETY: the caller guarantees that the array and the pointer are valid.
    unsafe { give(groups::included(&members, ranks_of(n, ranks)?)?, newgroup) }
}

pub unsafe fn group_excl(
    members: Members,
    n: c_int,
    ranks: *const c_int,
    newgroup: Out<Group>,
) -> Result {
    // SAFETY: the caller guarantees that the array and the pointer are valid.
    unsafe { give(groups::excluded(&members, ranks_of(n, ranks)?)?, newgroup) }
}

pub unsafe fn group_range_incl(
    members: Members,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: Out<Group>,
) -> Result {
    // SAFETY: the caller guarantees that the array and the pointer are valid.
    unsafe {
        let ranks = groups::expand(ranges_of(n, ranges)?, members.len())?;
        give(groups::included(&members, &ranks)?, newgroup)
    }
}

pub unsafe fn group_range_excl(
    members: Members,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: Out<Group>,
) -> Result {
    // SAFETY: the caller guarantees that the array and the pointer are valid.
    unsafe {
        let ranks = groups::expand(ranges_of(n, ranges)?, members.len())?;
        give(groups::excluded(&members, &ranks)?, newgroup)
    }
}

pub fn group_free(group: Out<Group>) -> Result {
    groups::remove(group.get())?;
    group.put(GROUP_NULL);
    Ok(())
}
