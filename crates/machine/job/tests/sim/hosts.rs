//! A host that follows a launcher, or claims to be the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regatta_job::Ended;
use regatta_job::failover::{FailoverPlan, Follower, Handover};
use regatta_job::spawn::{Prepared, SpawnedTasks};
use regatta_wire::control::{Ask, RequestError, Route};
use regatta_wire::fields::Message;
use regatta_wire::life::Cause;
use regatta_wire::world::World;

use super::outputs::{Outputs, open_window};
use super::{Down, Life, Sim, Up, What};

/// The launcher at the other end of a host's channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// None: the daemon holds the channel, or the host leads.
    Nobody,
    /// One that has claimed the host, without an announcement yet.
    Claimed(usize),
    /// One that has announced that it leads.
    Called(usize),
    /// One that has requested this host's state.
    Leader(usize),
}

impl Owner {
    pub fn launcher(self) -> Option<usize> {
        match self {
            Owner::Nobody => None,
            Owner::Claimed(by) | Owner::Called(by) | Owner::Leader(by) => Some(by),
        }
    }
}

pub struct Host {
    pub life: Life,
    pub machine: u32,
    /// Whether it has joined the job.
    pub has_begun: bool,
    /// `None` if it leads, or claims to.
    pub follower: Option<Follower>,
    pub owner: Owner,
    /// Whether its daemon gives the channel to a launcher that claims it.
    pub claimable: bool,
    /// Whether its launcher has given it up while it was alive, and whether any launcher ever has.
    pub given_up: bool,
    pub was_given_up: bool,
    /// Its processes do not run until this time.
    pub frozen: Duration,
    /// The time in all for which they have not run.
    pub asleep: Duration,
    /// Whether it has been frozen, so that a launcher that claims may give it up.
    pub is_late: bool,
    /// Whether it has returned as another run after it was lost.
    pub is_back: bool,
    /// Tasks of other hosts that are gone according to its table.
    pub table: BTreeMap<u32, Option<Cause>>,
    /// Number of tasks in its table.
    pub entered: u32,
    /// Its tasks that are to be started.
    pub unstarted: BTreeSet<u32>,
    /// The routes for the output of prepared tasks, by spawn.
    pub prepared: BTreeMap<u32, Option<Route>>,
    /// The routes for the output of tasks that are to be started.
    pub routes: BTreeMap<u32, Option<Route>>,
    pub outputs: Outputs,
    /// Machines that its membership knows, and those of them that are silent or dead.
    pub known: BTreeSet<u32>,
    pub suspected: BTreeSet<u32>,
    pub dead: BTreeSet<u32>,
}

impl Host {
    /// Returns one of `hosts` hosts with two tasks each, led from host 0.
    pub fn new(number: u32, hosts: u32) -> Host {
        let follower = || Follower::new(FailoverPlan::default(), Duration::ZERO);
        Host {
            life: Life::Up,
            machine: number,
            has_begun: true,
            follower: (number > 0).then(follower),
            owner: if number > 0 {
                Owner::Leader(0)
            } else {
                Owner::Nobody
            },
            claimable: false,
            given_up: false,
            was_given_up: false,
            frozen: Duration::ZERO,
            asleep: Duration::ZERO,
            is_late: false,
            is_back: false,
            table: BTreeMap::new(),
            entered: 2 * hosts,
            unstarted: BTreeSet::new(),
            prepared: BTreeMap::new(),
            routes: BTreeMap::new(),
            outputs: Outputs::default(),
            known: (0..hosts).collect(),
            suspected: BTreeSet::new(),
            dead: BTreeSet::new(),
        }
    }

    /// Returns an arriving host, with this many tasks in its table.
    pub fn arriving(machine: u32, launcher: usize, entered: u32) -> Host {
        Host {
            machine,
            has_begun: false,
            owner: Owner::Leader(launcher),
            entered,
            known: BTreeSet::new(),
            ..Host::new(u32::MAX, 0)
        }
    }
}

impl Sim {
    pub fn life(&self, host: u32) -> Life {
        self.hosts[host as usize].life
    }

