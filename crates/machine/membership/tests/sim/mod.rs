//! A network of simulated hosts: one clock that jumps from event to event, and all mishaps are determined by one seed.
#![allow(dead_code, reason = "each test uses a part")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use regatta_membership::{
    Event, Facts, HostId, Input, Lineage, Membership, Output, Roll, Settings, Standing,
};

pub mod check;
pub mod rates;

/// The next simulated event.
enum What {
    Arrival {
        from: usize,
        to: usize,
        bytes: Rc<[u8]>,
    },
    Wake {
        host: usize,
    },
}

struct Next {
    at: Duration,
    order: u64,
    what: What,
}

impl PartialEq for Next {
    fn eq(&self, other: &Next) -> bool {
        self.order == other.order
    }
}
impl Eq for Next {}
impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Next) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Next {
    fn cmp(&self, other: &Next) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// The quality of the network.
#[derive(Clone, Debug)]
pub struct Network {
    pub loss: f64,
    pub duplicates: f64,
    pub delay: (Duration, Duration),
    /// Maximum delay of timers.
    pub lateness: Duration,
    /// `cut[a][b]`: nothing is delivered from group a to group b.
    pub cut: [[bool; 4]; 4],
}

impl Default for Network {
    fn default() -> Network {
        let delay = (Duration::from_micros(50), Duration::from_millis(2));
        Network {
            loss: 0.0,
            duplicates: 0.0,
            delay,
            lateness: Duration::from_millis(1),
            cut: Default::default(),
        }
    }
}

/// A host, whose daemon may or may not run.
pub struct Host {
    pub daemon: Option<Membership>,
    pub group: usize,
    pub departed: bool,
    /// Whether the host refuses connections while it has no daemon, so that others know that the daemon is dead.
    refuses: bool,
    stopped_until: Option<Duration>,
    waiting: Vec<(usize, Rc<[u8]>)>,
    wake_at: Duration,
    runs: u32,
    pub bytes: u64,
    pub datagrams: u64,
}

impl Host {
    pub fn is_stopped(&self) -> bool {
        self.stopped_until.is_some()
    }
}

pub struct World {
    pub now: Duration,
    pub settings: Settings,
    pub network: Network,
    pub hosts: Vec<Host>,
    /// All events of all hosts since this was last cleared: time, host, event.
    pub log: Vec<(Duration, usize, Event)>,
    pub longest: usize,
    /// When the network was last cut or healed, or a stopped process continued.
    pub unsettled_since: Duration,
    /// Every roll that any host has had, by its number.
    pub rolls: BTreeMap<(Lineage, u32), Roll>,
    /// Two different rolls with the same number, if there were any.
    pub torn: Option<(Roll, Roll)>,
    queue: BinaryHeap<Reverse<Next>>,
    order: u64,
    rng: SmallRng,
}

pub fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

pub fn address(host: usize) -> SocketAddr {
    let [_, a, b, c] = (host as u32).to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(10, a, b, c), 7000))
}

fn host_at(address: SocketAddr) -> usize {
    let SocketAddr::V4(address) = address else {
        panic!("only IPv4 here")
    };
    let [_, a, b, c] = address.ip().octets();
    u32::from_be_bytes([0, a, b, c]) as usize
}

impl World {
    pub fn new(seed: u64) -> World {
        World {
            now: Duration::ZERO,
            settings: Settings::default(),
            network: Network::default(),
            hosts: Vec::new(),
            log: Vec::new(),
            longest: 0,
            unsettled_since: Duration::ZERO,
            rolls: BTreeMap::new(),
            torn: None,
            queue: BinaryHeap::new(),
            order: 0,
            rng: SmallRng::seed_from_u64(seed),
        }
    }

    /// Returns a machine of this many hosts that joined one after the other.
    pub fn joined(seed: u64, count: usize) -> World {
        let mut world = World::new(seed);
        for host in 0..count {
            world.add();
            world.start(host);
            world.run(seconds(0.05));
        }
        world.run(seconds(5.0));
        world
    }

    /// Returns a machine of this many hosts that exist from the beginning.
    pub fn assembled(seed: u64, count: usize) -> World {
        let mut world = World::new(seed);
        let names: Vec<HostId> = (0..count)
            .map(|host| HostId::new(address(host), 1, 0))
            .collect();
        let roll = std::sync::Arc::new(Roll::founded(&names));
        let seeds: Vec<u64> = (0..count).map(|_| world.rng.random()).collect();
        let settings = world.settings.clone();
        let make = |host: usize| {
            let facts = Facts {
                name: format!("host{host}"),
                cores: 4,
                architecture: "x86_64".into(),
            };
            Membership::assembled(
                names[host],
                facts,
                settings.clone(),
                seeds[host],
                Duration::ZERO,
                roll.clone(),
            )
        };
        // Filling ten thousand lists of ten thousand entries takes a while.
        let half = count / 2;
        let (first, second) = std::thread::scope(|scope| {
            let second = scope.spawn(|| (half..count).map(make).collect::<Vec<_>>());
            (
                (0..half).map(make).collect::<Vec<_>>(),
                second.join().expect("no panic"),
            )
        });
        for (host, daemon) in first.into_iter().chain(second).enumerate() {
            world.add();
            world.hosts[host].daemon = Some(daemon);
            world.hosts[host].runs = 1;
            world.after(host);
        }
        world
    }

