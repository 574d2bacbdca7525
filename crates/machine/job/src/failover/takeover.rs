//! Going on with a job as its next launcher: in which order all that is known happens.
//!
//! The replica says what the last launcher knew; every host says what only it knows ([`Handover`]). The order below is a promise. Tables
//! come before messages, so a task that hears of an end finds it in its table. Replicas come before messages, too: perhaps no other host has
//! a replica as late as this one, and this host may be lost next. Messages that tasks have not received come before all that is
//! new, so they are received in the order in which things happened. Ends come before requests, so a request sees the job as it is.

use std::collections::{BTreeMap, BTreeSet};

use regatta_wire::control::{Ask, Spawn, Tell, Why};
use regatta_wire::fields::Message;
use regatta_wire::life::Cause;
use regatta_wire::world::World;

use super::{HostFacts, all_gone, is_open};
use crate::end::Ended;
use crate::registry::{Registry, ReplicatedRegistry};

/// The facts of one host that the next launcher may not know.
#[derive(Debug, Clone, Default)]
pub struct Handover {
    /// The host's number.
    pub host: u32,
    /// How many tasks are in its table.
    pub tasks: u32,
    /// Its own tasks that are to start.
    pub unstarted: Vec<u32>,
    /// Its own tasks that run, with their processes.
    pub running: Vec<(u32, u32)>,
    /// Its own tasks that have ended.
    pub ended: Vec<Ended>,
    /// Per task, how many messages it has received.
    pub received: Vec<(u32, u32)>,
    /// Tasks of other hosts that are gone by its table.
    pub gone: Vec<(u32, Option<Cause>)>,
    /// Requests of its tasks without an answer.
    pub requests: Vec<(u32, Vec<u8>)>,
    /// Streams of its tasks that may still be written to, and are for another task than the job's output.
    pub open_streams: Vec<(u32, u32)>,
    /// Its own tasks that run and will not read a message any more.
    pub silent: Vec<u32>,
}

impl Handover {
    fn facts(&self) -> HostFacts<'_> {
        HostFacts {
            gone: &self.gone,
            ended: &self.ended,
        }
    }
}

/// Which tasks are gone, of all that these hosts and the replica know.
pub fn gone(registry: &Registry, handovers: &[Handover]) -> BTreeMap<u32, Option<Cause>> {
    all_gone(registry, handovers.iter().map(Handover::facts))
}

/// All worlds that any host has in its table, each once, in the order of their numbers.
pub fn all_worlds(known: impl IntoIterator<Item = World>) -> Vec<World> {
    let mut worlds: Vec<World> = known.into_iter().collect();
    worlds.sort_by_key(|world| world.first);
    worlds.dedup_by_key(|world| world.first);
    worlds
}

/// Adds the tasks of worlds that some host has in its table, and that the registry does not know: the last launcher was lost before a replica
/// knew of them. `requests` are those without an answer. Output of these tasks goes to the job, since it is not known who was to get it.
pub fn add_unknown_tasks<'r>(
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
    /// Gives the first candidates replicas.
    fn replicate(&mut self);
    /// Sends a message to a task once more. It waits as every message does until another host's replica knows of what it comes.
    fn send_again(&mut self, host: u32, task: u32, bytes: Vec<u8>);
    /// A task has ended, and the registry does not know it.
    fn task_ended(&mut self, ended: Ended);
    /// A host is lost, with all of its tasks that the registry takes for alive.
    fn host_lost(&mut self, host: u32);
    /// A task has a number, and no host has it, nor had, nor will start it.
    fn not_started(&mut self, task: u32);
    /// Handles a request as one that has just come.
    fn request(&mut self, task: u32, bytes: &[u8]);
}

