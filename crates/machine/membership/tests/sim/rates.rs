//! Measurements: how fast updates spread under churn, what that costs, and how often hosts are blamed wrongly.

use std::collections::HashMap;
use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use regatta_membership::{Event, HostId};

use super::{World, seconds};

/// Results of a run under churn.
#[derive(Debug)]
pub struct Churn {
    pub changes: usize,
    /// Times from a death until the first host, 99 % of the hosts, and the last host knew of it; each sorted.
    pub first: Vec<Duration>,
    pub most: Vec<Duration>,
    pub all: Vec<Duration>,
    /// Times from the start of a daemon until 99 % of the hosts knew it.
    pub arrivals: Vec<Duration>,
    /// Times from an arrival until the new host knew 99 % of the hosts.
    pub admissions: Vec<Duration>,
    pub bytes_per_second: f64,
    pub datagrams_per_second: f64,
    pub worst_bytes_per_second: f64,
    pub wrongly_dead: usize,
    pub suspected: usize,
    pub epochs: u32,
}

/// Kills and starts hosts at this rate, each half of the time, and records which host learns what when.
pub fn churn(seed: u64, count: usize, per_minute: f64, time: Duration) -> Churn {
    let mut world = World::assembled(seed, count);
    let mut rng = SmallRng::seed_from_u64(seed ^ 1);
    world.run(seconds(1.0));
    world
        .hosts
        .iter_mut()
        .for_each(|host| (host.bytes, host.datagrams) = (0, 0));
    let begun = world.now;
    let mut watch = Watch::default();
    let gap = seconds(60.0 / (count as f64 * per_minute));
    let (mut next, mut dead) = (world.now + gap, Vec::new());
    while world.now - begun < time {
        world.run((next - world.now).min(seconds(0.5)));
        watch.read(&mut world);
        if world.now >= next {
            next += gap;
            if dead.len() < 2 || rng.random_bool(0.5) {
                let host = rng.random_range(1..count);
                if world.hosts[host].daemon.is_some() {
                    watch.died.insert(world.name(host), (world.now, Vec::new()));
                    world.crash(host);
                    dead.push((world.now, host));
                }
            } else if let Some(at) = dead
                .iter()
                .position(|(at, _)| world.now - *at > seconds(4.0))
            {
                let (_, host) = dead.swap_remove(at);
                world.start(host);
                watch
                    .came
                    .insert(world.name(host), (world.now, host, Vec::new(), Vec::new()));
            }
        }
    }
    let elapsed = (world.now - begun).as_secs_f64();
    world.run(seconds(5.0));
    watch.read(&mut world);
    let per_host = |bytes: u64| bytes as f64 / elapsed / count as f64;
    let scale = elapsed / (elapsed + 5.0);
    let epochs = world.daemon(0).roll().epoch();
    let bytes = per_host(world.hosts.iter().map(|host| host.bytes).sum()) * scale;
    let datagrams = per_host(world.hosts.iter().map(|host| host.datagrams).sum()) * scale;
    let worst =
        world.hosts.iter().map(|host| host.bytes).max().unwrap_or(0) as f64 / elapsed * scale;
    watch.report(count, (bytes, datagrams, worst), epochs)
}

#[derive(Default)]
struct Watch {
    died: HashMap<HostId, (Duration, Vec<Duration>)>,
    came: HashMap<HostId, (Duration, usize, Vec<Duration>, Vec<Duration>)>,
    wrongly_dead: usize,
    suspected: usize,
}

impl Watch {
    fn read(&mut self, world: &mut World) {
        // A host that arrives later learns of an earlier arrival later; that does not count as a delay.
        let late = seconds(8.0);
        let newcomers: HashMap<usize, HostId> = self
            .came
            .iter()
            .map(|(name, (_, host, ..))| (*host, *name))
            .collect();
        for (at, whose, event) in world.log.drain(..) {
            match event {
                Event::Dead(host, _) => match self.died.get_mut(&host) {
                    Some((since, known)) => known.push(at - *since),
                    None => self.wrongly_dead += 1,
                },
                Event::HostUp(host) => {
                    if let Some((since, _, known, _)) = self
                        .came
                        .get_mut(&host)
                        .filter(|(since, ..)| at - *since < late)
                    {
                        known.push(at - *since);
                    }
                    if let Some((since, _, _, knows)) = newcomers
                        .get(&whose)
                        .and_then(|name| self.came.get_mut(name))
                        && at - *since < late
                    {
                        knows.push(at - *since);
                    }
                }
                Event::Suspected(_) => self.suspected += 1,
                _ => {}
            }
        }
    }

