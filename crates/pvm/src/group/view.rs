//! Who is a member of a group.

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

impl Group {
    /// Ask who is a member.
    pub fn ask(&self) -> Result<Vec<Option<i32>>, i32> {
        let name = self.name.as_ptr();
        // SAFETY: the name is a text, and there is room for so many.
        list(|tasks, room, count| unsafe { rg::rg_members(name, tasks, room, count) })
            .map_err(|_| codes::SYS_ERR)
    }

    /// Who is a member, by instance number; an error if nobody is.
    pub fn members(&mut self) -> Result<Vec<Option<i32>>, i32> {
        if let (true, Some(view)) = (self.frozen, &self.view) {
            return Ok(view.clone());
        }
        let members = self.ask()?;
        match members.is_empty() {
            true => Err(codes::NO_GROUP),
            false => Ok(members),
        }
    }

    /// The same from what is known, where that is enough: members hear when it changes.
    pub fn view(&mut self) -> Result<&[Option<i32>], i32> {
        if self.view.is_none() || self.instance.is_none() {
            let members = self.members()?;
            self.keep(members);
        }
        Ok(self.view.as_deref().unwrap_or_default())
    }

    /// These are the members.
    pub fn keep(&mut self, members: Vec<Option<i32>>) {
        // SAFETY: a plain question.
        let near = |&task: &i32| unsafe { rg::rg_host_of(task) } == FIRST_HOST;
        self.near = members.iter().flatten().all(near);
        self.view = Some(members);
    }

    /// Our instance number; we must be a member.
    pub fn ours(&mut self) -> Result<i32, i32> {
        match self.instance {
            Some(instance) => Ok(instance),
            None => self.members().and(Err(codes::NOT_IN_GROUP)),
        }
    }
}
