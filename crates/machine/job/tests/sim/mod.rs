//! A job on simulated hosts: one clock that jumps from event to event, and every choice drawn from one seed.
//!
//! The registry, its replicas and the failover decisions are the real ones, with real encodings. Channels deliver in order, each with delays
//! of its own. The membership is an oracle: it knows who is lost, tells each host so late and at different times, and never takes it back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use regatta_job::Ended;
use regatta_job::failover::{
    FailoverPlan, Follower, Handover, HostState, MembershipView, SuccessionOrder,
};
use regatta_job::registry::Refused;
use regatta_job::spawn::{Prepared, SpawnedTasks};
use regatta_wire::control::{Ask, Why};
use regatta_wire::fields::Message;
use regatta_wire::life::Cause;
use regatta_wire::world::World;

pub mod check;
pub mod launcher;
mod spawning;
pub mod tasks;

use launcher::Launcher;
use tasks::Task;

/// From a launcher to a host.
#[derive(Clone, Debug)]
pub enum Down {
    Copy { change: bool, bytes: Vec<u8> },
    Confirm,
    Message { task: u32, bytes: Vec<u8> },
    Gone { task: u32, cause: Option<Cause> },
    Order(SuccessionOrder),
    Lead { changes: u64 },
    Prepare { spawn: u32, count: u32 },
    Enter { world: World },
    Start { tasks: SpawnedTasks },
}

/// From a host to its launcher.
#[derive(Clone, Debug)]
pub enum Up {
    Request {
        task: u32,
        bytes: Vec<u8>,
    },
    Received {
        task: u32,
        count: u32,
    },
    Applied {
        changes: u64,
    },
    Ended(Ended),
    Prepared {
        spawn: u32,
        prepared: Prepared,
    },
    Entered {
        first: u32,
    },
    Started {
        task: u32,
        outcome: Result<(), Refused>,
    },
    Handover(Box<Handover>, Vec<World>, Option<Vec<u8>>),
}

/// An event. Launchers are given by their place in [`Sim::launchers`].
#[derive(Debug)]
enum What {
    Down(usize, u32, Down),
    Up(usize, u32, Up),
    /// A new launcher claims a host whose owner is lost.
    Claim(usize, u32),
    /// A new launcher waits no longer for a host.
    Late(usize, u32),
    /// A host that may not lead claims no more hosts.
    Withdraw(usize),
    /// A host hears of another one from the membership.
    Learn {
        host: u32,
        of: u32,
        gone: bool,
    },
    /// A host that is cut off sees no majority, and stops.
    Stop(u32),
    /// A host that was given up hears nothing of a launcher for so long that it stops.
    LosePatience(u32),
    /// A host starts a task that it has prepared.
    Start(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Up,
    /// It runs, and nothing gets to it or from it.
    Cut,
    Gone,
}

pub struct Host {
    pub life: Life,
    /// None: it leads.
    pub follower: Option<Follower>,
    /// The launcher whose channel is open here.
    led_by: Option<usize>,
    /// The launcher that has claimed the channel, and does not lead yet.
    claimed_by: Option<usize>,
    /// A launcher has given it up while it was alive.
    pub given_up: bool,
    /// Tasks of other hosts that are gone by its table.
    pub table: BTreeMap<u32, Option<Cause>>,
    /// So many tasks are in its table.
    pub entered: u32,
    /// Its own tasks that are to start.
    pub unstarted: BTreeSet<u32>,
    suspected: BTreeSet<u32>,
    dead: BTreeSet<u32>,
}

pub struct Sim {
    pub now: Duration,
    pub hosts: Vec<Host>,
    pub tasks: Vec<Task>,
    /// All that have led, the first one first.
    pub launchers: Vec<Launcher>,
    /// When the last message on a channel arrives: (launcher, host, whether it goes up).
    arrivals: BTreeMap<(usize, u32, bool), Duration>,
    /// By time, and then in the order in which they were put in.
    queue: BTreeMap<(Duration, u64), What>,
    order: u64,
    rng: SmallRng,
    /// The longest delay of a message, in milliseconds.
    pub slowest: u64,
    /// The first thing that was wrong at the time it happened.
    pub wrong: Option<String>,
}

/// A host that may not lead has so long to say so to those that wait for it.
const WITHDRAWAL: Duration = Duration::from_secs(3);

pub fn run_of(host: u32) -> String {
    format!("r{host}")
}

impl Sim {
    /// So many hosts with two tasks each, led from host 0, after all is told.
    pub fn begun(seed: u64, hosts: u32) -> Sim {
        let follower = || Follower::new(FailoverPlan::default(), Duration::ZERO);
        let host = |number: u32| Host {
            life: Life::Up,
            follower: (number > 0).then(follower),
            led_by: (number > 0).then_some(0),
            claimed_by: None,
            given_up: false,
            table: BTreeMap::new(),
            entered: 2 * hosts,
            unstarted: BTreeSet::new(),
            suspected: BTreeSet::new(),
            dead: BTreeSet::new(),
        };
        let mut sim = Sim {
            now: Duration::ZERO,
            hosts: (0..hosts).map(host).collect(),
            tasks: (0..2 * hosts)
                .map(|task| Task::new(task % hosts, None))
                .collect(),
            launchers: vec![Launcher::first(hosts)],
            arrivals: BTreeMap::new(),
            queue: BTreeMap::new(),
            order: 0,
            rng: SmallRng::seed_from_u64(seed),
            slowest: 5,
            wrong: None,
        };
        sim.hosts_changed(0);
        sim.settle();
        sim
    }

