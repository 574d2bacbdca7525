//! Spawns: tasks that other tasks request, and processes that want to become tasks.
//!
//! A spawn may concern several hosts, and takes three steps on all of them. Each step begins when the last host has
//! done the one before, so no task is told of a task that is not in its host's table.
//!
//! | step | every host concerned | if a host cannot |
//! |---|---|---|
//! | prepare | finds the program, opens the sockets at which its tasks will listen | the other hosts' tasks are started without its own |
//! | enter | the tasks have numbers; every host of the job enters them into its table, the launcher's first | the spawn fails |
//! | start | starts its tasks | each task that cannot be started counts as ended |
//!
//! The requester is answered at the end, when messages can be sent to each task that was started. A process that joins
//! is a single task, which its host has already prepared.
//!
//! [`Spawns`] decides. Events go in, and [`Spawns::poll`] returns the steps to be taken, in order.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use regatta_wire::control::{RequestError, Route, Spawn, Tell};
use regatta_wire::world::World;

use crate::Lifecycle;
use crate::registry::{Refused, ReplicatedRegistry};

mod effect;
#[cfg(test)]
mod tests;

pub use effect::{SpawnEffect, SpawnedTasks};

/// The addresses at which the tasks of one host will listen, or why it cannot start them.
pub type Prepared = Result<Vec<Option<SocketAddr>>, Refused>;

/// The requester of a spawn, which is answered at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnedBy {
    /// A task.
    Task {
        /// The task's number.
        by: u32,
        /// The number of its request.
        id: u32,
    },
    /// A process that wants to become a task.
    Process {
        /// The number of its host.
        host: u32,
        /// The number of the process on that host.
        number: u32,
    },
}

/// All spawns that are not answered yet.
#[derive(Debug, Default)]
pub struct Spawns {
    /// Maximum number of tasks that the job may have in all.
    most_tasks: u32,
    /// The number of the next spawn.
    next: u32,
    /// In order of their requests.
    open: Vec<Spawning>,
    effects: VecDeque<SpawnEffect>,
}

/// One spawn.
#[derive(Debug)]
struct Spawning {
    number: u32,
    requester: SpawnedBy,
    order: Spawn,
    /// The task that receives the output of the new ones, or `None` for the job's output.
    route: Option<Route>,
    parts: Vec<Part>,
    step: Step,
}

/// The part of one host.
#[derive(Debug)]
struct Part {
    host: u32,
    count: u32,
    prepared: Option<Prepared>,
    /// The number of its first task, once assigned.
    first: Option<u32>,
}

#[derive(Debug)]
enum Step {
    /// Some hosts have not reported whether they are prepared.
    Preparing,
    /// The launcher's own table has not been asked to enter the tasks.
    EnteringHere(World),
    /// The hosts that have not entered the tasks into their tables, or `None` if it is not known yet which hosts are
    /// asked. A refusal ends the spawn when all have answered.
    Entering(Option<BTreeSet<u32>>, Option<Refused>),
    /// Some tasks have not been started. The list has the outcomes of the others.
    Starting(Vec<(u32, Result<u32, Refused>)>),
}

impl Spawns {
    /// Returns the state without spawns, for a job that may have `most_tasks` tasks in all.
    pub fn new(most_tasks: u32) -> Self {
        Self {
            most_tasks,
            ..Self::default()
        }
    }

    /// Handles a task's request for tasks. The registry answers it, now or later.
    pub fn request(
        &mut self,
        (by, id): (u32, u32),
        order: Spawn,
        registry: &mut ReplicatedRegistry,
        lifecycle: &mut Lifecycle,
    ) {
        let placed = self.place((by, &order), registry, lifecycle);
        let (parent, parts) = match placed {
            Ok(placed) => placed,
            Err(refused) => return registry.reply(by, id, Err(refused)),
        };
        let route = registry.route(parent, order.output);
        let requester = SpawnedBy::Task { by, id };
        let spawn = self.begin(requester, order, route, lifecycle);
        for &Part { host, count, .. } in &parts {
            self.effects
                .push_back(SpawnEffect::Prepare { spawn, host, count });
        }
        self.last().parts = parts;
    }

