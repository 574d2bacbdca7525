//! Starting the tasks that a task asks for, on whatever hosts.
//!
//! A birth goes through the steps of [`crate::newborn`] on all hosts it concerns, each step when the last host has done
//! the one before. The asker is answered at the end, when whoever was started can be spoken to.

use std::collections::HashSet;
use std::net::SocketAddr;

use regatta_job::End;
use regatta_job::registry::Refused;
use regatta_transport::job::Cause;
use regatta_wire::control::{Route, Spawn, Tell, Why};
use regatta_wire::world::World;

use super::Supervisor;
use crate::channel::messages::Order;
use crate::entrance::Newcomer;
use crate::newborn::{Birth, Born};
use crate::tasks::Started;

/// Tasks that are being started.
pub(super) struct Spawning {
    number: u32,
    asker: Asker,
    order: Spawn,
    /// Who gets what they write; none: the job's output.
    route: Option<Route>,
    shares: Vec<Share>,
    step: Step,
    /// Why a host cannot enter the tasks.
    refused: Option<Refused>,
}

/// Who wants them.
pub(super) enum Asker {
    /// This task, which has asked with this number.
    Task { by: u32, id: u32 },
    /// Nobody: it runs already, and wants to be a task.
    Itself(Newcomer),
    /// The same on another host, whose agent calls it so.
    Caller { host: u32, number: u32 },
}

/// The part of one host.
struct Share {
    host: u32,
    count: u32,
    ready: Option<Result<Vec<Option<SocketAddr>>, Refused>>,
    /// The number of its first task, once there are numbers.
    first: u32,
}

enum Step {
    /// Some hosts have not said whether they are ready.
    Readying,
    /// Some hosts have not entered the tasks into their tables.
    Entering(HashSet<u32>),
    /// Some tasks have not been started: what became of those that have.
    Bearing(Vec<(u32, Result<u32, Refused>)>),
}

