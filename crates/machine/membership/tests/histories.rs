//! After any history, and ten seconds of good network, all hosts go on together, unless none may; and two sides of a
//! split never both go on. `sim/check.rs` lists the invariants.

mod sim;

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use regatta_membership::{Input, Standing};
use sim::{Network, World, seconds};

/// One thing that happens to a machine.
#[derive(Clone, Debug)]
enum Mishap {
    Crash(usize),
    /// The daemon ends, and its host refuses connections.
    Kill(usize),
    /// An operator asserts that all hosts that do not answer are dead, which may be wrong.
    Vouch(usize),
    Start(usize),
    Restart(usize),
    Leave(usize),
    Stop(usize, u64),
    /// The group of each host, and whether the cut is in both directions.
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
        // One host stays: a machine whose last host dies no longer exists. It may end of its own accord, though.
        Mishap::Crash(host) if running.len() > 1 => world.crash(running[host % running.len()]),
        Mishap::Leave(host) if running.len() > 1 => world.leave(running[host % running.len()]),
        Mishap::Kill(host) if running.len() > 1 => world.kill(running[host % running.len()]),
        Mishap::Crash(_) | Mishap::Leave(_) | Mishap::Kill(_) => {}
        Mishap::Vouch(host) => {
            // Where a majority answers, a daemon does not pass a vouch on.
            let host = running[host % running.len()];
            if world.standing(host) != Standing::Majority {
                world.input(host, Input::Vouch);
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

/// Lets time pass, and checks the rule of one majority, once a split has lasted long enough to be noticed.
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
            // On one side, some hosts may not know yet that a lineage has begun.
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
        world.input(world.living()[0], Input::Vouch);
        world.run(seconds(10.0));
    }
    prop_assert_eq!(world.is_whole(), Ok(()));
    prop_assert_eq!(world.is_told_in_order(), Ok(()));
    prop_assert_eq!(world.rolls_have_one_number(), Ok(()));
    Ok(())
}

/// Runs the same histories each time by default, 20 000 in all; `PROPTEST_CASES` sets a number of random ones per test.
/// A history takes 3 ms.
fn config(seed: u64) -> ProptestConfig {
    let default = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig {
            cases: 10_000,
            rng_seed: RngSeed::Fixed(seed),
            ..default
        },
    }
}

// Two tests, since one test uses one core.
proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn after_any_history_all_agree((seed, count, mishaps) in history()) {
        live_through(seed, count, &mishaps)?;
    }
}

proptest! {
    #![proptest_config(config(2))]

    #[test]
    fn after_any_other_history_all_agree((seed, count, mishaps) in history()) {
        live_through(seed, count, &mishaps)?;
    }
}

/// Host 0 is cut off, and 1 and 2 go on without it. Then both lose their identities within a second, so that as far as
/// 0 knows they are certainly gone. So 0 goes on alone, beside a roll of the others that contains no living host.
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
    // The order of events depends on the seed; the first seed is the one that once failed.
    for seed in (114887880812639671..).take(20) {
        live_through(seed, 3, &mishaps).unwrap();
    }
}

/// Two of six are vouched for, and one of these dies; half of the others are left. No host may go on until an operator
/// vouches again.
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

/// A vouch is followed by so many crashes that either lineage has a quorum of the living hosts on one side of the
/// split.
#[test]
fn two_sides_of_which_neither_remembers_the_other_meet_when_the_network_heals() {
    use Mishap::*;
    let mishaps = [
        (Leave(16490867834799502983), 0),
        (Split(6647606020067792381, 3, true), 1797),
        (Restart(10752740295770144877), 716),
        (Vouch(2440390981736839631), 1373),
        (Crash(3515344367863401341), 2613),
        (Crash(17531325744951419720), 2173),
        (Restart(5819239522129263227), 1321),
        (Leave(3771131283805313420), 3781),
    ];
    for seed in (9213284006307205341..).take(20) {
        live_through(seed, 7, &mishaps).unwrap();
    }
}

