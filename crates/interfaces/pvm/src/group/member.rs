//! Joining and leaving, and who has which number.

use std::ffi::{CString, c_char, c_int};

use super::announcements::{Word, notify};
use super::team::{self, Team};
use super::{Group, announcements, answer, as_it_was, groups, known, named, view};
use crate::message::codes;
use crate::state::library;
use crate::trace::{self, Value, calls, traced};
use crate::{rg, tid};

/// Under this name and the group's there is an entry while nobody may join.
fn frozen_name(group: &Group) -> CString {
    let name = [b"pvm-static ", group.name.to_bytes()].concat();
    CString::new(name).unwrap_or_default()
}

/// May nobody join? An entry that outlived all members counts for nothing.
fn is_frozen(group: &Group) -> Result<bool, i32> {
    let name = frozen_name(group);
    let (mut length, mut found) = (0, 0);
    // SAFETY: a text, and places for what is told.
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
    // SAFETY: a text, and no bytes.
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
    // SAFETY: a text.
    unsafe { rg::rg_delete(frozen_name(group).as_ptr(), 0) };
}

/// Tell whoever leads the other members, if they may be a team, that members are others now: it ends the team at
/// once, and not only when all have come to a barrier. Says whether there are others.
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
    // SAFETY: a text, and a place for the number.
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

/// Leave a group; its name is free again with its last member.
pub fn leave(hash: u64) -> Result<(), i32> {
    known(hash)?.ours()?;
    team::leave(hash)?;
    let group = known(hash)?;
    // SAFETY: a text.
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

/// The outcome of `rg_meet_members`, in codes of PVM.
fn met(code: c_int) -> Result<(), i32> {
    match code {
        rg::OK => Ok(()),
        rg::ERR_ARGUMENT => Err(codes::MISMATCH),
        rg::ERR_NAME => Err(codes::NOT_IN_GROUP),
        _ => Err(codes::SYS_ERR),
    }
}

/// Meet so many members. If they are all, they are told who they are.
fn meet_members(group: &Group, count: i32) -> Result<Vec<Option<i32>>, i32> {
    let name = group.name.as_ptr();
    let mut members = vec![rg::NONE; 2 * count.max(32) as usize];
    let mut there = 0;
    // SAFETY: the name is a text, and there is room for so many.
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
    // Where numbers are free the list may be longer than there is room for; then they are no team.
    let there = there.max(0) as usize;
    members.truncate(if there <= members.len() { there } else { 0 });
    Ok(members
        .into_iter()
        .map(|task| (task >= 0).then_some(task))
        .collect())
}

/// Of how many members a user speaks: -1 are all.
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

/// Notes the members that have met, if they are all. On several hosts they are a team from here on.
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
    // Each of them, so that nobody can join whom the first to return tells of it.
    freeze(group);
    group.frozen = Some(members.clone());
    note_members(hash, members)?;
    Ok(size)
}

/// The name in messages of a group that a user names.
///
/// # Safety
/// The name is a text or NULL.
unsafe fn hash_of(name: *const c_char) -> Result<u64, i32> {
    // SAFETY: the caller's.
    unsafe { named(name) }.map(|group| group.hash)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_joingroup(name: *const c_char) -> c_int {
    // SAFETY: the C contract: a text, or NULL.
    let joined = || answer("pvm_joingroup", unsafe { named(name) }.and_then(join));
    // SAFETY: the same.
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
        // SAFETY: the C contract: a text, or NULL.
        let left = unsafe { hash_of(name) }.and_then(leave);
        answer("pvm_lvgroup", left.map(|()| 0))
    };
    // SAFETY: the same.
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
        // SAFETY: the C contract: a text, or NULL.
        let members = unsafe { named(name) }.and_then(Group::members);
        let size = members.map(|members| members.iter().flatten().count() as i32);
        answer("pvm_gsize", size)
    };
    // SAFETY: the same.
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
        // SAFETY: the C contract: a text, or NULL.
        let members = unsafe { named(name) }.and_then(Group::members);
        let found = members.and_then(|members| {
            let index = usize::try_from(instance).map_err(|_| codes::NO_INST)?;
            let task = members.get(index).copied().flatten();
            task.and_then(tid::of_task).ok_or(codes::NO_INST)
        });
        answer("pvm_gettid", found)
    };
    // SAFETY: the same.
    let entry = || [unsafe { trace::text(name) }, Value::Int(instance)];
    traced(calls::GETTID, entry, found, trace::code)
}

/// The instance of task -1, which is how PVM's group server marks numbers that nobody has. It makes room for this many members at a
/// time; when all of them are there, nobody has the mark.
fn first_free(members: &[Option<i32>]) -> Option<i32> {
    const ROOM: usize = 10;
    let gap = members.iter().position(Option::is_none);
    let behind = (!members.len().is_multiple_of(ROOM)).then_some(members.len());
    gap.or(behind).map(|place| place as i32)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_getinst(name: *const c_char, of: c_int) -> c_int {
    let found = || {
        // SAFETY: the C contract: a text, or NULL.
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
    // SAFETY: the same.
    let entry = || [unsafe { trace::text(name) }, Value::Int(of)];
    traced(calls::GETINST, entry, found, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_barrier(name: *const c_char, count: c_int) -> c_int {
    let met = || {
        // SAFETY: the C contract: a text, or NULL.
        let group = unsafe { as_it_was(name) }.map(|group| group.hash);
        let met = group.and_then(|hash| barrier(hash, count));
        answer("pvm_barrier", met)
    };
    // SAFETY: the same.
    let entry = || [unsafe { trace::text(name) }, Value::Int(count)];
    traced(calls::BARRIER, entry, met, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_freezegroup(name: *const c_char, size: c_int) -> c_int {
    // SAFETY: the C contract: a text, or NULL.
    let frozen = unsafe { hash_of(name) }.and_then(|hash| freeze_group(hash, size));
    answer("pvm_freezegroup", frozen)
}
