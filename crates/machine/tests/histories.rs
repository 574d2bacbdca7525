//! After any history, and ten seconds of good network, all go on together, unless nobody may; and at no time do two sides of a split both go on.
//! `sim/check.rs` has the sentences.

mod sim;

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use regatta_machine::{Input, Standing};
use sim::{Network, World, seconds};

/// One thing that happens to a machine.
#[derive(Clone, Debug)]
enum Mishap {
    Crash(usize),
    /// The daemon ends, and its host says so to whoever asks.
    Kill(usize),
    /// An operator says that all are dead who do not answer, which may be wrong.
    Vouch(usize),
    Start(usize),
    Restart(usize),
    Leave(usize),
    Stop(usize, u64),
    /// Which group each host is in, and whether the cut is both ways.
    Split(u64, usize, bool),
    Heal,
    Weather {
        loss: u8,
        duplicates: u8,
        delay: u64,
        lateness: u64,
    },
}

fn mishap() -> impl Strategy<Value = Mishap> {
    prop_oneof![
        any::<usize>().prop_map(Mishap::Crash),
        any::<usize>().prop_map(Mishap::Kill),
        any::<usize>().prop_map(Mishap::Vouch),
        any::<usize>().prop_map(Mishap::Start),
        any::<usize>().prop_map(Mishap::Restart),
        any::<usize>().prop_map(Mishap::Leave),
        (any::<usize>(), 1..4000u64).prop_map(|(host, time)| Mishap::Stop(host, time)),
        (any::<u64>(), 2..4usize, any::<bool>())
            .prop_map(|(seed, parts, both)| Mishap::Split(seed, parts, both)),
        Just(Mishap::Heal),
        (0..30u8, 0..10u8, 1..50u64, 0..100u64).prop_map(|(loss, duplicates, delay, lateness)| {
            Mishap::Weather {
                loss,
                duplicates,
                delay,
                lateness,
            }
        }),
    ]
}

/// Mishaps, each with the milliseconds until the next.
fn history() -> impl Strategy<Value = (u64, usize, Vec<(Mishap, u64)>)> {
    (
        any::<u64>(),
        2..9usize,
        prop::collection::vec((mishap(), 0..4000u64), 1..12),
    )
}

fn happen(world: &mut World, mishap: &Mishap) {
    let count = world.hosts.len();
    let running = world.living();
    if running.is_empty() && !matches!(mishap, Mishap::Start(_)) {
        return;
    }
    match mishap {
        // One host stays: a machine whose last host dies is no more. It may end of its own accord, though.
        Mishap::Crash(host) if running.len() > 1 => world.crash(running[host % running.len()]),
        Mishap::Leave(host) if running.len() > 1 => world.leave(running[host % running.len()]),
        Mishap::Kill(host) if running.len() > 1 => world.kill(running[host % running.len()]),
        Mishap::Crash(_) | Mishap::Leave(_) | Mishap::Kill(_) => {}
        Mishap::Vouch(host) => {
            // Where a majority answers, a daemon hands no vouch on.
            let host = running[host % running.len()];
            if world.standing(host) != Standing::Majority {
                world.input(host, Input::GoOn);
            }
        }
        Mishap::Start(host) => {
            if world.hosts[host % count].daemon.is_none() {
                world.start(host % count);
            }
        }
        Mishap::Restart(host) if running.len() > 1 => {
            let host = running[host % running.len()];
            world.crash(host);
            world.start(host);
        }
        Mishap::Restart(_) => {}
        Mishap::Stop(host, time) => world.stop(host % count, Duration::from_millis(*time)),
        Mishap::Split(seed, parts, both) => {
            let mut groups = vec![Vec::new(); *parts];
            for host in 0..count {
                groups[(seed >> (5 * host % 60)) as usize % parts].push(host);
            }
            let groups: Vec<&[usize]> = groups.iter().map(Vec::as_slice).collect();
            world.split(&groups, *both);
        }
        Mishap::Heal => world.heal(),
        Mishap::Weather {
            loss,
            duplicates,
            delay,
            lateness,
        } => {
            world.network.loss = f64::from(*loss) / 100.0;
            world.network.duplicates = f64::from(*duplicates) / 100.0;
            world.network.delay.1 = Duration::from_millis(*delay);
            world.network.lateness = Duration::from_millis(*lateness);
        }
    }
}

