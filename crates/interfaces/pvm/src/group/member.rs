//! Joining and leaving groups, freezing them, and instance numbers.

use std::ffi::{CString, c_char, c_int};

use super::announcements::{Word, notify};
use super::team::{self, Team};
use super::{Group, announcements, answer, as_it_was, groups, known, named, view};
use crate::message::codes;
use crate::state::library;
use crate::trace::{self, Value, calls, traced};
use crate::{rg, tid};

/// Returns the name of the entry that exists while the group is frozen.
fn frozen_name(group: &Group) -> CString {
    let name = [b"pvm-static ", group.name.to_bytes()].concat();
    CString::new(name).unwrap_or_default()
}

/// Returns whether the group is frozen, so that no task may join. An entry that outlived all members is removed.
fn is_frozen(group: &Group) -> Result<bool, i32> {
    let name = frozen_name(group);
    let (mut length, mut found) = (0, 0);
    // SAFETY: the name is NUL-terminated, and the results have room.
    let code = unsafe {
        rg::rg_get(
            name.as_ptr(),
            0,
            0,
            std::ptr::null_mut(),
            0,
            &mut length,
            &mut found,
        )
    };
    if code != rg::OK {
        return Ok(false);
    }
    if group.ask()?.is_empty() {
        thaw(group);
        return Ok(false);
    }
    Ok(true)
}

fn freeze(group: &Group) {
    let name = frozen_name(group);
    // SAFETY: the name is NUL-terminated, and the value is empty.
    unsafe {
        rg::rg_put(
            name.as_ptr(),
            std::ptr::null(),
            0,
            0,
            rg::PERSISTENT | rg::OVERWRITABLE,
            std::ptr::null_mut(),
        )
    };
}

fn thaw(group: &Group) {
    // SAFETY: the string is NUL-terminated.
    unsafe { rg::rg_delete(frozen_name(group).as_ptr(), 0) };
}

/// Notifies the leader of the other members, if these may be a team, that the members have changed. Otherwise the team
/// would end only when all have entered a barrier. Returns whether there are other members.
fn notify_leader(group: &Group) -> Result<bool, i32> {
    let members = group.ask()?;
    let me = library().task;
    let others = members.iter().flatten().copied().filter(|&task| task != me);
    let Some(leader) = view::leader(others) else {
        return Ok(false);
    };
    if !view::are_near(&members) {
        notify(leader, Word::Changed, group.hash, 0);
    }
    Ok(true)
}

fn join(group: &mut Group) -> Result<i32, i32> {
    if group.instance.is_some() {
        return Err(match group.frozen {
            Some(_) => codes::NOT_IN_GROUP,
            None => codes::DUP_GROUP,
        });
    }
    if is_frozen(group)? {
        return Err(codes::NOT_IN_GROUP);
    }
    let mut instance = 0;
    // SAFETY: the name is NUL-terminated, and `instance` can be written.
    match unsafe { rg::rg_join(group.name.as_ptr(), &mut instance) } {
        rg::OK => {}
        rg::ERR_EXISTS => return Err(codes::DUP_GROUP),
        _ => return Err(codes::SYS_ERR),
    }
    group.instance = Some(instance);
    group.frozen = None;
    group.team = None;
    notify_leader(group)?;
    Ok(instance)
}

/// Leaves a group. When its last member leaves, the name is free again.
pub fn leave(hash: u64) -> Result<(), i32> {
    known(hash)?.ours()?;
    team::leave(hash)?;
    let group = known(hash)?;
    // SAFETY: the string is NUL-terminated.
    if unsafe { rg::rg_leave(group.name.as_ptr()) } != rg::OK {
        return Err(codes::NOT_IN_GROUP);
    }
    group.instance = None;
    let frozen = group.frozen.take().is_some();
    if !notify_leader(group)? && frozen {
        thaw(group);
    }
    Ok(())
}

/// Converts the result of `rg_meet_members` into PVM's codes.
fn met(code: c_int) -> Result<(), i32> {
    match code {
        rg::OK => Ok(()),
        rg::ERR_ARGUMENT => Err(codes::MISMATCH),
        rg::ERR_NAME => Err(codes::NOT_IN_GROUP),
        _ => Err(codes::SYS_ERR),
    }
}

/// Waits until `count` members meet. If these are all members of the group, returns them by instance number; otherwise
/// returns an empty list.
fn meet_members(group: &Group, count: i32) -> Result<Vec<Option<i32>>, i32> {
    let name = group.name.as_ptr();
    let mut members = vec![rg::NONE; 2 * count.max(32) as usize];
    let mut there = 0;
    // SAFETY: the name is NUL-terminated, and `members` has the room that is passed.
    let code = unsafe {
        rg::rg_meet_members(
            name,
            count,
            members.as_mut_ptr(),
            members.len() as c_int,
            &mut there,
        )
    };
    met(code)?;
    // If instance numbers are free, the list may be longer than the room. Then treat the members as not all.
    let there = there.max(0) as usize;
    members.truncate(if there <= members.len() { there } else { 0 });
    Ok(members
        .into_iter()
        .map(|task| (task >= 0).then_some(task))
        .collect())
}

/// Returns the number of members that a program's `count` means: -1 means all.
fn count_of(group: &mut Group, count: c_int) -> Result<i32, i32> {
    match count {
        1.. => Ok(count),
        -1 => Ok(group.members()?.iter().flatten().count() as i32),
        _ => Err(codes::MISMATCH),
    }
}