    fn place(
        &self,
        (by, order): (u32, &Spawn),
        registry: &ReplicatedRegistry,
        lifecycle: &Lifecycle,
    ) -> Result<(u32, Vec<Part>), Refused> {
        if order.count == 0 {
            return Err((
                RequestError::Argument,
                "0 tasks cannot be started".to_owned(),
            ));
        }
        self.check_room(order.count, registry, lifecycle)?;
        let parent = order.on_behalf.unwrap_or(by);
        if !registry.is_alive(parent) {
            let sentence = format!("there is no task {parent} for which tasks could be started");
            return Err((RequestError::Task, sentence));
        }
        let placed = registry.place_tasks(parent, &order.place, order.count)?;
        let part = |(host, count)| Part {
            host,
            count,
            prepared: None,
            first: None,
        };
        Ok((parent, placed.into_iter().map(part).collect()))
    }

    /// Handles a process of a host that wants to become a task and will listen at `address`. `number` identifies it on
    /// that host.
    pub fn join(
        &mut self,
        (host, number): (u32, u32),
        order: Spawn,
        address: Option<SocketAddr>,
        registry: &ReplicatedRegistry,
        lifecycle: &mut Lifecycle,
    ) {
        if let Err(refused) = self.check_room(1, registry, lifecycle) {
            return self.turn_away(host, number, refused);
        }
        self.begin(SpawnedBy::Process { host, number }, order, None, lifecycle);
        self.last().parts.push(Part {
            host,
            count: 1,
            prepared: Some(Ok(vec![address])),
            first: None,
        });
    }

    /// Fails if there may not be `count` more tasks, in addition to those that have been requested and have no numbers
    /// yet.
    fn check_room(
        &self,
        count: u32,
        registry: &ReplicatedRegistry,
        lifecycle: &Lifecycle,
    ) -> Result<(), Refused> {
        if lifecycle.is_ending() {
            return Err(job_ends());
        }
        let is_planned =
            |one: &&Spawning| matches!(one.step, Step::Preparing | Step::EnteringHere(_));
        let planned = self.open.iter().filter(is_planned);
        let planned: u32 = planned.map(|one| one.order.count).sum();
        let (had, most) = (registry.task_count() + planned, self.most_tasks);
        if count > most.saturating_sub(had) {
            let sentence = format!(
                "{count} more tasks cannot be started: the job has had {had} tasks, and its limit is {most} in total (--most-tasks)"
            );
            return Err((RequestError::Memory, sentence));
        }
        Ok(())
    }