    pub fn random(&mut self, below: u64) -> u64 {
        self.rng.random_range(0..below.max(1))
    }

    fn after(&mut self, least: u64, most: u64) -> Duration {
        self.now + Duration::from_micros(1000 * least + self.random(1000 * (most - least) + 1))
    }

    fn at(&mut self, at: Duration, what: What) {
        self.order += 1;
        self.queue.insert((at, self.order), what);
    }

    /// When a message that is sent now arrives, behind those before it.
    fn arrival(&mut self, launcher: usize, host: u32, up: bool) -> Duration {
        let at = self.after(0, self.slowest);
        let last = self.arrivals.entry((launcher, host, up)).or_default();
        *last = at.max(*last);
        *last
    }

    pub fn send_down(&mut self, launcher: usize, host: u32, message: Down) {
        let at = self.arrival(launcher, host, false);
        self.at(at, What::Down(launcher, host, message));
    }

    fn send_up(&mut self, host: u32, message: Up) {
        if let Some(launcher) = self.hosts[host as usize].led_by {
            let at = self.arrival(launcher, host, true);
            self.at(at, What::Up(launcher, host, message));
        }
    }

    pub fn life(&self, host: u32) -> Life {
        self.hosts[host as usize].life
    }

    /// Whether a host is neither lost nor given up.
    pub fn is_of_job(&self, host: u32) -> bool {
        self.life(host) == Life::Up && !self.hosts[host as usize].given_up
    }

    fn connected(&self, a: u32, b: u32) -> bool {
        self.life(a) == Life::Up && self.life(b) == Life::Up
    }

    /// Until nothing more happens by itself, or so long.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(next) = self
            .queue
            .first_entry()
            .filter(|next| next.key().0 <= until)
        {
            let ((at, _), what) = next.remove_entry();
            self.now = at;
            self.happen(what);
        }
        self.now = until;
    }

