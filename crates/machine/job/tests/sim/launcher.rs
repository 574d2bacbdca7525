//! The launcher, as far as processes and channels would be its own: what it sends when, and how it takes a job over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regatta_job::failover::{
    self, Handover, Leadership, Replication, Successor, add_unknown_tasks, all_worlds, latest,
    take_over,
};
use regatta_job::registry::DEFAULT_SPEED;
use regatta_job::{
    Effect, End, Ended, HostRecord, Lifecycle, OnFailure, Policy, Registry, ReplicatedRegistry,
    Spawns,
};
use regatta_wire::fields::Message;
use regatta_wire::life::{Cause, TaskState};
use regatta_wire::world::World;

use super::{Down, Life, Sim, Up, What, run_of};

/// So many tasks may a job have had in all.
const MOST_TASKS: u32 = 60;

/// A new launcher waits so long for a host.
const PATIENCE: Duration = Duration::from_secs(15);

/// The hosts of a job that have not answered their new launcher, and the answers of the others.
pub struct Rejoin {
    pub awaited: BTreeSet<u32>,
    handovers: Vec<Handover>,
    worlds: Vec<World>,
    snapshots: Vec<Vec<u8>>,
    /// Some host does not name it among those that may lead.
    pub is_refused: bool,
    /// Messages of hosts that have answered: they are read when the launcher leads.
    unread: Vec<(u32, Up)>,
}

pub struct Launcher {
    pub host: u32,
    /// The runs of the hosts that might have taken it over when it began to lead.
    pub successors: Vec<String>,
    pub registry: ReplicatedRegistry,
    leadership: Leadership,
    pub replication: Replication,
    /// So many changes some host has confirmed, perhaps one that is lost by now.
    pub confirmed: u64,
    /// The other hosts of the job that are not lost.
    pub remotes: BTreeSet<u32>,
    /// Tasks of each host that run or are to start, as far as the launcher knows.
    pub active: BTreeMap<u32, BTreeSet<u32>>,
    pub spawns: Spawns,
    pub lifecycle: Lifecycle,
    /// It does not lead yet.
    pub rejoin: Option<Rejoin>,
}

fn runs(hosts: u32) -> BTreeMap<u32, String> {
    (0..hosts).map(|host| (host, run_of(host))).collect()
}

fn name_of(host: u32) -> String {
    format!("h{host}")
}

impl Launcher {
    /// The one that begins the job, on host 0.
    pub fn first(hosts: u32) -> Launcher {
        let host = |number| HostRecord {
            number,
            name: name_of(number),
            architecture: "any".to_owned(),
            cores: 1,
            speed: DEFAULT_SPEED,
            alive: true,
        };
        let host_of: Vec<u32> = (0..2 * hosts).map(|task| task % hosts).collect();
        let mut registry = Registry::new((0..hosts).map(host).collect(), &host_of, b"program");
        (0..2 * hosts).for_each(|task| registry.task_started(task, 100 + task));
        Launcher {
            host: 0,
            successors: Vec::new(),
            registry: ReplicatedRegistry::new(registry, true),
            leadership: Leadership::new("h0", "r0", runs(hosts)),
            replication: Replication::default(),
            confirmed: 0,
            remotes: (1..hosts).collect(),
            active: (0..hosts)
                .map(|host| (host, BTreeSet::from([host, host + hosts])))
                .collect(),
            spawns: Spawns::new(MOST_TASKS),
            lifecycle: lifecycle(2 * hosts),
            rejoin: None,
        }
    }
}

fn lifecycle(tasks: u32) -> Lifecycle {
    let policy = Policy {
        on_failure: OnFailure::Continue,
        grace: Duration::ZERO,
        timeout: None,
        resident: false,
    };
    Lifecycle::new(policy, tasks)
}