    fn begin(
        &mut self,
        requester: SpawnedBy,
        order: Spawn,
        route: Option<Route>,
        lifecycle: &mut Lifecycle,
    ) -> u32 {
        while self.open.iter().any(|one| one.number == self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        lifecycle.spawn_requested();
        self.open.push(Spawning {
            number,
            requester,
            order,
            route,
            parts: Vec::new(),
            step: Step::Preparing,
        });
        number
    }

    fn last(&mut self) -> &mut Spawning {
        self.open.last_mut().expect("a spawn has just begun")
    }

    fn turn_away(&mut self, host: u32, process: u32, refused: Refused) {
        self.effects.push_back(SpawnEffect::TurnAway {
            host,
            process,
            refused,
        });
    }

    /// Returns the order of a spawn, and the route for the output of its tasks, or `None` if the spawn has been
    /// answered.
    pub fn order(&self, spawn: u32) -> Option<(&Spawn, Option<Route>)> {
        let found = self.open.iter().find(|one| one.number == spawn)?;
        Some((&found.order, found.route))
    }

    fn find(&mut self, spawn: u32) -> Option<&mut Spawning> {
        self.open.iter_mut().find(|one| one.number == spawn)
    }

    /// Records that a host has prepared its tasks, or cannot.
    pub fn prepared(&mut self, host: u32, spawn: u32, prepared: Prepared) {
        let Some(spawning) = self.find(spawn) else {
            return;
        };
        let mut parts = spawning.parts.iter_mut();
        if let Some(part) = parts.find(|part| part.host == host && part.prepared.is_none()) {
            let count = part.count as usize;
            let incomplete = || {
                let sentence = "a host has not reported the addresses of its tasks".to_owned();
                (RequestError::System, sentence)
            };
            part.prepared = Some(prepared.and_then(|addresses| {
                let fits = addresses.len() == count;
                fits.then_some(addresses).ok_or_else(incomplete)
            }));
        }
    }

    /// Records that the launcher's own table has the tasks, or has no room for them. In the latter case no number is
    /// used.
    pub fn entered_here(
        &mut self,
        spawn: u32,
        outcome: Result<(), Refused>,
        registry: &mut ReplicatedRegistry,
        lifecycle: &mut Lifecycle,
    ) {
        let mut open = self.open.iter();
        let Some(at) = open.position(|one| one.number == spawn) else {
            return;
        };
        let spawning = &mut self.open[at];
        let Step::EnteringHere(world) = &spawning.step else {
            return;
        };
        let world = world.clone();
        lifecycle.spawn_resolved();
        if let Err(refused) = outcome {
            let spawning = self.open.remove(at);
            for host in spawning.prepared_hosts() {
                self.effects.push_back(SpawnEffect::Forget { spawn, host });
            }
            return self.refuse(spawning.requester, refused, registry);
        }
        spawning.number_parts(world.first);
        let hosts: Vec<u32> = world.places.iter().map(|(host, _)| *host).collect();
        let (program, route) = (&spawning.order.program, spawning.route);
        let first = registry.add_tasks(world.parent, &hosts, program, route);
        if spawning.order.orphans {
            registry.detach(first);
        }
        registry.notify_starts(first);
        lifecycle.tasks_added(&hosts);
        spawning.step = Step::Entering(None, None);
        self.effects
            .push_back(SpawnEffect::EnterElsewhere { spawn, world });
    }

    /// Records which hosts have been asked to enter the tasks, possibly none.
    pub fn entering(&mut self, spawn: u32, hosts: impl IntoIterator<Item = u32>) {
        if let Some(Step::Entering(awaited, _)) = self.find(spawn).map(|one| &mut one.step) {
            *awaited = Some(hosts.into_iter().collect());
        }
    }

    /// Records that a host has entered the world that begins with task `first`, or cannot. In the latter case the spawn
    /// fails, as that host would not know the tasks. Returns the refusal if no spawn waits for it: its tasks run
    /// already, and the host must leave the job.
    #[must_use]
    pub fn entered(
        &mut self,
        host: u32,
        first: u32,
        mut refused: Option<Refused>,
    ) -> Option<Refused> {
        for spawning in &mut self.open {
            let begins = spawning.parts.iter().any(|part| part.first == Some(first));
            if let (true, Step::Entering(awaited, why)) = (begins, &mut spawning.step) {
                done(awaited, host);
                *why = why.take().or(refused.take());
            }
        }
        refused
    }

    /// Records that a task has been started, or could not be. Ignored for a task of no spawn, or of one that has been
    /// answered.
    pub fn started(&mut self, task: u32, outcome: Result<(), Refused>) {
        for spawning in &mut self.open {
            let has = spawning
                .shares()
                .any(|(_, share)| share.tasks().contains(&task));
            if let (true, Step::Starting(outcomes)) = (has, &mut spawning.step) {
                outcomes.push((task, outcome.map(|()| task)));
                return;
            }
        }
    }

    /// Records that a host is lost, on which these tasks were to be started. For tasks that had been started before,
    /// the host's report counts.
    pub fn host_lost(&mut self, host: u32, unstarted: &[u32]) {
        let lost = || {
            let sentence = "the host was lost while it started tasks".to_owned();
            (RequestError::Host, sentence)
        };
        for spawning in &mut self.open {
            let ours: Vec<u32> = spawning
                .shares()
                .flat_map(|(_, share)| share.tasks())
                .collect();
            for part in spawning.parts.iter_mut().filter(|part| part.host == host) {
                part.prepared.get_or_insert_with(|| Err(lost()));
            }
            match &mut spawning.step {
                Step::Preparing | Step::EnteringHere(_) => {}
                Step::Entering(awaited, _) => done(awaited, host),
                Step::Starting(outcomes) => {
                    let is_new = |task: &&u32| {
                        ours.contains(task) && !outcomes.iter().any(|(one, _)| one == *task)
                    };
                    let new: Vec<u32> = unstarted.iter().filter(is_new).copied().collect();
                    outcomes.extend(new.into_iter().map(|task| (task, Err(lost()))));
                }
            }
        }
    }

    /// Refuses all requesters, because no more tasks are started.
    pub fn end(&mut self, registry: &mut ReplicatedRegistry, lifecycle: &mut Lifecycle) {
        for spawning in std::mem::take(&mut self.open) {
            if let Step::Preparing | Step::EnteringHere(_) = spawning.step {
                lifecycle.spawn_resolved();
            }
            self.refuse(spawning.requester, job_ends(), registry);
        }
    }

    fn refuse(
        &mut self,
        requester: SpawnedBy,
        refused: Refused,
        registry: &mut ReplicatedRegistry,
    ) {
        match requester {
            SpawnedBy::Task { by, id } => registry.reply(by, id, Err(refused)),
            SpawnedBy::Process { host, number } => self.turn_away(host, number, refused),
        }
    }

    /// Returns the next effect. To be called until it returns `None`, after every other call.
    pub fn poll(
        &mut self,
        registry: &mut ReplicatedRegistry,
        lifecycle: &mut Lifecycle,
    ) -> Option<SpawnEffect> {
        let is_numbered = |one: &Spawning| matches!(one.step, Step::EnteringHere(_));
        while self.effects.is_empty() {
            // It is not known yet whether its numbers are used.
            if self.open.iter().any(is_numbered) {
                return None;
            }
            let mut open = self.open.iter();
            let at = open.position(Spawning::has_done_step)?;
            let spawning = self.open.remove(at);
            if let Some(spawning) = self.next_step(spawning, registry, lifecycle) {
                self.open.insert(at, spawning);
            }
        }
        self.effects.pop_front()
    }

    /// Takes a spawn to its next step. Returns `None` if it has been answered.
    fn next_step(
        &mut self,
        mut spawning: Spawning,
        registry: &mut ReplicatedRegistry,
        lifecycle: &mut Lifecycle,
    ) -> Option<Spawning> {
        let spawn = spawning.number;
        match &mut spawning.step {
            Step::Preparing => match spawning.world(registry.task_count()) {
                Some(world) => {
                    spawning.step = Step::EnteringHere(world.clone());
                    self.effects
                        .push_back(SpawnEffect::EnterHere { spawn, world });
                }
                None => {
                    lifecycle.spawn_resolved();
                    spawning.step = Step::Starting(Vec::new());
                }
            },
            Step::EnteringHere(_) => {}
            Step::Entering(_, refused) => match refused.take() {
                Some(refused) => {
                    let shares = spawning.shares();
                    self.effects
                        .extend(shares.map(|(host, share)| SpawnEffect::Abandon { host, share }));
                    self.refuse(spawning.requester, refused, registry);
                    return None;
                }
                None => {
                    self.start(&spawning);
                    spawning.step = Step::Starting(Vec::new());
                }
            },
            Step::Starting(outcomes) => {
                let outcomes = std::mem::take(outcomes);
                // A process that has joined is notified by its host.
                if let SpawnedBy::Task { by, id } = spawning.requester {
                    registry.send(by, spawning.answer(id, outcomes));
                }
                return None;
            }
        }
        Some(spawning)
    }

    fn start(&mut self, spawning: &Spawning) {
        for (host, share) in spawning.shares() {
            self.effects.push_back(match spawning.requester {
                SpawnedBy::Process { number, .. } => SpawnEffect::Admit {
                    host,
                    process: number,
                    task: share.first,
                },
                SpawnedBy::Task { .. } => SpawnEffect::Start { host, share },
            });
        }
    }
}

impl Spawning {
    fn has_done_step(&self) -> bool {
        match &self.step {
            Step::Preparing => self.parts.iter().all(|part| part.prepared.is_some()),
            Step::EnteringHere(_) => false,
            Step::Entering(awaited, _) => awaited.as_ref().is_some_and(BTreeSet::is_empty),
            Step::Starting(outcomes) => {
                let wanted: u32 = self.shares().map(|(_, share)| share.count).sum();
                outcomes.len() >= wanted as usize
            }
        }
    }

