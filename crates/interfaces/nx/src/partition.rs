//! Partitions: names for numbers of nodes, in a tree whose root is the whole job. Pure.

use std::ffi::c_long;

use crate::error::{EPACCES, EPALLOCERR, EPBADNODE, EPINVALPART, EPNOTEMPTY, EPPARTEXIST, Fault};
use crate::options::Size;

/// The name of the partition that is the whole job.
pub const WHOLE: &str = ".compute";

/// A partition that the program has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Name below the whole job; the names of the enclosing partitions come first, separated by dots.
    name: String,
    pub size: Size,
    /// Its nodes, by their numbers in the enclosing partition.
    pub nodes: Vec<c_long>,
    pub settings: Settings,
}

/// Settings of a partition. They are stored and returned, and have no other effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub owner: c_long,
    pub group: c_long,
    pub mode: c_long,
    pub scheduling: c_long,
    /// Time slice in milliseconds that an application gets before the next one.
    pub quantum: c_long,
    /// Highest priority of an application in the partition, 0 to 10.
    pub priority_limit: c_long,
}

/// The partitions that the program has made.
pub struct Partitions(Vec<Partition>);

/// Returns a name relative to the whole job, which itself is empty.
fn below(name: &str) -> &str {
    let name = name.trim();
    match name.strip_prefix(WHOLE) {
        Some("") => "",
        Some(rest) => rest.strip_prefix('.').unwrap_or(name),
        None => name,
    }
}

/// Returns the name of the enclosing partition.
fn parent(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(parent, _)| parent)
}

fn has_form(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.split('.')
        .all(|part| !part.is_empty() && part.chars().all(fits))
}

impl Partitions {
    pub const fn new() -> Partitions {
        Partitions(Vec::new())
    }

    /// Returns the partition with this name, or `None` for the whole job, which has no entry. Fails if there is no such
    /// partition.
    pub fn find(&mut self, name: &str) -> Result<Option<&mut Partition>, Fault> {
        let name = below(name);
        if name.is_empty() {
            return Ok(None);
        }
        let found = self.0.iter_mut().find(|one| one.name == name);
        found.map(Some).ok_or(Fault::plain(EPINVALPART))
    }

    /// Returns the partition with this name, which must not be the whole job.
    pub fn find_made(&mut self, name: &str) -> Result<&mut Partition, Fault> {
        self.find(name)?.ok_or(Fault::plain(EPACCES))
    }

    /// Makes a partition of these nodes of the enclosing partition, or of its first nodes. The whole job has no limit.
    pub fn make(
        &mut self,
        name: &str,
        size: Size,
        nodes: Option<Vec<c_long>>,
        settings: Settings,
    ) -> Result<(), Fault> {
        let name = below(name);
        if name.is_empty() || self.0.iter().any(|one| one.name == name) {
            return Err(Fault::plain(EPPARTEXIST));
        }
        if !has_form(name) {
            return Err(Fault::plain(EPINVALPART));
        }
        let bound = self.find(parent(name))?.map(|parent| parent.size.count());
        let count = c_long::from(size.count());
        if bound.is_some_and(|bound| count > bound.into()) {
            return Err(Fault::of(EPALLOCERR, "size", count));
        }
        let nodes = nodes.unwrap_or_else(|| (0..count).collect());
        for (at, &node) in nodes.iter().enumerate() {
            let is_there = node >= 0 && bound.is_none_or(|bound| node < bound.into());
            if !is_there || nodes[..at].contains(&node) {
                return Err(Fault::of(EPBADNODE, "node", node));
            }
        }
        self.0.push(Partition {
            name: name.to_owned(),
            size,
            nodes,
            settings,
        });
        Ok(())
    }

    /// Returns the partitions directly inside this one.
    pub fn inside(&self, name: &str) -> Vec<&Partition> {
        let name = below(name);
        let inside = self.0.iter().filter(|one| parent(&one.name) == name);
        inside.collect()
    }

    /// Removes a partition, and if requested those inside.
    pub fn remove(&mut self, name: &str, with_those_inside: bool) -> Result<(), Fault> {
        self.find_made(name)?;
        if !with_those_inside && !self.inside(name).is_empty() {
            return Err(Fault::plain(EPNOTEMPTY));
        }
        let name = below(name).to_owned();
        self.0.retain(|one| !is_in(&one.name, &name));
        Ok(())
    }

