//! Fleets under fire: a captain and workers in a virtual machine of their own (`tests/programs/fleet.c`), while faults
//! are inflicted: workers and hosts are killed, hosts are added again, links go down, pairs of hosts are disconnected,
//! connections are reset, and workers and hosts are stopped for a while. No living task may be reported dead, and
//! nothing may be left behind at the end. What the workers do differs: [`soak`](crate::soak), [`chaos`](crate::chaos).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::network::{Network, ON_FIRST};
use crate::{command, programs};

/// Command-line option that selects the form of the program that uses MPI.
pub const MPI: &str = "--mpi";

/// The size of a fleet, and the faults it meets.
pub struct Fleet {
    /// Duration of the run under faults, in seconds.
    pub seconds: u64,
    /// Number of hosts besides the captain's.
    pub hosts: u32,
    /// Workers per host.
    pub workers: u32,
    /// Seed that determines the faults and their times.
    pub seed: u64,
}

/// The faults that were inflicted on the hosts.
#[derive(Debug, Default)]
pub struct Blows {
    /// Workers that were killed.
    pub workers: u32,
    /// Hosts on which all processes were killed.
    pub hosts: u32,
    /// Hosts that were added again after they had been killed.
    pub added: u32,
    /// Short outages of a host's link.
    pub cuts: u32,
    /// Short outages between one pair of hosts.
    pub pairs: u32,
    /// Links that went down and up several times in a row.
    pub flaps: u32,
    /// Resets of all connections of a host.
    pub resets: u32,
    /// Workers that were stopped for some seconds.
    pub frozen: u32,
    /// Hosts on which all processes were stopped for a moment.
    pub frozen_hosts: u32,
}

impl Blows {
    /// Returns the number of faults that must not end any task.
    pub fn harmless(&self) -> u32 {
        self.cuts + self.pairs + self.flaps + self.resets + self.frozen + self.frozen_hosts
    }
}

/// Pseudo-random choices, reproducible from the seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % sides
    }
}

/// The program that captain and workers run.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    /// Its name, as it appears in the workers' command lines.
    pub(crate) name: &'static str,
    pub(crate) compile: fn() -> PathBuf,
    /// Whether a worker may be killed before it has started up. If not, the death of a starting worker would end the
    /// whole job, so no worker is killed while any is starting.
    pub(crate) is_killed_in_init: bool,
}

impl Program {
    fn may_be_killed(self, network: &mut Network) -> bool {
        self.is_killed_in_init || network.are_workers_up(self.name)
    }
}

impl Fleet {
    /// Reads `[SECONDS [HOSTS [WORKERS [SEED]]]]` from the command line; `--mpi` may appear among them. The defaults
    /// are ten minutes and eight hosts.
    pub fn from_arguments() -> Fleet {
        let mut numbers = std::env::args()
            .skip(1)
            .filter(|word| word != MPI)
            .map(|word| {
                word.parse::<u64>().unwrap_or_else(|_| {
                    panic!("{word:?} is no number: [SECONDS [HOSTS [WORKERS [SEED]]]]")
                })
            });
        let mut next = |usual| numbers.next().unwrap_or(usual);
        Fleet {
            seconds: next(600),
            hosts: next(8) as u32,
            workers: next(2) as u32,
            seed: next(u64::from(std::process::id())),
        }
    }

    /// Runs a program with `play`, then prints the faults inflicted and the captain's counts.
    pub fn show(
        &self,
        name: &str,
        play: impl FnOnce(&Fleet, &mut dyn FnMut(&str)) -> (Blows, String),
    ) {
        println!(
            "{name}: {} s on {} hosts with {} workers each, seed {}",
            self.seconds, self.hosts, self.workers, self.seed
        );
        let (blows, said) = play(self, &mut |blows| eprint!("\r{blows} "));
        eprintln!();
        println!("{name}: {blows:?}");
        let own = format!("{name}:");
        said.lines()
            .filter(|line| line.starts_with(&own))
            .for_each(|line| println!("{line}"));
    }

    /// Runs a program to its end. Returns the faults inflicted and the program's output. Panics if the program failed,
    /// if a task died without a fault that explains it, or if anything was left behind.
    pub(crate) fn run(&self, program: Program, tell: &mut dyn FnMut(&str)) -> (Blows, String) {
        let mut network = Network::new(self.hosts);
        let names: Vec<String> = (1..=self.hosts).map(|n| format!("h{n}")).collect();
        network.regatta(&format!("up --as h0 {}", names.join(" ")));
        network.start_fleet(&self.command(program));
        let mut blows = Blows::default();
        let mut dice = Dice(self.seed);
        let mut dead = BTreeSet::new();
        let mut struck = Vec::new();
        let mut next = Instant::now() + Duration::from_secs(2);
        let end = Instant::now() + Duration::from_secs(self.seconds);
        while !network.is_over(next.min(end)) && Instant::now() < end {
            self.strike(
                program,
                &mut network,
                &mut dice,
                &mut dead,
                &mut struck,
                &mut blows,
            );
            tell(&format!("{blows:?}"));
            next = Instant::now() + Duration::from_millis(300 + dice.roll(2500));
        }
        let (status, said) = network.outcome();
        assert_eq!(status, 0, "{blows:?}, seed {}\n{said}", self.seed);
        assert!(
            !said.contains("FAIL"),
            "{blows:?}, seed {}\n{said}",
            self.seed
        );
        self.nobody_died_of_less(&blows, &struck, &said);
        // Files of a killed host are cleaned up only after it has been added again.
        self.bring_one_back(&mut network, &mut dead);
        network.regatta("down");
        let left = network.left();
        assert!(left.is_empty(), "left behind: {left}\n{said}");
        (blows, said)
    }

