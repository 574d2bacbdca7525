//! The launcher's part in spawns: it carries out what [`regatta_job::Spawns`] decides.

use std::collections::BTreeMap;

use regatta_job::registry::Refused;
use regatta_job::spawn::SpawnedTasks;
use regatta_job::{End, SpawnEffect};
use regatta_wire::control::RequestError;
use regatta_wire::life::Cause;
use regatta_wire::world::World;

use super::tasks::Task;
use super::{Down, Life, Sim};

impl Sim {
    pub fn advance_spawns(&mut self, launcher: usize) {
        loop {
            let leader = &mut self.launchers[launcher];
            let (registry, lifecycle) = (&mut leader.registry, &mut leader.lifecycle);
            let Some(effect) = leader.spawns.poll(registry, lifecycle) else {
                return;
            };
            // Nothing sent by a launcher that is cut off arrives.
            if self.life(self.launchers[launcher].host) != Life::Up {
                return;
            }
            self.carry_out(launcher, effect);
        }
    }

    fn carry_out(&mut self, launcher: usize, effect: SpawnEffect) {
        let leader = &self.launchers[launcher];
        let own = leader.host;
        match effect {
            SpawnEffect::Prepare { spawn, host, count } => {
                let route = leader.spawns.order(spawn).and_then(|(_, route)| route);
                if leader.remotes.contains_key(&host) {
                    let prepare = Down::Prepare {
                        spawn,
                        count,
                        route,
                    };
                    return self.send_down(launcher, host, prepare);
                }
                let prepared = self.prepare(host, spawn, count, route);
                let spawns = &mut self.launchers[launcher].spawns;
                spawns.prepared(host, spawn, prepared);
            }
            SpawnEffect::EnterHere { spawn, world } => {
                let has_room = self.random(16) > 0;
                let refused = || (RequestError::Memory, "there is no room".to_owned());
                if has_room {
                    self.number(&world);
                    self.enter(own, world);
                }
                let leader = &mut self.launchers[launcher];
                let (registry, lifecycle) = (&mut leader.registry, &mut leader.lifecycle);
                let outcome = has_room.then_some(()).ok_or_else(refused);
                leader
                    .spawns
                    .entered_here(spawn, outcome, registry, lifecycle);
            }
            SpawnEffect::EnterElsewhere { spawn, world } => {
                let leader = &mut self.launchers[launcher];
                leader.worlds.push(world.clone());
                let hosts: Vec<u32> = leader.remotes.keys().copied().collect();
                for host in &hosts {
                    let world = world.clone();
                    self.send_down(launcher, *host, Down::Enter { world });
                }
                self.launchers[launcher].spawns.entering(spawn, hosts);
            }
            SpawnEffect::Start { host, share } => self.have_started(launcher, host, share),
            SpawnEffect::Abandon { share, .. } => {
                share
                    .tasks()
                    .for_each(|task| self.never_started(launcher, task));
            }
            SpawnEffect::Forget { .. } => {}
            SpawnEffect::Admit { .. } | SpawnEffect::TurnAway { .. } => {
                unreachable!("no process joins")
            }
        }
    }

    /// Assigns numbers to tasks. No host that is left may know these numbers as those of other tasks.
    fn number(&mut self, world: &World) {
        let first = world.first as usize;
        let taken = self.tasks.get(first..).unwrap_or_default();
        let known = taken
            .iter()
            .any(|task| task.started && self.life(task.host) == Life::Up);
        if known {
            let twice = format!("numbers from {first} on are given twice");
            self.wrong.get_or_insert(twice);
        }
        self.tasks.truncate(first);
        let places = world.places.iter();
        let request = world.request;
        let new = places.map(|(host, _)| Task::new(*host, request));
        let lives: BTreeMap<u32, Life> = (0..)
            .zip(&self.hosts)
            .map(|(n, host)| (n, host.life))
            .collect();
        self.tasks.extend(new.map(|task| Task {
            // The launcher does not know yet that the host is lost.
            end: (lives[&task.host] == Life::Gone).then_some(End::Lost),
            ..task
        }));
    }

    fn have_started(&mut self, launcher: usize, host: u32, tasks: SpawnedTasks) {
        let leader = &mut self.launchers[launcher];
        if host == leader.host {
            return self.start(host, tasks);
        }
        let Some(remote) = leader.remotes.get_mut(&host) else {
            let lost = || (RequestError::Host, "the host is lost".to_owned());
            return tasks
                .tasks()
                .for_each(|task| self.note_outcome(launcher, task, Err(lost())));
        };
        remote.unstarted.extend(tasks.tasks());
        let SpawnedTasks {
            spawn,
            first,
            count,
        } = tasks;
        self.send_down(
            launcher,
            host,
            Down::Start {
                spawn,
                first,
                count,
            },
        );
    }

    pub fn note_outcome(&mut self, launcher: usize, task: u32, outcome: Result<(), Refused>) {
        match outcome {
            Ok(()) => {
                let leader = &mut self.launchers[launcher];
                leader.lifecycle.task_started();
                leader.registry.task_started(task, 100 + task);
            }
            Err(_) => self.never_started(launcher, task),
        }
        self.launchers[launcher].spawns.started(task, outcome);
    }

    pub fn never_started(&mut self, launcher: usize, task: u32) {
        let leader = &mut self.launchers[launcher];
        leader.lifecycle.start_failed();
        if self.life(self.launchers[launcher].host) == Life::Up {
            self.tasks[task as usize].end_now(self.now, End::Lost);
        }
        self.notify_gone(launcher, task, Some(Cause::Lost));
        let registry = &mut self.launchers[launcher].registry;
        registry.task_ended(task, End::Lost);
    }
}