    /// Returns the hosts that have prepared their tasks.
    fn prepared_hosts(&self) -> impl Iterator<Item = u32> {
        let prepared = self.parts.iter();
        let prepared = prepared.filter(|part| matches!(part.prepared, Some(Ok(_))));
        prepared.map(|part| part.host)
    }

    /// Returns the tasks that have numbers, with their hosts.
    fn shares(&self) -> impl Iterator<Item = (u32, SpawnedTasks)> {
        let parts = self.parts.iter();
        parts.filter_map(|part| {
            let share = SpawnedTasks {
                spawn: self.number,
                first: part.first?,
                count: part.count,
            };
            Some((part.host, share))
        })
    }

    fn parent(&self) -> Option<u32> {
        match self.requester {
            SpawnedBy::Task { by, .. } => Some(self.order.on_behalf.unwrap_or(by)),
            SpawnedBy::Process { .. } => None,
        }
    }

    /// Returns all tasks of the spawn that hosts have prepared, with numbers from `first` on, or `None` if there are
    /// none.
    fn world(&self, first: u32) -> Option<World> {
        let mut places = Vec::new();
        for part in &self.parts {
            if let Some(Ok(addresses)) = &part.prepared {
                places.extend(addresses.iter().map(|address| (part.host, *address)));
            }
        }
        let request = match self.requester {
            SpawnedBy::Task { by, id } => Some((by, id)),
            SpawnedBy::Process { .. } => None,
        };
        (!places.is_empty()).then_some(World {
            first,
            parent: self.parent(),
            request,
            places,
        })
    }