impl Supervisor<'_> {
    /// A task asks for tasks.
    pub(super) fn spawn(&mut self, by: u32, id: u32, order: Spawn) {
        if let Err(refused) = self.begin_birth(by, id, order) {
            self.registry.reply(by, id, Err(refused));
        }
    }

    fn begin_birth(&mut self, by: u32, id: u32, order: Spawn) -> Result<(), Refused> {
        if order.count == 0 {
            return Err((Why::Argument, "0 tasks cannot be started".to_owned()));
        }
        self.check_room(order.count)?;
        let parent = order.on_behalf.unwrap_or(by);
        if !self.registry.is_alive(parent) {
            return Err((
                Why::Task,
                format!("there is no task {parent} to start tasks for"),
            ));
        }
        let shares = self
            .registry
            .place_tasks(parent, &order.place, order.count)?;
        let route = self.registry.route(parent, order.output);
        let mut spawning = self.birth(Asker::Task { by, id }, order, route);
        for (host, count) in shares {
            let ready = self.expect(host, count, &spawning);
            let first = 0;
            spawning.shares.push(Share {
                host,
                count,
                ready,
                first,
            });
        }
        self.spawning.push(spawning);
        self.advance_births();
        Ok(())
    }

    /// A process that runs already wants to be a task, and will listen there.
    pub(super) fn begin_guest(
        &mut self,
        asker: Asker,
        host: u32,
        order: Spawn,
        address: Option<SocketAddr>,
    ) {
        if let Err(refused) = self.check_room(1) {
            return self.refuse(asker, refused);
        }
        let mut spawning = self.birth(asker, order, None);
        spawning.shares.push(Share {
            host,
            count: 1,
            ready: Some(Ok(vec![address])),
            first: 0,
        });
        self.spawning.push(spawning);
        self.advance_births();
    }

    fn birth(&mut self, asker: Asker, order: Spawn, route: Option<Route>) -> Spawning {
        let number = self.births;
        self.births += 1;
        self.lifecycle.spawn_requested();
        Spawning {
            number,
            asker,
            shares: Vec::new(),
            order,
            route,
            step: Step::Readying,
            refused: None,
        }
    }

    /// May there be so many more tasks?
    fn check_room(&self, count: u32) -> Result<(), Refused> {
        if self.lifecycle.is_ending() {
            return Err((Why::State, "the job is being ended".to_owned()));
        }
        let left = self
            .plan
            .most_tasks
            .saturating_sub(self.registry.task_count());
        if count > left {
            let sentence = format!(
                "the job has had {} tasks and may have {} in all (--most-tasks): {} more cannot be started",
                self.registry.task_count(),
                self.plan.most_tasks,
                count
            );
            return Err((Why::Memory, sentence));
        }
        Ok(())
    }

    /// Has a host make everything ready; the answer, if it is known already.
    fn expect(
        &mut self,
        host: u32,
        count: u32,
        spawning: &Spawning,
    ) -> Option<Result<Vec<Option<SocketAddr>>, Refused>> {
        let (birth, route) = (spawning.number, spawning.route);
        if let Some(remote) = self.remote(host) {
            let mut order = spawning.order.clone();
            // What was said of the host counts more than where its spawner is.
            if let Some(programs) = &remote.options.programs {
                order.search = Some(programs.clone().into_bytes());
            }
            if let (Some(through), Some(debugger)) = (&mut order.through, &remote.options.debugger)
            {
                *through = debugger.clone().into_bytes();
            }
            let sent = remote.send(&Order::Expect {
                birth,
                count,
                order,
                route,
            });
            return sent
                .err()
                .map(|refusal| Err((Why::Memory, refusal.sentence)));
        }
        let tasks = self.tasks.as_mut()?;
        Some(tasks.expect(birth, count, &spawning.order, route))
    }

    /// A host says whether it is ready.
    pub(super) fn expected(
        &mut self,
        host: u32,
        birth: u32,
        ready: Result<Vec<Option<SocketAddr>>, Refused>,
    ) {
        let mut spawnings = self.spawning.iter_mut();
        let Some(spawning) = spawnings.find(|spawning| spawning.number == birth) else {
            return;
        };
        let mut shares = spawning.shares.iter_mut();
        if let Some(share) = shares.find(|share| share.host == host && share.ready.is_none()) {
            let fits = |addresses: &Vec<_>| addresses.len() == share.count as usize;
            let astray = || {
                (
                    Why::System,
                    "a host has not said where its tasks listen".to_owned(),
                )
            };
            share.ready =
                Some(ready.and_then(|ready| fits(&ready).then_some(ready).ok_or_else(astray)));
        }
        self.advance_births();
    }

    /// A host has entered a world into its table, or cannot: then nothing comes of what was asked for, as that host would not know the
    /// tasks. An error: nobody waits for them, because they run already.
    pub(super) fn entered(
        &mut self,
        host: u32,
        first: u32,
        refused: Option<Refused>,
    ) -> Result<(), String> {
        let mut refused = refused;
        for spawning in &mut self.spawning {
            let begins = spawning.shares.iter().any(|share| share.first == first);
            if let (true, Step::Entering(hosts)) = (begins, &mut spawning.step) {
                hosts.remove(&host);
                spawning.refused = spawning.refused.take().or(refused.take());
            }
        }
        self.advance_births();
        refused.map_or(Ok(()), |(_, sentence)| Err(sentence))
    }

    /// A task that was to be born has been started, or not.
    pub(super) fn born(&mut self, (rank, started): Born) {
        self.note_born(rank, started.as_ref().ok());
        for spawning in &mut self.spawning {
            let has = |share: &Share| (share.first..share.first + share.count).contains(&rank);
            if let Step::Bearing(born) = &mut spawning.step
                && spawning.shares.iter().any(has)
            {
                born.push((rank, started.clone().map(|started| started.rank)));
            }
        }
        self.advance_births();
    }

    /// The tasks of a host that were to be started there never will be.
    pub(super) fn births_end_on(&mut self, host: u32, unstarted: &[u32]) {
        let lost = || {
            (
                Why::Host,
                "the host was lost while it was to start tasks".to_owned(),
            )
        };
        for spawning in &mut self.spawning {
            for share in spawning
                .shares
                .iter_mut()
                .filter(|share| share.host == host)
            {
                share.ready.get_or_insert_with(|| Err(lost()));
            }
            match &mut spawning.step {
                Step::Readying => {}
                Step::Entering(hosts) => drop(hosts.remove(&host)),
                Step::Bearing(born) => {
                    let shares = &spawning.shares;
                    let ours = |rank: &&u32| {
                        let has =
                            |share: &Share| (share.first..share.first + share.count).contains(rank);
                        shares.iter().any(has)
                    };
                    born.extend(
                        unstarted
                            .iter()
                            .filter(ours)
                            .map(|&rank| (rank, Err(lost()))),
                    );
                }
            }
        }
        self.advance_births();
    }

    /// No more tasks are started.
    pub(super) fn end_births(&mut self) {
        for spawning in std::mem::take(&mut self.spawning) {
            if let Step::Readying = spawning.step {
                self.lifecycle.spawn_resolved();
            }
            let refused = (Why::State, "the job is being ended".to_owned());
            self.refuse(spawning.asker, refused);
        }
    }

    /// Takes every birth to its next step that has done the one before.
    fn advance_births(&mut self) {
        // Taken out while they move: a step on this host may be the last one at once.
        let mut at = 0;
        while at < self.spawning.len() {
            if !self.spawning[at].may_go_on() {
                at += 1;
                continue;
            }
            let spawning = self.spawning.remove(at);
            if let Some(spawning) = self.next_step(spawning) {
                self.spawning.insert(at, spawning);
            }
        }
    }

    fn next_step(&mut self, mut spawning: Spawning) -> Option<Spawning> {
        match spawning.step {
            Step::Readying => self.enter(spawning),
            Step::Entering(_) if spawning.refused.is_some() => {
                self.abandon(spawning);
                None
            }
            Step::Entering(_) => {
                spawning.step = Step::Bearing(Vec::new());
                Some(self.bear(spawning))
            }
            Step::Bearing(born) => {
                let reasons = spawning.shares.iter().filter_map(|share| {
                    let refused = share.ready.as_ref()?.as_ref().err()?.clone();
                    Some(vec![Err(refused); share.count as usize])
                });
                let born = born.into_iter().map(|(_, started)| started);
                let outcomes: Vec<_> = born.chain(reasons.flatten()).collect();
                // A guest has been told already.
                if let Asker::Task { by, id } = spawning.asker {
                    self.answer_spawn(by, id, outcomes);
                }
                None
            }
        }
    }

    /// Nothing comes of tasks that have numbers already.
    fn abandon(&mut self, spawning: Spawning) {
        let birth = spawning.number;
        for share in &spawning.shares {
            if !matches!(share.ready, Some(Ok(_))) {
                continue;
            }
            let first = share.first;
            if let Some(remote) = self.remote(share.host) {
                let count = 0;
                let _ = remote.send(&Order::Bear {
                    birth,
                    first,
                    count,
                });
            } else if let Some(tasks) = &mut self.tasks {
                tasks.abandon(birth, first);
            }
            (first..first + share.count).for_each(|rank| self.note_born(rank, None));
        }
        if let Some(refused) = spawning.refused {
            self.refuse(spawning.asker, refused);
        }
    }

    /// Gives numbers to the tasks of the hosts that are ready, and has all hosts enter them.
    fn enter(&mut self, mut spawning: Spawning) -> Option<Spawning> {
        self.lifecycle.spawn_resolved();
        let mut places = Vec::new();
        let mut first = self.registry.task_count();
        for share in &mut spawning.shares {
            if let Some(Ok(addresses)) = &share.ready {
                share.first = first;
                first += share.count;
                places.extend(addresses.iter().map(|address| (share.host, *address)));
            } else {
                // No task has this number.
                share.first = u32::MAX - share.count;
            }
        }
        let mut waiting = HashSet::new();
        if !places.is_empty() {
            let world = World {
                first: self.registry.task_count(),
                parent: spawning.parent(),
                places,
            };
            if let Some(tasks) = &mut self.tasks
                && let Err(error) = tasks.enter(&world)
            {
                tasks.expect_no_more(spawning.number);
                self.refuse(spawning.asker, (Why::Memory, error.to_string()));
                return None;
            }
            let hosts: Vec<u32> = world.places.iter().map(|(host, _)| *host).collect();
            let (program, route) = (&spawning.order.program, spawning.route);
            let born = self
                .registry
                .add_tasks(spawning.parent(), &hosts, program, route);
            if spawning.order.orphans {
                self.registry.detach(born);
            }
            self.registry.notify_starts(born);
            self.lifecycle.tasks_added(&hosts);
            self.history.note_world(&world);
            for remote in self.remotes.iter_mut().filter(|remote| !remote.lost) {
                let world = world.clone();
                let _ = remote.send(&Order::Enter { world });
                waiting.insert(remote.number);
            }
        }
        spawning.step = Step::Entering(waiting);
        Some(spawning)
    }

    /// Has the hosts start their tasks.
    fn bear(&mut self, mut spawning: Spawning) -> Spawning {
        let number = spawning.number;
        let mut outcomes = Vec::new();
        for share in &spawning.shares {
            let (host, first, count) = (share.host, share.first, share.count);
            if !matches!(share.ready, Some(Ok(_))) {
                continue;
            }
            let birth = Birth {
                number,
                first,
                count,
            };
            let elsewhere = self.remote(host).is_some();
            match (&spawning.asker, &mut self.tasks) {
                (Asker::Caller { number, .. }, _) => {
                    let (task, caller) = (first, *number);
                    let order = Order::Admit { caller, task };
                    self.bear_at(host, birth, order, &mut outcomes);
                }
                _ if elsewhere => {
                    let order = Order::Bear {
                        birth: number,
                        first,
                        count,
                    };
                    self.bear_at(host, birth, order, &mut outcomes);
                }
                (Asker::Itself(newcomer), Some(tasks)) => {
                    outcomes.push((first, tasks.admit(first, newcomer)));
                }
                _ if self.starter.is_some() => {
                    outcomes.extend(self.have_started(birth, &spawning.order));
                }
                (_, Some(tasks)) => tasks.bear(birth),
                (_, None) => {}
            }
        }
        for (rank, started) in outcomes {
            self.note_born(rank, started.as_ref().ok());
            if let Step::Bearing(born) = &mut spawning.step {
                born.push((rank, started.map(|Started { rank, .. }| rank)));
            }
        }
        spawning
    }

    /// Nothing comes of it.
    fn refuse(&mut self, asker: Asker, refused: Refused) {
        match asker {
            Asker::Task { by, id } => self.registry.reply(by, id, Err(refused)),
            // Whoever comes too late sees the end of the job, and may begin the next one.
            Asker::Itself(newcomer) if self.lifecycle.is_ending() => self.late.push(newcomer),
            Asker::Caller { .. } if self.lifecycle.is_ending() => {}
            Asker::Itself(newcomer) => newcomer.arrival.refuse(refused.1),
            Asker::Caller { host, number } => {
                let (caller, sentence) = (number, refused.1);
                if let Some(remote) = self.remote(host) {
                    let _ = remote.send(&Order::TurnAway { caller, sentence });
                }
            }
        }
    }

    /// A task runs, or its number is nobody's.
    pub(super) fn note_born(&mut self, rank: u32, started: Option<&Started>) {
        match started {
            Some(started) => self.task_started(*started),
            None => {
                self.lifecycle.start_failed();
                self.tell_gone(rank, Some(Cause::Lost));
                self.registry.task_ended(rank, End::Lost);
            }
        }
    }

    /// Has another host do it, by this order.
    fn bear_at(&mut self, host: u32, birth: Birth, order: Order, outcomes: &mut Vec<Born>) {
        let Some(remote) = self.remote(host) else {
            return;
        };
        let ranks = birth.first..birth.first + birth.count;
        if remote.lost {
            let lost = || {
                (
                    Why::Host,
                    "the host was lost before it could start tasks".to_owned(),
                )
            };
            outcomes.extend(ranks.map(|rank| (rank, Err(lost()))));
            return;
        }
        remote.ranks.extend(ranks.clone());
        remote.unstarted.extend(ranks);
        remote.births += 1;
        remote.settled = false;
        let _ = remote.send(&order);
    }

    fn answer_spawn(&mut self, by: u32, id: u32, mut outcomes: Vec<Result<u32, Refused>>) {
        outcomes.sort_by_key(|outcome| outcome.as_ref().map_or(u32::MAX, |rank| *rank));
        let reason = outcomes.iter().find_map(|outcome| outcome.as_ref().err());
        let sentence = reason.map_or_else(String::new, |(_, sentence)| sentence.clone());
        let tasks = outcomes
            .into_iter()
            .map(|outcome| outcome.map_err(|(why, _)| why))
            .collect();
        self.registry.send(
            by,
            Tell::Spawned {
                id,
                tasks,
                sentence,
            },
        );
    }
}

impl Spawning {
    fn parent(&self) -> Option<u32> {
        match self.asker {
            Asker::Task { by, .. } => Some(self.order.on_behalf.unwrap_or(by)),
            _ => None,
        }
    }

    fn may_go_on(&self) -> bool {
        match &self.step {
            Step::Readying => self.shares.iter().all(|share| share.ready.is_some()),
            Step::Entering(hosts) => hosts.is_empty(),
            Step::Bearing(born) => {
                let ready = self
                    .shares
                    .iter()
                    .filter(|share| matches!(share.ready, Some(Ok(_))));
                let wanted: u32 = ready.map(|share| share.count).sum();
                born.len() as u32 >= wanted
            }
        }
    }
}