impl Launcher {
    pub fn state(&self) -> String {
        match &self.rejoin {
            Some(rejoin) => format!("waits for {:?}", rejoin.awaited),
            None => format!("leads {:?}", self.remotes),
        }
    }
}

impl Sim {
    pub fn hosts_changed(&mut self, launcher: usize) {
        self.send_changes(launcher);
        let leader = &mut self.launchers[launcher];
        let names: Vec<(u32, String)> = leader.remotes.iter().map(|h| (*h, name_of(*h))).collect();
        let left = names.iter().map(|(host, name)| (*host, name.as_str()));
        let order = leader.leadership.order(left);
        let count = Replication::count(order.candidates.len() + 1);
        let first = order.candidates.iter().take(count);
        let new = leader
            .replication
            .add_holders(first.map(|host| host.number));
        let bytes = leader.registry.snapshot();
        for (host, _) in names {
            if new.contains(&host) {
                let (change, bytes) = (false, bytes.clone());
                self.send_down(launcher, host, Down::Copy { change, bytes });
            }
            self.send_down(launcher, host, Down::Order(order.clone()));
        }
        let leader = &mut self.launchers[launcher];
        let registry = &leader.registry;
        let ready = leader
            .replication
            .holders_changed(|task| registry.host_of(task));
        self.send_ready(launcher, ready);
    }

    fn send_changes(&mut self, launcher: usize) {
        let leader = &mut self.launchers[launcher];
        let changes = leader.registry.take_changes();
        for change in changes {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            for host in self.holders(launcher) {
                let (change, bytes) = (true, bytes.clone());
                self.send_down(launcher, host, Down::Copy { change, bytes });
            }
        }
    }

    fn holders(&self, launcher: usize) -> Vec<u32> {
        let leader = &self.launchers[launcher];
        let remotes = leader.remotes.iter().copied();
        remotes
            .filter(|host| leader.replication.holds(*host))
            .collect()
    }

    fn send_ready(&mut self, launcher: usize, ready: Vec<(u32, Vec<u8>)>) {
        for (task, bytes) in ready {
            let host = self.tasks[task as usize].host;
            if self.launchers[launcher].remotes.contains(&host) {
                self.send_down(launcher, host, Down::Message { task, bytes });
            }
        }
    }

    /// First the changes to the replicas, then the messages to the tasks.
    pub fn speak(&mut self, launcher: usize) {
        self.send_changes(launcher);
        for (task, message) in self.launchers[launcher].registry.take_messages() {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            let here = self.send_to(launcher, task, bytes);
            let registry = &mut self.launchers[launcher].registry;
            if here && registry.wants_acknowledgement(task) {
                let count = registry.sent_count(task);
                registry.acknowledged(task, count);
            }
        }
        if self.launchers[launcher].replication.is_to_be_asked() {
            for host in self.holders(launcher) {
                self.send_down(launcher, host, Down::Confirm);
            }
        }
    }

    /// Sends a message to a task, or keeps it. Returns whether it is on this host.
    fn send_to(&mut self, launcher: usize, task: u32, bytes: Vec<u8>) -> bool {
        let host = self.tasks[task as usize].host;
        let leader = &mut self.launchers[launcher];
        let changes = leader.registry.last_change();
        if host == leader.host {
            self.receive(task, &bytes);
            return true;
        }
        if leader.remotes.contains(&host) {
            match leader.replication.must_wait(host, changes) {
                true => leader.replication.keep(changes, task, bytes),
                false => self.send_down(launcher, host, Down::Message { task, bytes }),
            }
        }
        false
    }

    pub fn handle_request(&mut self, launcher: usize, task: u32, bytes: &[u8]) {
        self.request_of(launcher, task, bytes);
        self.speak(launcher);
    }

