//! Named groups, which tasks join and leave.

use std::collections::HashMap;

use regatta_wire::control::{GroupInfo, Why};
use regatta_wire::fields::{Bytes, Field};
use regatta_wire::{Malformed, fields};

use super::Refused;
use super::whole::{put_map, take_map};

#[derive(Debug, Default)]
struct Group {
    /// By number in the group.
    members: Vec<Option<u32>>,
    /// Who waits for others to come, with the numbers of their questions, and how many must come.
    meeting: Vec<(u32, u32)>,
    wanted: u32,
}

fields!(Group {
    members,
    meeting,
    wanted
});
/// Who have met, with the numbers of their questions; and the members, if they were all.
pub(super) type Met = (Vec<(u32, u32)>, Option<Vec<Option<u32>>>);

/// All named groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: HashMap<String, Group>,
    /// How often the members of any have changed since this process has known them.
    changes: u64,
}

impl Field for Groups {
    fn put(&self, to: &mut Vec<u8>) {
        put_map(&self.all, to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let all = take_map(from)?;
        Ok(Self { all, changes: 0 })
    }
}

impl Groups {
    /// Another number after each change of members.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Does a task wait for the answer to this question?
    pub(super) fn is_waiting(&self, task: u32, id: u32) -> bool {
        let mut groups = self.all.values();
        groups.any(|group| group.meeting.contains(&(task, id)))
    }

    /// The number of the new member: the lowest that is free.
    pub(super) fn join(&mut self, task: u32, name: String) -> Result<u32, Refused> {
        if name.is_empty() {
            return Err((Why::Argument, "the name of a group is empty".to_owned()));
        }
        let group = self.all.entry(name.clone()).or_default();
        if group.members.contains(&Some(task)) {
            let sentence = format!("task {task} is a member of the group {name:?} already");
            return Err((Why::Exists, sentence));
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

    pub(super) fn leave(&mut self, task: u32, name: &str) -> Result<(), Refused> {
        let left = self.all.get_mut(name).is_some_and(|group| group.drop(task));
        self.all.retain(|_, group| !group.members.is_empty());
        self.changes += u64::from(left);
        match left {
            true => Ok(()),
            false => Err(stranger(task, name)),
        }
    }

    pub(super) fn members(&self, name: &str) -> Vec<Option<u32>> {
        self.all
            .get(name)
            .map_or_else(Vec::new, |group| group.members.clone())
    }

    /// All of them, by name.
    pub(super) fn infos(&self) -> Vec<GroupInfo> {
        let info = |(name, group): (&String, &Group)| GroupInfo {
            name: name.clone(),
            members: group.members.clone(),
            waiting: group.meeting.iter().map(|&(task, _)| task).collect(),
            wanted: if group.meeting.is_empty() {
                0
            } else {
                group.wanted
            },
        };
        let mut all: Vec<GroupInfo> = self.all.iter().map(info).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// A member waits until `count` of them do. Those who are to be answered, with their questions, and
    /// the members of the group if all of them have come.
    pub(super) fn meet(
        &mut self,
        task: u32,
        id: u32,
        name: &str,
        count: u32,
    ) -> Result<Met, Refused> {
        let group = self.all.get_mut(name);
        let Some(group) = group.filter(|group| group.members.contains(&Some(task))) else {
            return Err(stranger(task, name));
        };
        if group.meeting.is_empty() {
            group.wanted = count;
        }
        if count == 0 || count != group.wanted {
            let sentence = format!(
                "the members of the group {name:?} that wait already want to be {}, and this one {count}",
                group.wanted
            );
            return Err((Why::Argument, sentence));
        }
        group.meeting.push((task, id));
        Ok(match group.meeting.len() as u32 >= count {
            true => (std::mem::take(&mut group.meeting), group.all_of(count)),
            false => (Vec::new(), None),
        })
    }

    /// A task is gone, and leaves all groups.
    pub(super) fn gone(&mut self, task: u32) {
        for group in self.all.values_mut() {
            self.changes += u64::from(group.drop(task));
        }
        self.all.retain(|_, group| !group.members.is_empty());
    }
}

impl Group {
    /// The members, if there are so many.
    fn all_of(&self, count: u32) -> Option<Vec<Option<u32>>> {
        let all = self.members.iter().flatten().count();
        (all == count as usize).then(|| self.members.clone())
    }

    /// Whether the task was a member.
    fn drop(&mut self, task: u32) -> bool {
        self.meeting.retain(|waiting| waiting.0 != task);
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

fn stranger(task: u32, name: &str) -> Refused {
    let sentence = format!("task {task} is no member of the group {name:?}");
    (Why::Name, sentence)
}