    pub fn add(&mut self) -> usize {
        self.hosts.push(Host {
            daemon: None,
            group: 0,
            departed: false,
            refuses: false,
            stopped_until: None,
            waiting: Vec::new(),
            wake_at: Duration::MAX,
            runs: 0,
            bytes: 0,
            datagrams: 0,
        });
        self.hosts.len() - 1
    }

    /// Starts the daemon of a host that has none: it creates the machine if it is the first, and joins living hosts
    /// otherwise.
    pub fn start(&mut self, host: usize) {
        let others: Vec<usize> = self
            .living()
            .into_iter()
            .filter(|other| *other != host)
            .collect();
        self.hosts[host].runs += 1;
        let run = self.hosts[host].runs;
        let name = HostId::new(address(host), run, self.rng.random());
        let facts = Facts {
            name: format!("host{host}"),
            cores: 4,
            architecture: "x86_64".into(),
        };
        let daemon = Membership::new(
            name,
            facts,
            self.settings.clone(),
            self.rng.random(),
            self.now,
        );
        self.hosts[host].daemon = Some(daemon);
        self.hosts[host].departed = false;
        self.hosts[host].stopped_until = None;
        self.hosts[host].wake_at = Duration::MAX;
        if others.is_empty() {
            self.input(host, Input::CreateMachine);
        }
        for _ in 0..others.len().min(3) {
            let address = address(others[self.rng.random_range(0..others.len())]);
            self.input(host, Input::Join { address });
        }
        if !others.is_empty() && self.hosts.len() < 20 {
            // In a small machine all hosts know each other's addresses, so that a remaining one finds the others,
            // whichever have died meanwhile.
            for other in (0..self.hosts.len()).filter(|other| *other != host) {
                self.input(
                    host,
                    Input::Join {
                        address: address(other),
                    },
                );
            }
        }
    }

    /// Makes the host fall silent.
    pub fn crash(&mut self, host: usize) {
        self.hosts[host].daemon = None;
        self.hosts[host].refuses = false;
        self.hosts[host].waiting.clear();
        self.hosts[host].stopped_until = None;
    }

    /// Kills the daemon; its host refuses connections from then on.
    pub fn kill(&mut self, host: usize) {
        self.crash(host);
        self.hosts[host].refuses = true;
    }

    /// Stops the process for a while. What is sent to it waits in its socket.
    pub fn stop(&mut self, host: usize, time: Duration) {
        if self.hosts[host].daemon.is_some() {
            let until = self.now + time;
            self.hosts[host].stopped_until = Some(until);
            self.push(until, What::Wake { host });
        }
    }

    pub fn leave(&mut self, host: usize) {
        self.input(host, Input::Leave);
    }

    /// Puts hosts into groups, and cuts the groups off from each other, in both directions or only one.
    pub fn split(&mut self, groups: &[&[usize]], both_ways: bool) {
        for (group, hosts) in groups.iter().enumerate() {
            hosts
                .iter()
                .for_each(|host| self.hosts[*host].group = group);
        }
        for (from, row) in self.network.cut.iter_mut().enumerate() {
            for (to, cut) in row.iter_mut().enumerate() {
                *cut = if both_ways { from != to } else { from < to };
            }
        }
        self.unsettled_since = self.now;
    }

    pub fn heal(&mut self) {
        self.network.cut = Default::default();
        self.hosts.iter_mut().for_each(|host| host.group = 0);
        self.unsettled_since = self.now;
    }

    /// Returns the hosts whose daemon runs and is not leaving.
    pub fn living(&self) -> Vec<usize> {
        (0..self.hosts.len())
            .filter(|host| self.hosts[*host].daemon.is_some())
            .collect()
    }

    pub fn daemon(&self, host: usize) -> &Membership {
        self.hosts[host].daemon.as_ref().expect("its daemon runs")
    }

    pub fn standing(&self, host: usize) -> Standing {
        self.daemon(host).standing()
    }

