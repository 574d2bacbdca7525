//! The hosts' part in spawns: carries out what [`regatta_job::Spawns`] decides, on this host by its worker and on
//! others by orders to agents.

use std::net::SocketAddr;

use regatta_job::End;
use regatta_job::SpawnEffect;
use regatta_job::registry::Refused;
use regatta_job::spawn::{Prepared, SpawnedTasks};
use regatta_wire::control::{RequestError, Spawn};
use regatta_wire::life::Cause;
use regatta_wire::world::World;

use super::Supervisor;
use crate::channel::messages::Order;
use crate::tasks::Started;
use crate::tasks::prepared::StartOutcome;

impl Supervisor<'_> {
    /// Handles a task's request for tasks.
    pub(super) fn spawn(&mut self, by: u32, id: u32, order: Spawn) {
        let (registry, lifecycle) = (&mut self.registry, &mut self.lifecycle);
        self.spawns.request((by, id), order, registry, lifecycle);
        self.advance_spawns();
    }

    /// Handles a process (host, number on that host) that wants to become a task and will listen at this address.
    pub(super) fn join(
        &mut self,
        process: (u32, u32),
        program: Vec<u8>,
        address: Option<SocketAddr>,
    ) {
        let (registry, lifecycle) = (&self.registry, &mut self.lifecycle);
        let order = Spawn::one_here(program);
        self.spawns
            .join(process, order, address, registry, lifecycle);
        self.advance_spawns();
    }

    /// Handles that a host has prepared tasks, or cannot.
    pub(super) fn spawn_prepared(&mut self, host: u32, spawn: u32, prepared: Prepared) {
        self.spawns.prepared(host, spawn, prepared);
        self.advance_spawns();
    }

    /// Handles that a host has entered tasks into its table, or cannot. Fails with the reason if the host must be given
    /// up.
    pub(super) fn spawn_entered(
        &mut self,
        host: u32,
        first: u32,
        refused: Option<Refused>,
    ) -> Result<(), String> {
        let unheard = self.spawns.entered(host, first, refused);
        self.advance_spawns();
        unheard.map_or(Ok(()), |(_, sentence)| Err(sentence))
    }

    /// Handles that a spawned task has been started, or could not be.
    pub(super) fn spawn_started(&mut self, outcome: StartOutcome) {
        self.note_outcome(outcome);
        self.advance_spawns();
    }

    /// Handles that tasks which were to start on a host never will.
    pub(super) fn spawns_lose(&mut self, host: u32, unstarted: &[u32]) {
        self.spawns.host_lost(host, unstarted);
        self.advance_spawns();
    }

    /// Refuses all spawns, because no more tasks are started.
    pub(super) fn end_spawns(&mut self) {
        self.spawns.end(&mut self.registry, &mut self.lifecycle);
        self.advance_spawns();
    }

    fn advance_spawns(&mut self) {
        while let Some(effect) = self.spawns.poll(&mut self.registry, &mut self.lifecycle) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: SpawnEffect) {
        match effect {
            SpawnEffect::Prepare { spawn, host, count } => self.have_prepared(host, spawn, count),
            SpawnEffect::EnterHere { spawn, world } => {
                let entered = self.worker.tasks.as_mut().map(|tasks| tasks.enter(&world));
                let outcome = entered.unwrap_or(Ok(()));
                let outcome = outcome.map_err(|error| (RequestError::Memory, error.to_string()));
                let (registry, lifecycle) = (&mut self.registry, &mut self.lifecycle);
                self.spawns
                    .entered_here(spawn, outcome, registry, lifecycle);
            }
            SpawnEffect::EnterElsewhere { spawn, world } => self.have_entered(spawn, &world),
            SpawnEffect::Start { host, share } => self.have_started(host, share),
            SpawnEffect::Admit {
                host,
                process,
                task,
            } => self.have_admitted(host, process, task),
            SpawnEffect::Abandon { host, share } => self.abandon(host, share),
            SpawnEffect::Forget { spawn, host } => {
                let (first, count) = (u32::MAX, 0);
                let share = SpawnedTasks {
                    spawn,
                    first,
                    count,
                };
                let _ = self.order(host, Order::StartSpawn { share });
            }
            SpawnEffect::TurnAway {
                host,
                process,
                refused,
            } => self.turn_away(host, process, refused),
        }
    }

    fn have_prepared(&mut self, host: u32, spawn: u32, count: u32) {
        let Some((order, route)) = self.spawns.order(spawn) else {
            return;
        };
        let mut order = order.clone();
        if let Some(remote) = self.peers.get(host) {
            // The host's own settings take precedence over those of the requesting task.
            if let Some(programs) = &remote.settings.programs {
                order.search = Some(programs.clone().into_bytes());
            }
            if let (Some(through), Some(debugger)) = (&mut order.through, &remote.settings.debugger)
            {
                *through = debugger.clone().into_bytes();
            }
        }
        let order = Order::PrepareSpawn {
            spawn,
            count,
            order,
            route,
        };
        if let Err(refusal) = self.order(host, order) {
            let refused = Err((RequestError::Memory, refusal.sentence));
            self.spawns.prepared(host, spawn, refused);
        }
    }

    fn have_entered(&mut self, spawn: u32, world: &World) {
        let hosts = self.peers.enter(world);
        self.spawns.entering(spawn, hosts);
    }

    fn have_started(&mut self, host: u32, share: SpawnedTasks) {
        if self.starters.is_set() && self.peers.get(host).is_none() {
            let outcomes = self.start_by_starter(share);
            return outcomes
                .into_iter()
                .for_each(|outcome| self.note_outcome(outcome));
        }
        self.order_start(host, share, Order::StartSpawn { share });
    }

    fn have_admitted(&mut self, host: u32, process: u32, task: u32) {
        let share = SpawnedTasks {
            spawn: 0,
            first: task,
            count: 1,
        };
        let caller = process;
        self.order_start(host, share, Order::Admit { caller, task });
    }

    /// Has a host start tasks, by this order.
    fn order_start(&mut self, host: u32, share: SpawnedTasks, order: Order) {
        let remote = self.peers.get_mut(host);
        if let Some(lost) = remote.as_ref().filter(|remote| remote.lost) {
            let sentence = format!(
                "the host {} was lost before it could start tasks, so none of them runs there; start them on another host",
                lost.name
            );
            let lost = || (RequestError::Host, sentence.clone());
            return share
                .tasks()
                .for_each(|task| self.note_outcome((task, Err(lost()))));
        }
        if let Some(remote) = remote {
            remote.ranks.extend(share.tasks());
            remote.unstarted.extend(share.tasks());
            remote.starts += 1;
            remote.settled = false;
        }
        let _ = self.order(host, order);
    }

    /// Has a host forget tasks that have numbers.
    fn abandon(&mut self, host: u32, share: SpawnedTasks) {
        let none = SpawnedTasks { count: 0, ..share };
        let _ = self.order(host, Order::StartSpawn { share: none });
        share.tasks().for_each(|task| self.never_started(task));
    }

    fn turn_away(&mut self, host: u32, caller: u32, (_, sentence): Refused) {
        // A process that is refused now notices the end of the job, and may start the next one.
        if !self.lifecycle.is_ending() {
            let _ = self.order(host, Order::TurnAway { caller, sentence });
        }
    }

    /// Records that a task of a spawn runs, or that its number will not be used.
    fn note_outcome(&mut self, (task, outcome): StartOutcome) {
        match &outcome {
            Ok(started) => self.task_started(*started),
            Err(_) => self.never_started(task),
        }
        self.spawns.started(task, outcome.map(|Started { .. }| ()));
    }

    /// Records that a task with a number will not start.
    pub(super) fn never_started(&mut self, task: u32) {
        self.lifecycle.start_failed();
        self.notify_gone(task, Some(Cause::Lost));
        self.registry.task_ended(task, End::Lost);
    }
}
