//! Networks that split and heal again.

mod sim;

use regatta_membership::{Event, Input, Renewal, Standing};
use sim::{World, seconds};

/// Returns a machine of `count` hosts that is split at host `at`.
fn split(count: usize, at: usize, seed: u64) -> World {
    let mut world = World::joined(seed, count);
    let hosts: Vec<usize> = (0..count).collect();
    world.log.clear();
    world.split(&[&hosts[..at], &hosts[at..]], true);
    world
}

#[test]
fn the_larger_side_goes_on_and_the_smaller_says_why_it_stops() {
    for (count, at) in [(3, 1), (5, 2), (5, 3), (8, 3), (40, 15)] {
        let mut world = split(count, at, 1);
        world.run(seconds(5.0));
        let (small, large) = if at < count - at {
            (0..at, at..count)
        } else {
            (at..count, 0..at)
        };
        assert!(
            large
                .clone()
                .all(|host| world.standing(host) == Standing::Majority),
            "{count}, {at}"
        );
        assert!(
            small
                .clone()
                .all(|host| world.standing(host) == Standing::Minority),
            "{count}, {at}"
        );
        let told = world.count(|event| matches!(event, Event::Minority { seen, known } if 2 * seen <= *known && *known == count));
        assert_eq!(told, small.len());
        world.heal();
        world.run(seconds(10.0));
        world.is_whole().unwrap();
    }
}

#[test]
fn of_two_equal_halves_the_one_with_the_oldest_host_goes_on() {
    for count in [2, 4, 8] {
        let mut world = split(count, count / 2, 2);
        world.run(seconds(5.0));
        assert_eq!(world.majorities(), [0].into());
        world.heal();
        world.run(seconds(10.0));
        world.is_whole().unwrap();
    }
}

#[test]
fn the_minority_declares_nobody_dead() {
    let mut world = split(7, 2, 3);
    world.run(seconds(30.0));
    let blamed = world
        .log
        .iter()
        .filter(|(_, host, event)| *host < 2 && matches!(event, Event::Dead(..)))
        .count();
    assert_eq!(blamed, 0);
    world.heal();
    world.run(seconds(10.0));
    world.is_whole().unwrap();
    // Only the hosts that were cut off take new identities.
    assert_eq!(
        world.count(|event| matches!(event, Event::Renewed { .. })),
        2
    );
}

/// Cuts off the last host repeatedly, each time for `down` seconds. Returns how often it was declared dead.
fn lost_to_flaps(count: usize, seed: u64, down: f64, both_ways: bool) -> usize {
    let mut world = World::joined(seed, count);
    let others: Vec<usize> = (0..count - 1).collect();
    world.log.clear();
    for time in 0..30 {
        world.split(&[&others, &[count - 1]], both_ways);
        world.run(seconds(down));
        world.heal();
        // Each cut happens at a different moment between two probes.
        world.run(seconds(1.0 + 0.037 * f64::from(time)));
    }
    world.run(seconds(5.0));
    world.is_whole().unwrap();
    world.count(|event| matches!(event, Event::Dead(..) | Event::Renewed { .. }))
}

/// No outage lasts as long as a host may be silent. The fewer hosts there are, the longer a suspect has to object.
#[test]
fn a_host_whose_link_flaps_is_not_lost() {
    for seed in 0..10 {
        for (count, down) in [(2, 1.4), (3, 1.3), (4, 1.2), (8, 1.0)] {
            for both_ways in [true, false] {
                let lost = lost_to_flaps(count, seed, down, both_ways);
                assert_eq!(lost, 0, "{count} hosts, seed {seed}");
            }
        }
    }
}

