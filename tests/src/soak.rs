//! The soak: a fleet of workers in a virtual machine of its own (`tests/programs/soak.c`) sends and receives in all ways there are, while workers
//! and hosts are killed, hosts added again, links cut, pairs of hosts cut apart, connections reset, workers and hosts stopped for a while.
//! Tasks that live must get everything, once, in order and whole; no living task may be called dead; and when it is over nothing may be
//! left.
//!
//! `make soak` runs it for ten minutes on eight hosts; the tests run a short form of the same.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::network::{Network, ON_FIRST};
use crate::{command, programs};

/// The soak to run.
pub struct Soak {
    /// How long.
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

impl Soak {
    /// Runs it to its end; says what was done, and the fleet's own words. Panics if anything got lost or was left.
    pub fn run(&self, mut tell: impl FnMut(&str)) -> (Blows, String) {
        let mut network = Network::new(self.hosts);
        let names: Vec<String> = (1..=self.hosts).map(|n| format!("h{n}")).collect();
        network.regatta(&format!("up --as h0 {}", names.join(" ")));
        network.start(&self.command());
        let mut blows = Blows::default();
        let mut dice = Dice(self.seed);
        let mut dead = BTreeSet::new();
        let mut struck = Vec::new();
        let mut next = Instant::now() + Duration::from_secs(2);
        let end = Instant::now() + Duration::from_secs(self.seconds);
        while !network.is_over(next.min(end)) && Instant::now() < end {
            self.strike(&mut network, &mut dice, &mut dead, &mut struck, &mut blows);
            tell(&format!("{blows:?}"));
            next = Instant::now() + Duration::from_millis(300 + dice.roll(2500));
        }
        let (status, said) = network.outcome();
        assert_eq!(status, 0, "{blows:?}, seed {}\n{said}", self.seed);
        assert!(
            !said.contains("FAIL") && said.contains("lost 0, doubled 0, out of order 0, damaged 0"),
            "{said}"
        );
        self.nobody_died_of_less(&blows, &struck, &said);
        network.regatta("down");
        let left = network.left();
        assert!(left.is_empty(), "left behind: {left}\n{said}");
        (blows, said)
    }

    /// On the first host, which nobody strikes, is the captain alone: the end of its launcher would be the job's.
    fn command(&self) -> String {
        format!(
            "{ON_FIRST} LD_LIBRARY_PATH={library} {regatta} run -n 1 --on-failure continue {program} captain {seconds} {workers} {seed}",
            library = programs::library().display(),
            regatta = command().display(),
            program = programs::program_of("soak", &["soak", "soak_worker"]).display(),
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
            "{by_signal} workers were killed, {at_most} by the soak; {blows:?}, seed {}\n{said}",
            self.seed
        );
    }

    fn strike(
        &self,
        network: &mut Network,
        dice: &mut Dice,
        dead: &mut BTreeSet<u64>,
        struck: &mut Vec<u64>,
        blows: &mut Blows,
    ) {
        let all = u64::from(self.hosts);
        let host = 1 + dice.roll(all);
        let time = Duration::from_millis(100 + dice.roll(400));
        match dice.roll(32) {
            0..9 => blows.workers += u32::from(network.kill_worker(|n| dice.roll(n))),
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
                blows.frozen += u32::from(network.freeze_worker(|n| dice.roll(n), time));
            }
            24..26 => {
                network.freeze_host(host, time);
                blows.frozen_hosts += 1;
            }
            // One at a time, so that it is known who may go on.
            _ => match dead.pop_first() {
                Some(host) => {
                    network.calm();
                    // Only once the machine has noticed that it is gone.
                    network.bring_back(host as u32, &format!("h{host}"), self.hosts + 1);
                    blows.added += 1;
                }
                None => {
                    dead.insert(host);
                    struck.push(host);
                    network.kill_host(host);
                    blows.hosts += 1;
                }
            },
        }
    }
}
