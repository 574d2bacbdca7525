//! Shared barriers lent to named groups, and when each one is shut.
//!
//! A shared barrier is memory in which tasks of one host meet without the launcher. It is lent when all members of a
//! group have met in the registry. Before the registry handles anything that concerns the group, the launcher shuts the
//! barrier, and members that wait in it wait in the registry instead. The registry never knows of shared barriers.
//!
//! A member that waits in a shared barrier has written the number of the request there that it will send if the barrier
//! is shut. The launcher handles that request at once ([`Barriers::shut`]). The member then sends the same request,
//! which is not handled again ([`Barriers::requested`]).

use std::collections::{BTreeMap, BTreeSet};

use regatta_wire::control::Ask;

/// Maximum number of members of a group with a shared barrier.
const MAX_BARRIER_MEMBERS: usize = 1 << 12;

/// A shared barrier that is lent to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LentBarrier {
    /// The barrier's name in the memory that the tasks share.
    pub name: u64,
    /// The members of the group. A member's index is its slot in the barrier.
    pub members: Vec<u32>,
}

impl LentBarrier {
    /// Returns the number of members that the barrier is made for, a power of two, so that it serves groups of similar
    /// sizes.
    fn room(&self) -> u32 {
        room(self.members.len())
    }
}

fn room(members: usize) -> u32 {
    (members as u32).next_power_of_two()
}

/// A shared barrier that was shut.
#[derive(Debug)]
struct Retired {
    barrier: LentBarrier,
    /// The tasks that may still read the barrier.
    users: BTreeSet<u32>,
    /// Requests that were handled when the barrier was shut, and that the tasks will still send: (task, request
    /// number).
    handled: BTreeSet<(u32, u32)>,
}

/// Returns the group whose barrier must be shut before `request` is handled, and the number of the request.
fn subject(request: &Ask) -> Option<(&str, u32)> {
    match request {
        Ask::Join { id, group } | Ask::Leave { id, group } | Ask::Meet { id, group, .. } => {
            Some((group, *id))
        }
        _ => None,
    }
}

/// All shared barriers of a job.
#[derive(Debug, Default)]
pub struct Barriers {
    lent: BTreeMap<String, LentBarrier>,
    retired: BTreeMap<String, Vec<Retired>>,
    /// Names of barriers that no task reads any more, by the number of members that they have room for.
    free: BTreeMap<u32, Vec<u64>>,
}

impl Barriers {
    /// Returns whether a group gets a shared barrier. `is_here` returns whether a task runs on the launcher's host.
    pub fn may_share(members: &[u32], is_here: impl Fn(u32) -> bool) -> bool {
        members.len() <= MAX_BARRIER_MEMBERS && members.iter().all(|&task| is_here(task))
    }

    /// Returns a barrier for this many members: an unused one, or a new one from `make`, which gets the number of
    /// members to make it for.
    pub fn find<E>(
        &mut self,
        members: usize,
        make: impl FnOnce(u32) -> Result<u64, E>,
    ) -> Result<u64, E> {
        let room = room(members);
        let free = self.free.get_mut(&room).and_then(Vec::pop);
        free.map_or_else(|| make(room), Ok)
    }

    /// Records that the members of a group use `barrier` from now on.
    pub fn lend(&mut self, group: String, barrier: LentBarrier) {
        self.lent.insert(group, barrier);
    }

    /// Removes and returns the barrier of a group, to shut it. The caller then calls [`Barriers::shut`].
    pub fn take_back(&mut self, group: &str) -> Option<LentBarrier> {
        self.lent.remove(group)
    }

    /// Records that the barrier of a group has been shut. `waiting` has each slot that waited in it, with the number of
    /// the request that its member will send. Returns the requests to handle now, as (task, request number).
    pub fn shut(
        &mut self,
        group: &str,
        barrier: LentBarrier,
        waiting: &[(u32, u32)],
    ) -> Vec<(u32, u32)> {
        let task = |&(place, request): &(u32, u32)| {
            let member = barrier.members.get(place as usize)?;
            Some((*member, request))
        };
        let waiting: Vec<(u32, u32)> = waiting.iter().filter_map(task).collect();
        let retired = Retired {
            users: barrier.members.iter().copied().collect(),
            handled: waiting.iter().copied().collect(),
            barrier,
        };
        let group = self.retired.entry(group.to_owned());
        group.or_default().push(retired);
        waiting
    }

    /// Returns the groups whose barriers must be shut before the registry handles this request, or `None` if the
    /// request was handled already.
    pub fn requested(&mut self, task: u32, request: &Ask) -> Option<Vec<String>> {
        if let Ask::Groups { .. } = request {
            return Some(self.lent.keys().cloned().collect());
        }
        let Some((group, number)) = subject(request) else {
            return Some(Vec::new());
        };
        // A request announced in an earlier barrier does not shut the present one.
        let was_handled = self.note_request(group, task, number);
        (!was_handled).then(|| vec![group.to_owned()])
    }

    /// Returns whether the request was handled when the barrier was shut for it: the requesting task may itself have
    /// announced it there.
    pub fn was_handled(&mut self, task: u32, request: &Ask) -> bool {
        subject(request).is_some_and(|(group, number)| self.note_request(group, task, number))
    }