/// A host that receives nothing goes on sending. That others receive it does not keep it alive, nor do its answers to
/// earlier messages.
#[test]
fn a_host_that_is_cut_off_in_one_direction_is_lost_in_time() {
    for seed in 0..20 {
        for count in [2, 3, 8] {
            for deaf in [true, false] {
                let mut world = World::joined(seed, count);
                let (last, others) = (count - 1, (0..count - 1).collect::<Vec<_>>());
                let name = world.name(last);
                match deaf {
                    true => world.split(&[&others, &[last]], false),
                    false => world.split(&[&[last], &others], false),
                }
                let at = world.now;
                let gone = |world: &World| {
                    let is_gone =
                        |&host: &usize| world.daemon(host).hosts().all(|(other, _)| other != name);
                    others.iter().all(is_gone)
                };
                let most = world.settings.silence * 3 / 2;
                assert!(
                    world.run_until(most, gone),
                    "{count} hosts, {:?}",
                    world.now - at
                );
            }
        }
    }
}

#[test]
fn no_side_goes_on_if_none_has_a_majority() {
    let mut world = World::joined(4, 9);
    world.split(&[&[0, 1, 2], &[3, 4, 5], &[6, 7, 8]], true);
    world.run(seconds(5.0));
    assert!(world.majorities().is_empty());
    world.heal();
    world.run(seconds(10.0));
    world.is_whole().unwrap();
}

#[test]
fn hosts_that_die_one_after_the_other_shrink_the_majority() {
    let mut world = World::joined(5, 8);
    for host in 0..7 {
        world.crash(host);
        world.run(seconds(4.0));
        if host < 6 {
            world.is_whole().unwrap();
        }
    }
    // Of the last two, the younger cannot know whether it is alone.
    assert_eq!(world.standing(7), Standing::Minority);
}

#[test]
fn the_operator_can_tell_a_minority_to_go_on() {
    let mut world = World::joined(6, 3);
    world.crash(0);
    world.crash(1);
    world.run(seconds(4.0));
    assert_eq!(world.standing(2), Standing::Minority);
    world.input(2, Input::Vouch);
    world.run(seconds(1.0));
    world.is_whole().unwrap();
    world.start(0);
    world.run(seconds(3.0));
    world.is_whole().unwrap();
}

/// A host that is cut off goes on because an operator wrongly vouches for it.
#[test]
fn a_wrong_vouch_stops_nobody_but_the_host_it_was_given_on() {
    for (seed, cut_off) in (0..20).zip((0..4).cycle()) {
        let mut world = World::joined(seed, 4);
        let others: Vec<usize> = (0..4).filter(|host| *host != cut_off).collect();
        let names: Vec<_> = others.iter().map(|host| world.name(*host)).collect();
        world.split(&[&others, &[cut_off]], true);
        // Before the others have removed it from the roll, afterwards, and when they no longer call dead hosts.
        let lasting = [0.3, 3.0, 700.0][seed as usize % 3];
        world.run(seconds(2.5));
        assert_eq!(world.standing(cut_off), Standing::Minority);
        world.input(cut_off, Input::Vouch);
        assert_eq!(world.standing(cut_off), Standing::Majority);
        world.run(seconds(lasting));
        world.log.clear();
        world.heal();
        world.run(seconds(10.0));
        world.is_whole().unwrap();
        let wrongs: Vec<usize> = world
            .log
            .iter()
            .filter(|(_, _, event)| {
                matches!(
                    event,
                    Event::Renewed {
                        why: Renewal::WronglyVouched,
                        ..
                    }
                )
            })
            .map(|(_, host, _)| *host)
            .collect();
        assert_eq!(wrongs, [cut_off], "seed {seed}");
        let kept: Vec<_> = others.iter().map(|host| world.name(*host)).collect();
        assert_eq!(kept, names);
        let stopped = world.log.iter().any(|(_, host, event)| {
            *host != cut_off && matches!(event, Event::Minority { .. } | Event::Renewed { .. })
        });
        assert!(!stopped, "seed {seed}");
    }
}

