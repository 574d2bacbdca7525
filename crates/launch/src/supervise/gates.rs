//! Gates that are lent to named groups: see `regatta_transport::gate`.
//!
//! A gate is lent when all members of a group have met in the registry, if all of them run on this host. Before anything that
//! concerns the group comes to the registry the gate is shut, and the members that wait in it wait in the registry instead: it never knows
//! that there was one.

use std::collections::{HashMap, HashSet};

use regatta_transport::job::Job;
use regatta_wire::control::Ask;
use regatta_wire::fields::Message;

use super::Supervisor;

/// More members have no gate.
const MOST: u32 = 1 << 12;

#[derive(Debug)]
struct Gate {
    name: u64,
    members: Vec<u32>,
}

impl Gate {
    fn size(&self) -> u32 {
        self.members.len() as u32
    }
}

/// A gate that was shut.
#[derive(Debug)]
struct Past {
    gate: Gate,
    /// Who may still look at it.
    users: HashSet<u32>,
    /// Questions that count as asked, and that will be asked again.
    counted: HashSet<(u32, u32)>,
}

/// All gates of a job.
#[derive(Debug, Default)]
pub(super) struct Gates {
    lent: HashMap<String, Gate>,
    past: HashMap<String, Vec<Past>>,
    /// Names of those that nobody looks at any more, by how many members they have room for.
    free: HashMap<u32, Vec<u64>>,
}

impl Gates {
    /// Lends a gate to these members; its name, or 0 if there is no memory for one.
    fn lend(&mut self, job: &Job, group: String, members: Vec<u32>) -> u64 {
        let room = (members.len() as u32).next_power_of_two();
        let kept = self.free.get_mut(&room).and_then(Vec::pop);
        let name = kept.map_or_else(|| job.new_gate(room), Ok);
        let Ok(name) = name else { return 0 };
        let gate = Gate { name, members };
        let Ok(opened) = job.gate(name, gate.size()) else {
            return 0;
        };
        opened.open();
        self.lent.insert(group, gate);
        name
    }

    /// Shuts the gate of a group. Who waits in it: the tasks, and under which number each would ask; and how many want to meet.
    fn shut(&mut self, job: &Job, group: &str) -> Option<(Vec<(u32, u32)>, u32)> {
        let gate = self.lent.remove(group)?;
        let size = gate.size();
        let come = job
            .gate(gate.name, size)
            .map_or_else(|_| Vec::new(), |gate| gate.shut());
        let counted: Vec<(u32, u32)> = come
            .iter()
            .map(|&(place, question)| (gate.members[place as usize], question))
            .collect();
        for &(task, _) in &counted {
            job.bell(task).wake();
        }
        let past = Past {
            users: gate.members.iter().copied().collect(),
            counted: counted.iter().copied().collect(),
            gate,
        };
        self.past.entry(group.to_owned()).or_default().push(past);
        Some((counted, size))
    }

    /// Groups whose gate a task may pass.
    fn of(&self, task: u32) -> Vec<String> {
        let lent = self.lent.iter();
        lent.filter(|(_, gate)| gate.members.contains(&task))
            .map(|(group, _)| group.clone())
            .collect()
    }

    /// A task has spoken of the group, under this number: it looks at no gate of before. Whether that counts as asked already.
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

    /// Keeps the gates that nobody looks at any more for others.
    fn tidy(&mut self, group: &str) {
        let Some(all) = self.past.get_mut(group) else {
            return;
        };
        all.retain(|past| {
            let used = !past.users.is_empty();
            if !used {
                let room = past.gate.size().next_power_of_two();
                self.free.entry(room).or_default().push(past.gate.name);
            }
            used
        });
        if all.is_empty() {
            self.past.remove(group);
        }
    }
}

/// The group of which a question speaks in such a way that its gate must be shut.
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
            self.shut_all_gates();
        }
        let Some((group, question)) = subject(&ask) else {
            return true;
        };
        // What was asked of a gate of before is no reason to shut the one there is now.
        if self.gates.spoke(group, task, question) {
            return false;
        }
        self.shut_gate(group);
        !self.gates.spoke(group, task, question)
    }

    /// A task ends: nobody is to wait for it in a gate.
    pub(super) fn shut_gates_of(&mut self, task: u32) {
        for group in self.gates.of(task) {
            self.shut_gate(&group);
        }
        self.gates.gone(task);
    }

    /// Shuts all gates, before the registry says who waits.
    fn shut_all_gates(&mut self) {
        for group in self.gates.lent.keys().cloned().collect::<Vec<_>>() {
            self.shut_gate(&group);
        }
    }

    /// Shuts the gate of a group. Members that wait in it wait in the registry from now on, each as if it had requested that there.
    fn shut_gate(&mut self, group: &str) {
        let shut = |supervisor: &mut Self| {
            let tasks = supervisor.tasks.as_ref()?;
            supervisor.gates.shut(tasks.job(), group)
        };
        // Should they all have come, they get a gate again; it is shut as well.
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
            let gate = self.gates.lend(tasks.job(), group, members.clone());
            self.registry.share_barrier(&members, gate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_transport::gate::Passage;

    const GROUP: &str = "crew";

    fn lent(gates: &mut Gates, job: &Job, members: &[u32]) -> u64 {
        let name = gates.lend(job, GROUP.to_owned(), members.to_vec());
        assert_ne!(name, 0);
        name
    }

    #[test]
    fn those_who_wait_are_told_of_and_counted_once() {
        let job = Job::create(3).unwrap();
        let mut gates = Gates::default();
        let name = lent(&mut gates, &job, &[2, 0]);
        let gate = job.gate(name, 2).unwrap();
        assert_eq!(gate.come(0, 0, 77), Passage::Waiting);
        assert_eq!(gates.of(0), [GROUP]);
        assert_eq!(gates.shut(&job, GROUP), Some((vec![(2, 77)], 2)));
        assert_eq!(gates.shut(&job, GROUP), None);
        assert!(!gates.spoke(GROUP, 2, 76));
        assert!(gates.spoke(GROUP, 2, 77));
        assert!(!gates.spoke(GROUP, 2, 77));
    }

    #[test]
    fn a_gate_is_used_again_when_nobody_looks_at_it() {
        let job = Job::create(3).unwrap();
        let mut gates = Gates::default();
        let first = lent(&mut gates, &job, &[0, 1]);
        job.gate(first, 2).unwrap().come(1, 0, 5);
        gates.shut(&job, GROUP);
        // Task 1 waits in it until it has asked under the number that it announced.
        assert!(!gates.spoke(GROUP, 0, 8));
        assert!(!gates.spoke(GROUP, 1, 9));
        let second = lent(&mut gates, &job, &[0, 1]);
        assert_ne!(first, second);
        gates.shut(&job, GROUP);
        assert!(gates.spoke(GROUP, 1, 5));
        assert_eq!(lent(&mut gates, &job, &[1, 2]), first);
        gates.gone(0);
        gates.gone(1);
        assert_eq!(gates.lend(&job, "other".to_owned(), vec![0, 2]), second);
        assert!(gates.past.is_empty());
    }
}
