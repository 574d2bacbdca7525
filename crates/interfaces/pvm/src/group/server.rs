//! Answers to programs that send requests to PVM's group server themselves, as `pvm_gstat` and `pvmgroups` do.
//!
//! There is no group server here. A task that asks for the server's tid gets the tid of the first host. The library
//! answers messages to that tid in the context of groups from the state of Regatta's launcher.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io::Write as _;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;

use super::{answer, view};
use crate::life::enrol;
use crate::message::{self, Body, Info, codes};
use crate::state::library;
use crate::{handlers, rg, tid};

/// The tid of the group server.
pub const TID: i32 = tid::of_daemon(0);

/// The context of requests to the server.
pub const CONTEXT: i32 = 0x7fffc;

/// Tags of the requests.
mod tag {
    /// Write down all groups. Has no answer.
    pub const DUMP: i32 = 9;
    /// List all groups.
    pub const LIST: i32 = 10;
}

/// How long programs wait for the server's answers; NULL waits without a limit. Programs read this variable.
#[unsafe(no_mangle)]
static pvmgs_tmout: AtomicPtr<libc::timeval> = AtomicPtr::new(null_mut());

#[unsafe(no_mangle)]
extern "C" fn gs_getgstid() -> c_int {
    answer("gs_getgstid", enrol().map(|_| TID))
}

/// A group, with PVM's task numbers.
#[derive(Debug, PartialEq, Eq)]
struct GroupRecord {
    name: CString,
    /// Tids by instance number; -1 where a number is free.
    members: Vec<i32>,
    /// Tids of the tasks that wait at a barrier.
    waiting: Vec<i32>,
    /// Number of tasks for which the barrier waits; -1 if no task waits.
    wanted: i32,
}

/// Returns all groups, ordered by name.
fn all() -> Result<Vec<GroupRecord>, i32> {
    let empty = rg::NamedGroup {
        members: 0,
        waiting: 0,
        wanted: 0,
        reserved: 0,
        name: [0; 112],
    };
    let mut groups = vec![empty; 32];
    let mut count = 0;
    loop {
        let room = groups.len() as c_int;
        // SAFETY: the array has the length that is passed, and the count is writable.
        let code = unsafe { rg::rg_named_groups(groups.as_mut_ptr(), room, &mut count) };
        if code != rg::OK {
            return Err(codes::SYS_ERR);
        }
        if count <= room {
            break;
        }
        groups.resize(count as usize, empty);
    }
    groups.truncate(count.max(0) as usize);
    groups.iter().map(told).collect()
}

/// Requests the members and the waiting tasks of a group.
fn told(group: &rg::NamedGroup) -> Result<GroupRecord, i32> {
    // SAFETY: Regatta NUL-terminates its strings inside their arrays.
    let name = unsafe { CStr::from_ptr(group.name.as_ptr()) };
    let waiting = numbers(name, rg::rg_waiting)?;
    let members = numbers(name, rg::rg_members)?;
    let wanted = match (waiting.is_empty(), group.wanted) {
        (true, _) => -1,
        // The tasks began to wait after the groups were listed. Assume a barrier of all members, the usual case.
        (false, 0) => members.len() as i32,
        (false, wanted) => wanted,
    };
    Ok(GroupRecord {
        name: name.to_owned(),
        members,
        wanted,
        waiting,
    })
}

/// A function that lists tasks of a group. Arguments: the group's name, an array, its length, and the number of tasks
/// (out).
type List = unsafe extern "C" fn(*const c_char, *mut c_int, c_int, *mut c_int) -> c_int;

fn numbers(name: &CStr, list: List) -> Result<Vec<i32>, i32> {
    // SAFETY: the name is NUL-terminated, and the array has the given length.
    let tasks = view::list(|tasks, room, count| unsafe { list(name.as_ptr(), tasks, room, count) });
    let tasks = tasks.map_err(|_| codes::SYS_ERR)?.into_iter();
    Ok(tasks
        .map(|task| task.and_then(tid::of_task).unwrap_or(-1))
        .collect())
}

impl GroupRecord {
    fn size(&self) -> i32 {
        self.members.iter().filter(|&&tid| tid >= 0).count() as i32
    }

    /// Appends the group in the group server's format.
    fn pack(&self, body: Body) -> Body {
        let name = self.name.to_bytes();
        body.int(name.len() as i32)
            .string(name)
            .ints(&[self.size(), self.members.len() as i32])
            .ints(&[self.wanted, self.waiting.len() as i32])
            .ints(&self.members)
            .ints(&self.waiting)
    }

    /// Returns the group as a line of text.
    fn line(&self) -> String {
        let mut line = format!("{}: {} members", self.name.to_string_lossy(), self.size());
        for (instance, tid) in self.members.iter().enumerate() {
            if *tid >= 0 {
                line += &format!(" {instance}:t{tid:x}");
            }
        }
        if !self.waiting.is_empty() {
            line += &format!("; at a barrier of {}:", self.wanted);
        }
        for tid in &self.waiting {
            line += &format!(" t{tid:x}");
        }
        line
    }
}

/// Answers the current send buffer, which the program has sent to the group server in its context.
#[cold]
pub fn asked(tag: c_int) -> Result<(), i32> {
    message::outgoing(0)?;
    match tag {
        tag::LIST => send_list(&all()?),
        tag::DUMP => {
            for group in all()? {
                let _ = writeln!(std::io::stderr(), "{}", group.line());
            }
            Ok(())
        }
        // The group server ignores unknown requests.
        _ => Ok(()),
    }
}

/// Delivers the answer as a message from the group server.
fn send_list(groups: &[GroupRecord]) -> Result<(), i32> {
    let count = Body::new().int(groups.len() as i32);
    let body = groups.iter().fold(count, |body, group| group.pack(body));
    let info = Info {
        src: TID,
        dst: library().tid,
        tag: tag::LIST,
        ctx: CONTEXT,
        encoding: codes::XDR,
        ..Info::default()
    };
    handlers::offer(message::from_body(&body.into_vec(), info)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_packed_with_who_waits() {
        let group = GroupRecord {
            name: c"crew".to_owned(),
            members: vec![0x40001, -1, 0x40003],
            waiting: vec![0x40003],
            wanted: 2,
        };
        let named = Body::new().int(4).string("crew");
        let expected = named
            .ints(&[2, 3, 2, 1])
            .ints(&[0x40001, -1, 0x40003])
            .int(0x40003);
        assert_eq!(group.pack(Body::new()).into_vec(), expected.into_vec());
        assert_eq!(
            group.line(),
            "crew: 2 members 0:t40001 2:t40003; at a barrier of 2: t40003"
        );
    }
}