    /// Assigns numbers to the tasks that hosts have prepared.
    fn number_parts(&mut self, mut first: u32) {
        for part in &mut self.parts {
            if matches!(part.prepared, Some(Ok(_))) {
                part.first = Some(first);
                first += part.count;
            }
        }
    }

    /// Returns the answer to the requesting task: the started tasks ordered by number, then why the others were not
    /// started.
    fn answer(&self, id: u32, outcomes: Vec<(u32, Result<u32, Refused>)>) -> Tell {
        let unprepared = self.parts.iter().filter_map(|part| {
            let refused = part.prepared.as_ref()?.as_ref().err()?.clone();
            Some(vec![Err(refused); part.count as usize])
        });
        let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome);
        let mut all: Vec<_> = outcomes.chain(unprepared.flatten()).collect();
        all.sort_by_key(|outcome| *outcome.as_ref().unwrap_or(&u32::MAX));
        let reason = all.iter().find_map(|outcome| outcome.as_ref().err());
        let sentence = reason.map_or_else(String::new, |(_, sentence)| sentence.clone());
        let tasks = all
            .into_iter()
            .map(|outcome| outcome.map_err(|(why, _)| why));
        Tell::Spawned {
            id,
            tasks: tasks.collect(),
            sentence,
        }
    }
}

/// Removes a host from those that are awaited.
fn done(awaited: &mut Option<BTreeSet<u32>>, host: u32) {
    if let Some(awaited) = awaited {
        awaited.remove(&host);
    }
}

fn job_ends() -> Refused {
    (RequestError::State, "the job is being ended".to_owned())
}