/// Of six living hosts, five have lost the identities under which the roll of the last vouch lists them, and one keeps
/// its own.
#[test]
fn a_host_that_keeps_its_name_among_hosts_that_lost_theirs_goes_on_with_them() {
    use Mishap::*;
    let mishaps = [
        (Kill(16105801262841789129), 2858),
        (Heal, 245),
        (Split(14698758465563789095, 3, true), 2438),
        (Vouch(15557004778844137680), 2480),
        (Split(16218822472928442619, 2, false), 2504),
        (Stop(2106492604054054493, 1121), 2873),
        (Split(8738441796489290808, 3, false), 3789),
        (Kill(13085758456000998617), 604),
        (Split(2522880943930246849, 2, true), 509),
    ];
    for seed in (11151640246376411672..).take(20) {
        live_through(seed, 8, &mishaps).unwrap();
    }
}

/// Two hosts of different lineages are left, and neither has a quorum. One of them lacks only an earlier run of the
/// other.
#[test]
fn a_host_that_waits_for_an_earlier_run_of_one_of_another_lineage_goes_on() {
    use Mishap::*;
    let mishaps = [
        (Crash(6918283747524994461), 1374),
        (Split(18330692422223975554, 2, false), 0),
        (Start(172422629744627928), 2409),
        (Restart(13304987262543809365), 3677),
        (Crash(979457655955651155), 1153),
    ];
    for seed in 0..20 {
        live_through(seed, 3, &mishaps).unwrap();
    }
}

/// The roll of a vouch contains a host that does not know of it, and the only other living host of that roll is not the
/// one that was vouched for.
#[test]
fn a_host_that_a_vouch_counts_reads_so_from_any_host_of_that_lineage() {
    use Mishap::*;
    let weather = Weather {
        loss: 17,
        duplicates: 5,
        delay: 13,
        lateness: 72,
    };
    let mishaps = [
        (weather, 2977),
        (Split(4076477628198620777, 3, false), 1218),
        (Restart(10813000552512912599), 747),
        (Start(4526501400), 1737),
        (Kill(11535640465513664210), 1276),
        (Leave(14104889800263653468), 3835),
        (Vouch(2171383731612286607), 390),
        (Crash(1588569356094400782), 2417),
    ];
    for seed in (6686680634183235687..).take(20) {
        live_through(seed, 6, &mishaps).unwrap();
    }
}

/// The only host on the roll of a lineage has gone back to an earlier lineage, in which too few are left. One host
/// stays behind, and is on neither roll.
#[test]
fn a_host_whose_lineage_has_nobody_left_who_counts_goes_where_somebody_does() {
    use Mishap::*;
    let weather = Weather {
        loss: 24,
        duplicates: 1,
        delay: 29,
        lateness: 65,
    };
    let mishaps = [
        (Restart(2824922661749608093), 858),
        (Split(13250129426826314466, 2, false), 2557),
        (Start(5811192018538385586), 3179),
        (Leave(1342573157780874562), 2180),
        (Vouch(370320295278058166), 1836),
        (weather, 2158),
        (Stop(1504404310819527093, 2310), 2464),
        (Split(2946232774456468856, 2, false), 2260),
        (Crash(10518684434643524280), 903),
    ];
    for seed in (887330890988862444..).take(20) {
        live_through(seed, 4, &mishaps).unwrap();
    }
}

/// All hosts have started again while the network was split, and have never seen those of the other side. They only
/// know the addresses that they were told to join.
#[test]
fn sides_that_have_never_seen_each_other_meet_where_they_were_told_to_join() {
    use Mishap::*;
    let weather = Weather {
        loss: 22,
        duplicates: 0,
        delay: 26,
        lateness: 66,
    };
    let mishaps = [
        (Vouch(0), 1806),
        (Vouch(0), 831),
        (Restart(939845852550566214), 3292),
        (Restart(1463620769887269188), 3033),
        (Split(7501129536685831524, 2, true), 2844),
        (Crash(15841329568133979459), 3211),
        (weather, 1836),
        (Leave(14707598907405465377), 606),
        (Restart(8125517000743425833), 2141),
        (Vouch(9834135319909144108), 3882),
        (Restart(18285021162620799517), 2094),
        (Start(3427768457828234091), 3730),
        (Restart(17826869209589171544), 1954),
        (Restart(8104498932358202990), 1006),
    ];
    for seed in (11097873993612851946..).take(20) {
        live_through(seed, 6, &mishaps).unwrap();
    }
}
