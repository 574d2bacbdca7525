//! Groups: named sets of tasks. A task that joins gets the lowest free instance number.
//!
//! The launcher keeps the members (`rg_join`), and each call requests them from it ([`view`]). Once all members have
//! met, `rg_meet` costs no more than a barrier if they are on one host. Members on several hosts meet again by messages
//! ([`team`]).
//!
//! Guarantee: a call sees every join and leave that was complete before the call began, even if this task learned of it
//! by a message that overtook the announcement.

mod announcements;
mod collective;
mod member;
mod operators;
pub mod server;
mod team;
mod view;

use std::ffi::{CStr, CString, c_char, c_int};

use crate::life::enrol;
use crate::message::{codes, error};
use crate::rg;
use crate::state::library;

use team::Team;

/// A task's state of a group.
pub(crate) struct Group {
    name: CString,
    /// Hash of the name, which identifies the group in messages.
    hash: u64,
    /// This task's instance number, if it is a member.
    instance: Option<i32>,
    /// The members that met last, by instance number, if they were all members and are all on the launcher's host,
    /// which provides shared barriers.
    near: Option<Vec<Option<i32>>>,
    team: Option<Team>,
    /// The members by instance number, if the group is frozen; `None` where a number is free.
    frozen: Option<Vec<Option<i32>>>,
}

/// All groups that this task knows.
pub(crate) struct Groups {
    /// The task to which this state belongs.
    task: i32,
    all: Vec<Group>,
    /// Number of teams that this task has led.
    led: u32,
}

impl Groups {
    /// Returns the number of the next team that this task leads.
    fn next_number(&mut self) -> u32 {
        self.led = self.led.wrapping_add(1);
        self.led
    }
}

static GROUPS: crate::last_results::Kept<Groups> = crate::last_results::Kept::new(Groups {
    task: -1,
    all: Vec::new(),
    led: 0,
});

/// Returns the hash of a group's name for messages (FNV-1a).
fn hash(name: &CStr) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    name.to_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns the groups of this task, after enrolling it. Clears the state of an earlier task.
fn groups() -> Result<&'static mut Groups, i32> {
    enrol()?;
    let groups = GROUPS.get();
    if groups.task != library().task {
        groups.all.clear();
        groups.task = library().task;
    }
    Ok(groups)
}

/// Returns a known group by its hash. Drop the reference before calling anything that handles announcements.
fn known(hash: u64) -> Result<&'static mut Group, i32> {
    let group = groups()?.all.iter_mut().find(|group| group.hash == hash);
    group.ok_or(codes::SYS_ERR)
}

/// Returns the group that a program names, after handling all announcements that have arrived.
///
/// # Safety
/// `name` is a NUL-terminated string or NULL.
unsafe fn named(name: *const c_char) -> Result<&'static mut Group, i32> {
    // SAFETY: the caller guarantees that `name` is a string or NULL.
    let hash = unsafe { as_it_was(name) }?.hash;
    announcements::receive_all(groups()?)?;
    known(hash)
}

/// Returns the group that a program names, without handling announcements.
///
/// # Safety
/// `name` is a NUL-terminated string or NULL.
unsafe fn as_it_was(name: *const c_char) -> Result<&'static mut Group, i32> {
    if name.is_null() {
        return Err(codes::NULL_GROUP);
    }
    // SAFETY: the caller guarantees that a `name` other than NULL is a string.
    let name = unsafe { CStr::from_ptr(name) };
    if name.is_empty() {
        return Err(codes::NULL_GROUP);
    }
    let groups = groups()?;
    let hash = hash(name);
    if !groups.all.iter().any(|group| group.hash == hash) {
        groups.all.push(Group {
            name: name.to_owned(),
            hash,
            instance: None,
            near: None,
            team: None,
            frozen: None,
        });
    }
    known(hash)
}

/// Returns the result of a function to the program, and reports an error. On PVM the group server would have answered,
/// so messages that arrived before become known.
fn answer(function: &str, result: Result<i32, i32>) -> c_int {
    if library().tid != 0 {
        // SAFETY: the call has no arguments. Its error is ignored: every later call returns it, too.
        unsafe { rg::rg_pass_over() };
    }
    error::result(function, result.unwrap_or_else(|code| code))
}

/// Leaves all groups, before the task leaves the machine.
pub fn leave_all() {
    let groups = GROUPS.get();
    if groups.task != library().task {
        return;
    }
    let all = groups.all.iter().filter(|group| group.instance.is_some());
    for hash in all.map(|group| group.hash).collect::<Vec<_>>() {
        let _ = member::leave(hash);
    }
    GROUPS.get().all.clear();
}
