//! Watches: which task is notified of which end, loss or arrival.

use std::collections::BTreeMap;

use regatta_wire::Malformed;
use regatta_wire::control::{Ending, Event, RequestError, Tell, WatchKind};
use regatta_wire::fields::{Bytes, Field};

use super::{Effect, Registry};

/// A watching task and the number of its watch.
pub(super) type Watcher = (u32, u32);

/// Maximum number of watches of one task. Each may become a message that must be kept.
const MAX_WATCHES_PER_TASK: usize = 1 << 16;

/// All watches of a job.
#[derive(Debug, Default)]
pub(super) struct Watches {
    /// Watches for the end of a task, by its number.
    of_tasks: BTreeMap<u32, Vec<Watcher>>,
    /// Watches for the loss of a host, by its number.
    of_hosts: BTreeMap<u32, Vec<Watcher>>,
    /// Watches for every host that joins.
    for_hosts: Vec<Watcher>,
    /// Watches for the start and end of every task.
    for_tasks: Vec<Watcher>,
    /// The number of watches of each task.
    counts: BTreeMap<u32, usize>,
}

impl Field for Watches {
    fn put(&self, to: &mut Vec<u8>) {
        self.of_tasks.put(to);
        self.of_hosts.put(to);
        self.for_hosts.put(to);
        self.for_tasks.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let mut watches = Self {
            of_tasks: Field::take(from)?,
            of_hosts: Field::take(from)?,
            for_hosts: Field::take(from)?,
            for_tasks: Field::take(from)?,
            counts: BTreeMap::new(),
        };
        let all: Vec<u32> = watches.all().flatten().map(|(task, _)| *task).collect();
        for task in all {
            *watches.counts.entry(task).or_default() += 1;
        }
        Ok(watches)
    }
}

impl Watches {
    fn add(&mut self, what: WatchKind, subject: u32, watcher: Watcher) {
        let list = match what {
            WatchKind::TaskEnds => self.of_tasks.entry(subject).or_default(),
            WatchKind::HostLost => self.of_hosts.entry(subject).or_default(),
            WatchKind::HostAdded => &mut self.for_hosts,
            WatchKind::Tasks => &mut self.for_tasks,
        };
        list.push(watcher);
        *self.counts.entry(watcher.0).or_default() += 1;
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Vec<Watcher>> {
        let tasks = self.of_tasks.values_mut();
        let hosts = self.of_hosts.values_mut();
        let always = [&mut self.for_hosts, &mut self.for_tasks];
        tasks.chain(hosts).chain(always)
    }

    /// Removes one watch of a task. Returns whether there was one.
    pub(super) fn forget(&mut self, task: u32, watch: u32) -> bool {
        let mut found = false;
        for list in self.all() {
            let before = list.len();
            list.retain(|&watcher| watcher != (task, watch));
            found |= list.len() < before;
        }
        if let (true, Some(count)) = (found, self.counts.get_mut(&task)) {
            *count -= 1;
        }
        found
    }

    /// Removes all watches of a task.
    pub(super) fn forget_all(&mut self, task: u32) {
        if self.counts.remove(&task).is_some() {
            self.all()
                .for_each(|list| list.retain(|watcher| watcher.0 != task));
        }
    }

    /// Returns whether another task watches the end of this one.
    pub(super) fn watches_end_of(&self, task: u32) -> bool {
        let others = |list: &Vec<Watcher>| list.iter().any(|watcher| watcher.0 != task);
        self.of_tasks.get(&task).is_some_and(others)
    }

    /// Takes the watches for the end of a task.
    pub(super) fn task_ended(&mut self, task: u32) -> Vec<Watcher> {
        let watchers = self.of_tasks.remove(&task).unwrap_or_default();
        self.happened(watchers)
    }

    /// Takes the watches for the loss of a host.
    pub(super) fn host_lost(&mut self, host: u32) -> Vec<Watcher> {
        let watchers = self.of_hosts.remove(&host).unwrap_or_default();
        self.happened(watchers)
    }

    /// Returns the watchers of every host that joins.
    pub(super) fn host_added(&self) -> &[Watcher] {
        &self.for_hosts
    }

    /// Returns the watchers of every task.
    pub(super) fn of_every_task(&self) -> &[Watcher] {
        &self.for_tasks
    }

    /// Stops counting watches that have been fulfilled, and returns them.
    fn happened(&mut self, watchers: Vec<Watcher>) -> Vec<Watcher> {
        for (task, _) in &watchers {
            if let Some(count) = self.counts.get_mut(task) {
                *count -= 1;
            }
        }
        watchers
    }

    fn is_full(&self, task: u32) -> bool {
        self.counts
            .get(&task)
            .is_some_and(|&count| count >= MAX_WATCHES_PER_TASK)
    }
}

impl Registry {
    /// Adds a watch. If the event has happened already, the task is notified at once.
    pub(super) fn watch(
        &mut self,
        by: u32,
        id: u32,
        what: WatchKind,
        subject: u32,
    ) -> Option<Effect> {
        if self.watches.is_full(by) {
            let sentence =
                format!("this task already has {MAX_WATCHES_PER_TASK} watches, which is the limit");
            self.reply(by, id, Err((RequestError::Memory, sentence)));
            return None;
        }
        let over = match what {
            WatchKind::TaskEnds => self.end_of(subject),
            WatchKind::HostLost => self.loss_of(subject),
            WatchKind::HostAdded | WatchKind::Tasks => None,
        };
        self.reply(by, id, Ok(0));
        let Some(event) = over else {
            self.watches.add(what, subject, (by, id));
            return None;
        };
        self.send(by, Tell::Event { watch: id, event });
        // A parent cannot watch a task before the call that starts it has returned.
        (what == WatchKind::TaskEnds && self.is_child(subject, by))
            .then_some(Effect::Excused { task: subject })
    }

    /// Returns whether a task was started by another one.
    fn is_child(&self, task: u32, of: u32) -> bool {
        let known = self.tasks.get(task as usize);
        task != of && known.is_some_and(|known| known.parent == Some(of))
    }

    /// Returns the end of a task, if it has ended or never existed.
    fn end_of(&self, task: u32) -> Option<Event> {
        let known = self.tasks.get(task as usize);
        let ending = match known {
            Some(known) => known.ended?,
            None => Ending::Unknown,
        };
        let host = known.map_or(0, |known| known.host);
        Some(Event::TaskEnded { task, host, ending })
    }

    /// Returns the loss of a host, if it is lost or never existed.
    fn loss_of(&self, number: u32) -> Option<Event> {
        let host = self.hosts.iter().find(|host| host.number == number);
        let name = match host {
            Some(host) if host.alive => return None,
            Some(host) => host.name.clone(),
            None => String::new(),
        };
        Some(Event::HostLost { host: number, name })
    }
}
