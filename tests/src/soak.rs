//! The soak: a fleet of workers in a virtual machine of its own (`programs/soak.c`) sends and receives, while workers and hosts are
//! killed, hosts added again, links cut and connections reset. Whoever lives must get everything, once, in order and whole; and when it is
//! over nothing may be left.
//!
//! `make soak` runs it for ten minutes on eight hosts; the tests run a short form of the same.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::network::{Network, ON_FIRST};
use crate::{command, programs};

/// What is to be run.
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

/// What has been done to the fleet.
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
    /// Times that all connections of a host were reset.
    pub resets: u32,
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
        let mut next = Instant::now() + Duration::from_secs(2);
        let end = Instant::now() + Duration::from_secs(self.seconds);
        while !network.is_over(next.min(end)) && Instant::now() < end {
            self.strike(&mut network, &mut dice, &mut dead, &mut blows);
            tell(&format!("{blows:?}"));
            next = Instant::now() + Duration::from_millis(300 + dice.roll(2500));
        }
        let (status, said) = network.outcome();
        assert_eq!(status, 0, "{blows:?}, seed {}\n{said}", self.seed);
        assert!(
            !said.contains("FAIL") && said.contains("lost 0, doubled 0, out of order 0, damaged 0"),
            "{said}"
        );
        network.regatta("down");
        let left = network.left();
        assert!(left.is_empty(), "left behind: {left}\n{said}");
        (blows, said)
    }

    /// On the first host, which nobody strikes, is the captain alone: the end of its launcher would be the job's.
    fn command(&self) -> String {
        format!(
            "{ON_FIRST} LD_LIBRARY_PATH={library} {regatta} run -n 1 --on-failure continue {program} captain {seconds} {workers}",
            library = programs::library().display(),
            regatta = command().display(),
            program = programs::program("soak").display(),
            seconds = self.seconds,
            workers = self.workers,
        )
    }

    fn strike(
        &self,
        network: &mut Network,
        dice: &mut Dice,
        dead: &mut BTreeSet<u64>,
        blows: &mut Blows,
    ) {
        let host = 1 + dice.roll(self.hosts.into());
        match dice.roll(20) {
            0..9 => blows.workers += u32::from(network.kill_worker(|n| dice.roll(n))),
            9..13 => {
                network.cut(host, Duration::from_millis(100 + dice.roll(400)));
                blows.cuts += 1;
            }
            13..16 => {
                network.reset(host);
                blows.resets += 1;
            }
            // One at a time, so that it is known who may go on.
            _ => match dead.pop_first() {
                Some(host) => {
                    network.regatta(&format!("add h{host}"));
                    blows.added += 1;
                }
                None => {
                    dead.insert(host);
                    network.kill_host(host);
                    blows.hosts += 1;
                }
            },
        }
    }
}
