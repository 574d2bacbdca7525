//! Tasks that do a daemon's work: they have a place under a name that everybody knows, and speak with daemons by messages
//! whose tags are those of `pvmproto.h`.
//!
//! There are no daemons of PVM here. The requests that a program sends to one are carried out by the library in place of it, and what a daemon
//! would send to the program comes from Regatta's launcher and becomes PVM's message.

pub mod asking;
pub mod events;
pub mod hoster;
pub mod manager;
pub mod task_started;
pub mod tasker;
pub mod tracer;

use std::ffi::{CStr, c_int};

use crate::message::{self, Reader, codes};
use crate::state::library;
use crate::{listing, mailbox, rg, tid};

/// Tags of messages to and from daemons.
pub mod tag {
    const FIRST: i32 = 0x8004_0001_u32 as i32;
    /// The requests to a resource manager, and its answers.
    pub const SPAWN: i32 = FIRST;
    /// See [`SPAWN`].
    pub const TASK: i32 = FIRST + 3;
    /// See [`SPAWN`].
    pub const CONFIG: i32 = FIRST + 4;
    /// See [`SPAWN`].
    pub const ADDHOST: i32 = FIRST + 5;
    /// See [`SPAWN`].
    pub const DELHOST: i32 = FIRST + 6;
    /// See [`SPAWN`]. Not answered.
    pub const NOTIFY: i32 = FIRST + 9;
    /// See [`SPAWN`].
    pub const SCHED: i32 = FIRST + 13;
    /// A manager's decision: start these tasks; and the answer, which have been started.
    pub const EXEC: i32 = FIRST + 1;
    /// See [`EXEC`].
    pub const EXECACK: i32 = FIRST + 2;
    /// As `EXEC`, for hosts that are to be added.
    pub const ADD: i32 = FIRST + 7;
    /// See [`ADD`].
    pub const ADDACK: i32 = FIRST + 8;
    /// A host that is no more.
    pub const HOSTX: i32 = FIRST + 11;
    /// A task that is no more, and how it ended.
    pub const TASKX: i32 = FIRST + 10;
    /// A task that is to be started.
    pub const STTASK: i32 = FIRST + 16;
    /// Hosts that are to be started; and what has become of them.
    pub const STHOST: i32 = FIRST + 14;
    /// See [`STHOST`].
    pub const STHOSTACK: i32 = FIRST + 15;
}

/// A task that does a daemon's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Role {
    /// Under this name it is known.
    pub name: &'static CStr,
    /// Its flags in `pvm_tasks`.
    pub flag: i32,
}

/// It starts the tasks of its host.
pub const TASKER: Role = Role {
    name: c"###_PVM_TASKER_###",
    flag: 0x400,
};

/// It starts hosts.
pub const HOSTER: Role = Role {
    name: c"###_PVM_HOSTER_###",
    flag: 0x200,
};

/// It decides where tasks are started.
pub const MANAGER: Role = Role {
    name: c"###_PVM_RM_###",
    flag: 0x100,
};

/// All there are.
const ROLES: [Role; 4] = [TASKER, HOSTER, MANAGER, tracer::TRACER];

/// The flags of the tasks that have a role, for each that has.
pub fn flags() -> Result<Vec<(i32, i32)>, i32> {
    let mut all = Vec::new();
    for (name, owner) in listing::owners(c"###_PVM_*")? {
        let role = ROLES.iter().find(|role| role.name == name.as_c_str());
        all.extend(role.map(|role| (owner, role.flag)));
    }
    Ok(all)
}

/// Finds, for a task that has just become one, the tasks that do a daemon's work.
pub fn look_around() {
    let Ok(owners) = listing::owners(c"###_PVM_*") else {
        return;
    };
    let me = library().tid;
    let holder = |role: Role| {
        let known = owners.iter().find(|(name, _)| name.as_c_str() == role.name);
        known.map(|&(_, owner)| owner).filter(|&owner| owner != me)
    };
    library().manager = holder(MANAGER).unwrap_or(0);
    if holder(tracer::TRACER).is_some() {
        tracer::follow();
    }
}

/// How a task has ended, as `wait` tells it.
pub fn status(event: &rg::Event) -> i32 {
    match event.how {
        rg::BY_EXIT => event.value << 8,
        rg::BY_SIGNAL => event.value,
        _ => 0,
    }
}

/// A program sends the current send buffer to a daemon.
#[cold]
pub fn send_to_daemon(to: c_int, tag: c_int) -> Result<(), i32> {
    if tag >= 0 || !library().options.reserved() {
        return Err(codes::BAD_PARAM);
    }
    let out = message::outgoing(0)?;
    if out.encoding != codes::XDR {
        return Err(codes::BAD_MSG);
    }
    let bytes = mailbox::bytes_of(&out);
    let mut body = Reader::new(&bytes);
    match tag {
        tag::TASKX => tasker::has_ended(&mut body),
        tag::STHOSTACK => hoster::have_started(out.wid, &mut body),
        tag::EXEC => manager::execute(to, out.wid, &mut body),
        tag::ADD => manager::add(out.wid, &mut body),
        // A daemon takes no notice of what it does not know.
        _ => Ok(()),
    }
}

/// Is this a daemon that messages can be sent to?
pub fn is_daemon(to: c_int) -> bool {
    to == tid::DAEMON || tid::is_daemon(to)
}
