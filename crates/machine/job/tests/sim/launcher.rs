//! The launcher's own part in processes and channels: what it sends when, and how it takes a job over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regatta_job::failover::{
    Absence, Handover, Leadership, Obstacle, Replication, Successor, Takeover, latest,
    living_tasks, take_over,
};
use regatta_job::hosts::Arrivals;
use regatta_job::registry::{Piece, Refused};
use regatta_job::{
    Credits, Effect, End, Ended, Lifecycle, OnFailure, Policy, Registry, ReplicatedRegistry,
    Spawns, TimeRequests,
};
use regatta_wire::fields::Message;
use regatta_wire::life::{Cause, TaskState};
use regatta_wire::world::World;

use super::channels::Ends;
use super::claims::Rejoin;
use super::growing::{Coming, arrivals, record_of};
use super::messages::{outcome, prepared};
use super::outputs::HOST_WINDOW_BYTES;
use super::{Down, Life, Owner, Sim, Up, What, name_of, run_of};

/// Maximum number of tasks of a job.
const MAX_TASKS: u32 = 60;

/// A host, as its launcher sees it.
#[derive(Default)]
pub struct Remote {
    /// Its running tasks, with their pids.
    pub running: BTreeMap<u32, u32>,
    /// Its tasks that are to be started.
    pub unstarted: BTreeSet<u32>,
    /// Whether it is about to be lost: nothing is sent to it, and it is in no succession order.
    lost: bool,
}

pub struct Launcher {
    pub host: u32,
    /// The runs of the hosts that could have taken this one over when it began to lead.
    pub successors: Vec<String>,
    pub registry: ReplicatedRegistry,
    pub leadership: Leadership,
    pub replication: Replication,
    /// The number of changes that some host has confirmed, perhaps one that is lost by now.
    pub confirmed: u64,
    /// The other hosts of the job that are not lost.
    pub remotes: BTreeMap<u32, Remote>,
    pub spawns: Spawns,
    pub credits: Credits,
    pub time_requests: TimeRequests,
    pub lifecycle: Lifecycle,
    /// The arriving hosts, what is known of each by its id, and the time at which something is due if an event was
    /// scheduled for it.
    pub arrivals: Arrivals,
    pub coming: BTreeMap<u32, Coming>,
    pub arrivals_due: Option<Duration>,
    /// The runs that must not be added.
    pub known: BTreeSet<String>,
    /// All worlds, and all tasks that are gone, for hosts that join later.
    pub worlds: Vec<World>,
    pub gone: Vec<(u32, Option<Cause>)>,
    /// The time for which its process did not run.
    pub asleep: Duration,
    /// Set while it does not lead yet.
    pub rejoin: Option<Rejoin>,
}

const POLICY: Policy = Policy {
    on_failure: OnFailure::Continue,
    grace: Duration::ZERO,
    timeout: None,
    resident: false,
};

/// Returns the number of the next host that joins.
fn next_number(registry: &Registry) -> u32 {
    let numbers = registry.hosts().iter().map(|host| host.number + 1);
    numbers.max().unwrap_or(0)
}

impl Launcher {
    /// Returns the launcher that begins the job, on host 0.
    pub fn first(hosts: u32) -> Launcher {
        let tasks = 0..2 * hosts;
        let host_of: Vec<u32> = tasks.clone().map(|task| task % hosts).collect();
        let records = (0..hosts).map(|number| record_of(number, number));
        let mut registry = Registry::new(records.collect(), &host_of, b"program");
        (0..hosts).for_each(|host| registry.add_known_run(&run_of(host)));
        let mut lifecycle = Lifecycle::new(POLICY, 2 * hosts);
        for task in tasks {
            registry.task_started(task, 100 + task);
            lifecycle.task_started();
        }
        let remote = |host| Remote {
            running: [(host, 100 + host), (host + hosts, 100 + host + hosts)].into(),
            ..Remote::default()
        };
        Launcher {
            remotes: (1..hosts).map(|host| (host, remote(host))).collect(),
            lifecycle,
            ..Launcher::new(0, 0, (0..hosts).map(|host| (host, run_of(host))), registry)
        }
    }

