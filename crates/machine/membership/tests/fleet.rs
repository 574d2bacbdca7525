//! Large machines: updates spread, the cost per host does not grow, and no host is blamed wrongly.

mod sim;

use regatta_membership::Event;
use sim::rates::{blame, churn, quantile, verdict};
use sim::{World, seconds};

#[test]
fn a_thousand_hosts_under_churn_agree_soon_and_cheaply() {
    let run = churn(1, 1000, 0.01, seconds(12.0));
    assert!(
        run.first.len() == run.most.len() && !run.most.is_empty(),
        "{run:?}"
    );
    assert!(quantile(&run.most, 1.0) < 3.5, "{run:?}");
    assert_eq!(run.wrongly_dead, 0, "{run:?}");
    assert!(run.bytes_per_second < 8000.0, "{run:?}");
}

#[test]
fn what_a_host_sends_in_quiet_does_not_grow_with_the_machine() {
    let rate = |count: usize| {
        let mut world = World::assembled(2, count);
        world.run(seconds(10.0));
        world.hosts.iter().map(|host| host.bytes).sum::<u64>() as f64 / 10.0 / count as f64
    };
    let (few, many) = (rate(10), rate(300));
    assert!(
        many < few * 1.1,
        "10 hosts: {few} bytes per host and second, 300: {many}"
    );
}

#[test]
fn a_large_machine_splits_and_heals() {
    let mut world = World::assembled(3, 150);
    let hosts: Vec<usize> = (0..150).collect();
    world.run(seconds(1.0));
    world.split(&[&hosts[..60], &hosts[60..]], true);
    world.run(seconds(5.0));
    assert_eq!(world.majorities(), [1].into());
    let blamed = world
        .log
        .iter()
        .filter(|(_, host, event)| *host < 60 && matches!(event, Event::Dead(..)))
        .count();
    assert_eq!(blamed, 0, "verdicts of the minority");
    world.heal();
    world.run(seconds(15.0));
    world.is_whole().unwrap();
}

#[test]
fn one_percent_of_loss_kills_nobody() {
    for count in [2, 3, 8] {
        let run = blame(4, count, 0.01, seconds(600.0));
        assert_eq!((run.verdicts, run.stops), (0, 0), "{count} hosts: {run:?}");
    }
}

/// Short form of the delays that the example `verdicts` lists.
#[test]
fn every_survivor_comes_to_a_verdict() {
    for (count, runs) in [(2, 20), (8, 20)] {
        let times = (0..runs).filter_map(|seed| verdict(seed, count));
        assert_eq!(times.count(), runs as usize, "{count} hosts");
    }
}