    pub fn follower(&mut self, host: u32) -> Option<&mut Follower> {
        self.hosts[host as usize].follower.as_mut()
    }

    /// Reports to the launcher that leads this host, if one does.
    fn report(&mut self, host: u32, message: Up) {
        if let Owner::Leader(launcher) = self.hosts[host as usize].owner {
            self.send_up(launcher, host, message);
        }
    }

    /// Sends a report of a host to its launcher, or handles it on the host that leads itself.
    fn report_or_handle(&mut self, host: u32, message: Up) {
        match (self.follower(host).is_some(), self.launcher_on(host)) {
            (true, _) => self.report(host, message),
            (false, Some(launcher)) => self.take_up(launcher, host, message),
            (false, None) => {}
        }
    }

    pub fn take_down(&mut self, launcher: usize, host: u32, message: Down) {
        let (now, run) = (self.now, self.run_on(self.launchers[launcher].host));
        let Some(follower) = self.hosts[host as usize].follower.as_mut() else {
            return;
        };
        match message {
            Down::Copy {
                change,
                bytes,
                last,
            } => {
                let taken = follower.replica.take_piece(change, &bytes, last);
                taken.expect("a snapshot or a change");
            }
            Down::Confirm {} => {
                if let Some(changes) = follower.replica.changes() {
                    self.report(host, Up::Applied { changes });
                }
            }
            Down::Message { task, bytes } => {
                let due = follower.local.note_message(task, &bytes);
                self.receive(task, &bytes);
                if let Some(count) = due {
                    self.report(host, Up::Received { task, count });
                }
            }
            Down::Gone { task, cause } => {
                follower.local.gone.push((task, cause));
                let table = &mut self.hosts[host as usize].table;
                table.entry(task).or_insert(cause);
            }
            Down::Order { order } => follower.set_order(order),
            Down::Lead {} => {
                follower.follow(&run);
                let own = &mut self.hosts[host as usize];
                (own.owner, own.claimable) = (Owner::Called(launcher), false);
                self.send_up(launcher, host, Up::Ready {});
            }
            Down::GaveUp {} => {
                follower.pass_over(now, &run);
                let leads = follower.leads();
                self.hosts[host as usize].owner = Owner::Nobody;
                self.close_channel(launcher, host);
                if leads {
                    self.lead(host);
                }
            }
            Down::AskState { changes } => self.hand_over(launcher, host, changes),
            message => self.take_order(launcher, host, message),
        }
    }

    /// Handles an order about tasks, or one to an arriving host.
    fn take_order(&mut self, launcher: usize, host: u32, message: Down) {
        match message {
            Down::Prepare {
                spawn,
                count,
                route,
            } => {
                let prepared = self.prepare(host, spawn, count, route);
                let refused = prepared.err();
                let prepared = Up::Prepared {
                    spawn,
                    count,
                    refused,
                };
                self.report(host, prepared);
            }
            Down::Enter { world } => {
                let first = world.first;
                self.enter(host, world);
                self.report(host, Up::Entered { first });
            }
            Down::Start {
                spawn,
                first,
                count,
            } => self.start(
                host,
                SpawnedTasks {
                    spawn,
                    first,
                    count,
                },
            ),
            Down::PrepareHost { id } => self.send_up(launcher, host, Up::HostPrepared { id }),
            Down::Begin {} => self.hosts[host as usize].has_begun = true,
            Down::Credit { bytes } => {
                self.hosts[host as usize]
                    .outputs
                    .window
                    .repaid(bytes as usize);
                self.pump(host);
            }
            Down::Taken { by, bytes } => self.received(host, by, bytes as usize),
            Down::Clock { by, id } => {
                let time = self.now.as_micros() as u64;
                self.report(host, Up::Clock { by, id, time });
            }
            message => unreachable!("{message:?}"),
        }
    }