    pub fn name(&self, host: usize) -> HostId {
        self.daemon(host).own()
    }

    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self
            .queue
            .peek()
            .is_some_and(|Reverse(next)| next.at <= until)
        {
            self.step();
        }
        self.now = until;
    }

    /// Runs until `holds` is true, but at most for `most`. Returns whether it became true.
    pub fn run_until(&mut self, most: Duration, holds: impl Fn(&World) -> bool) -> bool {
        let until = self.now + most;
        while !holds(self) {
            if self
                .queue
                .peek()
                .is_none_or(|Reverse(next)| next.at > until)
            {
                return false;
            }
            self.step();
        }
        true
    }

    pub fn input(&mut self, host: usize, input: Input<'_>) {
        let now = self.now;
        if let Some(daemon) = &mut self.hosts[host].daemon {
            daemon.handle(now, input);
            self.after(host);
        }
    }

    fn step(&mut self) {
        let Some(Reverse(next)) = self.queue.pop() else {
            return;
        };
        self.now = next.at;
        match next.what {
            What::Arrival { from, to, bytes } => self.arrive(from, to, bytes),
            What::Wake { host } => self.wake(host),
        }
    }

    fn arrive(&mut self, from: usize, to: usize, bytes: Rc<[u8]>) {
        let (a, b) = (self.hosts[from].group, self.hosts[to].group);
        if self.network.cut[a][b] {
            return;
        }
        if self.hosts[to].stopped_until.is_some() {
            // A socket buffer has a limited size.
            if self.hosts[to].waiting.len() < 500 {
                self.hosts[to].waiting.push((from, bytes));
            }
            return;
        }
        self.input(
            to,
            Input::Datagram {
                from: address(from),
                bytes: &bytes,
            },
        );
    }

    fn wake(&mut self, host: usize) {
        if let Some(until) = self.hosts[host].stopped_until {
            if self.now < until {
                return;
            }
            self.resume(host);
        }
        let Some(deadline) = self.hosts[host].daemon.as_ref().map(Membership::deadline) else {
            return;
        };
        self.hosts[host].wake_at = Duration::MAX;
        if self.now >= deadline {
            self.input(host, Input::Timer);
        } else {
            self.after(host);
        }
    }

    /// Continues a stopped process: timers and datagrams are all due at once, in either order.
    fn resume(&mut self, host: usize) {
        self.hosts[host].stopped_until = None;
        self.unsettled_since = self.now;
        let waiting = std::mem::take(&mut self.hosts[host].waiting);
        if self.rng.random_bool(0.5) {
            self.input(host, Input::Timer);
        }
        for (from, bytes) in waiting {
            self.input(
                host,
                Input::Datagram {
                    from: address(from),
                    bytes: &bytes,
                },
            );
        }
    }

    /// Carries out a daemon's outputs.
    fn after(&mut self, host: usize) {
        let mut suspects = Vec::new();
        while let Some(output) = self.hosts[host].daemon.as_mut().and_then(Membership::poll) {
            match output {
                Output::Send { to, bytes } => self.send(host, host_at(to), bytes.into()),
                Output::Event(event) => {
                    if event == Event::Ended {
                        self.hosts[host].refuses = true;
                    }
                    if matches!(event, Event::Departed | Event::Ended) {
                        self.hosts[host].departed = true;
                    }
                    if let Event::Examine(suspect) = event {
                        suspects.push(suspect);
                    }
                    self.log.push((self.now, host, event));
                }
            }
        }
        if self.hosts[host].departed {
            self.hosts[host].daemon = None;
        }
        self.enter_roll(host);
        suspects.retain(|suspect| self.is_refused(host, suspect));
        for suspect in suspects {
            self.input(host, Input::DaemonGone { host: suspect });
        }
        let Some(daemon) = &self.hosts[host].daemon else {
            return;
        };
        let deadline = daemon.deadline();
        if deadline < self.hosts[host].wake_at && self.hosts[host].stopped_until.is_none() {
            self.hosts[host].wake_at = deadline;
            let late = self.network.lateness.mul_f64(self.rng.random::<f64>());
            self.push(deadline.max(self.now) + late, What::Wake { host });
        }
    }

    /// Returns whether `host`, when it connects to a daemon, is refused because there is none.
    fn is_refused(&self, host: usize, suspect: &HostId) -> bool {
        let at = host_at(suspect.address());
        let (own, its) = (self.hosts[host].group, self.hosts[at].group);
        let cut = self.network.cut[own][its] || self.network.cut[its][own];
        self.hosts[at].refuses && self.hosts[at].daemon.is_none() && !cut
    }

    fn send(&mut self, from: usize, to: usize, bytes: Rc<[u8]>) {
        self.longest = self.longest.max(bytes.len());
        assert!(
            bytes.len() <= self.settings.datagram,
            "a datagram of {} bytes",
            bytes.len()
        );
        self.hosts[from].bytes += bytes.len() as u64;
        self.hosts[from].datagrams += 1;
        if to >= self.hosts.len()
            || (self.network.loss > 0.0 && self.rng.random_bool(self.network.loss))
        {
            return;
        }
        let copies =
            if self.network.duplicates > 0.0 && self.rng.random_bool(self.network.duplicates) {
                2
            } else {
                1
            };
        for _ in 0..copies {
            let (least, most) = self.network.delay;
            let delay = least + (most - least).mul_f64(self.rng.random::<f64>().powi(4));
            self.push(
                self.now + delay,
                What::Arrival {
                    from,
                    to,
                    bytes: bytes.clone(),
                },
            );
        }
    }

    fn push(&mut self, at: Duration, what: What) {
        self.order += 1;
        self.queue.push(Reverse(Next {
            at,
            order: self.order,
            what,
        }));
    }
}