/// The roll still has four hosts when the network heals, and the vouch was given at the first possible moment.
#[test]
fn a_wrong_vouch_in_a_short_split_stops_nobody_else() {
    for seed in 0..20 {
        let mut world = World::joined(seed, 4);
        world.split(&[&[0, 1, 3], &[2]], true);
        let most = seconds(5.0);
        assert!(world.run_until(most, |world| world.standing(2) == Standing::Minority));
        world.input(2, Input::Vouch);
        world.heal();
        world.log.clear();
        world.run(seconds(10.0));
        world.is_whole().unwrap();
        let told = |event: &Event| matches!(event, Event::Renewed { .. } | Event::Minority { .. });
        let stopped = world
            .log
            .iter()
            .filter(|(_, host, event)| *host != 2 && told(event));
        assert_eq!(stopped.count(), 0, "seed {seed}");
    }
}

#[test]
fn hosts_that_are_cut_off_together_keep_their_names_when_one_is_vouched_for() {
    let mut world = World::joined(12, 6);
    world.crash(0);
    world.crash(1);
    world.crash(2);
    world.run(seconds(5.0));
    assert!(world.majorities().is_empty());
    world.input(4, Input::Vouch);
    world.log.clear();
    world.run(seconds(5.0));
    world.is_whole().unwrap();
    assert_eq!(
        world.count(|event| matches!(event, Event::Renewed { .. })),
        0
    );
}

#[test]
fn of_two_sides_that_were_both_vouched_for_the_one_with_the_eldest_host_goes_on() {
    for seed in 0..20 {
        let mut world = World::joined(seed, 6);
        world.split(&[&[0, 1], &[2, 3], &[4, 5]], true);
        world.run(seconds(4.0));
        assert!(world.majorities().is_empty());
        world.input(5, Input::Vouch);
        world.input(1, Input::Vouch);
        world.run(seconds(5.0));
        assert_eq!(world.majorities(), [0, 2].into());
        world.log.clear();
        world.heal();
        world.run(seconds(10.0));
        world.is_whole().unwrap();
        let renewed = |host: usize| {
            let events = world.log.iter().filter(move |(_, of, _)| *of == host);
            let whys = events.filter_map(|(_, _, event)| match event {
                Event::Renewed { why, .. } => Some(*why),
                _ => None,
            });
            whys.collect::<Vec<_>>()
        };
        for host in [0, 1] {
            assert_eq!(renewed(host), [], "seed {seed}");
        }
        for host in [4, 5] {
            assert_eq!(renewed(host), [Renewal::BothVouched], "seed {seed}");
        }
        // They may meet either first.
        for host in [2, 3] {
            assert_eq!(renewed(host)[0], Renewal::GaveWay, "seed {seed}");
        }
    }
}

/// The others were ended while it was cut off, so no host is left to tell it.
#[test]
fn a_host_that_was_cut_off_ends_when_it_finds_all_others_ended() {
    for seed in 0..20 {
        for cut_off in [&[0][..], &[3], &[2, 3]] {
            let mut world = World::joined(seed, 4);
            let others: Vec<usize> = (0..4).filter(|host| !cut_off.contains(host)).collect();
            world.split(&[cut_off, &others], true);
            world.run(seconds(5.0));
            others.iter().for_each(|host| world.kill(*host));
            world.run(seconds(5.0));
            assert_eq!(world.living(), cut_off);
            world.heal();
            world.run(seconds(10.0));
            assert_eq!(world.living(), [], "seed {seed}, {cut_off:?}");
        }
    }
}

/// Two of three hosts go on, remove the third from the roll, and end; new daemons start on their hosts.
#[test]
fn whoever_is_left_goes_on_when_all_who_decided_without_it_have_begun_anew() {
    for seed in 0..20 {
        let mut world = World::joined(seed, 3);
        world.split(&[&[0], &[1, 2]], true);
        world.run(seconds(5.0));
        assert_eq!(world.majorities(), [1].into());
        world.crash(1);
        world.crash(2);
        world.heal();
        world.start(1);
        world.start(2);
        world.run(seconds(5.0));
        world.is_whole().unwrap();
        world.rolls_have_one_number().unwrap();
    }
}

