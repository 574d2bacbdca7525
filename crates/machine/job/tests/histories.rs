//! After any history of a job whose launchers are lost one after the other, what tasks have been told is true, and
//! nothing is lost or duplicated. `sim/check.rs` has the properties.

mod sim;

use std::time::Duration;

use proptest::prelude::*;
use regatta_job::failover::Obstacle;
use sim::seeds::config;
use sim::{Life, Sim};

/// Maximum number of hosts that join a job.
const MAX_NEW: usize = 3;

/// An event that happens to a job.
#[derive(Clone, Debug)]
enum Mishap {
    /// A host is lost at once, or is cut off and stops later.
    Lose(usize, bool),
    /// The host that leads, or is about to, is lost.
    LoseLeader(bool),
    /// The host of a launcher is lost after this many more messages of launchers.
    LoseAmid(u64),
    /// The launcher gives up a host that is alive.
    GiveUp(usize),
    /// A channel on which a host is claimed breaks.
    Break(usize),
    /// The processes of a host do not run for this many milliseconds.
    Freeze(usize, u64),
    /// A host that was lost returns as another run.
    Return(usize),
    /// A host joins the virtual machine, and then the job.
    Come,
    /// The host that joined the machine last is lost, perhaps before it has joined the job.
    LoseNewest,
    /// The job's output is full for this many milliseconds.
    Fill(u64),
    /// A task ends.
    End,
    /// From now on messages take up to this many milliseconds.
    Slow(u64),
}

fn mishap() -> impl Strategy<Value = Mishap> {
    prop_oneof![
        4 => (any::<usize>(), any::<bool>()).prop_map(|(host, cut)| Mishap::Lose(host, cut)),
        5 => any::<bool>().prop_map(Mishap::LoseLeader),
        3 => (0..60_u64).prop_map(Mishap::LoseAmid),
        2 => any::<usize>().prop_map(Mishap::GiveUp),
        3 => any::<usize>().prop_map(Mishap::Break),
        1 => (any::<usize>(), 1000..10_000_u64).prop_map(|(host, time)| Mishap::Freeze(host, time)),
        1 => any::<usize>().prop_map(Mishap::Return),
        3 => Just(Mishap::Come),
        1 => Just(Mishap::LoseNewest),
        2 => (1..4000_u64).prop_map(Mishap::Fill),
        4 => Just(Mishap::End),
        2 => (1..400_u64).prop_map(Mishap::Slow),
    ]
}

