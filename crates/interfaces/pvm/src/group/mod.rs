//! Groups: tasks under a name, each with an instance number, the lowest that is free when it joins.
//!
//! The launcher knows the members (`rg_join`), and each call asks it for them ([`view`]). Once all members have
//! met, `rg_meet` costs no more than a barrier if they are on one host; members on several hosts meet again by messages
//! ([`team`]).
//!
//! The guarantee: a call knows of every join and leave that was over before the call began, also if this task heard of it
//! by a message that took another way than all news of it.

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

/// This task's knowledge of a group.
pub(crate) struct Group {
    name: CString,
    /// The name in messages.
    hash: u64,
    /// Our instance number, if we are a member.
    instance: Option<i32>,
    /// The members that met last, by instance number, if these were all and are on the host whose launcher lends them
    /// shared barriers.
    near: Option<Vec<Option<i32>>>,
    team: Option<Team>,
    /// Nobody joins any more, and these are the members by instance number; `None` where a number is free.
    frozen: Option<Vec<Option<i32>>>,
}

/// All groups that this task knows something of.
pub(crate) struct Groups {
    /// The task for which all this holds.
    task: i32,
    all: Vec<Group>,
    /// How many teams we have led.
    led: u32,
}

impl Groups {
    /// The number of the next team that we lead.
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

/// The name of a group in messages (FNV-1a).
fn hash(name: &CStr) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    name.to_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Our knowledge of groups, as a task.
fn groups() -> Result<&'static mut Groups, i32> {
    enrol()?;
    let groups = GROUPS.get();
    if groups.task != library().task {
        groups.all.clear();
        groups.task = library().task;
    }
    Ok(groups)
}

/// A group that we know something of, by its name in messages. The reference must be gone before anything
/// is called that hears news.
fn known(hash: u64) -> Result<&'static mut Group, i32> {
    let group = groups()?.all.iter_mut().find(|group| group.hash == hash);
    group.ok_or(codes::SYS_ERR)
}

/// The group a user names, after all news have been heard.
///
/// # Safety
/// The name is a text or NULL.
unsafe fn named(name: *const c_char) -> Result<&'static mut Group, i32> {
    // SAFETY: the caller's.
    let hash = unsafe { as_it_was(name) }?.hash;
    announcements::receive_all(groups()?)?;
    known(hash)
}

/// The group a user names, as far as it is known without a look at the news.
///
/// # Safety
/// The name is a text or NULL.
unsafe fn as_it_was(name: *const c_char) -> Result<&'static mut Group, i32> {
    if name.is_null() {
        return Err(codes::NULL_GROUP);
    }
    // SAFETY: the caller's.
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

/// The result of a function: a number, or an error that is told. On PVM the group server has answered, so messages that had come by
/// then are known.
fn answer(function: &str, result: Result<i32, i32>) -> c_int {
    if library().tid != 0 {
        // SAFETY: a plain request. An error of it is that of every call that follows.
        unsafe { rg::rg_pass_over() };
    }
    error::result(function, result.unwrap_or_else(|code| code))
}

/// Leave all groups, before the task leaves the machine.
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