    /// Renames a partition, and with it those inside. The enclosing partition stays the same. Returns the old and the
    /// new name.
    pub fn rename(&mut self, name: &str, new: &str) -> Result<Renamed, Fault> {
        self.find_made(name)?;
        let (old, new) = (below(name).to_owned(), new.trim());
        if !has_form(new) || new.contains('.') {
            return Err(Fault::plain(EPINVALPART));
        }
        let new = match parent(&old) {
            "" => new.to_owned(),
            parent => format!("{parent}.{new}"),
        };
        if self.0.iter().any(|one| one.name == new) {
            return Err(Fault::plain(EPPARTEXIST));
        }
        let renamed = Renamed { old, new };
        for one in &mut self.0 {
            if let Some(name) = renamed.of(&one.name) {
                one.name = name;
            }
        }
        Ok(renamed)
    }
}

/// The old and the new name of a partition.
#[derive(Debug)]
pub struct Renamed {
    old: String,
    new: String,
}

impl Renamed {
    /// Returns the new name of a partition, if it is the renamed one or inside it.
    pub fn of(&self, name: &str) -> Option<String> {
        let name = below(name);
        is_in(name, &self.old).then(|| format!("{}{}", self.new, &name[self.old.len()..]))
    }
}

/// Returns whether a partition is `outer` or inside it. The names are as programs write them.
pub fn is_within(one: &str, outer: &str) -> bool {
    is_in(below(one), below(outer))
}

/// Returns whether a partition is `outer` or inside it, by relative names.
fn is_in(name: &str, outer: &str) -> bool {
    name.strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns whether two names mean the same partition.
pub fn is_same(one: &str, other: &str) -> bool {
    below(one) == below(other)
}

#[cfg(test)]
mod tests {
    use std::ffi::c_int;

    use super::*;

    const USUAL: Settings = Settings {
        owner: 0,
        group: 0,
        mode: 0o755,
        scheduling: 1,
        quantum: 0,
        priority_limit: 10,
    };

    fn made(names: &[(&str, c_int)]) -> Partitions {
        let mut all = Partitions::new();
        for &(name, size) in names {
            all.make(name, Size::Nodes(size), None, USUAL).expect(name);
        }
        all
    }

    fn code<T>(result: Result<T, Fault>) -> c_int {
        result.err().map_or(0, |fault| fault.code)
    }

    #[test]
    fn names_are_below_the_whole_job() {
        let mut all = made(&[("mine", 4), (".compute.other", 2)]);
        for name in ["mine", ".compute.mine", "other"] {
            assert!(all.find(name).expect(name).is_some());
        }
        for name in ["", ".compute"] {
            assert_eq!(all.find(name).map(|found| found.is_none()), Ok(true));
            assert_eq!(code(all.find_made(name)), EPACCES);
        }
        assert_eq!(code(all.find(".computer")), EPINVALPART);
        assert_eq!(all.inside("").len(), 2);
    }

    #[test]
    fn a_partition_is_no_larger_than_the_one_that_it_is_in() {
        let mut all = made(&[("outer", 4)]);
        let mut make = |name, size, nodes| code(all.make(name, Size::Nodes(size), nodes, USUAL));
        assert_eq!(make("outer.large", 5, None), EPALLOCERR);
        assert_eq!(make("outer.far", 2, Some(vec![0, 4])), EPBADNODE);
        assert_eq!(make("outer.twice", 2, Some(vec![1, 1])), EPBADNODE);
        assert_eq!(make("outer.inner", 2, Some(vec![3, 1])), 0);
        assert_eq!(make("outer.inner", 2, None), EPPARTEXIST);
        assert_eq!(make("nowhere.inner", 2, None), EPINVALPART);
        assert_eq!(make("a name", 2, None), EPINVALPART);
    }

    #[test]
    fn partitions_go_with_the_one_that_they_are_in() {
        let mut all = made(&[("outer", 4), ("outer.inner", 2), ("outermost", 9)]);
        assert_eq!(code(all.remove("outer", false)), EPNOTEMPTY);
        all.rename("outer", "new").expect("a new name");
        assert!(all.find("new.inner").is_ok_and(|found| found.is_some()));
        assert_eq!(code(all.rename("new", "outermost")), EPPARTEXIST);
        assert_eq!(code(all.rename("new", "a.b")), EPINVALPART);
        all.remove("new", true).expect("gone");
        assert_eq!(code(all.find("new.inner")), EPINVALPART);
        assert_eq!(all.inside(WHOLE).len(), 1);
    }
}