/// Makes one job of all that is known. `worlds` are all that any host has in its table, `gone` the tasks that are gone by anybody's, `lost` the
/// hosts that do not take part any more.
pub fn take_over(
    launcher: &mut impl Successor,
    handovers: &[Handover],
    worlds: &[World],
    gone: BTreeMap<u32, Option<Cause>>,
    lost: &[u32],
) {
    for handover in handovers {
        let lacking = worlds.iter().filter(|world| world.first >= handover.tasks);
        lacking.for_each(|world| launcher.enter(handover.host, world));
    }
    // Some hosts may have heard of these and others not.
    for (task, cause) in gone {
        launcher.notify_gone(task, cause);
    }
    launcher.replicate();
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
    lost.iter().for_each(|host| launcher.host_lost(*host));
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
mod tests {
    use super::*;
    use crate::End;
    use regatta_wire::control::{Manner, Output, Place, Then};
    use regatta_wire::life::TaskState;

    struct Hands(ReplicatedRegistry);

    impl Successor for Hands {
        fn registry(&mut self) -> &mut ReplicatedRegistry {
            &mut self.0
        }
        fn enter(&mut self, _: u32, _: &World) {}
        fn notify_gone(&mut self, _: u32, _: Option<Cause>) {}
        fn replicate(&mut self) {}
        fn send_again(&mut self, _: u32, _: u32, _: Vec<u8>) {}
        fn task_ended(&mut self, ended: Ended) {
            self.0.task_ended(ended.rank, ended.end);
        }
        fn host_lost(&mut self, _: u32) {}
        fn not_started(&mut self, task: u32) {
            self.0.task_ended(task, End::Lost);
        }
        fn request(&mut self, _: u32, _: &[u8]) {
            panic!("its tasks have numbers")
        }
    }

    /// Task 1 writes for task 0, on the same host.
    #[test]
    fn a_stream_that_was_closed_while_nobody_led_ends_and_a_kill_is_repeated() {
        let mut registry = Registry::new(Vec::new(), &[1], b"program");
        registry.task_started(0, 100);
        let manner = Manner {
            context: 0,
            tag: 1,
            lines: false,
            births: false,
        };
        let route = registry.route(0, Output::Me(manner));
        registry.add_tasks(Some(0), &[1], b"child", route);
        registry.task_started(1, 101);
        let kill = Ask::Signal {
            id: 3,
            task: 1,
            signal: libc::SIGKILL,
            end: true,
        };
        registry.handle_request(0, kill);
        registry.take_messages();
        let handovers = [Handover {
            host: 1,
            tasks: 2,
            running: vec![(0, 100), (1, 101)],
            open_streams: vec![(1, 1)],
            ..Handover::default()
        }];
        let mut hands = Hands(ReplicatedRegistry::new(registry, true));
        take_over(&mut hands, &handovers, &[], BTreeMap::new(), &[]);
        let told = hands.0.take_messages();
        let closed = |stream| Tell::Output {
            task: 1,
            stream,
            manner,
            bytes: Vec::new(),
            then: Then::Closed,
        };
        assert!(told.contains(&(0, closed(0))) && !told.contains(&(0, closed(1))));
        assert_eq!(hands.0.killed_at_once(), [1]);
    }

    #[test]
    fn a_spawned_task_that_has_ended_while_nobody_led_has_started() {
        let mut registry = Registry::new(Vec::new(), &[1], b"program");
        registry.task_started(0, 100);
        let order = Spawn {
            program: b"worker".to_vec(),
            arguments: Vec::new(),
            count: 1,
            place: Place::Here,
            search: None,
            directory: None,
            environment: Vec::new(),
            output: Output::Job,
            orphans: false,
            through: None,
            on_behalf: None,
        };
        let mut bytes = Vec::new();
        Ask::Spawn { id: 7, order }.encode(&mut bytes);
        let worlds = [World {
            first: 1,
            parent: Some(0),
            request: Some((0, 7)),
            places: vec![(1, None)],
        }];
        let requests = vec![(0, bytes)];
        add_unknown_tasks(&mut registry, &worlds, requests.iter(), b"program");
        let ended = Ended {
            rank: 1,
            pid: 101,
            end: End::Exited(0),
            state: TaskState::Left,
        };
        let handovers = [Handover {
            host: 1,
            tasks: 2,
            running: vec![(0, 100)],
            ended: vec![ended],
            requests,
            ..Handover::default()
        }];
        let gone = gone(&registry, &handovers);
        let mut hands = Hands(ReplicatedRegistry::new(registry, true));
        take_over(&mut hands, &handovers, &worlds, gone, &[]);
        let mut told = hands.0.take_messages().into_iter();
        let is_named =
            |message: &Tell| matches!(message, Tell::Spawned { tasks, .. } if tasks[..] == [Ok(1)]);
        assert!(told.any(|(_, message)| is_named(&message)));
    }
}
