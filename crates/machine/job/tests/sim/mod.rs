//! A job on simulated hosts: one clock that jumps from event to event, and every choice drawn from one seed.
//!
//! The registry, its replicas, the spawns, the claims and all failover decisions are the real code, with the real
//! encodings. The membership is an oracle: it knows which hosts are lost, tells each host late and at different times,
//! and never reverses a verdict.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use regatta_job::failover::Follower;
use regatta_job::hosts::Input;

mod channels;
pub mod check;
mod claims;
pub mod growing;
mod hosts;
pub mod launcher;
mod membership;
mod messages;
mod outputs;
pub mod seeds;
mod spawning;
pub mod tasks;

use channels::{Channel, Ends};
use growing::Machine;
use hosts::{Host, Owner};
use launcher::Launcher;
use messages::{Down, Up};
use tasks::Task;

/// An event. Launchers are identified by their index in [`Sim::launchers`].
#[derive(Debug)]
enum What {
    /// Bytes arrive on the channel with this number, at the launcher or at the host.
    Bytes(u64, Ends, bool, Vec<u8>),
    /// The channel with this number has broken, which both ends notice.
    Broken(u64, Ends),
    /// A new launcher asks for the channel of a host.
    Claim(usize, u32),
    /// A launcher notices that a channel has ended, or could not be opened.
    Closed(usize, u32),
    /// Something is due in the claims of a launcher.
    Timer(usize),
    /// The membership tells a host about another machine.
    Learn { host: u32, of: u32, gone: bool },
    /// The membership tells a host of a new machine.
    Came { host: u32, machine: u32 },
    /// A launcher gets input from an arriving host, on the channel with this number.
    Arriving(usize, u32, u64, Box<Input>),
    /// Something is due for a launcher's arriving hosts.
    ArrivalsDue(usize),
    /// A host has received nothing from its launcher for so long that it stops, or stays patient. The duration is the
    /// time for which its processes had not run at the beginning.
    Silent(u32, usize, Duration),
    /// A host that is cut off sees no majority, and stops.
    Isolated(u32),
    /// A host that was given up has received nothing from a launcher for so long that it stops.
    LosePatience(u32),
    /// A host starts a task that it has prepared.
    Start(u32),
    /// A task reads this many bytes that another one has written for it.
    Read { by: u32, task: u32, bytes: u32 },
    /// The job's output has room again.
    Drained,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Up,
    /// The host runs, and no message reaches it or comes from it.
    Cut,
    Gone,
}

pub struct Sim {
    pub now: Duration,
    pub hosts: Vec<Host>,
    /// All machines that the membership knows, first those of the hosts, by their numbers.
    pub machines: Vec<Machine>,
    /// Number of hosts that the job began with.
    pub first_hosts: u32,
    pub tasks: Vec<Task>,
    /// All launchers that have led, or tried to, in order.
    pub launchers: Vec<Launcher>,
    /// By launcher and host.
    channels: BTreeMap<(usize, u32), Channel>,
    /// By time, then by the order of scheduling.
    queue: BTreeMap<(Duration, u64), What>,
    order: u64,
    rng: SmallRng,
    /// Maximum delay of a message, in milliseconds.
    pub slowest: u64,
    /// The host of a launcher is lost after this many more messages of launchers.
    pub fuse: Option<u64>,
    /// The job's output is full until this time.
    full: Duration,
    /// The first property that was violated when it was checked.
    pub wrong: Option<String>,
}

pub fn run_of(machine: u32) -> String {
    format!("r{machine}")
}

pub fn name_of(machine: u32) -> String {
    format!("h{machine}")
}

impl Sim {
    /// Returns this many hosts with two tasks each, led from host 0, after all messages have arrived.
    pub fn begun(seed: u64, hosts: u32) -> Sim {
        let mut sim = Sim {
            now: Duration::ZERO,
            hosts: (0..hosts).map(|number| Host::new(number, hosts)).collect(),
            machines: (0..hosts)
                .map(|_| Machine {
                    is_up: true,
                    lost: None,
                })
                .collect(),
            first_hosts: hosts,
            tasks: (0..2 * hosts)
                .map(|task| Task::new(task % hosts, None))
                .collect(),
            launchers: vec![Launcher::first(hosts)],
            channels: BTreeMap::new(),
            queue: BTreeMap::new(),
            order: 0,
            rng: SmallRng::seed_from_u64(seed),
            slowest: 5,
            fuse: None,
            full: Duration::ZERO,
            wrong: None,
        };
        (1..hosts).for_each(|host| sim.open_channel(0, host));
        for task in 0..2 * hosts {
            let host = &mut sim.hosts[(task % hosts) as usize];
            host.outputs.task_started(task, None);
        }
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

    /// Records a violated property, if it is the first one.
    fn note_wrong(&mut self, is_wrong: bool, what: impl FnOnce() -> String) {
        if is_wrong {
            self.wrong.get_or_insert_with(what);
        }
    }

    /// Runs until nothing more happens by itself, or for this time.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(next) = self
            .queue
            .first_entry()
            .filter(|next| next.key().0 <= until)
        {
            let (key, what) = next.remove_entry();
            self.happen(key, what);
        }
        self.now = until;
    }