/// A seed, a number of hosts, and mishaps, each after a number of requests and milliseconds.
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
    let number = |host: &usize| (host % hosts) as u32;
    match mishap {
        Mishap::Lose(host, cut) => lose(sim, number(host), *cut),
        Mishap::LoseLeader(cut) => {
            let leader = sim.launchers.last().map(|one| one.host);
            leader.into_iter().for_each(|host| lose(sim, host, *cut));
        }
        Mishap::LoseAmid(count) => sim.fuse = Some(*count),
        Mishap::GiveUp(host) => {
            if sim.is_of_job(number(host)) && sim.can_lose(number(host)) {
                sim.give_up_living(number(host));
            }
        }
        Mishap::Break(channel) => sim.break_claim(*channel),
        Mishap::Freeze(host, time) => {
            if sim.is_of_job(number(host)) && sim.can_lose(number(host)) {
                sim.freeze(number(host), Duration::from_millis(*time));
            }
        }
        Mishap::Return(host) => {
            let host = &mut sim.hosts[host % hosts];
            host.is_back = host.life == Life::Gone;
        }
        Mishap::Come if sim.machines.len() < sim.first_hosts as usize + MAX_NEW => sim.come(),
        Mishap::Come => {}
        Mishap::LoseNewest => {
            let newest = sim.machines.len() as u32 - 1;
            let agent = sim.agents_on(newest).first().copied();
            match agent {
                Some(host) => lose(sim, host, false),
                None if sim.machines[newest as usize].is_up && sim.can_lose_machine(newest) => {
                    sim.lose_machine(newest);
                }
                None => {}
            }
        }
        Mishap::Fill(time) => sim.fill(Duration::from_millis(*time)),
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

// Two tests, since one uses only one core.
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

/// The launcher gives up host 1, which is alive, and is lost before the others are told. Host 2 leads at once, and
/// answers no claims.
#[test]
fn a_host_that_was_given_up_does_not_lead_beside_one_that_leads() {
    let mishaps = vec![
        (Mishap::GiveUp(1), 0, 0),
        (Mishap::Come, 0, 0),
        (Mishap::LoseAmid(0), 0, 0),
        (Mishap::Come, 0, 0),
    ];
    live_through(&(1635288821027513016, 3, mishaps)).expect("one leader");
}

/// Host 3 has joined, and the launcher is lost before that host is told who leads next, so its agent ends. The next
/// launcher, on host 1, is lost as well, and host 2 alone is no majority of the two hosts that are left.
#[test]
fn a_job_ends_with_two_hosts_of_which_one_has_never_heard_who_leads_next() {
    let mishaps = vec![
        (Mishap::Slow(249), 3, 0),
        (Mishap::Break(0), 10, 1396),
        (Mishap::Come, 7, 0),
        (Mishap::LoseAmid(25), 10, 2513),
        (Mishap::LoseAmid(0), 5, 0),
        (Mishap::LoseAmid(0), 1, 0),
    ];
    live_through(&(9638261059247633634, 3, mishaps)).expect("an end");
}

/// Returns a job whose launcher is lost. It had given up host 1, which is alive and has not been told. Host 2 has been
/// told. Host 3 has joined, and is never told who leads next, since that message is still in flight. Returns `None` if
/// host 3 does not join because a channel breaks.
fn launcher_lost_beside_a_host_given_up_and_one_that_has_come(seed: u64) -> Option<Sim> {
    let mut sim = Sim::begun(seed, 3);
    sim.come();
    if !sim.run_until(|sim| sim.hosts.len() == 4) {
        return None;
    }
    sim.hold((0, 3));
    assert!(sim.run_until(|sim| sim.launchers[0].remotes.contains_key(&3)));
    sim.give_up_living(1);
    let has_heard = |sim: &Sim| {
        let follower = sim.hosts[2].follower.as_ref();
        follower.is_some_and(|one| one.successors().eq(["r2", "r3"]))
    };
    assert!(sim.run_until(has_heard));
    // The machine is larger than the job.
    sim.come();
    assert!(sim.can_lose(0));
    sim.lose(0, Life::Gone);
    sim.settle();
    Some(sim)
}

/// Returns the launchers that have left the job without having led, in the order in which they began to claim.
fn left(sim: &Sim) -> Vec<(u32, Obstacle)> {
    let claims = sim
        .launchers
        .iter()
        .filter_map(|one| Some((one.host, one.rejoin.as_ref()?)));
    claims
        .filter_map(|(host, rejoin)| Some((host, rejoin.left.clone()?)))
        .collect()
}

/// Host 2 alone is no majority of hosts 2 and 3, whose agent has no host to wait for. Host 1 is alive and must not
/// lead: it does not have the state of the job since it was given up. Which of the two claims first depends only on the
/// membership.
#[test]
fn a_job_ends_although_a_host_that_was_given_up_claims_last() {
    let (seen_too_few, given_up) = ((2, Obstacle::TooFew), (1, Obstacle::GivenUp(2)));
    let orders = [
        vec![seen_too_few.clone(), given_up.clone()],
        vec![given_up, seen_too_few],
    ];
    let mut times = [0, 0];
    for seed in 0..64 {
        let Some(mut sim) = launcher_lost_beside_a_host_given_up_and_one_that_has_come(seed) else {
            continue;
        };
        let order = orders.iter().position(|order| *order == left(&sim));
        times[order.unwrap_or_else(|| panic!("{}", sim.sketch()))] += 1;
        assert_eq!(sim.check(), Ok(()));
    }
    assert!(times.iter().all(|times| *times > 5), "{times:?}");
}

/// If a host leaves because it was given up, this does not explain why no host leads.
#[test]
fn a_job_that_nobody_leads_without_a_reason_is_a_fault() {
    for why in [Obstacle::DaemonEnded, Obstacle::GivenUp(3)] {
        let sims = (0..64).filter_map(launcher_lost_beside_a_host_given_up_and_one_that_has_come);
        for mut sim in sims.take(10) {
            let launcher = sim.launchers.iter_mut().find(|one| one.host == 2);
            let rejoin = launcher.and_then(|one| one.rejoin.as_mut());
            rejoin.expect("host 2 has claimed").left = Some(why.clone());
            let verdict = sim.check().expect_err("nobody leads");
            assert!(verdict.starts_with("nobody leads"), "{verdict}");
        }
    }
}
