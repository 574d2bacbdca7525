//! The members of a named group.
//!
//! Only the launcher decides who is a member, and it is asked each time. It answers a task that joins or leaves only once the change is made. So a
//! task that knows of that change, from whatever source, and then asks, gets an answer that includes it. A copy of the members on each host, or in
//! each task, could not guarantee that: news to one host take longer than to another, and messages may overtake them.
//!
//! On the launcher's own host an answer can be kept. The job's table has a number there that the launcher changes before it reports a change to any
//! task. While the number is the one that was read before the request, the answer is valid. On other hosts this number is 0.

use regatta_engine::Result;
use regatta_wire::control::{Ask, Tell};

use crate::known_members::Members;
use crate::launcher::ask;
use crate::state::{Process, enter};
use crate::tasks::astray;

impl Process {
    fn known_members(&self, version: u64, group: &str) -> Option<Members> {
        let control = self.control.as_ref().filter(|_| version != 0)?;
        control.members.get(version, group).cloned()
    }
}

/// Returns the members of a named group by their numbers in it.
pub fn members(group: String) -> Result<Members> {
    let version = {
        let held = enter()?;
        let version = held.job.groups();
        if let Some(members) = held.known_members(version, &group) {
            return Ok(members);
        }
        version
    };
    let name = group.clone();
    let Tell::Members { tasks, .. } = ask(|id| Ask::Members { id, group })? else {
        return Err(astray());
    };
    if let Some(control) = &mut enter()?.control {
        control.members.keep(version, name, &tasks);
    }
    Ok(tasks)
}
