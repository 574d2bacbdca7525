//! Tasks that do a daemon's work: they have a place under a name that everybody knows, and speak with daemons by messages
//! whose tags are those of `pvmproto.h`.
//!
//! There are no daemons of PVM here. What a program sends to one is done by the library in place of it, and what a daemon
//! would send to the program comes from Regatta's launcher and becomes PVM's message.

pub mod tasker;

use std::ffi::{CStr, c_int};

use crate::message::{self, Reader, codes};
use crate::state::library;
use crate::{mailbox, tid};

/// Tags of messages to and from daemons.
pub mod tag {
    const FIRST: i32 = 0x8004_0001_u32 as i32;
    /// A task that is no more, and how it ended.
    pub const TASKX: i32 = FIRST + 10;
    /// A task that is to be started.
    pub const STTASK: i32 = FIRST + 16;
}

/// A task that does a daemon's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Role {
    /// Under this name it is known.
    pub name: &'static CStr,
    /// What `pvm_tasks` says of it.
    pub flag: i32,
}

/// It starts the tasks of its host.
pub const TASKER: Role = Role {
    name: c"###_PVM_TASKER_###",
    flag: 0x400,
};

/// All there are.
const ROLES: [Role; 1] = [TASKER];

/// The flags of the tasks that have a role, for each that has.
pub fn flags() -> Result<Vec<(i32, i32)>, i32> {
    let mut all = Vec::new();
    for (name, owner) in crate::listing::owners(c"###_PVM_*")? {
        let role = ROLES.iter().find(|role| role.name == name.as_c_str());
        all.extend(role.map(|role| (owner, role.flag)));
    }
    Ok(all)
}

/// A program sends the current send buffer to a daemon.
#[cold]
pub fn send_to_daemon(tag: c_int) -> Result<(), i32> {
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
        // A daemon takes no notice of what it does not know.
        _ => Ok(()),
    }
}

/// Is this a daemon that messages can be sent to?
pub fn is_daemon(to: c_int) -> bool {
    to == tid::DAEMON || tid::is_daemon(to)
}
