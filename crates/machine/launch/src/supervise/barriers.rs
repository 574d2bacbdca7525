//! Shared barriers that are lent to named groups (`regatta_segment::shared_barrier`). [`Barriers`] decides. Here they
//! are created, opened and shut in the job's segment.

use regatta_job::Barriers;
use regatta_job::barriers::LentBarrier;
use regatta_segment::job::Job;
use regatta_wire::control::Ask;
use regatta_wire::fields::Message;

use super::Supervisor;

/// Lends a shared barrier to these members. Returns its name, or 0 if there is no memory for one.
fn lend(barriers: &mut Barriers, job: &Job, group: String, members: Vec<u32>) -> u64 {
    let count = members.len();
    let Ok(name) = barriers.find(count, |room| job.new_shared_barrier(room)) else {
        return 0;
    };
    let Ok(opened) = job.shared_barrier(name, count as u32) else {
        return 0;
    };
    opened.open();
    barriers.lend(group, LentBarrier { name, members });
    name
}

/// Shuts the barrier of a group. Returns the members that wait in it, each as (task, request number), and the number of
/// members that complete it.
fn shut(barriers: &mut Barriers, job: &Job, group: &str) -> Option<(Vec<(u32, u32)>, u32)> {
    let barrier = barriers.take_back(group)?;
    let size = barrier.members.len() as u32;
    let shut = job.shared_barrier(barrier.name, size);
    let waiting = shut.map_or_else(|_| Vec::new(), |shut| shut.shut());
    let waiting = barriers.shut(group, barrier, &waiting);
    for &(task, _) in &waiting {
        job.bell(task).wake();
    }
    Some((waiting, size))
}

impl Supervisor<'_> {
    /// Shuts the barriers that must be shut before the registry handles a request. Returns false if the request was
    /// handled already.
    pub(super) fn is_new(&mut self, task: u32, bytes: &[u8]) -> bool {
        let Ok(ask) = Ask::decode(bytes) else {
            return true;
        };
        let Some(groups) = self.barriers.requested(task, &ask) else {
            return false;
        };
        groups.iter().for_each(|group| self.shut_barrier(group));
        !self.barriers.was_handled(task, &ask)
    }

    /// Shuts the barriers of a task that ends, so that no member waits for it in a shared barrier.
    pub(super) fn shut_barriers_of(&mut self, task: u32) {
        for group in self.barriers.of_task(task) {
            self.shut_barrier(&group);
        }
        self.barriers.task_ended(task);
    }

    /// Shuts the barrier of a group. Its waiting members wait in the registry from now on, as if each had sent its
    /// request.
    fn shut_barrier(&mut self, group: &str) {
        let shut = |supervisor: &mut Self| {
            let tasks = supervisor.worker.tasks.as_ref()?;
            shut(&mut supervisor.barriers, tasks.job(), group)
        };
        // If these are all members, they get a shared barrier again, which must be shut as well.
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

    /// Lends a shared barrier to a group whose members have all met, if they may have one.
    pub(super) fn lend(&mut self, group: String, members: Vec<u32>) {
        if !Barriers::may_share(&members, |task| !self.is_elsewhere(task)) {
            return;
        }
        if let Some(tasks) = &self.worker.tasks {
            let barrier = lend(&mut self.barriers, tasks.job(), group, members.clone());
            self.registry.share_barrier(&members, barrier);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_segment::shared_barrier::Crossing;

    const GROUP: &str = "crew";

    #[test]
    fn members_that_wait_in_a_barrier_are_found_when_it_is_shut_and_it_is_opened_again() {
        let job = Job::create(3).unwrap();
        let mut barriers = Barriers::default();
        let name = lend(&mut barriers, &job, GROUP.to_owned(), vec![2, 0]);
        assert_ne!(name, 0);
        let barrier = job.shared_barrier(name, 2).unwrap();
        assert_eq!(barrier.come(0, 0, 77), Crossing::Waiting);
        assert_eq!(shut(&mut barriers, &job, GROUP), Some((vec![(2, 77)], 2)));
        assert_eq!(shut(&mut barriers, &job, GROUP), None);
        assert_eq!(barrier.come(1, 0, 78), Crossing::Shut);
        (0..3).for_each(|task| barriers.task_ended(task));
        let again = lend(&mut barriers, &job, GROUP.to_owned(), vec![0, 1]);
        assert_eq!(again, name);
        let barrier = job.shared_barrier(name, 2).unwrap();
        assert_eq!(barrier.come(1, 0, 79), Crossing::Waiting);
    }
}
