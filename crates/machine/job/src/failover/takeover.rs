//! Going on with a job as its next launcher: in which order all that is known happens.
//!
//! The replica says what the last launcher knew; every host says what only it knows ([`Handover`]). The order below is a promise. Tables
//! come before messages, so a task that hears of an end finds it in its table. Replicas come before messages, too: perhaps no other host has
//! a replica as late as this one, and this host may be lost next. Messages that tasks have not received come before all that is
//! new, so they are received in the order in which things happened. Ends come before requests, so a request sees the job as it is.

use std::collections::{BTreeMap, BTreeSet};

use regatta_wire::control::{Ask, Spawn, Tell, Why};
use regatta_wire::fields;
use regatta_wire::fields::Message;
use regatta_wire::life::Cause;
use regatta_wire::world::World;

use super::gone::all_gone;
use super::{Absence, is_open};
use crate::end::Ended;
use crate::lifecycle::{Lifecycle, Policy};
use crate::registry::{HostRecord, Registry, ReplicatedRegistry};

/// The facts of one host that the next launcher may not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handover {
    /// The host's number: the launcher knows it, whatever the host says.
    pub host: u32,
    /// How many tasks are in its table.
    pub tasks: u32,
    /// Worlds in its table, those at least that the next launcher has not.
    pub worlds: Vec<World>,
    /// Its own tasks that are to start.
    pub unstarted: Vec<u32>,
    /// Its own tasks that run, with their processes.
    pub running: Vec<(u32, u32)>,
    /// Its own tasks that have ended.
    pub ended: Vec<Ended>,
    /// Per task, how many messages it has received.
    pub received: Vec<(u32, u32)>,
    /// Tasks of other hosts that are gone by its table; without a cause they left in good order.
    pub gone: Vec<(u32, Option<Cause>)>,
    /// Requests of its tasks without an answer.
    pub requests: Vec<(u32, Vec<u8>)>,
    /// Streams of its tasks that may still be written to, and are for another task than the job's output.
    pub open_streams: Vec<(u32, u32)>,
    /// Its own tasks that run and will not read a message any more.
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

/// All that is known of a job that is taken over, beside the latest replica of its registry.
#[derive(Debug)]
pub struct Takeover {
    /// The facts of each host that takes part.
    handovers: Vec<Handover>,
    /// All worlds that any host has in its table, each once, in the order of their numbers.
    pub worlds: Vec<World>,
    /// The tasks that are gone, of all that these hosts and the replica know.
    gone: BTreeMap<u32, Option<Cause>>,
    /// The hosts that do not take part any more, and why.
    pub lost: BTreeMap<u32, Absence>,
}

impl Takeover {
    /// Puts together what the hosts have handed over, the one that takes the job over first, with the latest replica, to which it adds the
    /// tasks that only hosts know of: `program` is the one that the job began with. `lost` are hosts that have been claimed in vain;
    /// `launcher` is the name of the last launcher's host, and how it was lost.
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

    /// The hosts that the registry takes for hosts of the job, and that hand nothing over.
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

    /// Some tables have it already that a host is lost which has come: the old launcher had given it up.
    fn note_given_up(&mut self) {
        let is_gone = |(task, _): &(u32, u32)| self.gone.contains_key(task);
        let others = self.handovers.iter().skip(1);
        for other in others.filter(|other| other.running.iter().any(is_gone)) {
            let lost = self.lost.entry(other.host);
            lost.or_insert(Absence::GivenUpBefore);
        }
    }

    /// The lifecycle of a job that began with this many tasks.
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

    /// How many tasks have been started that the registry does not know to have ended: they run, their ends are news, or they are lost with
    /// their hosts.
    fn begun(&self, registry: &Registry) -> u32 {
        let is_news = |ended: &&Ended| registry.is_alive(ended.rank);
        let of_host =
            |host: &Handover| host.running.len() + host.ended.iter().filter(is_news).count();
        let absent = self.absent(registry);
        let lost = absent.map(|host| living_tasks(registry, host.number).0.len());
        (self.handovers.iter().map(of_host).sum::<usize>() + lost.sum::<usize>()) as u32
    }
}