    /// Records that `task` has sent a request about a group, so it no longer reads earlier barriers. Returns whether
    /// that request was handled already.
    fn note_request(&mut self, group: &str, task: u32, request: u32) -> bool {
        let mut known = false;
        for retired in self.retired.get_mut(group).into_iter().flatten() {
            known |= retired.handled.remove(&(task, request));
            if retired.handled.iter().all(|&(other, _)| other != task) {
                retired.users.remove(&task);
            }
        }
        self.reuse(group);
        known
    }

    /// Returns the groups whose barriers the task may be in. They must be shut before the task's end is handled.
    pub fn of_task(&self, task: u32) -> Vec<String> {
        let lent = self.lent.iter();
        lent.filter(|(_, barrier)| barrier.members.contains(&task))
            .map(|(group, _)| group.clone())
            .collect()
    }

    /// Records that a task has ended.
    pub fn task_ended(&mut self, task: u32) {
        let groups: Vec<String> = self.retired.keys().cloned().collect();
        for group in groups {
            for retired in self.retired.get_mut(&group).into_iter().flatten() {
                retired.users.remove(&task);
            }
            self.reuse(&group);
        }
    }

    /// Moves barriers that no task reads any more to the free list.
    fn reuse(&mut self, group: &str) {
        let Some(all) = self.retired.get_mut(group) else {
            return;
        };
        for unused in all.extract_if(.., |retired| retired.users.is_empty()) {
            let names = self.free.entry(unused.barrier.room()).or_default();
            names.push(unused.barrier.name);
        }
        if all.is_empty() {
            self.retired.remove(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "crew";

    /// Lends a barrier to these members. A new barrier gets the name `new`.
    fn lend(barriers: &mut Barriers, new: u64, members: &[u32]) -> u64 {
        let name = barriers.find(members.len(), |_| Ok::<_, ()>(new));
        let name = name.expect("memory for it");
        let members = members.to_vec();
        barriers.lend(GROUP.to_owned(), LentBarrier { name, members });
        name
    }

    fn shut(barriers: &mut Barriers, waiting: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let barrier = barriers.take_back(GROUP).expect("a barrier");
        barriers.shut(GROUP, barrier, waiting)
    }

    fn meet(id: u32) -> Ask {
        let group = GROUP.to_owned();
        Ask::Meet {
            id,
            group,
            count: 2,
        }
    }

    #[test]
    fn members_on_one_host_share_a_barrier() {
        assert!(Barriers::may_share(&[0, 1], |_| true));
        assert!(!Barriers::may_share(&[0, 1], |task| task == 0));
        assert!(!Barriers::may_share(
            &vec![0; MAX_BARRIER_MEMBERS + 1],
            |_| true
        ));
    }

    #[test]
    fn a_waiting_member_is_asked_for_and_its_own_request_is_not_handled_again() {
        let mut barriers = Barriers::default();
        lend(&mut barriers, 5, &[2, 0]);
        assert_eq!(barriers.of_task(0), [GROUP]);
        // Slot 0 is task 2. A slot without a member is ignored.
        assert_eq!(shut(&mut barriers, &[(0, 77), (9, 1)]), [(2, 77)]);
        assert!(barriers.take_back(GROUP).is_none() && barriers.of_task(0).is_empty());
        let to_shut = Some(vec![GROUP.to_owned()]);
        assert_eq!(barriers.requested(2, &meet(76)), to_shut);
        assert_eq!(barriers.requested(2, &meet(77)), None);
        assert_eq!(barriers.requested(2, &meet(77)), to_shut);
    }

    #[test]
    fn whoever_asks_may_have_been_waiting_in_the_barrier_that_is_shut_for_it() {
        let mut barriers = Barriers::default();
        lend(&mut barriers, 5, &[0, 1]);
        assert!(barriers.requested(1, &meet(4)).is_some());
        shut(&mut barriers, &[(1, 4)]);
        assert!(barriers.was_handled(1, &meet(4)));
        assert!(!barriers.was_handled(1, &meet(4)));
    }

    #[test]
    fn a_list_of_the_groups_needs_all_barriers_shut_and_other_requests_none() {
        let mut barriers = Barriers::default();
        lend(&mut barriers, 5, &[0, 1]);
        let groups = barriers.requested(7, &Ask::Groups { id: 1 });
        assert_eq!(groups, Some(vec![GROUP.to_owned()]));
        assert_eq!(
            barriers.requested(0, &Ask::Halt { id: 2 }),
            Some(Vec::new())
        );
    }

    #[test]
    fn a_barrier_is_lent_again_when_nobody_looks_at_it() {
        let mut barriers = Barriers::default();
        assert_eq!(lend(&mut barriers, 1, &[0, 1]), 1);
        shut(&mut barriers, &[(1, 5)]);
        // Task 1 reads the barrier until it has sent the request that it announced.
        assert!(barriers.requested(0, &meet(8)).is_some());
        assert!(barriers.requested(1, &meet(9)).is_some());
        assert_eq!(lend(&mut barriers, 2, &[0, 1]), 2);
        shut(&mut barriers, &[]);
        assert_eq!(barriers.requested(1, &meet(5)), None);
        assert_eq!(lend(&mut barriers, 3, &[1, 2]), 1);
        barriers.task_ended(0);
        barriers.task_ended(1);
        assert!(barriers.retired.is_empty());
        assert_eq!(barriers.find(2, Err::<u64, _>), Ok(2));
        assert_eq!(barriers.find(2, Err::<u64, _>), Err(2));
        assert_eq!(barriers.find(3, Err::<u64, _>), Err(4));
    }
}