fn barrier(hash: u64, count: c_int) -> Result<i32, i32> {
    let group = known(hash)?;
    group.ours()?;
    let size = match count {
        -1 => rg::ANY,
        1.. => count,
        _ => return Err(codes::MISMATCH),
    };
    if group.team.is_some() {
        announcements::receive_all(groups()?)?;
        let team = known(hash)?.team.as_ref().map_or(0, Team::size) as c_int;
        if (count == -1 || count == team) && team::meet(hash)? {
            return Ok(0);
        }
        team::leave(hash)?;
    }
    let members = meet_members(known(hash)?, size)?;
    note_members(hash, members)?;
    Ok(0)
}

/// Records the members that have met, unless the list is empty. Members on several hosts become a team.
fn note_members(hash: u64, members: Vec<Option<i32>>) -> Result<(), i32> {
    if members.is_empty() {
        return Ok(());
    }
    let number = groups()?.next_number();
    let group = known(hash)?;
    if group.near.as_ref() == Some(&members) {
        return Ok(());
    }
    group.near = None;
    match view::are_near(&members) {
        true => group.near = Some(members),
        false => group.become_team(&members, number),
    }
    Ok(())
}

fn freeze_group(hash: u64, size: c_int) -> Result<i32, i32> {
    let group = known(hash)?;
    group.ours()?;
    if group.frozen.is_some() {
        return Err(codes::DUP_GROUP);
    }
    let size = count_of(group, size)?;
    team::leave(hash)?;
    let group = known(hash)?;
    let members = meet_members(group, size)?;
    if members.iter().flatten().next().is_none() {
        return Err(codes::MISMATCH);
    }
    // Every member sets the entry, so that no task can join once the first member has returned.
    freeze(group);
    group.frozen = Some(members.clone());
    note_members(hash, members)?;
    Ok(size)
}

/// Returns the hash of the group that a program names.
///
/// # Safety
/// `name` is a NUL-terminated string or NULL.
unsafe fn hash_of(name: *const c_char) -> Result<u64, i32> {
    // SAFETY: the caller guarantees that `name` is a string or NULL.
    unsafe { named(name) }.map(|group| group.hash)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_joingroup(name: *const c_char) -> c_int {
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    let joined = || answer("pvm_joingroup", unsafe { named(name) }.and_then(join));
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    traced(
        calls::JOINGROUP,
        || [unsafe { trace::text(name) }],
        joined,
        trace::code,
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_lvgroup(name: *const c_char) -> c_int {
    let left = || {
        // SAFETY: by the C contract the string is NUL-terminated or NULL.
        let left = unsafe { hash_of(name) }.and_then(leave);
        answer("pvm_lvgroup", left.map(|()| 0))
    };
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    traced(
        calls::LVGROUP,
        || [unsafe { trace::text(name) }],
        left,
        trace::code,
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_gsize(name: *const c_char) -> c_int {
    let size = || {
        // SAFETY: by the C contract the string is NUL-terminated or NULL.
        let members = unsafe { named(name) }.and_then(Group::members);
        let size = members.map(|members| members.iter().flatten().count() as i32);
        answer("pvm_gsize", size)
    };
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    traced(
        calls::GSIZE,
        || [unsafe { trace::text(name) }],
        size,
        trace::code,
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_gettid(name: *const c_char, instance: c_int) -> c_int {
    let found = || {
        // SAFETY: by the C contract the string is NUL-terminated or NULL.
        let members = unsafe { named(name) }.and_then(Group::members);
        let found = members.and_then(|members| {
            let index = usize::try_from(instance).map_err(|_| codes::NO_INST)?;
            let task = members.get(index).copied().flatten();
            task.and_then(tid::of_task).ok_or(codes::NO_INST)
        });
        answer("pvm_gettid", found)
    };
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    let entry = || [unsafe { trace::text(name) }, Value::Int(instance)];
    traced(calls::GETTID, entry, found, trace::code)
}

/// Returns the instance of task -1. PVM's group server marks free numbers with -1. It allocates room for 10 members at
/// a time; if all of it is taken, there is no such mark.
fn first_free(members: &[Option<i32>]) -> Option<i32> {
    const MEMBERS_PER_ALLOCATION: usize = 10;
    let gap = members.iter().position(Option::is_none);
    let behind = (!members.len().is_multiple_of(MEMBERS_PER_ALLOCATION)).then_some(members.len());
    gap.or(behind).map(|place| place as i32)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_getinst(name: *const c_char, of: c_int) -> c_int {
    let found = || {
        // SAFETY: by the C contract the string is NUL-terminated or NULL.
        let members = unsafe { named(name) }.and_then(Group::members);
        let found = members.and_then(|members| {
            if of == rg::ANY {
                return first_free(&members).ok_or(codes::NOT_IN_GROUP);
            }
            let task = tid::task(of).ok_or(codes::NOT_IN_GROUP)?;
            let place = members.iter().position(|&member| member == Some(task));
            place.map(|place| place as i32).ok_or(codes::NOT_IN_GROUP)
        });
        answer("pvm_getinst", found)
    };
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    let entry = || [unsafe { trace::text(name) }, Value::Int(of)];
    traced(calls::GETINST, entry, found, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_barrier(name: *const c_char, count: c_int) -> c_int {
    let met = || {
        // SAFETY: by the C contract the string is NUL-terminated or NULL.
        let group = unsafe { as_it_was(name) }.map(|group| group.hash);
        let met = group.and_then(|hash| barrier(hash, count));
        answer("pvm_barrier", met)
    };
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    let entry = || [unsafe { trace::text(name) }, Value::Int(count)];
    traced(calls::BARRIER, entry, met, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_freezegroup(name: *const c_char, size: c_int) -> c_int {
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    let frozen = unsafe { hash_of(name) }.and_then(|hash| freeze_group(hash, size));
    answer("pvm_freezegroup", frozen)
}