/// The tasks of a host that the registry takes for alive: those that run, with their processes, and those that are to start.
pub fn living_tasks(registry: &Registry, host: u32) -> (Vec<(u32, u32)>, Vec<u32>) {
    let tasks = 0..registry.task_count();
    let living =
        tasks.filter(|&task| registry.host_of(task) == Some(host) && registry.is_alive(task));
    let (running, unstarted): (Vec<u32>, Vec<u32>) =
        living.partition(|&task| registry.pid(task) != 0);
    let running = running.into_iter().map(|task| (task, registry.pid(task)));
    (running.collect(), unstarted)
}

/// Each of these worlds once, in the order of their numbers.
fn all_worlds(known: impl IntoIterator<Item = World>) -> Vec<World> {
    let mut worlds: Vec<World> = known.into_iter().collect();
    worlds.sort_by_key(|world| world.first);
    worlds.dedup_by_key(|world| world.first);
    worlds
}

/// Adds the tasks of worlds that some host has in its table, and that the registry does not know: the last launcher was lost before a replica
/// knew of them. `requests` are those without an answer. Output of these tasks goes to the job, since it is not known who was to get it.
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

/// The hands of a launcher that takes a job over.
pub trait Successor {
    /// The latest replica.
    fn registry(&mut self) -> &mut ReplicatedRegistry;
    /// Has a host enter a world into its table. A host that is not there any more is passed over.
    fn enter(&mut self, host: u32, world: &World);
    /// Enters into every table that a task is gone, also into those that have it so.
    fn notify_gone(&mut self, task: u32, cause: Option<Cause>);
    /// Gives the first candidates replicas, and says to all who leads next. The hosts that are lost, as [`Takeover::lost`] has them, are no
    /// candidates from the beginning.
    fn replicate(&mut self);
    /// Sends a message to a task once more. It waits as every message does until another host's replica knows of what it comes.
    fn send_again(&mut self, host: u32, task: u32, bytes: Vec<u8>);
    /// A task has ended, and the registry does not know it.
    fn task_ended(&mut self, ended: Ended);
    /// A host is lost, with all of its tasks that the registry takes for alive.
    fn host_lost(&mut self, host: u32, why: &Absence);
    /// A task has a number, and no host has it, nor had, nor will start it.
    fn not_started(&mut self, task: u32);
    /// Handles a request as one that has just come.
    fn request(&mut self, task: u32, bytes: &[u8]);
}

/// Makes one job of all that is known.
pub fn take_over(launcher: &mut impl Successor, takeover: Takeover) {
    let (handovers, worlds) = (&takeover.handovers, &takeover.worlds);
    for handover in handovers {
        let lacking = worlds.iter().filter(|world| world.first >= handover.tasks);
        lacking.for_each(|world| launcher.enter(handover.host, world));
    }
    // A host that hears of a loss must not follow the lost host any more, if this launcher is lost next: so it hears before who may lead.
    launcher.replicate();
    // Some hosts may have heard of these and others not.
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
                // A task that has ended while nobody led has started, and the one that spawned it is told so.
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
    // All are looked at before any is handled: one that waits may be answered by another one, and must not be handled again.
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

/// Sends each task the messages that it has not received. The requests that these answer, by task and number.
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

/// Closes the streams that were closed while nobody led, and sends nothing more to the tasks that read nothing more.
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

/// The tasks that the registry takes for alive and that no host has.
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

/// Tells the task that spawned a world which of its tasks there are: the last launcher had given out their numbers.
fn conclude_spawn(
    registry: &mut ReplicatedRegistry,
    (by, id): (u32, u32),
    order: &Spawn,
    world: &World,
) {
    let numbers = world.first..world.first + world.places.len() as u32;
    let is_there = |task: u32| registry.is_alive(task) || registry.pid(task) != 0;
    let mut tasks: Vec<Result<u32, Why>> = numbers
        .map(|task| is_there(task).then_some(task).ok_or(Why::Host))
        .collect();
    tasks.resize(order.count as usize, Err(Why::Host));
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
