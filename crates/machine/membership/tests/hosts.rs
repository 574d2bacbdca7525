//! Hosts that arrive, leave, die, are stopped and restart, on a good network.

mod sim;

use regatta_membership::{Cause, Event, Input, Standing};
use sim::{World, seconds};

#[test]
fn a_host_alone_is_a_machine() {
    let world = World::joined(1, 1);
    assert_eq!(world.standing(0), Standing::Majority);
    world.is_whole().unwrap();
}

#[test]
fn hosts_join_one_after_the_other_and_all_know_all() {
    for count in [2, 3, 8, 60] {
        let world = World::joined(2, count);
        world.is_whole().unwrap();
        for host in 0..count {
            for other in 0..count {
                let facts = world
                    .daemon(host)
                    .facts(&world.name(other))
                    .expect("described");
                assert_eq!(facts.name, format!("host{other}"));
            }
        }
    }
}

#[test]
fn a_silent_host_is_suspected_and_then_dead_within_the_time_set() {
    for count in [2, 3, 8] {
        for seed in 0..10 {
            let mut world = World::joined(seed, count);
            let (dead, others) = (world.name(count - 1), count - 1);
            world.log.clear();
            world.crash(count - 1);
            let at = world.now;
            world.run(seconds(2.5));
            world.is_whole().unwrap();
            assert_eq!(
                world.count(|event| *event == Event::Dead(dead, Cause::Silent)),
                others
            );
            let first = |wanted: &dyn Fn(&Event) -> bool| {
                world
                    .log
                    .iter()
                    .find(|(_, _, event)| wanted(event))
                    .map(|(at, ..)| *at)
            };
            let suspected =
                first(&|event| *event == Event::Suspected(dead)).expect("suspicion is shown");
            assert!(suspected < first(&|event| matches!(event, Event::Dead(..))).unwrap());
            let last = world
                .log
                .iter()
                .rfind(|(_, _, event)| matches!(event, Event::Dead(..)))
                .unwrap()
                .0;
            assert!(
                last - at <= world.settings.silence + world.settings.period(),
                "{count} hosts: after {:?}",
                last - at
            );
        }
    }
}

#[test]
fn a_leaving_host_is_gone_at_once_and_by_that_name() {
    for count in [2, 3, 8] {
        for leaver in [0, count - 1] {
            let mut world = World::joined(3, count);
            let name = world.name(leaver);
            world.log.clear();
            world.leave(leaver);
            world.run(seconds(1.0));
            assert!(
                world.hosts[leaver].departed,
                "{count} hosts, {leaver} leaves"
            );
            world.is_whole().unwrap();
            assert_eq!(world.count(|event| *event == Event::Left(name)), count - 1);
            assert_eq!(
                world.count(|event| matches!(event, Event::Dead(..) | Event::Minority { .. })),
                0
            );
        }
    }
}

#[test]
fn a_dead_daemon_on_a_living_host_is_told_apart() {
    let mut world = World::joined(4, 5);
    let name = world.name(3);
    world.crash(3);
    world.input(1, Input::DaemonGone { host: name });
    world.run(seconds(0.6));
    assert_eq!(
        world.count(|event| *event == Event::Dead(name, Cause::DaemonGone)),
        4
    );
    world.is_whole().unwrap();
}

#[test]
fn the_last_of_two_goes_on_when_the_others_daemon_is_gone_for_certain() {
    let mut world = World::joined(5, 2);
    let first = world.name(0);
    world.crash(0);
    world.input(1, Input::DaemonGone { host: first });
    world.run(seconds(1.0));
    world.is_whole().unwrap();
}

#[test]
fn a_process_stopped_for_a_second_is_suspected_and_cleared() {
    for (count, seed) in [2, 3, 8, 50]
        .into_iter()
        .flat_map(|count| (0..5).map(move |seed| (count, seed)))
    {
        let mut world = World::joined(seed, count);
        world.log.clear();
        world.stop(0, seconds(1.0));
        world.run(seconds(4.0));
        assert_eq!(
            world.count(|event| matches!(event, Event::Dead(..) | Event::Renewed { .. })),
            0,
            "{count} hosts, {seed}: {:?}",
            world.log
        );
        assert_eq!(
            world.count(|event| matches!(event, Event::Suspected(..))),
            world.count(|event| matches!(event, Event::Cleared(..)))
        );
        world.is_whole().unwrap();
    }
}

#[test]
fn a_process_stopped_for_long_comes_back_under_a_new_name_and_blames_nobody() {
    let mut world = World::joined(6, 6);
    let old = world.name(2);
    world.log.clear();
    world.stop(2, seconds(20.0));
    world.run(seconds(25.0));
    assert_ne!(world.name(2), old);
    assert_eq!(
        world.count(|event| matches!(event, Event::Dead(host, _) if *host != old)),
        0
    );
    world.is_whole().unwrap();
}

#[test]
fn a_daemon_started_again_is_another_host() {
    for count in [2, 3, 8] {
        for which in [0, count - 1] {
            let mut world = World::joined(7, count);
            let old = world.name(which);
            world.crash(which);
            world.start(which);
            world.run(seconds(5.0));
            assert_ne!(world.name(which), old);
            assert_eq!(
                world.count(|event| matches!(event, Event::Dead(host, _) if *host == old)),
                count - 1
            );
            world.is_whole().unwrap();
        }
    }
}

#[test]
fn all_hosts_can_be_replaced_one_by_one() {
    let mut world = World::joined(8, 3);
    for host in 0..3 {
        world.crash(host);
        world.run(seconds(4.0));
        let fresh = world.add();
        world.start(fresh);
        world.run(seconds(3.0));
        world.is_whole().unwrap();
    }
}