    /// Handles a request, without the messages that come of it.
    fn request_of(&mut self, launcher: usize, task: u32, bytes: &[u8]) {
        let leader = &mut self.launchers[launcher];
        let effect = leader.registry.handle_request(task, bytes);
        if let Some(Effect::Spawn { by, id, order }) = effect {
            let (registry, lifecycle) = (&mut leader.registry, &mut leader.lifecycle);
            leader.spawns.request((by, id), order, registry, lifecycle);
            self.advance_spawns(launcher);
        }
    }

    pub fn notify_gone(&mut self, launcher: usize, task: u32, cause: Option<Cause>) {
        let own = self.launchers[launcher].host;
        let table = &mut self.hosts[own as usize].table;
        table.entry(task).or_insert(cause);
        for host in self.launchers[launcher].remotes.clone() {
            if host != self.tasks[task as usize].host {
                self.send_down(launcher, host, Down::Gone { task, cause });
            }
        }
    }

    /// The tables hear of it before the tasks do.
    pub fn task_ended(&mut self, launcher: usize, ended: Ended) {
        let left = ended.state == TaskState::Left;
        let cause = (!left).then(|| ended.end.cause());
        self.notify_gone(launcher, ended.rank, cause);
        let registry = &mut self.launchers[launcher].registry;
        registry.task_ended(ended.rank, ended.end);
        let active = self.launchers[launcher].active.values_mut();
        active.for_each(|tasks| tasks.retain(|one| *one != ended.rank));
    }

    /// The membership has said that a host is gone.
    pub fn give_up_host(&mut self, launcher: usize, host: u32) {
        let leader = &mut self.launchers[launcher];
        if let Some(rejoin) = &mut leader.rejoin {
            rejoin.awaited.remove(&host);
            rejoin.handovers.retain(|handover| handover.host != host);
            self.call_if_all_are_claimed(launcher);
            return self.begin_if_complete(launcher);
        }
        if leader.remotes.contains(&host) {
            self.host_lost(launcher, host);
            self.speak(launcher);
        }
    }

    fn host_lost(&mut self, launcher: usize, host: u32) {
        let leader = &mut self.launchers[launcher];
        leader.remotes.remove(&host);
        leader.replication.host_lost(host);
        // A host that has heard of the loss must not follow that host any more.
        self.hosts_changed(launcher);
        let leader = &mut self.launchers[launcher];
        let all = 0..leader.registry.task_count();
        let on_host = |task: &u32| {
            leader.registry.host_of(*task) == Some(host) && leader.registry.is_alive(*task)
        };
        let active = leader.active.remove(&host).unwrap_or_default();
        let lost: Vec<u32> = all
            .filter(on_host)
            .filter(|task| active.contains(task))
            .collect();
        for task in &lost {
            self.notify_gone(launcher, *task, Some(Cause::Lost));
        }
        let registry = &mut self.launchers[launcher].registry;
        lost.iter()
            .for_each(|task| registry.task_ended(*task, End::Lost));
        registry.host_lost(host);
        self.launchers[launcher].spawns.host_lost(host, &lost);
        self.advance_spawns(launcher);
    }

    pub fn take_up(&mut self, launcher: usize, host: u32, message: Up) {
        let leader = &mut self.launchers[launcher];
        match message {
            Up::Handover(handover, worlds, snapshot) => {
                let Some(rejoin) = leader.rejoin.as_mut() else {
                    return;
                };
                if rejoin.awaited.remove(&host) {
                    rejoin.handovers.push(*handover);
                    rejoin.worlds.extend(worlds);
                    rejoin.snapshots.extend(snapshot);
                    self.begin_if_complete(launcher);
                }
            }
            message if leader.rejoin.is_some() => {
                let rejoin = leader.rejoin.iter_mut();
                let mut answered = rejoin.filter(|rejoin| !rejoin.awaited.contains(&host));
                if let Some(rejoin) = answered.next() {
                    rejoin.unread.push((host, message));
                }
            }
            _ if host != leader.host && !leader.remotes.contains(&host) => {}
            Up::Request { task, bytes } => self.handle_request(launcher, task, &bytes),
            Up::Received { task, count } => leader.registry.acknowledged(task, count),
            Up::Applied { changes } => {
                leader.confirmed = leader.confirmed.max(changes);
                let ready = leader.replication.confirm(changes);
                self.send_ready(launcher, ready);
            }
            Up::Ended(ended) => {
                self.task_ended(launcher, ended);
                self.speak(launcher);
            }
            Up::Prepared { spawn, prepared } => {
                leader.spawns.prepared(host, spawn, prepared);
                self.advance_spawns(launcher);
                self.speak(launcher);
            }
            Up::Entered { first } => {
                let _ = leader.spawns.entered(host, first, None);
                self.advance_spawns(launcher);
                self.speak(launcher);
            }
            Up::Started { task, outcome } => {
                self.note_outcome(launcher, task, outcome);
                self.advance_spawns(launcher);
                self.speak(launcher);
            }
        }
    }

