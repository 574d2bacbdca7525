//! Resuming a job as its next launcher: the order in which the known facts are applied.
//!
//! The replica has what the last launcher knew, and every host adds what only it knows ([`Handover`]). The order below
//! is a promise. Tables come before messages, so a task that is notified of an end finds it in its table. Replicas come
//! before messages, too: perhaps no other host has a replica as late as this one, and this host may be lost next.
//! Messages that tasks have not received come before new messages, so tasks receive them in the order in which the
//! events happened. Ends come before requests, so a request sees the present state of the job.

use std::collections::{BTreeMap, BTreeSet};

use regatta_wire::control::{Ask, RequestError, Spawn, Tell};
use regatta_wire::fields;
use regatta_wire::fields::Message;
use regatta_wire::life::Cause;
use regatta_wire::world::World;

use super::gone::all_gone;
use super::{Absence, is_open};
use crate::end::Ended;
use crate::lifecycle::{Lifecycle, Policy};
use crate::registry::{HostRecord, Registry, ReplicatedRegistry};

/// Facts from one host that the next launcher may not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handover {
    /// The host's number. The launcher knows it and ignores what the host reports.
    pub host: u32,
    /// The number of tasks in the host's table.
    pub tasks: u32,
    /// Worlds in the host's table, at least those that the next launcher does not have.
    pub worlds: Vec<World>,
    /// The host's tasks that are to be started.
    pub unstarted: Vec<u32>,
    /// The host's running tasks, with their pids.
    pub running: Vec<(u32, u32)>,
    /// The host's tasks that have ended.
    pub ended: Vec<Ended>,
    /// The number of messages that each task has received.
    pub received: Vec<(u32, u32)>,
    /// Tasks of other hosts that are gone according to the host's table. Tasks without a cause left in good order.
    pub gone: Vec<(u32, Option<Cause>)>,
    /// Unanswered requests of the host's tasks.
    pub requests: Vec<(u32, Vec<u8>)>,
    /// Streams of the host's tasks that are still open and whose receiver is another task.
    pub open_streams: Vec<(u32, u32)>,
    /// The host's running tasks that do not read messages any more.
    pub silent: Vec<u32>,
}
fields!(Handover {
    host,
    tasks,
    worlds,
    unstarted,
    running,
    ended,
    received,
    gone,
    requests,
    open_streams,
    silent
});

/// Everything that is known of a job that is taken over, except the latest replica of its registry.
#[derive(Debug)]
pub struct Takeover {
    /// The facts from each host that takes part.
    handovers: Vec<Handover>,
    /// All worlds in the table of any host, each once, ordered by task numbers.
    pub worlds: Vec<World>,
    /// The tasks that are gone according to any of these hosts or the replica.
    gone: BTreeMap<u32, Option<Cause>>,
    /// The hosts that do not take part any more, and why.
    pub lost: BTreeMap<u32, Absence>,
}

impl Takeover {
    /// Combines the hosts' handovers, this host's first, with the latest replica, and adds the tasks to the replica
    /// that only hosts know of. `program` is the job's first program. `lost` are hosts that could not be claimed.
    /// `launcher` is the name of the last launcher's host, with the reason for its loss.
    pub fn new(
        registry: &mut Registry,
        mut handovers: Vec<Handover>,
        lost: BTreeMap<u32, Absence>,
        launcher: (&str, Absence),
        program: &[u8],
    ) -> Self {
        let known = handovers.iter_mut();
        let worlds = all_worlds(known.flat_map(|one| std::mem::take(&mut one.worlds)));
        let requests = handovers.iter().flat_map(|one| &one.requests);
        add_unknown_tasks(registry, &worlds, requests, program);
        let mut takeover = Self {
            gone: all_gone(registry, &handovers),
            handovers,
            worlds,
            lost,
        };
        takeover.note_absent(registry, launcher);
        takeover.note_given_up();
        takeover
    }