    /// Runs until `is_so` returns true after an event, or nothing more happens by itself. Returns whether it is true.
    pub fn run_until(&mut self, is_so: impl Fn(&Sim) -> bool) -> bool {
        let mut steps = 0;
        while let Some((key, what)) = self.queue.pop_first() {
            self.happen(key, what);
            if is_so(self) {
                return true;
            }
            steps += 1;
            assert!(steps < 1_000_000, "this never ends");
        }
        false
    }

    pub fn settle(&mut self) {
        self.run_until(|_| false);
        let frozen = self.hosts.iter().map(|host| host.frozen);
        self.now = frozen.fold(self.now, Duration::max);
    }

    /// Returns the host on which an event happens.
    fn place_of(&self, what: &What) -> Option<u32> {
        match *what {
            What::Bytes(_, (_, host), false, _)
            | What::Learn { host, .. }
            | What::Came { host, .. }
            | What::Silent(host, ..)
            | What::Isolated(host)
            | What::LosePatience(host) => Some(host),
            What::Bytes(_, (launcher, _), true, _)
            | What::Broken(_, (launcher, _))
            | What::Closed(launcher, _)
            | What::Arriving(launcher, ..)
            | What::ArrivalsDue(launcher)
            | What::Timer(launcher) => Some(self.launchers[launcher].host),
            // The daemons do that.
            What::Claim(..) | What::Drained => None,
            What::Read { by, .. } => self.tasks.get(by as usize).map(|task| task.host),
            What::Start(task) => self.tasks.get(task as usize).map(|task| task.host),
        }
    }

    fn happen(&mut self, (at, order): (Duration, u64), what: What) {
        let place = self.place_of(&what);
        let thaw = place.map(|host| self.hosts[host as usize].frozen);
        if let Some(thaw) = thaw.filter(|thaw| at < *thaw) {
            self.queue.insert((thaw, order), what);
            return;
        }
        self.now = at;
        match what {
            What::Bytes(number, ends, up, bytes) => self.bytes_arrive(number, ends, up, &bytes),
            What::Broken(number, ends) => self.channel_broke(number, ends),
            What::Claim(launcher, host) => self.claim(launcher, host),
            What::Closed(launcher, host) => self.channel_ended(launcher, host),
            What::Timer(launcher) => self.claims_are_due(launcher),
            What::Learn { host, of, gone } => self.learn(host, of, gone),
            What::Came { host, machine } => self.learn_came(host, machine),
            What::Arriving(launcher, id, channel, input) => {
                self.hear_arriving(launcher, id, channel, *input);
            }
            What::ArrivalsDue(launcher) => self.arrivals_are_due(launcher),
            What::Silent(host, launcher, asleep) => self.silent(host, launcher, asleep),
            What::Isolated(host) => self.isolated(host),
            What::LosePatience(host) => {
                let own = &self.hosts[host as usize];
                if own.given_up || own.was_given_up && own.owner == Owner::Nobody {
                    self.stop_unless_it_leads(host);
                }
            }
            What::Start(task) => self.start_task(task),
            What::Read { by, task, bytes } => self.read_output(by, task, bytes),
            What::Drained => self.drained(),
        }
        self.two_leaders_never_act();
    }

    /// Returns a description of the hosts and launchers, for a failed check.
    pub fn sketch(&self) -> String {
        let host = |(number, host): (u32, &Host)| {
            let owner = host.follower.as_ref().map(Follower::is_without_owner);
            let (dead, suspected) = (&host.dead, &host.suspected);
            format!(
                "\n{number}: {:?}, owner {:?}, without owner: {owner:?}, dead: {dead:?}, suspected: {suspected:?}",
                host.life, host.owner
            )
        };
        let hosts: String = (0..).zip(&self.hosts).map(host).collect();
        let launcher = |one: &Launcher| format!("\nlauncher on {}: {}", one.host, one.state());
        hosts + &self.launchers.iter().map(launcher).collect::<String>()
    }
}
