//! The launcher's answers about the members of named groups, which are kept on its own host (`members` says why, and for how long).

use rustc_hash::FxHashMap;

/// Tasks by their numbers in a group. `None` where a number is free.
pub(crate) type Members = Vec<Option<u32>>;

/// Answers of the launcher, valid while the number in the job's table equals `version`.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    version: u64,
    all: FxHashMap<String, Members>,
}

impl Answers {
    /// Returns the members of a group, if they are known in this version.
    pub(crate) fn get(&self, version: u64, group: &str) -> Option<&Members> {
        self.all.get(group).filter(|_| self.version == version)
    }

    /// Keeps an answer to a question that was asked when the number in the table was `version`. Keeps nothing for groups without members: there may
    /// be any number of such names.
    pub(crate) fn keep(&mut self, version: u64, group: String, members: &Members) {
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