    fn report(
        self,
        count: usize,
        (bytes, datagrams, worst): (f64, f64, f64),
        epochs: u32,
    ) -> Churn {
        let enough = count * 95 / 100;
        let share = |times: &Vec<Duration>, share: f64| {
            let mut times = times.clone();
            times.sort();
            times[((times.len() - 1) as f64 * share) as usize]
        };
        let deaths: Vec<&Vec<Duration>> = self
            .died
            .values()
            .map(|(_, known)| known)
            .filter(|known| known.len() >= enough)
            .collect();
        let sorted = |share_of: f64, of: &[&Vec<Duration>]| {
            let mut times: Vec<Duration> = of.iter().map(|known| share(known, share_of)).collect();
            times.sort();
            times
        };
        let came: Vec<&Vec<Duration>> = self
            .came
            .values()
            .map(|(_, _, known, _)| known)
            .filter(|known| known.len() >= enough)
            .collect();
        let knows: Vec<&Vec<Duration>> = self
            .came
            .values()
            .map(|(_, _, _, knows)| knows)
            .filter(|known| known.len() >= enough)
            .collect();
        Churn {
            changes: deaths.len() + came.len(),
            first: sorted(0.0, &deaths),
            most: sorted(0.99, &deaths),
            all: sorted(1.0, &deaths),
            arrivals: sorted(0.99, &came),
            admissions: sorted(0.99, &knows),
            bytes_per_second: bytes,
            datagrams_per_second: datagrams,
            worst_bytes_per_second: worst,
            wrongly_dead: self.wrongly_dead,
            suspected: self.suspected,
            epochs,
        }
    }
}

/// Wrong accusations among healthy hosts when datagrams are lost.
#[derive(Debug)]
pub struct Blame {
    pub suspicions: usize,
    pub verdicts: usize,
    pub stops: usize,
    pub bytes_per_second: f64,
}

pub fn blame(seed: u64, count: usize, loss: f64, time: Duration) -> Blame {
    let mut world = World::joined(seed, count);
    world.network.loss = loss;
    world.log.clear();
    world.hosts.iter_mut().for_each(|host| host.bytes = 0);
    let (mut suspicions, mut verdicts, mut stops) = (0, 0, 0);
    let until = world.now + time;
    while world.now < until {
        world.run(seconds(10.0).min(until - world.now));
        for (_, _, event) in world.log.drain(..) {
            match event {
                Event::Suspected(_) => suspicions += 1,
                Event::Renewed { .. } => verdicts += 1,
                Event::Minority { .. } => stops += 1,
                _ => {}
            }
        }
    }
    let bytes: u64 = world.hosts.iter().map(|host| host.bytes).sum();
    let bytes_per_second = bytes as f64 / time.as_secs_f64() / count as f64;
    Blame {
        suspicions,
        verdicts,
        stops,
        bytes_per_second,
    }
}

pub fn quantile(times: &[Duration], share: f64) -> f64 {
    if times.is_empty() {
        return f64::NAN;
    }
    times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64()
}

/// Returns the time from the death of one of this many hosts until all others know.
pub fn verdict(seed: u64, count: usize) -> Option<Duration> {
    let mut world = World::assembled(seed, count);
    // A random moment in the period of every host.
    world.run(seconds(2.0 + (seed % 1000) as f64 / 1000.0));
    let (dead, at) = (world.name(count - 1), world.now);
    world.log.clear();
    world.crash(count - 1);
    world.run(seconds(6.0));
    let heard: Vec<Duration> = world
        .log
        .iter()
        .filter(|(.., event)| matches!(event, Event::Dead(host, _) if *host == dead))
        .map(|(at, ..)| *at)
        .collect();
    (heard.len() == count - 1).then(|| heard.into_iter().max().unwrap_or(at) - at)
}