    /// Returns the hosts that are alive according to the registry, and that hand nothing over.
    pub fn absent<'r>(&self, registry: &'r Registry) -> impl Iterator<Item = &'r HostRecord> {
        let hosts = registry.hosts().iter().filter(|host| host.alive);
        hosts.filter(|host| self.handovers.iter().all(|one| one.host != host.number))
    }

    fn note_absent(&mut self, registry: &Registry, (name, cause): (&str, Absence)) {
        let absent: Vec<&HostRecord> = self.absent(registry).collect();
        for host in absent {
            let why = match host.name == name {
                true => cause.clone(),
                false => Absence::UnknownRun,
            };
            self.lost.entry(host.number).or_insert(why);
        }
    }

    /// Marks hosts as lost that take part, but that some table already records as lost: the old launcher had given them
    /// up.
    fn note_given_up(&mut self) {
        let is_gone = |(task, _): &(u32, u32)| self.gone.contains_key(task);
        let others = self.handovers.iter().skip(1);
        for other in others.filter(|other| other.running.iter().any(is_gone)) {
            let lost = self.lost.entry(other.host);
            lost.or_insert(Absence::GivenUpBefore);
        }
    }

    /// Returns the lifecycle of a job that began with `first_tasks` tasks.
    pub fn lifecycle(
        &self,
        policy: Policy,
        hosts: Vec<String>,
        registry: &Registry,
        first_tasks: u32,
    ) -> Lifecycle {
        let tasks = 0..registry.task_count();
        let host_of = |task: u32| registry.host_of(task).unwrap_or_default();
        let ended = tasks.clone().filter(|&task| !registry.is_alive(task));
        let (begun, ended) = (self.begun(registry), ended.count() as u32);
        Lifecycle::new(policy, registry.task_count())
            .across(hosts, tasks.map(host_of).collect())
            .resumed(first_tasks, begun, ended)
    }

    /// Returns how many tasks have been started whose end the registry does not know: they run, their ends are to be
    /// reported, or they are lost with their hosts.
    fn begun(&self, registry: &Registry) -> u32 {
        let is_news = |ended: &&Ended| registry.is_alive(ended.rank);
        let of_host =
            |host: &Handover| host.running.len() + host.ended.iter().filter(is_news).count();
        let absent = self.absent(registry);
        let lost = absent.map(|host| living_tasks(registry, host.number).0.len());
        (self.handovers.iter().map(of_host).sum::<usize>() + lost.sum::<usize>()) as u32
    }
}

/// Returns the tasks of a host that are alive according to the registry: the running ones with their pids, and those
/// that are to be started.
pub fn living_tasks(registry: &Registry, host: u32) -> (Vec<(u32, u32)>, Vec<u32>) {
    let tasks = 0..registry.task_count();
    let living =
        tasks.filter(|&task| registry.host_of(task) == Some(host) && registry.is_alive(task));
    let (running, unstarted): (Vec<u32>, Vec<u32>) =
        living.partition(|&task| registry.pid(task) != 0);
    let running = running.into_iter().map(|task| (task, registry.pid(task)));
    (running.collect(), unstarted)
}

/// Returns each of these worlds once, ordered by task numbers.
fn all_worlds(known: impl IntoIterator<Item = World>) -> Vec<World> {
    let mut worlds: Vec<World> = known.into_iter().collect();
    worlds.sort_by_key(|world| world.first);
    worlds.dedup_by_key(|world| world.first);
    worlds
}

/// Adds the tasks of worlds that some host has in its table but the registry does not know: the last launcher was lost
/// before a replica knew of them. `requests` are the unanswered ones. Output of these tasks goes to the job, since
/// its receiver is unknown.
fn add_unknown_tasks<'r>(
    registry: &mut Registry,
    worlds: &[World],
    requests: impl Iterator<Item = &'r (u32, Vec<u8>)> + Clone,
    program: &[u8],
) {
    for world in worlds {
        if world.first != registry.task_count() {
            continue;
        }
        let order = requests
            .clone()
            .find_map(|(by, bytes)| match Ask::decode(bytes) {
                Ok(Ask::Spawn { id, order }) if world.request == Some((*by, id)) => Some(order),
                _ => None,
            });
        let hosts: Vec<u32> = world.places.iter().map(|(host, _)| *host).collect();
        let named = order.as_ref().map_or(program, |order| &order.program);
        let first = registry.add_tasks(world.parent, &hosts, named, None);
        if order.is_some_and(|order| order.orphans) {
            registry.detach(first);
        }
    }
}

/// The operations of a launcher that takes a job over.
pub trait Successor {
    /// Returns the latest replica.
    fn registry(&mut self) -> &mut ReplicatedRegistry;
    /// Has a host enter a world into its table. Does nothing if the host is lost.
    fn enter(&mut self, host: u32, world: &World);
    /// Enters into every table that a task is gone, including tables that record it already.
    fn notify_gone(&mut self, task: u32, cause: Option<Cause>);
    /// Sends replicas to the first candidates, and the succession order to all hosts. The hosts in [`Takeover::lost`]
    /// are no candidates from the beginning.
    fn replicate(&mut self);
    /// Sends a message to a task again. Like every message it waits until another host's replica has the changes that
    /// it depends on.
    fn send_again(&mut self, host: u32, task: u32, bytes: Vec<u8>);
    /// Handles the end of a task that the registry does not know.
    fn task_ended(&mut self, ended: Ended);
    /// Handles the loss of a host, with all its tasks that are alive according to the registry.
    fn host_lost(&mut self, host: u32, why: &Absence);
    /// Handles a task that has a number, but that no host has, had, or will start.
    fn not_started(&mut self, task: u32);
    /// Handles a request as if it had just arrived.
    fn request(&mut self, task: u32, bytes: &[u8]);
}