    /// Returns a launcher without hosts yet, which is to lead hosts with these runs.
    pub fn new(
        host: u32,
        machine: u32,
        runs: impl Iterator<Item = (u32, String)>,
        registry: Registry,
    ) -> Launcher {
        let runs: BTreeMap<u32, String> = runs.collect();
        Launcher {
            arrivals: arrivals(next_number(&registry)),
            known: runs.values().cloned().collect(),
            coming: BTreeMap::new(),
            arrivals_due: None,
            worlds: Vec::new(),
            gone: Vec::new(),
            host,
            successors: Vec::new(),
            registry: ReplicatedRegistry::new(registry, true),
            leadership: Leadership::new(&name_of(machine), &run_of(machine), runs),
            replication: Replication::default(),
            confirmed: 0,
            remotes: BTreeMap::new(),
            spawns: Spawns::new(MAX_TASKS),
            credits: Credits::new(HOST_WINDOW_BYTES),
            time_requests: TimeRequests::default(),
            lifecycle: Lifecycle::new(POLICY, 0),
            asleep: Duration::ZERO,
            rejoin: None,
        }
    }

    /// Returns whether it has left the job to others because too few hosts would follow.
    pub fn has_seen_too_few(&self) -> bool {
        let rejoin = self.rejoin.as_ref();
        rejoin.is_some_and(|rejoin| rejoin.left == Some(Obstacle::TooFew))
    }

    /// Returns whether it has left the job to others because a previous launcher had given it up.
    pub fn was_given_up(&self) -> bool {
        let left = self.rejoin.as_ref().map(|rejoin| &rejoin.left);
        matches!(left, Some(Some(Obstacle::GivenUp(_))))
    }

    pub fn state(&self) -> String {
        let remotes = self.remotes.keys();
        match &self.rejoin {
            Some(rejoin) => format!("claims, left: {:?}", rejoin.left),
            None => format!("leads {:?}", remotes.collect::<Vec<_>>()),
        }
    }
}