    fn hand_over(&mut self, launcher: usize, host: u32, changes: u64) {
        let is_there = self.life(self.launchers[launcher].host) == Life::Up;
        let own = &mut self.hosts[host as usize];
        own.owner = Owner::Leader(launcher);
        own.given_up &= !is_there;
        let follower = own.follower.as_mut().expect("a follower");
        follower.adopt();
        let snapshot = follower.replica.later_snapshot(changes);
        let handover = self.handover(host);
        self.hosts[host as usize].outputs.window = open_window();
        self.send_up(launcher, host, Up::Handover { handover, snapshot });
        self.pump(host);
    }

    /// Returns the facts of a host that follows, or is about to lead.
    pub fn handover(&mut self, host: u32) -> Handover {
        let running = (0..).zip(&self.tasks);
        let running = running.filter(|(_, task)| task.host == host && task.runs());
        let running = running.map(|(number, _)| (number, 100 + number)).collect();
        let own = &mut self.hosts[host as usize];
        // Nothing is left of what the last launcher had prepared.
        own.prepared.clear();
        own.outputs.all_received();
        let local = &own.follower.as_ref().expect("a follower").local;
        Handover {
            host,
            tasks: own.entered,
            unstarted: own.unstarted.iter().copied().collect(),
            running,
            open_streams: own.outputs.open_streams(),
            ..local.handover()
        }
    }

    /// Lets a host prepare tasks, or refuse to.
    pub fn prepare(&mut self, host: u32, spawn: u32, count: u32, route: Option<Route>) -> Prepared {
        if self.random(8) == 0 {
            return Err((RequestError::Program, "there is no such program".to_owned()));
        }
        self.hosts[host as usize].prepared.insert(spawn, route);
        Ok(vec![None; count as usize])
    }

    /// Lets a host enter tasks into its table.
    pub fn enter(&mut self, host: u32, world: World) {
        let entered = self.hosts[host as usize].entered;
        self.note_wrong(entered < world.first, || {
            format!("host {host} has {entered} tasks and is to enter {world:?}")
        });
        if entered == world.first {
            self.hosts[host as usize].entered += world.places.len() as u32;
            if let Some(follower) = self.follower(host) {
                follower.local.worlds.push(world);
            }
        }
    }

    /// Orders a host to start tasks, which it does one after the other.
    pub fn start(&mut self, host: u32, tasks: SpawnedTasks) {
        let prepared = &mut self.hosts[host as usize].prepared;
        let route = prepared.remove(&tasks.spawn).flatten();
        for task in tasks.tasks() {
            self.hosts[host as usize].unstarted.insert(task);
            self.hosts[host as usize].routes.insert(task, route);
            let at = self.after(0, 20);
            self.at(at, What::Start(task));
        }
    }

    pub fn start_task(&mut self, task: u32) {
        let Some(host) = self.tasks.get(task as usize).map(|task| task.host) else {
            return;
        };
        if self.life(host) == Life::Gone || !self.hosts[host as usize].unstarted.remove(&task) {
            return;
        }
        let outcome = match self.random(8) {
            0 => Err((
                RequestError::System,
                "there is no process for it".to_owned(),
            )),
            _ => Ok(()),
        };
        self.tasks[task as usize].started = outcome.is_ok();
        if outcome.is_ok() {
            let own = &mut self.hosts[host as usize];
            let route = own.routes.remove(&task).flatten();
            own.outputs.task_started(task, route);
        }
        let refused = outcome.err();
        self.report_or_handle(host, Up::Started { task, refused });
    }

    /// Makes a request of a task.
    pub fn request(&mut self, task: u32, request: &Ask) {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        let host = self.tasks[task as usize].host;
        if let Some(follower) = self.follower(host) {
            follower.local.note_request(task, &bytes);
        }
        self.report_or_handle(host, Up::Request { task, bytes });
    }

    /// Ends a task.
    pub fn end(&mut self, ended: Ended) {
        let host = self.tasks[ended.rank as usize].host;
        self.tasks[ended.rank as usize].end_now(self.now, ended.end);
        self.pass_last_output(ended.rank);
        if let Some(follower) = self.follower(host) {
            follower.local.note_ended(ended);
        }
        self.report_or_handle(host, Up::Ended { ended });
    }
}