    pub fn settle(&mut self) {
        let mut steps = 0;
        while let Some(((at, _), what)) = self.queue.pop_first() {
            self.now = at;
            self.happen(what);
            steps += 1;
            assert!(steps < 1_000_000, "this never ends");
        }
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Down(launcher, host, message) => {
                let from = self.launchers[launcher].host;
                let open = self.hosts[host as usize].led_by == Some(launcher);
                if open && self.connected(from, host) {
                    self.take_down(host, message);
                }
            }
            What::Up(launcher, host, message) => {
                let to = self.launchers[launcher].host;
                if self.connected(to, host) {
                    self.take_up(launcher, host, message);
                }
            }
            What::Claim(launcher, host) => self.claim(launcher, host),
            What::Withdraw(launcher) => self.withdraw(launcher),
            What::Late(launcher, host) => self.give_up_late(launcher, host),
            What::Learn { host, of, gone } => self.learn(host, of, gone),
            What::Stop(host) => self.stop(host),
            What::LosePatience(host) if self.hosts[host as usize].given_up => self.stop(host),
            What::LosePatience(_) => {}
            What::Start(task) => self.start_task(task),
        }
    }

    /// The hosts and launchers as they are, for a failed check.
    pub fn sketch(&self) -> String {
        let host = |(number, host): (u32, &Host)| {
            let owner = host.follower.as_ref().map(Follower::is_without_owner);
            let (dead, suspected) = (&host.dead, &host.suspected);
            format!(
                "\n{number}: {:?}, led by {:?}, without owner: {owner:?}, dead: {dead:?}, suspected: {suspected:?}",
                host.life, host.led_by
            )
        };
        let hosts: String = (0..).zip(&self.hosts).map(host).collect();
        let launcher = |one: &Launcher| format!("\nlauncher on {}: {}", one.host, one.state());
        hosts + &self.launchers.iter().map(launcher).collect::<String>()
    }

    fn follower(&mut self, host: u32) -> Option<&mut Follower> {
        self.hosts[host as usize].follower.as_mut()
    }

    fn take_down(&mut self, host: u32, message: Down) {
        let Some(follower) = self.follower(host) else {
            return;
        };
        match message {
            Down::Copy { change, bytes } => {
                let taken = follower.replica.take_piece(change, &bytes, true);
                taken.expect("a snapshot or a change");
            }
            Down::Confirm => {
                if let Some(changes) = follower.replica.changes() {
                    self.send_up(host, Up::Applied { changes });
                }
            }
            Down::Message { task, bytes } => {
                let due = follower.local.note_message(task, &bytes);
                self.receive(task, &bytes);
                if let Some(count) = due {
                    self.send_up(host, Up::Received { task, count });
                }
            }
            Down::Gone { task, cause } => {
                follower.local.gone.push((task, cause));
                let table = &mut self.hosts[host as usize].table;
                table.entry(task).or_insert(cause);
            }
            Down::Order(order) => follower.set_order(order),
            Down::Lead { changes } => {
                follower.adopt();
                let snapshot = follower.replica.later_snapshot(changes);
                let handover = self.handover(host);
                let worlds = self.worlds(host);
                self.send_up(host, Up::Handover(Box::new(handover), worlds, snapshot));
            }
            Down::Prepare { spawn, count } => {
                let prepared = self.prepare(count);
                self.send_up(host, Up::Prepared { spawn, prepared });
            }
            Down::Enter { world } => {
                let first = world.first;
                self.enter(host, world);
                self.send_up(host, Up::Entered { first });
            }
            Down::Start { tasks } => self.start(host, tasks),
        }
    }

    /// The facts of a host that follows, or has just begun to lead.
    pub fn handover(&mut self, host: u32) -> Handover {
        let running = (0..).zip(&self.tasks);
        let running = running.filter(|(_, task)| task.host == host && task.runs());
        let running = running.map(|(number, _)| (number, 100 + number)).collect();
        let own = &self.hosts[host as usize];
        let (tasks, unstarted) = (own.entered, own.unstarted.iter().copied().collect());
        let local = &self.follower(host).expect("a follower").local;
        Handover {
            host,
            tasks,
            unstarted,
            running,
            ended: local.ended.clone(),
            received: local.received_counts(),
            gone: local.gone.clone(),
            open_streams: Vec::new(),
            silent: Vec::new(),
            requests: local.unanswered(),
        }
    }

    /// The worlds that a follower has in its table, but for those that the job began with.
    pub fn worlds(&mut self, host: u32) -> Vec<World> {
        let local = &self.follower(host).expect("a follower").local;
        local.worlds.clone()
    }

    /// A host can prepare tasks, or not.
    pub fn prepare(&mut self, count: u32) -> Prepared {
        match self.random(8) {
            0 => Err((Why::Program, "there is no such program".to_owned())),
            _ => Ok(vec![None; count as usize]),
        }
    }

    /// A host enters tasks into its table.
    pub fn enter(&mut self, host: u32, world: World) {
        let entered = &mut self.hosts[host as usize].entered;
        if *entered < world.first {
            let early = format!("host {host} has {entered} tasks and is to enter {world:?}");
            self.wrong.get_or_insert(early);
        } else if *entered == world.first {
            *entered += world.places.len() as u32;
            if let Some(follower) = self.follower(host) {
                follower.local.worlds.push(world);
            }
        }
    }

    /// A host is to start tasks, and does so by and by.
    pub fn start(&mut self, host: u32, tasks: SpawnedTasks) {
        for task in tasks.tasks() {
            self.hosts[host as usize].unstarted.insert(task);
            let at = self.after(0, 20);
            self.at(at, What::Start(task));
        }
    }

    fn start_task(&mut self, task: u32) {
        let Some(host) = self.tasks.get(task as usize).map(|task| task.host) else {
            return;
        };
        if self.life(host) == Life::Gone || !self.hosts[host as usize].unstarted.remove(&task) {
            return;
        }
        let outcome = match self.random(8) {
            0 => Err((Why::System, "there is no process for it".to_owned())),
            _ => Ok(()),
        };
        self.tasks[task as usize].started = outcome.is_ok();
        let started = Up::Started { task, outcome };
        match (self.follower(host).is_some(), self.launcher_on(host)) {
            (true, _) => self.send_up(host, started),
            (false, Some(launcher)) => self.take_up(launcher, host, started),
            (false, None) => {}
        }
    }

    /// A task makes a request.
    pub fn request(&mut self, task: u32, request: &Ask) {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        let host = self.tasks[task as usize].host;
        match self.follower(host) {
            Some(follower) => {
                follower.local.note_request(task, &bytes);
                self.send_up(host, Up::Request { task, bytes });
            }
            None => {
                if let Some(launcher) = self.launcher_on(host) {
                    self.take_up(launcher, host, Up::Request { task, bytes });
                }
            }
        }
    }

    /// A task ends.
    pub fn end(&mut self, ended: Ended) {
        let host = self.tasks[ended.rank as usize].host;
        self.tasks[ended.rank as usize].end = Some(ended.end);
        match self.follower(host) {
            Some(follower) => {
                follower.local.note_ended(ended);
                self.send_up(host, Up::Ended(ended));
            }
            None => {
                if let Some(launcher) = self.launcher_on(host) {
                    self.take_up(launcher, host, Up::Ended(ended));
                }
            }
        }
    }

    /// A host is lost: all of it at once, or the network around it. The others hear of it by and by.
    pub fn lose(&mut self, host: u32, life: Life) {
        self.hosts[host as usize].life = life;
        match life {
            Life::Cut => {
                let at = self.after(1000, 3000);
                self.at(at, What::Stop(host));
            }
            _ => self.stop(host),
        }
        for other in 0..self.hosts.len() as u32 {
            if self.life(other) == Life::Up {
                let of = host;
                for (gone, least, most) in [(false, 300, 1000), (true, 2000, 3000)] {
                    let at = self.after(least, most);
                    let host = other;
                    self.at(at, What::Learn { host, of, gone });
                }
            }
        }
    }

    pub fn stop(&mut self, host: u32) {
        self.hosts[host as usize].life = Life::Gone;
        for task in self.tasks.iter_mut().filter(|task| task.host == host) {
            task.end.get_or_insert(regatta_job::End::Lost);
        }
    }

    /// Whether a host can be lost now: a minority of those that have agreed on each other is, and what tasks were told is known elsewhere.
    /// (With the launcher's host and the only one that has confirmed a change at the same time the job loses that change.)
    pub fn can_lose(&self, host: u32) -> bool {
        let of_job = |host: &u32| self.is_of_job(*host);
        let left = (0..self.hosts.len() as u32).filter(of_job).count();
        // Hosts that some still count.
        let known = |host: &Host| self.hosts.len() - host.dead.len();
        let counted = self
            .hosts
            .iter()
            .filter(|host| host.life == Life::Up)
            .map(known)
            .max()
            .unwrap_or(0);
        let others = (0..self.hosts.len() as u32).filter(|other| *other != host);
        let mut others = others.filter(of_job);
        2 * (left - 1) > counted && others.any(|other| self.knows_all_confirmed(other))
    }

    /// Whether a host has applied every change that any launcher had confirmed.
    fn knows_all_confirmed(&self, host: u32) -> bool {
        let replica = match &self.hosts[host as usize].follower {
            Some(follower) => follower.replica.changes(),
            None => self
                .launcher_on(host)
                .map(|at| self.launchers[at].registry.changes()),
        };
        let confirmed = self.launchers.iter().map(|one| one.confirmed);
        let confirmed = confirmed.max().unwrap_or(0);
        replica.is_some_and(|changes| changes >= confirmed)
    }

    fn view(&self, host: u32) -> MembershipView {
        let own = &self.hosts[host as usize];
        let all = 0..self.hosts.len() as u32;
        let left = all.filter(|other| !own.dead.contains(other));
        let state = |other: &u32| match own.suspected.contains(other) {
            true => HostState::Suspected,
            false => HostState::Alive,
        };
        MembershipView {
            own: Some(run_of(host)),
            left: left.map(|other| (run_of(other), state(&other))).collect(),
            hindrance: None,
        }
    }

    fn learn(&mut self, host: u32, of: u32, gone: bool) {
        let knows = &mut self.hosts[host as usize];
        if knows.life != Life::Up {
            return;
        }
        match gone {
            true => knows.dead.insert(of),
            false => knows.suspected.insert(of),
        };
        let (now, view) = (self.now, self.view(host));
        match self.follower(host) {
            Some(follower) => {
                follower.handle_membership(now, view);
                let lost = follower.has_lost_owner(now);
                let leads = follower.leads();
                if lost {
                    self.hosts[host as usize].led_by = None;
                }
                if leads {
                    self.lead(host);
                }
            }
            None => {
                if let Some(launcher) = self.launcher_on(host).filter(|_| gone) {
                    self.give_up_host(launcher, of);
                }
            }
        }
    }

    /// A launcher reaches a host whose owner is lost, or tries again.
    fn claim(&mut self, launcher: usize, host: u32) {
        let from = self.launchers[launcher].host;
        if !self.connected(from, host) {
            return;
        }
        let claimed = self.hosts[host as usize].claimed_by;
        let is_free = claimed.is_none_or(|by| self.life(self.launchers[by].host) != Life::Up);
        let Some(successors) = self.waiting_for(host).filter(|_| is_free) else {
            let at = self.after(50, 100);
            return self.at(at, What::Claim(launcher, host));
        };
        if !successors.contains(&run_of(from)) {
            // The launcher that was lost had given it up.
            let rejoin = self.launchers[launcher].rejoin.as_mut();
            rejoin.expect("it does not lead yet").is_refused = true;
            let at = self.now + WITHDRAWAL;
            self.at(at, What::Withdraw(launcher));
        }
        self.hosts[host as usize].claimed_by = Some(launcher);
        self.call_if_all_are_claimed(launcher);
    }

    /// The hosts that may take over a host whose owner is lost, also one that has begun to lead itself.
    fn waiting_for(&self, host: u32) -> Option<Vec<String>> {
        let Some(follower) = &self.hosts[host as usize].follower else {
            let at = self.launcher_on(host)?;
            return Some(self.launchers[at].successors.clone());
        };
        let waits = follower.is_without_owner();
        waits.then(|| follower.successors().map(str::to_owned).collect())
    }

    /// A new launcher waits no longer for a host that has not come.
    fn give_up_late(&mut self, launcher: usize, host: u32) {
        let one = &self.launchers[launcher];
        let mut awaited = one.rejoin.iter().flat_map(|rejoin| &rejoin.awaited);
        if self.life(one.host) == Life::Up && awaited.any(|awaited| *awaited == host) {
            self.stop(host);
            self.give_up_host(launcher, host);
        }
    }

    /// A launcher says to all hosts that it leads, when it has claimed every one that is left.
    pub fn call_if_all_are_claimed(&mut self, launcher: usize) {
        let one = &self.launchers[launcher];
        let (from, changes) = (one.host, one.registry.changes());
        let awaited = one.rejoin.iter().flat_map(|rejoin| &rejoin.awaited);
        let awaited: Vec<u32> = awaited.copied().collect();
        let claimed = |host: &u32| self.hosts[*host as usize].claimed_by == Some(launcher);
        if !awaited.iter().all(claimed) {
            return;
        }
        if one.rejoin.as_ref().is_some_and(|rejoin| rejoin.is_refused) {
            return self.withdraw(launcher);
        }
        for host in awaited {
            let here = &mut self.hosts[host as usize];
            if here.led_by == Some(launcher) {
                continue;
            }
            here.led_by = Some(launcher);
            here.given_up = false;
            if let Some(follower) = self.follower(host) {
                follower.follow(&run_of(from));
            }
            self.send_down(launcher, host, Down::Lead { changes });
        }
    }

    /// A host that may not lead says so to those that it has claimed, and ends.
    fn withdraw(&mut self, launcher: usize) {
        let from = self.launchers[launcher].host;
        if self.life(from) != Life::Up {
            return;
        }
        self.hosts[from as usize].given_up = true;
        self.stop(from);
        let now = self.now;
        for host in 0..self.hosts.len() as u32 {
            if self.hosts[host as usize].claimed_by != Some(launcher) {
                continue;
            }
            self.hosts[host as usize].claimed_by = None;
            if let Some(follower) = self.follower(host) {
                follower.pass_over(now, &run_of(from));
                if follower.leads() {
                    self.lead(host);
                }
            }
        }
    }

    /// The launcher gives up a host that is alive: the channel between the two has broken. In the end that host gives up, too.
    pub fn give_up_living(&mut self, host: u32) {
        let Some(launcher) = self.working_launcher() else {
            return;
        };
        if !self.launchers[launcher].remotes.contains(&host) {
            return;
        }
        let own = &mut self.hosts[host as usize];
        (own.given_up, own.led_by) = (true, None);
        self.give_up_host(launcher, host);
        let at = self.after(25_000, 35_000);
        self.at(at, What::LosePatience(host));
    }

    /// The launcher that leads now.
    pub fn working_launcher(&self) -> Option<usize> {
        let leads = |one: &Launcher| one.rejoin.is_none() && self.life(one.host) == Life::Up;
        self.launchers.iter().rposition(leads)
    }

    /// The launcher that works on a host.
    pub fn launcher_on(&self, host: u32) -> Option<usize> {
        let at = self.launchers.iter().rposition(|one| one.host == host);
        at.filter(|_| self.life(host) != Life::Gone)
    }
}
