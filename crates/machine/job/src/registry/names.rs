//! Named entries: mailboxes, through which tasks find each other or leave data.

use std::collections::{BTreeMap, BTreeSet};

use regatta_wire::control::{NameInfo, RequestError, flags};
use regatta_wire::fields::{Bytes, Field};
use regatta_wire::{Malformed, fields};

use super::Refused;

/// Maximum size of all entries together, in bytes.
const MAX_ENTRIES_BYTES: usize = 256 << 20;
/// Bytes counted for an entry besides those of its name and value.
const ENTRY_OVERHEAD_BYTES: usize = 128;

/// One entry under a name.
#[derive(Debug)]
struct Entry {
    /// The owner, or `None` if it has ended.
    owner: Option<u32>,
    flags: u32,
    value: Vec<u8>,
}

fields!(Entry {
    owner,
    flags,
    value
});

/// A task that waits for an entry.
#[derive(Debug)]
struct Waiting {
    task: u32,
    id: u32,
    name: String,
    index: u32,
    flags: u32,
}
fields!(Waiting {
    task,
    id,
    name,
    index,
    flags
});

/// All entries, and the tasks that wait for one.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The entries by name and index.
    entries: BTreeMap<(String, u32), Entry>,
    /// The waiting tasks in order of arrival.
    waiting: Vec<Waiting>,
    /// Size of all entries together, overhead included.
    bytes: usize,
}

impl Field for Names {
    fn put(&self, to: &mut Vec<u8>) {
        self.entries.put(to);
        self.waiting.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let entries = BTreeMap::<(String, u32), Entry>::take(from)?;
        let sizes = entries
            .iter()
            .map(|((name, _), entry)| size(name, &entry.value));
        Ok(Self {
            bytes: sizes.sum(),
            entries,
            waiting: Field::take(from)?,
        })
    }
}

/// Returns the bytes that an entry counts for.
fn size(name: &str, value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD_BYTES
}

/// An entry's index and value, or the reason for a refusal.
type Answer = Result<(u32, Vec<u8>), Refused>;

