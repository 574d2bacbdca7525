//! After any history of a job whose launchers are lost one after the other, what tasks have heard is true, and nothing is lost or doubled.
//! `sim/check.rs` has the sentences.

mod sim;

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use sim::{Life, Sim};

/// One thing that happens to a job.
#[derive(Clone, Debug)]
enum Mishap {
    /// A host is lost at once, or is cut off and stops later.
    Lose(usize, bool),
    /// The host that leads, or is about to.
    LoseLeader(bool),
    /// The launcher gives up a host that is alive.
    GiveUp(usize),
    /// A task ends.
    End,
    /// Messages take so many milliseconds at most from now on.
    Slow(u64),
}

fn mishap() -> impl Strategy<Value = Mishap> {
    prop_oneof![
        2 => (any::<usize>(), any::<bool>()).prop_map(|(host, cut)| Mishap::Lose(host, cut)),
        3 => any::<bool>().prop_map(Mishap::LoseLeader),
        1 => any::<usize>().prop_map(Mishap::GiveUp),
        2 => Just(Mishap::End),
        1 => (1..400_u64).prop_map(Mishap::Slow),
    ]
}

/// Mishaps, each after so many requests, over so many milliseconds.
type History = (u64, u32, Vec<(Mishap, u32, u64)>);

fn history() -> impl Strategy<Value = History> {
    let step = (mishap(), 0..12_u32, prop_oneof![0..20_u64, 0..4000_u64]);
    (any::<u64>(), 3..9_u32, prop::collection::vec(step, 1..9))
}

fn lose(sim: &mut Sim, host: u32, cut: bool) {
    if sim.life(host) == Life::Up && sim.can_lose(host) {
        sim.lose(host, if cut { Life::Cut } else { Life::Gone });
    }
}

fn happen(sim: &mut Sim, mishap: &Mishap) {
    let hosts = sim.hosts.len();
    match mishap {
        Mishap::Lose(host, cut) => lose(sim, (host % hosts) as u32, *cut),
        Mishap::LoseLeader(cut) => {
            let leader = sim.launchers.last().map(|one| one.host);
            leader.into_iter().for_each(|host| lose(sim, host, *cut));
        }
        Mishap::GiveUp(host) => {
            let host = (host % hosts) as u32;
            if sim.life(host) == Life::Up && sim.can_lose(host) {
                sim.give_up_living(host);
            }
        }
        Mishap::End => sim.end_some(),
        Mishap::Slow(most) => sim.slowest = *most,
    }
}

fn live_through((seed, hosts, mishaps): &History) -> Result<(), TestCaseError> {
    let mut sim = Sim::begun(*seed, *hosts);
    for (mishap, requests, time) in mishaps {
        for _ in 0..*requests {
            sim.act();
            let pause = sim.random(1000 * time / u64::from(*requests) + 1);
            sim.run(Duration::from_micros(pause));
        }
        happen(&mut sim, mishap);
    }
    sim.settle();
    prop_assert_eq!(sim.check(), Ok(()));
    Ok(())
}

/// Always the same histories by default, 100 000 in all; `PROPTEST_CASES` asks each test for so many new ones.
fn config(seed: u64) -> ProptestConfig {
    let default = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig {
            cases: 50_000,
            rng_seed: RngSeed::Fixed(seed),
            ..default
        },
    }
}

// Two tests, since one uses one core.
proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn after_any_history_what_was_heard_is_true(history in history()) {
        live_through(&history)?;
    }
}

proptest! {
    #![proptest_config(config(2))]

    #[test]
    fn after_any_other_history_what_was_heard_is_true(history in history()) {
        live_through(&history)?;
    }
}
