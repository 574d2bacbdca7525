//! Shared barriers that are lent to named groups: see `regatta_segment::shared_barrier`.
//!
//! A shared barrier is lent when all members of a group have met in the registry, if all of them run on this host. Before
//! anything that concerns the group comes to the registry the barrier is shut, and the members that wait in it wait in the
//! registry instead: it never knows that there was one.

use std::collections::{HashMap, HashSet};

use regatta_segment::job::Job;
use regatta_wire::control::Ask;
use regatta_wire::fields::Message;

use super::Supervisor;

/// More members have no shared barrier.
const MOST: u32 = 1 << 12;

#[derive(Debug)]
struct LentBarrier {
    name: u64,
    members: Vec<u32>,
}

impl LentBarrier {
    fn size(&self) -> u32 {
        self.members.len() as u32
    }
}

/// A shared barrier that was shut.
#[derive(Debug)]
struct Past {
    barrier: LentBarrier,
    /// The tasks that may still look at it.
    users: HashSet<u32>,
    /// Questions that count as asked, and that will be asked again.
    counted: HashSet<(u32, u32)>,
}

/// All shared barriers of a job.
#[derive(Debug, Default)]
pub(super) struct SharedBarriers {
    lent: HashMap<String, LentBarrier>,
    past: HashMap<String, Vec<Past>>,
    /// Names of those that nobody looks at any more, by how many members they have room for.
    free: HashMap<u32, Vec<u64>>,
}

impl SharedBarriers {
    /// Lends a shared barrier to these members; its name, or 0 if there is no memory for one.
    fn lend(&mut self, job: &Job, group: String, members: Vec<u32>) -> u64 {
        let room = (members.len() as u32).next_power_of_two();
        let kept = self.free.get_mut(&room).and_then(Vec::pop);
        let name = kept.map_or_else(|| job.new_shared_barrier(room), Ok);
        let Ok(name) = name else { return 0 };
        let barrier = LentBarrier { name, members };
        let Ok(opened) = job.shared_barrier(name, barrier.size()) else {
            return 0;
        };
        opened.open();
        self.lent.insert(group, barrier);
        name
    }

    /// Shuts the barrier of a group. Returns who waits in it (the tasks, and under which number each would ask), and how
    /// many want to meet.
    fn shut(&mut self, job: &Job, group: &str) -> Option<(Vec<(u32, u32)>, u32)> {
        let barrier = self.lent.remove(group)?;
        let size = barrier.size();
        let come = job
            .shared_barrier(barrier.name, size)
            .map_or_else(|_| Vec::new(), |barrier| barrier.shut());
        let counted: Vec<(u32, u32)> = come
            .iter()
            .map(|&(place, question)| (barrier.members[place as usize], question))
            .collect();
        for &(task, _) in &counted {
            job.bell(task).wake();
        }
        let past = Past {
            users: barrier.members.iter().copied().collect(),
            counted: counted.iter().copied().collect(),
            barrier,
        };
        self.past.entry(group.to_owned()).or_default().push(past);
        Some((counted, size))
    }

    /// Groups whose barrier a task may pass.
    fn of(&self, task: u32) -> Vec<String> {
        let lent = self.lent.iter();
        lent.filter(|(_, barrier)| barrier.members.contains(&task))
            .map(|(group, _)| group.clone())
            .collect()
    }

    /// A task has spoken of the group, under this number: it looks at no earlier shared barrier. Returns whether that counts
    /// as asked already.
    fn spoke(&mut self, group: &str, task: u32, question: u32) -> bool {
        let mut known = false;
        for past in self.past.get_mut(group).into_iter().flatten() {
            known |= past.counted.remove(&(task, question));
            if past.counted.iter().all(|&(other, _)| other != task) {
                past.users.remove(&task);
            }
        }
        self.tidy(group);
        known
    }

    /// A task is no more.
    fn gone(&mut self, task: u32) {
        let groups: Vec<String> = self.past.keys().cloned().collect();
        for group in groups {
            for past in self.past.get_mut(&group).into_iter().flatten() {
                past.users.remove(&task);
            }
            self.tidy(&group);
        }
    }

    /// Keeps the shared barriers that nobody looks at any more for others.
    fn tidy(&mut self, group: &str) {
        let Some(all) = self.past.get_mut(group) else {
            return;
        };
        all.retain(|past| {
            let used = !past.users.is_empty();
            if !used {
                let room = past.barrier.size().next_power_of_two();
                self.free.entry(room).or_default().push(past.barrier.name);
            }
            used
        });
        if all.is_empty() {
            self.past.remove(group);
        }
    }
}

/// The group of which a question speaks in such a way that its barrier must be shut.
fn subject(ask: &Ask) -> Option<(&str, u32)> {
    match ask {
        Ask::Join { id, group } | Ask::Leave { id, group } | Ask::Meet { id, group, .. } => {
            Some((group, *id))
        }
        _ => None,
    }
}

