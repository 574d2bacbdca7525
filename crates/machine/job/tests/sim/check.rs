//! Sentences that hold after every history, when nothing is on its way any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regatta_job::failover::Follower;
use regatta_wire::control::{Ask, Ending, Event, Tell, What};

use super::tasks::{BOX, GROUP, Task, own_name};
use super::{Life, Sim};

/// A launcher is silent for so long, and may be for so long.
const LONG: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(10);

type Verdict = Result<(), String>;

impl Sim {
    /// All of them. Asks for the state of the job first.
    pub fn check(&mut self) -> Verdict {
        match &self.wrong {
            Some(wrong) => Err(wrong.clone()),
            None => Ok(()),
        }?;
        if self.is_lost() {
            return self.all_give_up();
        }
        let leader = self.one_leads()?;
        // Acknowledgements are changes, too, and wait for the next message.
        self.speak(leader);
        self.settle();
        self.every_request_is_answered_once(leader)?;
        self.every_watch_is_notified_once()?;
        self.an_entry_is_taken_once()?;
        self.answers_name_the_spawned_tasks()?;
        self.tables_agree(leader)?;
        self.replicas_are_equal(leader)?;
        self.promises_survive(leader)
    }

    /// Tasks that run.
    fn running(&self) -> impl Iterator<Item = (u32, &Task)> {
        let all = (0..).zip(&self.tasks);
        all.filter(|(_, task)| task.runs())
    }

    /// The host whose turn it is has no replica: the launcher was lost before that had arrived, or all hosts with one were.
    fn is_lost(&self) -> bool {
        let mut up = self.hosts.iter().filter(|host| host.life == Life::Up);
        let first = up.next().and_then(|host| host.follower.as_ref());
        first.is_some_and(|one| one.is_without_owner() && !one.replica.is_current())
    }

    /// No host waits for ever for a leader.
    fn all_give_up(&self) -> Verdict {
        let later = self.now + Duration::from_secs(31);
        let up = (0..)
            .zip(&self.hosts)
            .filter(|(_, host)| host.life == Life::Up);
        for (number, host) in up {
            let waits = |follower: &Follower| follower.is_patient(later, LONG, LIMIT);
            if host.follower.as_ref().is_some_and(waits) {
                return Err(format!("host {number} waits: {}", self.sketch()));
            }
        }
        Ok(())
    }

    /// One host of those that are left leads.
    fn one_leads(&self) -> Result<usize, String> {
        self.working_launcher()
            .ok_or_else(|| format!("nobody leads: {}", self.sketch()))
    }