/// Resumes the job from everything that is known.
pub fn take_over(launcher: &mut impl Successor, takeover: Takeover) {
    let (handovers, worlds) = (&takeover.handovers, &takeover.worlds);
    for handover in handovers {
        let lacking = worlds.iter().filter(|world| world.first >= handover.tasks);
        lacking.for_each(|world| launcher.enter(handover.host, world));
    }
    // A host that is told of a loss must not follow the lost host if this launcher is lost next, so the succession
    // order is sent first.
    launcher.replicate();
    // Some hosts may have been told of these and others not.
    for (task, cause) in takeover.gone {
        launcher.notify_gone(task, cause);
    }
    let answered = send_again(launcher, handovers);
    let announced = launcher.registry().announced();
    if announced < launcher.registry().task_count() {
        launcher.registry().notify_starts(announced);
    }
    for handover in handovers {
        for &ended in &handover.ended {
            if launcher.registry().is_alive(ended.rank) {
                // A task that ended while there was no leader had been started, so the task that spawned it is told so
                // first.
                if launcher.registry().pid(ended.rank) == 0 && ended.pid != 0 {
                    launcher.registry().task_started(ended.rank, ended.pid);
                }
                launcher.task_ended(ended);
            }
        }
        for &(task, pid) in &handover.running {
            if launcher.registry().pid(task) == 0 {
                launcher.registry().task_started(task, pid);
            }
        }
    }
    close_streams(launcher.registry(), handovers);
    let lost = takeover.lost.into_iter();
    lost.for_each(|(host, why)| launcher.host_lost(host, &why));
    for task in not_started(launcher.registry(), handovers) {
        launcher.not_started(task);
    }
    // Check all requests before handling any: handling one may answer another one that waits, which must then not be
    // handled again.
    let mut open = Vec::new();
    for (task, bytes) in handovers.iter().flat_map(|handover| &handover.requests) {
        let id = Ask::decode(bytes).ok().and_then(|request| request.id());
        if id.is_some_and(|id| is_open(launcher.registry(), &answered, *task, id)) {
            open.push((*task, bytes));
        }
    }
    for (task, bytes) in open {
        request_again(launcher, task, bytes, worlds);
    }
}

/// Sends each task the messages that it has not received. Returns the requests that they answer, by task and number.
fn send_again(launcher: &mut impl Successor, handovers: &[Handover]) -> BTreeSet<(u32, u32)> {
    let mut answered = BTreeSet::new();
    for handover in handovers {
        let received: BTreeMap<u32, u32> = handover.received.iter().copied().collect();
        for &(task, _) in &handover.running {
            let count = received.get(&task).copied().unwrap_or_default();
            for bytes in launcher.registry().unacknowledged(task, count) {
                if let Ok(message) = Tell::decode(&bytes) {
                    answered.extend(message.id().map(|id| (task, id)));
                }
                launcher.send_again(handover.host, task, bytes);
            }
        }
    }
    answered
}

/// Closes the streams that were closed while there was no leader, and stops output to tasks that no longer read.
fn close_streams(registry: &mut ReplicatedRegistry, handovers: &[Handover]) {
    for (task, stream) in registry.open_streams() {
        let host = registry.host_of(task);
        let mut at = handovers.iter().filter(|one| Some(one.host) == host);
        if at.any(|one| !one.open_streams.contains(&(task, stream))) {
            registry.close_stream(task, stream);
        }
    }
    let silent = handovers.iter().flat_map(|one| &one.silent);
    silent.for_each(|task| {
        registry.stop_output_to(*task);
    });
}

/// Returns the tasks that are alive according to the registry but that no host has.
fn not_started(registry: &Registry, handovers: &[Handover]) -> Vec<u32> {
    let mut known: BTreeSet<u32> = BTreeSet::new();
    for handover in handovers {
        known.extend(&handover.unstarted);
        known.extend(handover.running.iter().map(|(task, _)| task));
    }
    let all = 0..registry.task_count();
    all.filter(|task| registry.is_alive(*task) && !known.contains(task))
        .collect()
}

/// Handles a request that the replica does not know.
fn request_again(launcher: &mut impl Successor, task: u32, bytes: &[u8], worlds: &[World]) {
    if let Ok(Ask::Spawn { id, order }) = Ask::decode(bytes) {
        let mut worlds = worlds.iter();
        let begun = worlds.find(|world| world.request == Some((task, id)));
        if let Some(world) = begun {
            return conclude_spawn(launcher.registry(), (task, id), &order, world);
        }
    }
    launcher.request(task, bytes);
}

/// Tells the task that spawned a world which of its tasks exist. The last launcher had assigned their numbers.
fn conclude_spawn(
    registry: &mut ReplicatedRegistry,
    (by, id): (u32, u32),
    order: &Spawn,
    world: &World,
) {
    let numbers = world.first..world.first + world.places.len() as u32;
    let is_there = |task: u32| registry.is_alive(task) || registry.pid(task) != 0;
    let mut tasks: Vec<Result<u32, RequestError>> = numbers
        .map(|task| is_there(task).then_some(task).ok_or(RequestError::Host))
        .collect();
    tasks.resize(order.count as usize, Err(RequestError::Host));
    tasks.sort_by_key(|task| task.unwrap_or(u32::MAX));
    let sentence = match tasks.iter().all(Result::is_ok) {
        true => String::new(),
        false => "the host of the launcher was lost while it started tasks".to_owned(),
    };
    registry.send(
        by,
        Tell::Spawned {
            id,
            tasks,
            sentence,
        },
    );
}

#[cfg(test)]
mod tests;