/// Lets time pass, and holds the world against the rule of one majority, once a split has lasted long enough to be noticed.
fn pass(world: &mut World, time: Duration) -> Result<(), TestCaseError> {
    let until = world.now + time;
    while world.now < until {
        world.run(seconds(0.1).min(until - world.now));
        let both_ways = (0..4).all(|a| (0..4).all(|b| world.network.cut[a][b] == (a != b)));
        if both_ways
            && world.now - world.unsettled_since > seconds(3.5)
            && world.hosts.iter().all(|host| !host.is_stopped())
        {
            let majorities = world.majorities_by_lineage();
            let vouched = majorities.iter().any(|(lineage, _)| lineage.vouches() > 0);
            // On one side, some may not have heard yet that a lineage has begun.
            let mut lineages: Vec<_> = majorities.iter().map(|(lineage, _)| lineage).collect();
            lineages.dedup();
            prop_assert!(
                match vouched {
                    true => majorities.len() <= lineages.len(),
                    false => world.majorities().len() <= 1,
                },
                "at {:?} groups {majorities:?} go on: {}",
                world.now,
                world.sketch()
            );
        }
    }
    Ok(())
}

fn live_through(seed: u64, count: usize, mishaps: &[(Mishap, u64)]) -> Result<(), TestCaseError> {
    let mut world = World::joined(seed, count);
    prop_assert_eq!(world.is_whole(), Ok(()));
    for (mishap, time) in mishaps {
        happen(&mut world, mishap);
        pass(&mut world, Duration::from_millis(*time))?;
    }
    world.heal();
    world.network = Network::default();
    world.run(seconds(10.0));
    if world.living().is_empty() {
        return Ok(());
    }
    if world.stands_still_rightly() {
        world.input(world.living()[0], Input::GoOn);
        world.run(seconds(10.0));
    }
    prop_assert_eq!(world.is_whole(), Ok(()));
    prop_assert_eq!(world.is_told_in_order(), Ok(()));
    prop_assert_eq!(world.rolls_have_one_number(), Ok(()));
    Ok(())
}

/// A short run of always the same histories by default; `PROPTEST_CASES` asks for so many new ones.
fn config() -> ProptestConfig {
    let default = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig {
            cases: 150,
            rng_seed: RngSeed::Fixed(1),
            ..default
        },
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn after_any_history_all_agree((seed, count, mishaps) in history()) {
        live_through(seed, count, &mishaps)?;
    }
}

/// Host 0 is cut off, and 1 and 2 go on without it. Then both lose their names within a second, so that they are gone for certain as far as 0
/// knows, which therefore goes on alone, beside a roll of theirs that counts nobody who lives.
#[test]
fn nobody_decides_anew_what_those_who_are_gone_have_decided() {
    use Mishap::*;
    let mishaps = [
        (Restart(720323270059176081), 167),
        (Split(821489510004022500, 2, true), 50),
        (Stop(9450260048743487012, 1616), 1396),
        (Stop(9724683976656251124, 249), 1063),
        (Split(17369626412543711143, 3, false), 1873),
        (Restart(310757397426765320), 1665),
    ];
    // The order of events depends on the seed, and what is known to be wrong happened with the first.
    for seed in (114887880812639671..).take(20) {
        live_through(seed, 3, &mishaps).unwrap();
    }
}

/// Two of six are vouched for, and one of these dies; of the others half are left. Nobody may go on until somebody vouches again.
#[test]
fn a_host_that_was_vouched_for_does_not_go_back_to_the_earlier_roll() {
    use Mishap::*;
    let mishaps = [
        (Crash(1985461750025719327), 16),
        (Vouch(0), 1760),
        (Kill(16868188004248976626), 1958),
        (Heal, 1940),
        (Split(7442420333088546732, 3, false), 2528),
        (Vouch(13662764487509917601), 1649),
        (Crash(7376550956323113510), 3255),
        (Restart(9826428561040152380), 1398),
    ];
    for seed in (6398878054555649..).take(20) {
        live_through(seed, 8, &mishaps).unwrap();
    }
}
