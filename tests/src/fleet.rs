//! Fleets under fire: a captain and workers in a virtual machine of its own (`tests/programs/fleet.c`), while workers and hosts are killed, hosts added
//! again, links cut, pairs of hosts cut apart, connections reset, workers and hosts stopped for a while. No living task may be called dead, and when it is
//! over nothing may be left. The workers' part differs: [`soak`](crate::soak), [`chaos`](crate::chaos).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::network::{Network, ON_FIRST};
use crate::{command, programs};

/// The option for the form of a program that is made of MPI's calls.
pub const MPI: &str = "--mpi";

/// The size of a fleet, and what happens to it.
pub struct Fleet {
    /// How long it is under fire.
    pub seconds: u64,
    /// How many hosts there are beside the captain's.
    pub hosts: u32,
    /// Workers of each.
    pub workers: u32,
    /// Of what happens, and when.
    pub seed: u64,
}

/// The faults that were inflicted on the hosts.
#[derive(Debug, Default)]
pub struct Blows {
    /// Workers killed.
    pub workers: u32,
    /// Hosts on which everything was killed.
    pub hosts: u32,
    /// Hosts that were added again.
    pub added: u32,
    /// Links that were down for a moment.
    pub cuts: u32,
    /// Times that nothing passed between two hosts for a moment.
    pub pairs: u32,
    /// Links that went down and up several times.
    pub flaps: u32,
    /// Times that all connections of a host were reset.
    pub resets: u32,
    /// Workers that were stopped for some seconds.
    pub frozen: u32,
    /// Hosts on which all processes were stopped for a moment.
    pub frozen_hosts: u32,
}

impl Blows {
    /// How many there were of those that no living task may be harmed by.
    pub fn harmless(&self) -> u32 {
        self.cuts + self.pairs + self.flaps + self.resets + self.frozen + self.frozen_hosts
    }
}

/// Random choices that come again with the same seed.
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

/// The program of captain and workers.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    /// Its name, as command lines of its workers have it.
    pub(crate) name: &'static str,
    pub(crate) compile: fn() -> PathBuf,
    /// Whether workers may be killed before they are up. If not, an end meanwhile is that of the whole job, and nobody is killed while one is not up.
    pub(crate) is_killed_in_init: bool,
}

impl Program {
    fn may_be_killed(self, network: &mut Network) -> bool {
        self.is_killed_in_init || network.are_workers_up(self.name)
    }
}

impl Fleet {
    /// Reads `[SECONDS [HOSTS [WORKERS [SEED]]]]` from the command line, where `--mpi` may stand as well; ten minutes on eight hosts is the default.
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

    /// Runs a program by `play`, and prints what was done to it and what its captain has counted.
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

    /// Runs a program to its end; returns what was done to it, and its own words. Panics if it has failed, if a task has died of nothing, or if
    /// anything is left.
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
        // Files of a host that was killed are its own affair as long as it is not there.
        self.bring_one_back(&mut network, &mut dead);
        network.regatta("down");
        let left = network.left();
        assert!(left.is_empty(), "left behind: {left}\n{said}");
        (blows, said)
    }

    /// On the first host, which nobody strikes, is the captain alone: the end of its launcher would be the job's.
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

    /// Only what was killed has died: hosts that were only cut off or stopped for a moment, and workers on them, are none of the dead.
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
        // A worker of a host that is killed may be heard of before its host is.
        let by_signal = number(" hosts; ", " killed");
        let at_most = blows.workers + blows.hosts * self.workers;
        assert!(
            by_signal <= at_most,
            "{by_signal} workers were killed, {at_most} from outside; {blows:?}, seed {}\n{said}",
            self.seed
        );
    }

    /// Adds a host that was killed, once the machine has noticed that it is gone.
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
                // Nothing but this pair is apart, so neither is silent for the machine.
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
            // One at a time, so that it is known who may go on.
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

    /// Adds one of the hosts that were killed; how many that was.
    fn bring_one_back(&self, network: &mut Network, dead: &mut BTreeSet<u64>) -> u32 {
        let host = dead.pop_first();
        host.map_or(0, |host| {
            self.bring_back(network, host);
            1
        })
    }
}
