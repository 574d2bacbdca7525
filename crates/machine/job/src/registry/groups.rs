//! Named groups, which tasks join and leave.

use std::collections::BTreeMap;

use regatta_wire::control::{GroupInfo, RequestError};
use regatta_wire::fields::{Bytes, Field};
use regatta_wire::{Malformed, fields};

use super::Refused;

/// Maximum size of the name of a group, in bytes.
const MAX_NAME_BYTES: usize = 4096;

/// One named group.
#[derive(Debug, Default)]
struct Group {
    /// The members, indexed by their numbers in the group. `None` marks a free number.
    members: Vec<Option<u32>>,
    /// The members that wait in the barrier, with the numbers of their requests.
    at_barrier: Vec<(u32, u32)>,
    /// The number of members that complete the barrier.
    wanted: u32,
}

fields!(Group {
    members,
    at_barrier,
    wanted
});

/// The members that have met, with the numbers of their requests. If these are all members of the group, the second
/// field has the group's members.
pub(super) type Met = (Vec<(u32, u32)>, Option<Vec<Option<u32>>>);

/// All named groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: BTreeMap<String, Group>,
    /// The number of membership changes in this process. A new launcher counts from 0.
    changes: u64,
}

impl Field for Groups {
    fn put(&self, to: &mut Vec<u8>) {
        self.all.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let all = Field::take(from)?;
        Ok(Self { all, changes: 0 })
    }
}

impl Groups {
    /// Returns the number of membership changes.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns whether a task waits in a barrier for the answer to this request.
    pub(super) fn is_waiting(&self, task: u32, id: u32) -> bool {
        let mut groups = self.all.values();
        groups.any(|group| group.at_barrier.contains(&(task, id)))
    }

    /// Adds a member and returns its number in the group, the lowest that is free.
    pub(super) fn join(&mut self, task: u32, name: String) -> Result<u32, Refused> {
        if name.is_empty() {
            return Err((
                RequestError::Argument,
                "the name of a group is empty".to_owned(),
            ));
        }
        if name.len() > MAX_NAME_BYTES {
            let sentence = format!("the name of a group has more than {MAX_NAME_BYTES} bytes");
            return Err((RequestError::Argument, sentence));
        }
        let group = self.all.entry(name.clone()).or_default();
        if group.members.contains(&Some(task)) {
            let sentence = format!("task {task} is already a member of the group {name:?}");
            return Err((RequestError::Exists, sentence));
        }
        let free = group.members.iter().position(Option::is_none);
        let number = free.unwrap_or(group.members.len());
        match group.members.get_mut(number) {
            Some(place) => *place = Some(task),
            None => group.members.push(Some(task)),
        }
        self.changes += 1;
        Ok(number as u32)
    }

    /// Removes a member. Returns its requests that wait in the barrier, which other threads of the member made. The
    /// caller must answer them.
    pub(super) fn leave(&mut self, task: u32, name: &str) -> Result<Vec<u32>, Refused> {
        let group = self.all.get_mut(name);
        let waiting = group.iter().flat_map(|group| &group.at_barrier);
        let waiting = waiting.filter(|(member, _)| *member == task);
        let waiting: Vec<u32> = waiting.map(|(_, id)| *id).collect();
        let left = group.is_some_and(|group| group.drop(task));
        self.all.retain(|_, group| !group.members.is_empty());
        self.changes += u64::from(left);
        match left {
            true => Ok(waiting),
            false => Err(not_a_member(task, name)),
        }
    }

    pub(super) fn members(&self, name: &str) -> Vec<Option<u32>> {
        self.all
            .get(name)
            .map_or_else(Vec::new, |group| group.members.clone())
    }

    /// Describes all groups, by name.
    pub(super) fn infos(&self) -> Vec<GroupInfo> {
        let info = |(name, group): (&String, &Group)| GroupInfo {
            name: name.clone(),
            members: group.members.clone(),
            waiting: group.at_barrier.iter().map(|&(task, _)| task).collect(),
            wanted: if group.at_barrier.is_empty() {
                0
            } else {
                group.wanted
            },
        };
        self.all.iter().map(info).collect()
    }

    /// Adds a member to the barrier, which `count` members complete. Returns those to be answered now.
    pub(super) fn meet(
        &mut self,
        task: u32,
        id: u32,
        name: &str,
        count: u32,
    ) -> Result<Met, Refused> {
        let group = self.all.get_mut(name);
        let Some(group) = group.filter(|group| group.members.contains(&Some(task))) else {
            return Err(not_a_member(task, name));
        };
        if group.at_barrier.is_empty() {
            group.wanted = count;
        }
        if count == 0 || count != group.wanted {
            let sentence = format!(
                "the waiting members of the group {name:?} expect {} members, and this one expects {count}",
                group.wanted
            );
            return Err((RequestError::Argument, sentence));
        }
        group.at_barrier.push((task, id));
        Ok(match group.at_barrier.len() as u32 >= count {
            true => (std::mem::take(&mut group.at_barrier), group.all_of(count)),
            false => (Vec::new(), None),
        })
    }

    /// Removes a task that has ended from all groups.
    pub(super) fn gone(&mut self, task: u32) {
        for group in self.all.values_mut() {
            self.changes += u64::from(group.drop(task));
        }
        self.all.retain(|_, group| !group.members.is_empty());
    }
}

impl Group {
    /// Returns the members if there are exactly `count`.
    fn all_of(&self, count: u32) -> Option<Vec<Option<u32>>> {
        let all = self.members.iter().flatten().count();
        (all == count as usize).then(|| self.members.clone())
    }

    /// Removes a task. Returns whether it was a member.
    fn drop(&mut self, task: u32) -> bool {
        self.at_barrier.retain(|waiting| waiting.0 != task);
        let place = self
            .members
            .iter_mut()
            .find(|member| **member == Some(task));
        let found = place.map(|place| *place = None).is_some();
        while let Some(None) = self.members.last() {
            self.members.pop();
        }
        found
    }
}

/// Returns the refusal for a task that is not a member.
fn not_a_member(task: u32, name: &str) -> Refused {
    let sentence = format!("task {task} is not a member of the group {name:?}");
    (RequestError::Name, sentence)
}
