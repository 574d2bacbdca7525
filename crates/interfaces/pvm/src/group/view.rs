//! The members of a group.
//!
//! As in PVM each call requests them, so a call sees every join and leave of which the task can know, including those
//! that precede a message it has received. On the launcher's host the answer is cached while it is valid
//! (`crates/core/process/src/members.rs`).

use std::ffi::c_int;

use super::Group;
use crate::message::codes;
use crate::rg;

/// The host on which the machine's launcher runs.
const FIRST_HOST: c_int = 0;

/// Returns a list of members, by calling `ask` with a larger array until the list fits.
pub fn list(
    ask: impl Fn(*mut c_int, c_int, *mut c_int) -> c_int,
) -> Result<Vec<Option<i32>>, c_int> {
    let mut tasks = vec![rg::NONE; 64];
    loop {
        let mut count = 0;
        match ask(tasks.as_mut_ptr(), tasks.len() as c_int, &mut count) {
            rg::OK => {}
            code => return Err(code),
        }
        let count = count.max(0) as usize;
        if count <= tasks.len() {
            tasks.truncate(count);
            return Ok(tasks
                .into_iter()
                .map(|task| (task >= 0).then_some(task))
                .collect());
        }
        tasks.resize(count, rg::NONE);
    }
}

/// Returns whether all these tasks run on the launcher's host, where barriers are in shared memory and need no
/// messages.
pub fn are_near(members: &[Option<i32>]) -> bool {
    members.iter().flatten().all(|&task| is_near(task))
}

/// Returns whether this task runs on the launcher's host.
fn is_near(task: i32) -> bool {
    // SAFETY: the call takes plain values only.
    unsafe { rg::rg_host_of(task) == FIRST_HOST }
}

/// Returns the member that leads these members as a team. A member on the launcher's host is preferred, because it can
/// get the list of members without a message to another host.
pub fn leader(members: impl Iterator<Item = i32> + Clone) -> Option<i32> {
    let mut near = members.clone().filter(|&task| is_near(task));
    near.next().or_else(|| members.into_iter().next())
}

impl Group {
    /// Requests the list of members, by instance number.
    pub fn ask(&self) -> Result<Vec<Option<i32>>, i32> {
        let name = self.name.as_ptr();
        // SAFETY: the name is NUL-terminated, and the array has the given length.
        list(|tasks, room, count| unsafe { rg::rg_members(name, tasks, room, count) })
            .map_err(|_| codes::SYS_ERR)
    }

    /// Returns the members by instance number. Fails if there are none.
    pub fn members(&mut self) -> Result<Vec<Option<i32>>, i32> {
        if let Some(frozen) = &self.frozen {
            return Ok(frozen.clone());
        }
        let members = self.ask()?;
        match members.is_empty() {
            true => Err(codes::NO_GROUP),
            false => Ok(members),
        }
    }

    /// Returns this task's instance number. Fails if it is not a member.
    pub fn ours(&mut self) -> Result<i32, i32> {
        match self.instance {
            Some(instance) => Ok(instance),
            None => self.members().and(Err(codes::NOT_IN_GROUP)),
        }
    }
}