impl Sim {
    pub fn hosts_changed(&mut self, launcher: usize) {
        self.send_changes(launcher);
        let leader = &mut self.launchers[launcher];
        let numbers = leader.remotes.iter().filter(|(_, remote)| !remote.lost);
        let hosts = &self.hosts;
        let name = |host: u32| name_of(hosts[host as usize].machine);
        let names: Vec<(u32, String)> = numbers.map(|(host, _)| (*host, name(*host))).collect();
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
                self.send_copy(launcher, host, false, &bytes);
            }
            self.send_down(
                launcher,
                host,
                Down::Order {
                    order: order.clone(),
                },
            );
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
        let decision = leader.lifecycle.decision();
        decision
            .into_iter()
            .for_each(|decision| leader.registry.set_decision(decision));
        for change in leader.registry.take_changes() {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            for host in self.holders(launcher) {
                self.send_copy(launcher, host, true, &bytes);
            }
        }
    }

    /// Sends a snapshot or a change, sometimes in pieces, of which the last one may never arrive.
    fn send_copy(&mut self, launcher: usize, host: u32, change: bool, bytes: &[u8]) {
        let whole = bytes.len().max(1);
        let piece = match self.random(8) {
            0 => 1 + self.random(whole as u64) as usize,
            _ => whole,
        };
        let mut pieces = bytes.chunks(piece).peekable();
        while let Some(piece) = pieces.next() {
            let copy = Down::Copy {
                change,
                bytes: piece.to_vec(),
                last: pieces.peek().is_none(),
            };
            self.send_down(launcher, host, copy);
        }
    }

    fn holders(&self, launcher: usize) -> Vec<u32> {
        let leader = &self.launchers[launcher];
        let remotes = leader.remotes.keys().copied();
        remotes
            .filter(|host| leader.replication.holds(*host))
            .collect()
    }

    fn send_ready(&mut self, launcher: usize, ready: Vec<(u32, Vec<u8>)>) {
        for (task, bytes) in ready {
            let host = self.tasks[task as usize].host;
            if self.launchers[launcher].remotes.contains_key(&host) {
                self.send_down(launcher, host, Down::Message { task, bytes });
            }
        }
    }

    /// Sends the changes to the replicas first, then the messages to the tasks.
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
                self.send_down(launcher, host, Down::Confirm {});
            }
        }
    }

    /// Sends a message to a task, or keeps it. Returns whether the task is on this host.
    fn send_to(&mut self, launcher: usize, task: u32, bytes: Vec<u8>) -> bool {
        let host = self.tasks[task as usize].host;
        let leader = &mut self.launchers[launcher];
        let changes = leader.registry.last_change();
        if host == leader.host {
            // A host that is cut off may consider others lost, and their tasks as well.
            if self.life(host) == Life::Up {
                self.receive(task, &bytes);
                self.burn(host);
            }
            return true;
        }
        if leader.remotes.contains_key(&host) {
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

    /// Handles a request, without sending the resulting messages.
    fn request_of(&mut self, launcher: usize, task: u32, bytes: &[u8]) {
        let leader = &mut self.launchers[launcher];
        let effect = leader.registry.handle_request(task, bytes);
        match effect {
            Some(Effect::Spawn { by, id, order }) => {
                let (registry, lifecycle) = (&mut leader.registry, &mut leader.lifecycle);
                leader.spawns.request((by, id), order, registry, lifecycle);
                self.advance_spawns(launcher);
            }
            Some(Effect::OutputReceived { by, task, bytes }) => {
                self.taken(launcher, by, task, bytes);
            }
            Some(Effect::ReadClock { by, id, host }) => self.ask_clock(launcher, host, by, id),
            _ => {}
        }
    }

    fn ask_clock(&mut self, launcher: usize, host: u32, by: u32, id: u32) {
        let time = self.now.as_micros() as u64;
        let leader = &mut self.launchers[launcher];
        if host == leader.host {
            return leader.registry.reply(by, id, Ok(time));
        }
        leader.time_requests.ask(host, by, id);
        self.send_down(launcher, host, Down::Clock { by, id });
    }

    pub fn notify_gone(&mut self, launcher: usize, task: u32, cause: Option<Cause>) {
        self.launchers[launcher].gone.push((task, cause));
        let own = self.launchers[launcher].host;
        let table = &mut self.hosts[own as usize].table;
        table.entry(task).or_insert(cause);
        let hosts = self.launchers[launcher].remotes.keys();
        for host in hosts.copied().collect::<Vec<_>>() {
            if host != self.tasks[task as usize].host {
                self.send_down(launcher, host, Down::Gone { task, cause });
            }
        }
    }

    /// Handles the end of a task. The tables are updated before tasks are notified.
    pub fn task_ended(&mut self, launcher: usize, ended: Ended) {
        let left = ended.state == TaskState::Left;
        let cause = (!left).then(|| ended.end.cause());
        self.notify_gone(launcher, ended.rank, cause);
        let (now, leader) = (self.now, &mut self.launchers[launcher]);
        let (task, end) = ((ended.rank, ended.pid), (ended.end, ended.state));
        leader
            .lifecycle
            .task_ended(now, task, end, false, &mut Vec::new());
        leader.registry.task_ended(ended.rank, ended.end);
        self.hushed(launcher, ended.rank);
    }

    /// Gives up a host, because the membership has reported that it is gone, or its channel has ended.
    pub fn give_up_host(&mut self, launcher: usize, host: u32) {
        if self.launchers[launcher].remotes.contains_key(&host) {
            self.host_lost(launcher, host);
            self.speak(launcher);
        }
    }

    fn host_lost(&mut self, launcher: usize, host: u32) {
        let leader = &mut self.launchers[launcher];
        let Some(remote) = leader.remotes.remove(&host) else {
            return;
        };
        leader.replication.host_lost(host);
        let own = leader.host;
        if self.life(own) == Life::Up {
            self.let_go(launcher, host);
        }
        // Before hosts are told of the loss: then they must not follow the lost host any more.
        self.hosts_changed(launcher);
        let running: Vec<(u32, u32)> = remote.running.into_iter().collect();
        let unstarted: Vec<u32> = remote.unstarted.into_iter().collect();
        let (now, lifecycle) = (self.now, &mut self.launchers[launcher].lifecycle);
        let actions = &mut Vec::new();
        lifecycle.host_lost(now, "", &running, &unstarted, |_| true, actions);
        let lost = running.iter().map(|(task, _)| task).chain(&unstarted);
        for task in lost.clone() {
            self.notify_gone(launcher, *task, Some(Cause::Lost));
        }
        for task in lost {
            let registry = &mut self.launchers[launcher].registry;
            registry.close_streams(*task);
            registry.task_ended(*task, End::Lost);
            self.hushed(launcher, *task);
        }
        let leader = &mut self.launchers[launcher];
        leader.registry.host_lost(host);
        leader.time_requests.host_lost(&mut leader.registry, host);
        leader.credits.host_lost(host);
        self.launchers[launcher].spawns.host_lost(host, &unstarted);
        self.advance_spawns(launcher);
    }

    /// Ends a host that its launcher has given up with its channel, or later.
    fn let_go(&mut self, launcher: usize, host: u32) {
        let is_ours = self.hosts[host as usize].owner.launcher() == Some(launcher);
        match is_ours {
            true => self.drop_channel(launcher, host),
            false => {
                self.close_channel(launcher, host);
                let own = &self.hosts[host as usize];
                if own.life == Life::Up && !own.given_up && own.follower.is_some() {
                    self.give_up_unowned(host);
                }
            }
        }
    }

    pub fn take_up(&mut self, launcher: usize, host: u32, message: Up) {
        let leader = &mut self.launchers[launcher];
        match message {
            Up::HostPrepared { id } => self.host_prepared(launcher, id),
            message if leader.rejoin.is_some() => self.hear_claimed(launcher, host, message),
            _ if host != leader.host && !leader.remotes.contains_key(&host) => {}
            Up::OwnerLost { .. } | Up::Ready {} | Up::Handover { .. } => {}
            Up::Request { task, bytes } => self.handle_request(launcher, task, &bytes),
            Up::Received { task, count } => leader.registry.acknowledged(task, count),
            Up::Applied { changes } => {
                leader.confirmed = leader.confirmed.max(changes);
                let ready = leader.replication.confirm(changes);
                self.send_ready(launcher, ready);
            }
            Up::Ended { ended } => {
                let remote = leader.remotes.get_mut(&host);
                let known = remote.is_none_or(|one| one.running.remove(&ended.rank).is_some());
                self.note_wrong(!known, || format!("host {host} tells of an end: {ended:?}"));
                self.task_ended(launcher, ended);
                self.speak(launcher);
            }
            message => self.take_report(launcher, host, message),
        }
    }

    /// Handles a host's reports of spawns, output and clocks.
    fn take_report(&mut self, launcher: usize, host: u32, message: Up) {
        let leader = &mut self.launchers[launcher];
        match message {
            Up::Prepared {
                spawn,
                count,
                refused,
            } => {
                leader
                    .spawns
                    .prepared(host, spawn, prepared(count, refused));
                self.advance_spawns(launcher);
                self.speak(launcher);
            }
            Up::Output { bytes, .. } => {
                leader.credits.host_sent(host, bytes.len());
                self.repay(launcher);
            }
            Up::Caught {
                task,
                stream,
                route,
                bytes,
                then,
            } => {
                let route = Some(route);
                let piece = Piece {
                    task,
                    stream,
                    route,
                    bytes,
                    then,
                };
                self.caught(launcher, piece);
                self.speak(launcher);
            }
            Up::Clock { by, id, time } => {
                let answer = (host, by, id);
                leader
                    .time_requests
                    .answered(&mut leader.registry, answer, time);
                self.speak(launcher);
            }
            Up::Entered { first } => {
                let _ = leader.spawns.entered(host, first, None);
                self.advance_spawns(launcher);
                self.speak(launcher);
            }
            Up::Started { task, refused } => {
                self.task_started(launcher, host, task, outcome(refused));
            }
            message => unreachable!("{message:?}"),
        }
    }

    fn task_started(
        &mut self,
        launcher: usize,
        host: u32,
        task: u32,
        outcome: Result<(), Refused>,
    ) {
        let leader = &mut self.launchers[launcher];
        if let Some(remote) = leader.remotes.get_mut(&host) {
            let known = remote.unstarted.remove(&task);
            if outcome.is_ok() {
                remote.running.insert(task, 100 + task);
            }
            self.note_wrong(!known, || format!("host {host} tells of task {task}"));
        }
        self.note_outcome(launcher, task, outcome);
        self.advance_spawns(launcher);
        self.speak(launcher);
    }

    /// Resumes the job from everything that is known.
    pub fn take_over(
        &mut self,
        launcher: usize,
        (handovers, snapshots): (Vec<Handover>, Vec<Option<Vec<u8>>>),
        lost: BTreeMap<u32, Absence>,
        before: &str,
    ) {
        let leader = &mut self.launchers[launcher];
        let own = Registry::from_snapshot(&leader.registry.snapshot()).expect("a snapshot");
        let mut registry = latest(own, snapshots.iter().flatten());
        for handover in handovers.iter().skip(1) {
            let remote = Remote {
                running: handover.running.iter().copied().collect(),
                unstarted: handover.unstarted.iter().copied().collect(),
                lost: false,
            };
            leader.remotes.insert(handover.host, remote);
        }
        let before = (before, Absence::UnknownRun);
        let takeover = Takeover::new(&mut registry, handovers, lost, before, b"program");
        for host in takeover.absent(&registry) {
            let (running, unstarted) = living_tasks(&registry, host.number);
            let remote = Remote {
                running: running.into_iter().collect(),
                unstarted: unstarted.into_iter().collect(),
                lost: false,
            };
            leader.remotes.insert(host.number, remote);
        }
        for (host, remote) in &mut leader.remotes {
            remote.lost = takeover.lost.contains_key(host);
        }
        let first_tasks = 2 * self.first_hosts;
        leader.worlds.clone_from(&takeover.worlds);
        leader.lifecycle = takeover.lifecycle(POLICY, Vec::new(), &registry, first_tasks);
        let (now, decision) = (self.now, registry.decision());
        leader.lifecycle.adopt(now, decision, &mut Vec::new());
        leader.arrivals = arrivals(next_number(&registry));
        leader.known.extend(registry.known_runs().iter().cloned());
        leader.registry = ReplicatedRegistry::new(registry, true);
        let own = leader.host;
        for world in &takeover.worlds {
            self.enter(own, world.clone());
        }
        // Also a host that the registry does not know any more.
        for host in takeover.lost.keys() {
            self.let_go(launcher, *host);
        }
        let mut hands = Hands {
            sim: self,
            launcher,
        };
        take_over(&mut hands, takeover);
        self.hosts_changed(launcher);
        self.speak(launcher);
    }

    /// Makes the launcher give up a host that is alive, because the channel between the two breaks. In the end that
    /// host gives up, too.
    pub fn give_up_living(&mut self, host: u32) {
        let Some(launcher) = self.working_launcher() else {
            return;
        };
        if self.hosts[host as usize].owner == Owner::Leader(launcher) {
            self.cut_channel((launcher, host));
            let (at, number) = self.end_of((launcher, host));
            self.at(at, What::Broken(number, (launcher, host)));
        }
    }

    /// Breaks a channel between a launcher and a host that it leads, which both notice.
    pub fn channel_broke(&mut self, number: u64, (launcher, host): Ends) {
        let is_led = self.hosts[host as usize].owner == Owner::Leader(launcher);
        let is_it = self.number_of((launcher, host)) == Some(number);
        if is_led && is_it && self.life(self.launchers[launcher].host) == Life::Up {
            self.close_channel(launcher, host);
            self.give_up_unowned(host);
            self.give_up_host(launcher, host);
        }
    }

    /// Returns the launcher that leads now.
    pub fn working_launcher(&self) -> Option<usize> {
        let leads = |one: &Launcher| one.rejoin.is_none() && self.life(one.host) == Life::Up;
        self.launchers.iter().rposition(leads)
    }

    /// Returns the launcher that works on a host.
    pub fn launcher_on(&self, host: u32) -> Option<usize> {
        let at = self.launchers.iter().rposition(|one| one.host == host);
        at.filter(|_| self.life(host) != Life::Gone)
    }
}

/// The operations of a launcher that takes over.
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
        if self.sim.launchers[self.launcher]
            .remotes
            .contains_key(&host)
        {
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
        // Its last output was not received.
        self.registry().close_streams(ended.rank);
        self.sim.task_ended(self.launcher, ended);
    }

    fn host_lost(&mut self, host: u32, _: &Absence) {
        self.sim.host_lost(self.launcher, host);
    }

    fn not_started(&mut self, task: u32) {
        self.sim.never_started(self.launcher, task);
    }

    fn request(&mut self, task: u32, bytes: &[u8]) {
        // Nothing is sent before the new launcher has sent out replicas.
        self.sim.request_of(self.launcher, task, bytes);
    }
}
