//! The members of a named group.
//!
//! The launcher alone decides, and it is asked each time. It answers a task that joins or leaves only when the change is made, so
//! whoever has heard of that change, in whatever way, asks after it and is told of it. A copy of the members on each host, or in each
//! task, could not promise that: news to one host take longer than to another, and messages may overtake them.
//!
//! On the launcher's own host an answer can be kept. The job's table has a number there that the launcher changes
//! before it tells anybody of a change; as long as it is the one that was read before the question, the answer holds. On
//! other hosts this number is 0.

use regatta_engine::Result;
use regatta_wire::control::{Ask, Tell};
use rustc_hash::FxHashMap;

use crate::launcher::ask;
use crate::state::{Process, enter};
use crate::tasks::astray;

/// Tasks by their numbers in a group; none where a number is free.
type Members = Vec<Option<u32>>;

/// Answers of the launcher's that hold while the number in the table is this one.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    version: u64,
    all: FxHashMap<String, Members>,
}

impl Answers {
    fn get(&self, version: u64, group: &str) -> Option<&Members> {
        self.all.get(group).filter(|_| self.version == version)
    }

    /// An answer to a question that was asked when the number was this. Of a group that nobody is in nothing is kept: there
    /// may be any number of such names.
    fn keep(&mut self, version: u64, group: String, members: &Members) {
        if version == 0 || members.is_empty() {
            return;
        }
        if self.version != version {
            self.all.clear();
            self.version = version;
        }
        self.all.insert(group, members.clone());
    }
}

impl Process {
    fn known_members(&self, version: u64, group: &str) -> Option<Members> {
        let control = self.control.as_ref().filter(|_| version != 0)?;
        control.members.get(version, group).cloned()
    }
}

/// The members of a named group by their numbers in it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_for_the_version_that_was_read_before_the_question() {
        let mut answers = Answers::default();
        let (crew, guests) = (vec![Some(3), None, Some(1)], vec![Some(4)]);
        answers.keep(5, "crew".to_owned(), &crew);
        answers.keep(5, "guests".to_owned(), &guests);
        assert_eq!(answers.get(5, "crew"), Some(&crew));
        assert_eq!(answers.get(5, "guests"), Some(&guests));
        assert_eq!(answers.get(6, "crew"), None);
        answers.keep(6, "guests".to_owned(), &crew);
        assert_eq!(answers.get(6, "crew"), None);
        assert_eq!(answers.get(6, "guests"), Some(&crew));
        assert_eq!(answers.get(5, "guests"), None);
    }

    #[test]
    fn nothing_is_kept_on_other_hosts_nor_of_groups_that_are_empty() {
        let mut answers = Answers::default();
        answers.keep(0, "crew".to_owned(), &vec![Some(1)]);
        answers.keep(1, "nobody".to_owned(), &Vec::new());
        assert_eq!(answers.get(0, "crew"), None);
        assert_eq!(answers.get(1, "nobody"), None);
        assert!(answers.all.is_empty());
    }
}