    /// A host begins to lead: it asks for all others that are left, as far as it knows.
    pub fn lead(&mut self, host: u32) {
        let hosts = self.hosts.len() as u32;
        let (handover, worlds) = (self.handover(host), self.worlds(host));
        let view = self.view(host);
        let follower = self.hosts[host as usize].follower.as_mut();
        let follower = follower.expect("a follower");
        let successors = follower.successors().map(str::to_owned).collect();
        let order = follower.take_order().expect("an order");
        let registry = follower.replica.take().expect("a replica");
        let others = order.candidates.iter().filter(|one| one.number != host);
        let others = others.filter(|one| view.is_left(&one.run));
        let awaited: BTreeSet<u32> = others.map(|one| one.number).collect();
        self.hosts[host as usize].follower = None;
        let launcher = self.launchers.len();
        self.launchers.push(Launcher {
            host,
            successors,
            registry: ReplicatedRegistry::new(registry, true),
            leadership: Leadership::new(&name_of(host), &run_of(host), runs(hosts)),
            replication: Replication::default(),
            confirmed: 0,
            remotes: BTreeSet::new(),
            active: BTreeMap::new(),
            spawns: Spawns::new(MOST_TASKS),
            lifecycle: lifecycle(0),
            rejoin: Some(Rejoin {
                awaited: awaited.clone(),
                handovers: vec![handover],
                worlds,
                snapshots: Vec::new(),
                is_refused: false,
                unread: Vec::new(),
            }),
        });
        for other in awaited {
            let at = self.after(0, 20);
            self.at(at, What::Claim(launcher, other));
            let late = self.now + PATIENCE;
            self.at(late, What::Late(launcher, other));
        }
        self.begin_if_complete(launcher);
    }

    /// Two leaders never both act.
    fn note_second_leader(&mut self, launcher: usize) {
        let host = self.launchers[launcher].host;
        let others = self.launchers.iter().filter(|one| one.host != host);
        let acts = |one: &&Launcher| one.rejoin.is_none() && self.life(one.host) == Life::Up;
        if let Some(other) = others.rev().find(acts) {
            let two = format!("host {host} leads while host {} does", other.host);
            self.wrong.get_or_insert(two);
        }
    }

