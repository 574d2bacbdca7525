//! The members of a group.
//!
//! As on PVM that is asked for in each call, so a call knows of every join and leave that the task can have heard of, and of those
//! that came before a message it has received. On the host of the launcher an answer is at hand as long as it holds
//! (`crates/core/process/src/members.rs`).

use std::ffi::c_int;

use super::Group;
use crate::message::codes;
use crate::rg;

/// The host of the machine's launcher.
const FIRST_HOST: c_int = 0;

/// A list of members as Regatta tells it, by calling it until it fits.
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

/// Do all these tasks run where the launcher lends shared barriers? Their barriers need no messages.
pub fn are_near(members: &[Option<i32>]) -> bool {
    members.iter().flatten().all(|&task| is_near(task))
}

/// Does this task run on the host of the machine's launcher?
fn is_near(task: i32) -> bool {
    // SAFETY: a plain question.
    unsafe { rg::rg_host_of(task) == FIRST_HOST }
}

/// Which of these members leads them as a team: one that knows who is a member without a question to another host, if there is one.
pub fn leader(members: impl Iterator<Item = i32> + Clone) -> Option<i32> {
    let mut near = members.clone().filter(|&task| is_near(task));
    near.next().or_else(|| members.into_iter().next())
}

impl Group {
    /// Ask who is a member.
    pub fn ask(&self) -> Result<Vec<Option<i32>>, i32> {
        let name = self.name.as_ptr();
        // SAFETY: the name is a text, and there is room for so many.
        list(|tasks, room, count| unsafe { rg::rg_members(name, tasks, room, count) })
            .map_err(|_| codes::SYS_ERR)
    }

    /// The members, by instance number; an error if there are none.
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

    /// Our instance number; we must be a member.
    pub fn ours(&mut self) -> Result<i32, i32> {
        match self.instance {
            Some(instance) => Ok(instance),
            None => self.members().and(Err(codes::NOT_IN_GROUP)),
        }
    }
}