    /// Returns the command line. The captain runs alone on the first host, which no fault strikes, because the end of
    /// its launcher would end the job.
    fn command(&self, program: Program) -> String {
        format!(
            "{ON_FIRST} LD_LIBRARY_PATH={library} {regatta} run -n 1 --on-failure continue {program} captain {seconds} {workers} {seed}",
            library = programs::library().display(),
            regatta = command().display(),
            program = (program.compile)().display(),
            seconds = self.seconds,
            workers = self.workers,
            seed = self.seed,
        )
    }

    /// Checks that only killed hosts and workers were reported dead. Hosts that were only disconnected or stopped for a
    /// moment must not be, nor their workers.
    fn nobody_died_of_less(&self, blows: &Blows, struck: &[u64], said: &str) {
        for host in 0..=u64::from(self.hosts) {
            let name = format!("lost host h{host}");
            let lost = said.lines().filter(|line| *line == name).count();
            let killed = struck.iter().filter(|&&one| one == host).count();
            assert!(
                lost <= killed,
                "h{host} was lost {lost} times, and killed {killed} times; {blows:?}, seed {}\n{said}",
                self.seed
            );
        }
        let number = |before: &str, after: &str| {
            let rest = &said[said.find(before).expect(before) + before.len()..];
            let word = &rest[..rest.find(after).expect(after)];
            word.parse::<u32>().expect("a number")
        };
        // The death of a worker on a killed host may be reported before the death of the host.
        let by_signal = number(" hosts; ", " killed");
        let at_most = blows.workers + blows.hosts * self.workers;
        assert!(
            by_signal <= at_most,
            "{by_signal} workers were killed, {at_most} from outside; {blows:?}, seed {}\n{said}",
            self.seed
        );
    }

    /// Adds a killed host again, once the machine has noticed that it is lost.
    fn bring_back(&self, network: &mut Network, host: u64) {
        network.calm();
        network.bring_back(host as u32, &format!("h{host}"), self.hosts + 1);
    }

    fn strike(
        &self,
        program: Program,
        network: &mut Network,
        dice: &mut Dice,
        dead: &mut BTreeSet<u64>,
        struck: &mut Vec<u64>,
        blows: &mut Blows,
    ) {
        let all = u64::from(self.hosts);
        let host = 1 + dice.roll(all);
        let time = Duration::from_millis(100 + dice.roll(400));
        let name = program.name;
        match dice.roll(32) {
            0..9 => {
                let kills =
                    program.may_be_killed(network) && network.kill_worker(name, |n| dice.roll(n));
                blows.workers += u32::from(kills);
            }
            9..12 => {
                network.cut(host, time);
                blows.cuts += 1;
            }
            12..16 if all > 1 => {
                // Both hosts still reach all others, so the machine does not lose either of them.
                let other = 1 + (host + dice.roll(all - 1)) % all;
                network.cut_pair(host, other, Duration::from_millis(100 + dice.roll(2900)));
                blows.pairs += 1;
            }
            16..18 => {
                network.flap(
                    host,
                    2 + dice.roll(3),
                    Duration::from_millis(10 + dice.roll(90)),
                );
                blows.flaps += 1;
            }
            18..21 => {
                network.reset(host);
                blows.resets += 1;
            }
            21..24 => {
                let time = Duration::from_millis(200 + dice.roll(4000));
                blows.frozen += u32::from(network.freeze_worker(name, |n| dice.roll(n), time));
            }
            24..26 => {
                network.freeze_host(host, time);
                blows.frozen_hosts += 1;
            }
            // Killed hosts are added one at a time, so that it is known which hosts may go on.
            _ if !dead.is_empty() => blows.added += self.bring_one_back(network, dead),
            _ if program.may_be_killed(network) => {
                dead.insert(host);
                struck.push(host);
                network.kill_host(host);
                blows.hosts += 1;
            }
            _ => {}
        }
    }

    /// Adds one of the killed hosts again, if there is one. Returns the number of hosts added.
    fn bring_one_back(&self, network: &mut Network, dead: &mut BTreeSet<u64>) -> u32 {
        let host = dead.pop_first();
        host.map_or(0, |host| {
            self.bring_back(network, host);
            1
        })
    }
}