    fn begin_if_complete(&mut self, launcher: usize) {
        let leader = &mut self.launchers[launcher];
        let complete = |rejoin: &mut Rejoin| rejoin.awaited.is_empty();
        let Some(rejoin) = leader.rejoin.take_if(complete) else {
            return;
        };
        self.note_second_leader(launcher);
        // All that are left had an order in which it was: nobody has heard that it was given up.
        let host = self.launchers[launcher].host;
        self.hosts[host as usize].given_up = false;
        let leader = &mut self.launchers[launcher];
        let own = Registry::from_snapshot(&leader.registry.snapshot()).expect("a snapshot");
        let mut registry = latest(own, rejoin.snapshots.iter());
        let worlds = all_worlds(rejoin.worlds);
        let requests = rejoin.handovers.iter().flat_map(|one| &one.requests);
        add_unknown_tasks(&mut registry, &worlds, requests, b"program");
        leader.registry = ReplicatedRegistry::new(registry, true);
        let own = leader.host;
        for world in &worlds {
            self.enter(own, world.clone());
        }
        let leader = &mut self.launchers[launcher];
        let registry = &leader.registry;
        let host = leader.host;
        let present: BTreeSet<u32> = rejoin.handovers.iter().map(|one| one.host).collect();
        leader.remotes = present.iter().copied().filter(|one| *one != host).collect();
        let gone = failover::gone(registry, &rejoin.handovers);
        let alive = registry.hosts().iter().filter(|host| host.alive);
        let absent = alive.map(|host| host.number);
        let mut lost: Vec<u32> = absent.filter(|host| !present.contains(host)).collect();
        leader.active = active(registry, &rejoin.handovers);
        // The old launcher had given these up.
        let given_up =
            |one: &&Handover| one.running.iter().any(|(task, _)| gone.contains_key(task));
        lost.extend(rejoin.handovers.iter().filter(given_up).map(|one| one.host));
        // A channel ends, and with it all on a host that had been given up and has come nevertheless.
        lost.iter().for_each(|host| self.stop(*host));
        let mut hands = Hands {
            sim: self,
            launcher,
        };
        take_over(&mut hands, &rejoin.handovers, &worlds, gone, &lost);
        self.hosts_changed(launcher);
        self.speak(launcher);
        for (host, message) in rejoin.unread {
            self.take_up(launcher, host, message);
        }
    }
}

/// The tasks of each host that run or are to start, as far as is known.
fn active(registry: &Registry, handovers: &[Handover]) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut active: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let is_present = |host: &u32| handovers.iter().any(|one| one.host == *host);
    for task in (0..registry.task_count()).filter(|task| registry.is_alive(*task)) {
        if let Some(on) = registry.host_of(task).filter(|on| !is_present(on)) {
            active.entry(on).or_default().insert(task);
        }
    }
    for one in handovers {
        let running = one.running.iter().map(|(task, _)| *task);
        let tasks = running.chain(one.unstarted.iter().copied());
        // An end that the registry does not know is still to happen.
        let news = one.ended.iter().map(|ended| ended.rank);
        let of_host = active.entry(one.host).or_default();
        of_host.extend(tasks.chain(news));
    }
    active
}

/// A launcher that takes over.
struct Hands<'s> {
    sim: &'s mut Sim,
    launcher: usize,
}

impl Successor for Hands<'_> {
    fn registry(&mut self) -> &mut ReplicatedRegistry {
        &mut self.sim.launchers[self.launcher].registry
    }

    fn enter(&mut self, host: u32, world: &World) {
        let world = world.clone();
        if self.sim.launchers[self.launcher].remotes.contains(&host) {
            self.sim
                .send_down(self.launcher, host, Down::Enter { world });
        }
    }

    fn notify_gone(&mut self, task: u32, cause: Option<Cause>) {
        self.sim.notify_gone(self.launcher, task, cause);
    }

    fn replicate(&mut self) {
        self.sim.hosts_changed(self.launcher);
    }

    fn send_again(&mut self, _: u32, task: u32, bytes: Vec<u8>) {
        self.sim.send_to(self.launcher, task, bytes);
    }

    fn task_ended(&mut self, ended: Ended) {
        self.sim.task_ended(self.launcher, ended);
    }

    fn host_lost(&mut self, host: u32) {
        self.sim.host_lost(self.launcher, host);
    }

    fn not_started(&mut self, task: u32) {
        self.sim.never_started(self.launcher, task);
    }

    fn request(&mut self, task: u32, bytes: &[u8]) {
        // Nothing is sent before the new launcher has given out replicas.
        self.sim.request_of(self.launcher, task, bytes);
    }
}
