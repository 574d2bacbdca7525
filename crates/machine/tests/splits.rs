//! Networks that fall apart and come together again.

mod sim;

use regatta_machine::{Event, Input, Standing};
use sim::{World, seconds};

/// The hosts of each side, and which side goes on.
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
    // Only those who were cut off take new names.
    assert_eq!(
        world.count(|event| matches!(event, Event::Renewed { .. })),
        2
    );
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
    // Of the last two the younger cannot know whether it is alone.
    assert_eq!(world.standing(7), Standing::Minority);
}

#[test]
fn the_operator_can_tell_a_minority_to_go_on() {
    let mut world = World::joined(6, 3);
    world.crash(0);
    world.crash(1);
    world.run(seconds(4.0));
    assert_eq!(world.standing(2), Standing::Minority);
    world.input(2, Input::GoOn);
    world.run(seconds(1.0));
    world.is_whole().unwrap();
    world.start(0);
    world.run(seconds(3.0));
    world.is_whole().unwrap();
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
    // The first three meet two of those who went on without them: five of eight, but of an old roll.
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