/// The two sides contact each other, and report that an operator has to decide.
#[test]
fn sides_of_which_none_may_go_on_say_so_until_one_is_vouched_for() {
    for seed in 0..20 {
        let mut world = World::joined(seed, 6);
        world.split(&[&[0, 1, 2], &[3, 4, 5]], true);
        world.run(seconds(4.0));
        world.input(3, Input::Vouch);
        world.run(seconds(4.0));
        assert_eq!(world.majorities(), [0, 1].into());
        // On each side most hosts die at once, so that neither has a majority of its roll.
        for host in [0, 1, 3, 4] {
            world.crash(host);
        }
        world.run(seconds(5.0));
        assert!(world.majorities().is_empty());
        world.log.clear();
        world.heal();
        world.run(seconds(15.0));
        assert!(world.majorities().is_empty());
        for host in [2, 5] {
            let told = |(_, of, event): &&(_, usize, Event)| {
                *of == host && matches!(event, Event::Deadlock(_))
            };
            assert!(world.log.iter().filter(told).count() >= 1, "seed {seed}");
        }
        world.input(if seed % 2 == 0 { 2 } else { 5 }, Input::Vouch);
        world.run(seconds(10.0));
        world.is_whole().unwrap();
    }
}

#[test]
fn a_host_that_hears_nothing_harms_nobody() {
    let mut world = World::joined(7, 6);
    let deaf = world.name(5);
    world.log.clear();
    world.split(&[&[0, 1, 2, 3, 4], &[5]], false);
    world.run(seconds(20.0));
    assert_eq!(world.standing(5), Standing::Minority);
    assert_eq!(
        world.count(|event| matches!(event, Event::Dead(host, _) if !host.same_place(&deaf))),
        0
    );
    world.heal();
    world.run(seconds(10.0));
    world.is_whole().unwrap();
}

#[test]
fn a_host_that_nobody_hears_harms_nobody() {
    let mut world = World::joined(8, 6);
    let mute = world.name(5);
    world.log.clear();
    world.split(&[&[5], &[0, 1, 2, 3, 4]], false);
    world.run(seconds(20.0));
    assert_ne!(world.standing(5), Standing::Majority);
    assert_eq!(
        world.count(|event| matches!(event, Event::Dead(host, _) if !host.same_place(&mute))),
        0
    );
    world.heal();
    world.run(seconds(10.0));
    world.is_whole().unwrap();
}

#[test]
fn a_split_of_the_remaining_half_still_finds_one_majority() {
    let mut world = World::joined(9, 8);
    world.split(&[&[0, 1, 2], &[3, 4, 5, 6, 7]], true);
    world.run(seconds(5.0));
    world.split(&[&[0, 1, 2], &[3, 4], &[5, 6, 7]], true);
    world.run(seconds(5.0));
    assert_eq!(world.majorities(), [2].into());
    // The first three meet two of those that went on without them: five of eight, but of an old roll.
    world.split(&[&[0, 1, 2, 3, 4], &[5, 6, 7]], true);
    world.run(seconds(5.0));
    assert_eq!(world.majorities(), [1].into());
    world.heal();
    world.run(seconds(10.0));
    world.is_whole().unwrap();
}

#[test]
fn one_host_cut_off_from_many_soon_knows_it() {
    let mut world = World::assembled(10, 400);
    let hosts: Vec<usize> = (0..400).collect();
    world.run(seconds(1.0));
    world.split(&[&hosts[..399], &hosts[399..]], true);
    world.run(seconds(3.0));
    assert_eq!(world.standing(399), Standing::Minority);
    assert!((0..399).all(|host| world.standing(host) == Standing::Majority));
    let blamed = world
        .log
        .iter()
        .filter(|(_, host, event)| *host == 399 && matches!(event, Event::Dead(..)))
        .count();
    assert_eq!(blamed, 0);
}