impl Supervisor<'_> {
    /// Shuts what must be shut before a request comes to the registry. False: it counts as handled already.
    pub(super) fn is_new(&mut self, task: u32, bytes: &[u8]) -> bool {
        let Ok(ask) = Ask::decode(bytes) else {
            return true;
        };
        if let Ask::Groups { .. } = ask {
            self.shut_all_barriers();
        }
        let Some((group, question)) = subject(&ask) else {
            return true;
        };
        // A question that an earlier shared barrier has counted is no reason to shut the one there is now.
        if self.shared_barriers.spoke(group, task, question) {
            return false;
        }
        self.shut_barrier(group);
        !self.shared_barriers.spoke(group, task, question)
    }

    /// A task ends: nobody is to wait for it in a shared barrier.
    pub(super) fn shut_barriers_of(&mut self, task: u32) {
        for group in self.shared_barriers.of(task) {
            self.shut_barrier(&group);
        }
        self.shared_barriers.gone(task);
    }

    /// Shuts all shared barriers, before the registry says who waits.
    fn shut_all_barriers(&mut self) {
        for group in self
            .shared_barriers
            .lent
            .keys()
            .cloned()
            .collect::<Vec<_>>()
        {
            self.shut_barrier(&group);
        }
    }

    /// Shuts the barrier of a group. Members that wait in it wait in the registry from now on, each as if it had requested
    /// that there.
    fn shut_barrier(&mut self, group: &str) {
        let shut = |supervisor: &mut Self| {
            let tasks = supervisor.tasks.as_ref()?;
            supervisor.shared_barriers.shut(tasks.job(), group)
        };
        // Should they all have come, they get a shared barrier again; it is shut as well.
        while let Some((waiting, count)) = shut(self) {
            for (task, id) in waiting {
                let ask = Ask::Meet {
                    id,
                    group: group.to_owned(),
                    count,
                };
                let mut bytes = Vec::new();
                ask.encode(&mut bytes);
                self.handle_request(task, &bytes);
            }
        }
    }

    /// All members of a group have met.
    pub(super) fn lend(&mut self, group: String, members: Vec<u32>) {
        let elsewhere = |&task: &u32| {
            let host = self.registry.host_of(task);
            host.is_none_or(|host| self.remotes.iter().any(|remote| remote.number == host))
        };
        if members.len() > MOST as usize || members.iter().any(elsewhere) {
            return;
        }
        if let Some(tasks) = &self.tasks {
            let barrier = self
                .shared_barriers
                .lend(tasks.job(), group, members.clone());
            self.registry.share_barrier(&members, barrier);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_segment::shared_barrier::Crossing;

    const GROUP: &str = "crew";

    fn lent(barriers: &mut SharedBarriers, job: &Job, members: &[u32]) -> u64 {
        let name = barriers.lend(job, GROUP.to_owned(), members.to_vec());
        assert_ne!(name, 0);
        name
    }

    #[test]
    fn those_who_wait_are_told_of_and_counted_once() {
        let job = Job::create(3).unwrap();
        let mut barriers = SharedBarriers::default();
        let name = lent(&mut barriers, &job, &[2, 0]);
        let barrier = job.shared_barrier(name, 2).unwrap();
        assert_eq!(barrier.come(0, 0, 77), Crossing::Waiting);
        assert_eq!(barriers.of(0), [GROUP]);
        assert_eq!(barriers.shut(&job, GROUP), Some((vec![(2, 77)], 2)));
        assert_eq!(barriers.shut(&job, GROUP), None);
        assert!(!barriers.spoke(GROUP, 2, 76));
        assert!(barriers.spoke(GROUP, 2, 77));
        assert!(!barriers.spoke(GROUP, 2, 77));
    }

    #[test]
    fn a_shared_barrier_is_used_again_when_nobody_looks_at_it() {
        let job = Job::create(3).unwrap();
        let mut barriers = SharedBarriers::default();
        let first = lent(&mut barriers, &job, &[0, 1]);
        job.shared_barrier(first, 2).unwrap().come(1, 0, 5);
        barriers.shut(&job, GROUP);
        // Task 1 waits in it until it has asked under the number that it announced.
        assert!(!barriers.spoke(GROUP, 0, 8));
        assert!(!barriers.spoke(GROUP, 1, 9));
        let second = lent(&mut barriers, &job, &[0, 1]);
        assert_ne!(first, second);
        barriers.shut(&job, GROUP);
        assert!(barriers.spoke(GROUP, 1, 5));
        assert_eq!(lent(&mut barriers, &job, &[1, 2]), first);
        barriers.gone(0);
        barriers.gone(1);
        assert_eq!(barriers.lend(&job, "other".to_owned(), vec![0, 2]), second);
        assert!(barriers.past.is_empty());
    }
}