impl Names {
    /// Returns whether a task waits for the answer to this request.
    pub(super) fn is_waiting(&self, task: u32, id: u32) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|waiting| (waiting.task, waiting.id) == (task, id))
    }

    fn of<'n>(&'n self, name: &'n str) -> impl Iterator<Item = (u32, &'n Entry)> {
        self.entries
            .range((name.to_owned(), 0)..=(name.to_owned(), u32::MAX))
            .map(|((_, index), entry)| (*index, entry))
    }

    /// Puts an entry at an index, and returns the index. Without one, the entry gets the lowest free index if there may
    /// be several, or else replaces the first existing entry if `flags` has `OVERWRITABLE`. An existing entry is replaced
    /// only if `by` may change it.
    pub(super) fn put(
        &mut self,
        by: u32,
        name: String,
        index: Option<u32>,
        flags: u32,
        value: Vec<u8>,
    ) -> Result<u32, Refused> {
        if name.is_empty() {
            return Err((RequestError::Argument, "a name is empty".to_owned()));
        }
        let index = match index {
            Some(index) => index,
            None => self.place_for(&name, flags)?,
        };
        let key = (name, index);
        let before = self.entries.get(&key);
        if let Some(entry) = before
            && !may_change(entry, by)
        {
            return Err(denied(&key.0, index, entry));
        }
        let given_up = before.map_or(0, |entry| size(&key.0, &entry.value));
        let bytes = self.bytes - given_up + size(&key.0, &value);
        if bytes > MAX_ENTRIES_BYTES {
            let sentence = format!(
                "the entries of all names together would have more than {} MiB; delete some",
                MAX_ENTRIES_BYTES >> 20
            );
            return Err((RequestError::Memory, sentence));
        }
        self.bytes = bytes;
        let owner = Some(by);
        self.entries.insert(
            key,
            Entry {
                owner,
                flags,
                value,
            },
        );
        Ok(index)
    }

    fn place_for(&self, name: &str, flags: u32) -> Result<u32, Refused> {
        let taken: BTreeSet<u32> = self.of(name).map(|(index, _)| index).collect();
        let several = flags & flags::SEVERAL != 0
            && self
                .of(name)
                .all(|(_, entry)| entry.flags & flags::SEVERAL != 0);
        match taken.first() {
            None => Ok(0),
            Some(_) if several => Ok((0..).find(|index| !taken.contains(index)).unwrap_or(0)),
            Some(&first) if flags & flags::OVERWRITABLE != 0 => Ok(first),
            Some(_) => Err((
                RequestError::Exists,
                format!("an entry with the name {name:?} already exists"),
            )),
        }
    }

    /// Reads the entry at an index. Returns `None` if there is none yet and the task waits for it.
    pub(super) fn get(
        &mut self,
        task: u32,
        id: u32,
        name: String,
        index: u32,
        flags: u32,
    ) -> Option<Result<(u32, Vec<u8>), Refused>> {
        match self.read(task, &name, index, flags) {
            Err((RequestError::Name, _)) if flags & flags::WAIT != 0 => {
                self.waiting.push(Waiting {
                    task,
                    id,
                    name,
                    index,
                    flags,
                });
                None
            }
            outcome => Some(outcome),
        }
    }

    fn read(
        &mut self,
        by: u32,
        name: &str,
        index: u32,
        flags: u32,
    ) -> Result<(u32, Vec<u8>), Refused> {
        let first = flags & flags::FIRST != 0;
        let found = self
            .of(name)
            .find(|(at, _)| *at == index || first && *at > index);
        let Some((index, entry)) = found else {
            return Err(none(name, index));
        };
        if flags & flags::DELETE == 0 {
            return Ok((index, entry.value.clone()));
        }
        if !may_change(entry, by) {
            return Err(denied(name, index, entry));
        }
        let value = self.remove(name, index).map(|entry| entry.value);
        Ok((index, value.unwrap_or_default()))
    }

    fn remove(&mut self, name: &str, index: u32) -> Option<Entry> {
        let entry = self.entries.remove(&(name.to_owned(), index))?;
        self.bytes -= size(name, &entry.value);
        Some(entry)
    }

    pub(super) fn delete(&mut self, by: u32, name: &str, index: u32) -> Result<(), Refused> {
        let entry = self.entries.get(&(name.to_owned(), index));
        match entry {
            None => Err(none(name, index)),
            Some(entry) if !may_change(entry, by) => Err(denied(name, index, entry)),
            Some(_) => {
                self.remove(name, index);
                Ok(())
            }
        }
    }

    /// Atomically adds to an entry that holds a number, and returns the number before.
    pub(super) fn add(
        &mut self,
        by: u32,
        name: &str,
        index: u32,
        amount: u64,
    ) -> Result<u64, Refused> {
        let Some(entry) = self.entries.get_mut(&(name.to_owned(), index)) else {
            return Err(none(name, index));
        };
        if !may_change(entry, by) {
            return Err(denied(name, index, entry));
        }
        let Ok(bytes) = <[u8; 8]>::try_from(&entry.value[..]) else {
            let length = entry.value.len();
            let sentence = format!(
                "entry {index} under {name:?} is not a number: it has {length} bytes, and a number has 8"
            );
            return Err((RequestError::Argument, sentence));
        };
        let before = u64::from_le_bytes(bytes);
        entry.value = before.wrapping_add(amount).to_le_bytes().to_vec();
        Ok(before)
    }

    /// Answers tasks that wait for an entry of this name, which exists now. A task that may not take it is refused, as
    /// if it had requested it now. Waiters for other names are not served, since reading for them may delete their
    /// entries.
    pub(super) fn serve(&mut self, name: &str) -> Vec<(u32, u32, Answer)> {
        let mut served = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            let Waiting {
                task, index, flags, ..
            } = waiting;
            if waiting.name != name {
                self.waiting.push(waiting);
                continue;
            }
            match self.read(task, name, index, flags) {
                Err((RequestError::Name, _)) => self.waiting.push(waiting),
                answer => served.push((task, waiting.id, answer)),
            }
        }
        served
    }

    /// Lists the entries whose names match a pattern.
    pub(super) fn matching(&self, pattern: &str) -> Vec<NameInfo> {
        let infos = self
            .entries
            .iter()
            .filter(|((name, _), _)| matches(pattern, name))
            .map(|((name, index), entry)| NameInfo {
                name: name.clone(),
                index: *index,
                owner: entry.owner,
                flags: entry.flags,
                length: entry.value.len() as u32,
            });
        infos.collect()
    }

    /// Removes the entries of a task that has ended, except persistent ones.
    pub(super) fn owner_gone(&mut self, task: u32) {
        self.waiting.retain(|waiting| waiting.task != task);
        let bytes = &mut self.bytes;
        self.entries.retain(|(name, _), entry| {
            if entry.owner != Some(task) {
                return true;
            }
            entry.owner = None;
            let stays = entry.flags & flags::PERSISTENT != 0;
            if !stays {
                *bytes -= size(name, &entry.value);
            }
            stays
        });
    }
}