    /// Every request of a task that lives to the end is answered exactly once, or waits for something that has not happened.
    fn every_request_is_answered_once(&self, leader: usize) -> Verdict {
        let registry = &self.launchers[leader].registry;
        for (number, task) in self.running() {
            for (id, asked) in &task.asked {
                let answers = task.answers.get(id).map_or(&[][..], Vec::as_slice);
                let is_right = match answers.len() {
                    0 => registry.is_pending(number, *id),
                    count => count == 1,
                };
                if !is_right {
                    return Err(format!(
                        "request {id} of task {number}, {asked:?}: {answers:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Each watch is notified of its end or loss exactly once.
    fn every_watch_is_notified_once(&self) -> Verdict {
        for (number, task) in self.running() {
            for (id, what, subject) in task.watches() {
                let refused = |answer: &Tell| matches!(answer, Tell::Refused { .. });
                if task.answers[&id].iter().any(refused) {
                    continue;
                }
                let happened = match what {
                    What::TaskEnds => {
                        let task = self.tasks.get(subject as usize);
                        // A number that is nobody's.
                        task.is_none_or(|task| task.end.is_some())
                    }
                    _ => self.life(subject) == Life::Gone,
                };
                let events = task.events.iter().filter(|(watch, _)| *watch == id);
                let events: Vec<&Event> = events.map(|(_, event)| event).collect();
                let unknown = |event: &&Event| {
                    matches!(
                        event,
                        Event::TaskEnded {
                            ending: Ending::Unknown,
                            ..
                        }
                    )
                };
                if events.len() == 1 && events.iter().any(unknown) {
                    continue;
                }
                if events.len() != usize::from(happened) {
                    return Err(format!(
                        "watch {id} of task {number}, {what:?} {subject}: {events:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// An entry that is deleted by the request that reads it is read by one task that is left.
    fn an_entry_is_taken_once(&self) -> Verdict {
        let mut taken = BTreeMap::new();
        for (number, task) in self.running() {
            for answer in task.answers.values().flatten() {
                if let Tell::Entry { id, value, .. } = answer
                    && let Some(before) = taken.insert(value.clone(), (number, *id))
                {
                    return Err(format!(
                        "{before:?} and {:?} have taken {value:?}",
                        (number, id)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Every task that an answer names as started has started by that request; and a spawned task that has started on a host
    /// that is left is named by the answer to it.
    fn answers_name_the_spawned_tasks(&self) -> Verdict {
        let mut named = BTreeSet::new();
        for (number, task) in self.running() {
            for answer in task.answers.values().flatten() {
                let Tell::Spawned { id, tasks, .. } = answer else {
                    continue;
                };
                for spawned in tasks.iter().flatten() {
                    let of = self.tasks.get(*spawned as usize);
                    let is_right = of.is_some_and(|of| of.request == Some((number, *id)));
                    if !is_right || !of.is_some_and(|of| of.started) || !named.insert(*spawned) {
                        return Err(format!(
                            "task {number} has not spawned {spawned}: {answer:?}"
                        ));
                    }
                }
            }
        }
        let started = (0..)
            .zip(&self.tasks)
            .filter(|(_, task)| task.started && self.life(task.host) == Life::Up);
        let requested = started.filter_map(|(number, task)| Some((number, task.request?)));
        for (number, (by, id)) in requested {
            if self.tasks[by as usize].runs() && !named.contains(&number) {
                return Err(format!(
                    "task {number} has started, and request {id} of {by} does not say so"
                ));
            }
        }
        Ok(())
    }

    /// Every table that is left has the same tasks as gone.
    fn tables_agree(&self, leader: usize) -> Verdict {
        // Numbers that only lost hosts knew are nobody's.
        let known = self.launchers[leader].registry.task_count() as usize;
        let ended = |(number, task): (u32, &Task)| task.end.map(|_| (number, task.host));
        let ended: Vec<(u32, u32)> = (0..).zip(&self.tasks[..known]).filter_map(ended).collect();
        for (number, host) in (0..).zip(&self.hosts) {
            if host.life != Life::Up {
                continue;
            }
            let elsewhere = ended.iter().filter(|(_, on)| *on != number);
            let expected: BTreeSet<u32> = elsewhere.map(|(task, _)| *task).collect();
            let own = |task: &&u32| self.tasks[**task as usize].host != number;
            let table: BTreeSet<u32> = host.table.keys().filter(own).copied().collect();
            if table != expected {
                return Err(format!(
                    "the table of host {number}: {table:?}, not {expected:?}"
                ));
            }
        }
        Ok(())
    }

    /// Every replica has applied as many changes as the leader has made, and is equal to its registry.
    fn replicas_are_equal(&self, leader: usize) -> Verdict {
        let leader = &self.launchers[leader];
        let snapshot = leader.registry.snapshot();
        for host in &leader.remotes {
            let follower = self.hosts[*host as usize].follower.as_ref();
            let replica = &follower.expect("a follower").replica;
            if !leader.replication.holds(*host) {
                continue;
            }
            if replica.changes() != Some(leader.registry.changes()) {
                return Err(format!(
                    "host {host} has applied {:?} changes",
                    replica.changes()
                ));
            }
            let copy = match leader.registry.changes() {
                0 => None,
                changes => replica.later_snapshot(changes - 1),
            };
            if copy.is_some_and(|copy| copy != snapshot) {
                return Err(format!("the replica of host {host} is another one"));
            }
        }
        Ok(())
    }

    /// A task that has heard that it has put an entry, or joined or left a group, was told the truth, whoever leads now.
    fn promises_survive(&mut self, leader: usize) -> Verdict {
        let Some((witness, _)) = self.running().next() else {
            return Ok(());
        };
        let (names, members) = (u32::MAX, u32::MAX - 1);
        let pattern = "*".to_owned();
        let group = GROUP.to_owned();
        self.ask(witness, Ask::Names { id: names, pattern });
        self.ask(witness, Ask::Members { id: members, group });
        self.settle();
        let answers = &self.tasks[witness as usize].answers;
        let (Some([Tell::Names { names, .. }]), Some([Tell::Members { tasks, .. }])) = (
            answers.get(&names).map(Vec::as_slice),
            answers.get(&members).map(Vec::as_slice),
        ) else {
            return Err("the last questions are not answered".to_owned());
        };
        let names: BTreeSet<&str> = names.iter().map(|name| name.name.as_str()).collect();
        for (number, task) in self.running() {
            let mut member = None;
            for (id, asked) in &task.asked {
                let done = task.answers.get(id).map(Vec::as_slice);
                let Some([Tell::Done { .. }]) = done else {
                    continue;
                };
                match asked {
                    Ask::Put { name, .. }
                        if name != BOX && !names.contains(own_name(number, *id).as_str()) =>
                    {
                        return Err(format!("the entry {name} is lost"));
                    }
                    Ask::Join { .. } => member = Some(true),
                    Ask::Leave { .. } => member = Some(false),
                    _ => {}
                }
            }
            let is_member = tasks.contains(&Some(number));
            if member.unwrap_or(false) != is_member {
                let count = self.launchers[leader].registry.changes();
                return Err(format!(
                    "task {number} is a member: {is_member} ({count} changes)"
                ));
            }
        }
        Ok(())
    }
}
