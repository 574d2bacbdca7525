//! Tasks that take over a daemon's work. Each is registered under a well-known name, and exchanges messages with
//! daemons whose tags are those of `pvmproto.h`.
//!
//! Regatta has no daemons of PVM. The library executes the requests that a program sends to a daemon, and converts what
//! Regatta's launcher reports to the messages that a daemon would send.

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
    /// Requests to a resource manager, and its answers.
    pub const SPAWN: i32 = FIRST;
    /// See [`SPAWN`].
    pub const TASK: i32 = FIRST + 3;
    /// See [`SPAWN`].
    pub const CONFIG: i32 = FIRST + 4;
    /// See [`SPAWN`].
    pub const ADDHOST: i32 = FIRST + 5;
    /// See [`SPAWN`].
    pub const DELHOST: i32 = FIRST + 6;
    /// See [`SPAWN`]. Has no answer.
    pub const NOTIFY: i32 = FIRST + 9;
    /// See [`SPAWN`].
    pub const SCHED: i32 = FIRST + 13;
    /// Order of a manager to start tasks, and the answer.
    pub const EXEC: i32 = FIRST + 1;
    /// See [`EXEC`].
    pub const EXECACK: i32 = FIRST + 2;
    /// Order of a manager to add hosts.
    pub const ADD: i32 = FIRST + 7;
    /// See [`ADD`].
    pub const ADDACK: i32 = FIRST + 8;
    /// A host is gone.
    pub const HOSTX: i32 = FIRST + 11;
    /// A task has ended, with its status.
    pub const TASKX: i32 = FIRST + 10;
    /// Request to start a task.
    pub const STTASK: i32 = FIRST + 16;
    /// Request to start hosts, and the answer.
    pub const STHOST: i32 = FIRST + 14;
    /// See [`STHOST`].
    pub const STHOSTACK: i32 = FIRST + 15;
}

/// A role of a task that takes over a daemon's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Role {
    /// The name under which the task is registered.
    pub name: &'static CStr,
    /// Its flags in `pvm_tasks`.
    pub flag: i32,
}

/// The tasker, which starts the tasks of its host.
pub const TASKER: Role = Role {
    name: c"###_PVM_TASKER_###",
    flag: 0x400,
};

/// The hoster, which starts hosts.
pub const HOSTER: Role = Role {
    name: c"###_PVM_HOSTER_###",
    flag: 0x200,
};

/// The resource manager, which decides where tasks are started.
pub const MANAGER: Role = Role {
    name: c"###_PVM_RM_###",
    flag: 0x100,
};

/// All roles.
const ROLES: [Role; 4] = [TASKER, HOSTER, MANAGER, tracer::TRACER];

/// Returns the tasks that have a role, with the role's flag.
pub fn flags() -> Result<Vec<(i32, i32)>, i32> {
    let mut all = Vec::new();
    for (name, owner) in listing::owners(c"###_PVM_*")? {
        let role = ROLES.iter().find(|role| role.name == name.as_c_str());
        all.extend(role.map(|role| (owner, role.flag)));
    }
    Ok(all)
}

/// Finds the resource manager and the tracer for a task that has just joined.
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

/// Returns how a task has ended, as a wait status.
pub fn status(event: &rg::Event) -> i32 {
    match event.how {
        rg::BY_EXIT => event.value << 8,
        rg::BY_SIGNAL => event.value,
        _ => 0,
    }
}

/// Handles a message that a program sends from the current send buffer to a daemon.
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
        // A daemon ignores unknown messages.
        _ => Ok(()),
    }
}

/// Returns whether this is a daemon to which messages can be sent.
pub fn is_daemon(to: c_int) -> bool {
    to == tid::DAEMON || tid::is_daemon(to)
}