fn may_change(entry: &Entry, by: u32) -> bool {
    entry.owner.is_none_or(|owner| owner == by) || entry.flags & flags::OVERWRITABLE != 0
}

fn none(name: &str, index: u32) -> Refused {
    let sentence = format!("there is no entry {index} under {name:?}");
    (RequestError::Name, sentence)
}

fn denied(name: &str, index: u32, entry: &Entry) -> Refused {
    let owner = entry.owner.unwrap_or_default();
    let sentence = format!(
        "entry {index} under {name:?} belongs to task {owner}, which has not made it overwritable"
    );
    (RequestError::Denied, sentence)
}

/// Returns whether a name matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|part| name.strip_prefix(part)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use regatta_wire::control::{RequestError, flags};

    use super::{Names, matches};

    #[test]
    fn patterns_match_names() {
        for (pattern, name, is) in [
            ("", "", true),
            ("*", "anything", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("abc", "abcd", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }

    #[test]
    fn an_entry_is_read_for_no_waiter_of_another_name() {
        const TAKE: u32 = flags::WAIT | flags::DELETE;
        let mut names = Names::default();
        let put = |names: &mut Names, by, name: &str, flags| {
            let index = names.put(by, name.to_owned(), None, flags, vec![7]);
            index.unwrap();
            names.serve(name)
        };
        for (id, name) in [(1, "x"), (2, "y"), (3, "x")] {
            assert!(names.get(0, id, name.to_owned(), 0, TAKE).is_none());
        }
        // Its owner is alive, and has not allowed other tasks to take it.
        let served = put(&mut names, 5, "x", flags::PERSISTENT);
        let denied = |(task, id, answer): &(u32, u32, super::Answer)| {
            (*task, *id, matches!(answer, Err((RequestError::Denied, _))))
        };
        let answers: Vec<_> = served.iter().map(denied).collect();
        assert_eq!(answers, [(0, 1, true), (0, 3, true)]);
        assert!(put(&mut names, 5, "z", 0).is_empty());
        assert_eq!(names.of("x").count(), 1, "nobody has taken it");
        names.owner_gone(5);
        let taken = names.get(0, 4, "x".to_owned(), 0, TAKE);
        assert!(matches!(taken, Some(Ok((0, value))) if value == [7]));
        let served = put(&mut names, 6, "y", flags::OVERWRITABLE);
        assert!(matches!(&served[..], [(0, 2, Ok((0, value)))] if *value == [7]));
    }

    #[test]
    fn numbers_are_added_to() {
        let mut names = Names::default();
        let number = (-3_i64).to_le_bytes().to_vec();
        let put = names.put(1, "n".to_owned(), None, flags::OVERWRITABLE, number);
        put.unwrap();
        assert_eq!(names.add(2, "n", 0, 5), Ok(-3_i64 as u64));
        assert_eq!(names.add(1, "n", 0, 0), Ok(2));
        let read = names.get(2, 1, "n".to_owned(), 0, 0);
        assert!(matches!(read, Some(Ok((0, value))) if value == 2_u64.to_le_bytes()));
        let put = names.put(1, "own".to_owned(), None, 0, vec![0; 8]);
        put.unwrap();
        let put = names.put(1, "text".to_owned(), None, 0, vec![0; 7]);
        put.unwrap();
        let why = |outcome: Result<u64, super::Refused>| outcome.expect_err("refused").0;
        assert_eq!(why(names.add(2, "own", 0, 1)), RequestError::Denied);
        assert_eq!(names.add(1, "own", 0, 1), Ok(0));
        assert_eq!(why(names.add(1, "text", 0, 1)), RequestError::Argument);
        assert_eq!(why(names.add(1, "n", 1, 1)), RequestError::Name);
    }

    #[test]
    fn the_room_of_what_is_deleted_is_used_again() {
        let mut names = Names::default();
        for round in 0..3 {
            for _ in 0..16 {
                let value = vec![0; 15 << 20];
                names
                    .put(round, "big".to_owned(), None, flags::SEVERAL, value)
                    .unwrap();
            }
            let full = names.put(round, "more".to_owned(), None, 0, vec![0; 20 << 20]);
            assert!(matches!(full, Err((RequestError::Memory, _))));
            names.owner_gone(round);
            assert_eq!(names.bytes, 0);
        }
    }
}
