//! The members of a group agree on flags, one after the other, whenever members die: all get the same result, and no member waits forever.

mod support;

use std::time::Instant;

use proptest::prelude::*;
use regatta_engine::{Engine, Error, GroupId, Handle, Peer, Presence, Settings};
use regatta_memory::views::Views;
use support::cases;
use support::net::{End, Net, Sizes};
use support::world::room;

/// Number of rounds after which a test fails because nothing will ever change.
const MAX_ROUNDS: usize = 6000;

/// The result of one call.
type Agreed = (i32, Option<Error>);

struct Fleet {
    net: Net,
    group: GroupId,
    engines: Vec<Engine<End>>,
    /// By call and task.
    flags: Vec<Vec<i32>>,
    /// One in this many calls acknowledges the deaths before it.
    acknowledges: usize,
    under_way: Vec<Option<(Handle, Views)>>,
    agreed: Vec<Vec<Agreed>>,
}

/// Returns flags for this many calls and tasks, each with most bits set.
fn flags(calls: usize, tasks: u32, seed: u64) -> Vec<Vec<i32>> {
    let mut state = seed | 1;
    let mut flag = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        !(1 << (state >> 59))
    };
    (0..calls)
        .map(|_| (0..tasks).map(|_| flag()).collect())
        .collect()
}

impl Fleet {
    fn new(tasks: u32, sizes: Sizes, flags: Vec<Vec<i32>>, acknowledges: usize) -> Fleet {
        let net = Net::new(tasks, sizes);
        let engine = |me| Engine::new(net.end(me), Settings { buffer: 1000 });
        Fleet {
            engines: (0..tasks).map(engine).collect(),
            flags,
            acknowledges,
            under_way: (0..tasks).map(|_| None).collect(),
            agreed: vec![Vec::new(); tasks as usize],
            net,
            group: GroupId::WORLD,
        }
    }

    /// Makes the tasks agree in another group of all from now on.
    fn make_group(&mut self) {
        let all: Vec<Peer> = (0..self.engines.len() as Peer).collect();
        for engine in &mut self.engines {
            self.group = engine.add_group(all.clone(), 2).expect("a group");
        }
    }

    /// Lets all living tasks free the group in this order. Checks that all agreements are forgotten afterwards.
    fn free_group(&mut self, order: &[Peer], story: &str) {
        for &peer in order {
            if self.net.is_here(peer) {
                let freed = self.engines[peer as usize].free_group(self.group);
                freed.expect("a group");
                self.engines[peer as usize].progress();
            }
        }
        for _ in 0..100 {
            for peer in self.net.living() {
                self.engines[peer as usize].progress();
            }
        }
        for peer in self.net.living() {
            let kept = self.engines[peer as usize].agreements();
            assert_eq!(kept, 0, "{story}: {peer} keeps some");
        }
    }

    /// Lets a task call, if it is between two calls, and make progress.
    fn turn(&mut self, peer: Peer) {
        let at = peer as usize;
        if !self.net.is_here(peer) {
            return;
        }
        let call = self.agreed[at].len();
        let engine = &mut self.engines[at];
        engine.progress();
        if call == self.flags.len() || !self.net.is_here(peer) {
            return;
        }
        let Some((handle, into)) = self.under_way[at].take() else {
            if self.acknowledges > 0 && (call + at).is_multiple_of(self.acknowledges) {
                engine.acknowledge(self.group).expect("a group");
            }
            let into = room(4);
            let started = engine.start_agree(self.group, self.flags[call][at], into.clone());
            self.under_way[at] = Some((started.expect("a group"), into));
            return;
        };
        match engine.finish(handle).expect("a live handle") {
            None => self.under_way[at] = Some((handle, into)),
            Some((_, error)) => {
                let bytes = into.to_vec().try_into().expect("four bytes");
                self.agreed[at].push((i32::from_ne_bytes(bytes), error));
            }
        }
    }

    /// Runs all tasks until all living ones have made all calls.
    fn run(&mut self, order: &[Peer], story: &str) {
        for _ in 0..MAX_ROUNDS {
            order.iter().for_each(|&peer| self.turn(peer));
            let calls = self.flags.len();
            let is_through = |&peer: &Peer| self.agreed[peer as usize].len() == calls;
            if self.net.living().iter().all(is_through) {
                return;
            }
        }
        let done: Vec<usize> = self.agreed.iter().map(Vec::len).collect();
        let living = self.net.living();
        panic!("{story}: one waits for ever: {done:?} calls, and {living:?} live");
    }

    /// Checks that all tasks with a result have the same, and that it combines the flags of all living tasks and only of members.
    fn check(&self, story: &str) {
        let living = self.net.living();
        for (call, flags) in self.flags.iter().enumerate() {
            let results = self.agreed.iter().filter_map(|all| all.get(call));
            let results: Vec<&Agreed> = results.collect();
            let Some(&&(flag, ref error)) = results.first() else {
                continue;
            };
            assert!(
                results.iter().all(|one| **one == (flag, error.clone())),
                "{story}: call {call}: {results:?}"
            );
            let of_all = flags.iter().fold(!0, |all, flag| all & flag);
            let of_living = living
                .iter()
                .fold(!0, |all, &peer| all & flags[peer as usize]);
            assert_eq!(
                flag & of_all,
                of_all,
                "{story}: a bit that all have is missing"
            );
            assert_eq!(
                flag & !of_living,
                0,
                "{story}: a bit is there that one has not"
            );
            match error {
                None => {}
                Some(Error::Dead(peer)) => {
                    assert!(!living.contains(peer), "{story}: {peer} lives");
                }
                Some(other) => panic!("{story}: {other:?}"),
            }
        }
    }
}

#[test]
fn without_a_death_it_is_the_flags_of_all() {
    for sizes in [Sizes::EAGER_16_BYTES, Sizes::EAGER_300_BYTES] {
        for tasks in [1, 2, 3, 5, 70] {
            let flags = flags(4, tasks, 7);
            let mut fleet = Fleet::new(tasks, sizes, flags.clone(), 0);
            let order: Vec<Peer> = (0..tasks).collect();
            fleet.run(&order, "nobody dies");
            for (call, flags) in flags.iter().enumerate() {
                let expected = flags.iter().fold(!0, |all, flag| all & flag);
                let same = |all: &Vec<Agreed>| all[call] == (expected, None);
                assert!(fleet.agreed.iter().all(same));
            }
        }
    }
}

/// The leader dies after each message that it sends, and so does the next leader.
#[test]
fn leaders_that_die_at_any_step() {
    let mut errors = 0;
    for sizes in [Sizes::EAGER_16_BYTES, Sizes::EAGER_300_BYTES] {
        let most = if sizes.eager < 100 { 120 } else { 24 };
        for first in 0..most {
            for second in (0..most).step_by(1 + most / 20).chain([usize::MAX]) {
                let mut fleet = Fleet::new(4, sizes, flags(2, 4, first as u64), 0);
                fleet.net.die_after(0, first);
                fleet.net.die_after(1, second);
                let forward = first % 2 == 0;
                let order = if forward { [0, 1, 2, 3] } else { [3, 2, 1, 0] };
                let story = format!("0 dies after {first}, 1 after {second}");
                fleet.run(&order, &story);
                fleet.check(&story);
                errors += usize::from(fleet.agreed[3][1].1.is_some());
            }
        }
    }
    assert!(errors > 100, "{errors}");
}

/// A death is an error for all until all have acknowledged it.
#[test]
fn a_death_is_an_error_until_all_have_acknowledged_it() {
    let mut fleet = Fleet::new(4, Sizes::EAGER_300_BYTES, flags(3, 4, 1), 0);
    fleet.net.lose(1, Presence::Dead);
    let order = [0, 2, 3];
    let call = |fleet: &mut Fleet, calls: usize| {
        for _ in 0..MAX_ROUNDS {
            for peer in order {
                if fleet.agreed[peer as usize].len() < calls {
                    fleet.turn(peer);
                } else {
                    fleet.engines[peer as usize].progress();
                }
            }
        }
        let last = |peer: Peer| fleet.agreed[peer as usize].get(calls - 1).cloned();
        let [one, other, third] = order.map(last).map(|last| last.expect("it ends").1);
        assert!(one == other && other == third);
        one
    };
    assert_eq!(call(&mut fleet, 1), Some(Error::Dead(1)));
    for peer in [0, 2] {
        fleet.engines[peer]
            .acknowledge(GroupId::WORLD)
            .expect("a group");
    }
    assert_eq!(call(&mut fleet, 2), Some(Error::Dead(1)), "3 has not");
    fleet.engines[3]
        .acknowledge(GroupId::WORLD)
        .expect("a group");
    assert_eq!(call(&mut fleet, 3), None);
}

/// A member answers the leader and dies, and another one knows of that when it answers, but the leader does not. The latter member survives all the
/// same.
#[test]
fn who_hears_of_a_death_before_the_leader_does_survives() {
    for sizes in [Sizes::EAGER_16_BYTES, Sizes::EAGER_300_BYTES] {
        let mut fleet = Fleet::new(4, sizes, flags(2, 4, 1), 0);
        for _ in 0..20 {
            [0, 1, 2].iter().for_each(|&peer| fleet.turn(peer));
        }
        fleet.net.part(1, 3);
        for _ in 0..40 {
            [0, 2, 3].iter().for_each(|&peer| fleet.turn(peer));
        }
        assert!(
            fleet.agreed[0].is_empty(),
            "it is not known yet that 1 is gone"
        );
        fleet.net.lose(1, Presence::Dead);
        fleet.run(&[0, 2, 3], "1 has died");
        for peer in [0, 2, 3] {
            let errors = fleet.agreed[peer].iter().map(|(_, error)| error.clone());
            let errors: Vec<_> = errors.collect();
            assert_eq!(errors, vec![Some(Error::Dead(1)); 2], "{peer}");
        }
        fleet.check("1 has died");
    }
}

/// Returns the minimum time of a call that is started while this many decided agreements are kept.
fn time_to_begin(kept: usize) -> f64 {
    let mut fleet = Fleet::new(3, Sizes::EAGER_300_BYTES, Vec::new(), 0);
    let mut under_way = Vec::new();
    for peer in 0..3 {
        for _ in 0..kept {
            let agreed = fleet.engines[peer].start_agree(GroupId::WORLD, -1, room(4));
            under_way.push((peer, agreed.expect("a group")));
        }
    }
    for _ in 0..MAX_ROUNDS {
        for engine in &mut fleet.engines {
            engine.progress();
        }
        under_way.retain(|&(peer, handle)| {
            let outcome = fleet.engines[peer].finish(handle);
            outcome.expect("a live handle").is_none()
        });
    }
    assert!(under_way.is_empty() && fleet.engines[0].agreements() == kept);
    // The others do not call: nothing is decided, and nothing forgotten.
    let times = (0..20).map(|_| {
        let began = Instant::now();
        let agreed = fleet.engines[0].start_agree(GroupId::WORLD, -1, room(4));
        agreed.expect("a group");
        began.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Agreements that are started at the same time are kept until a later one. Deciding which can be forgotten takes one check of each.
#[test]
fn to_forget_agreements_takes_a_look_at_each() {
    let (few, many) = (time_to_begin(100), time_to_begin(400));
    assert!(many < 9.0 * few, "{few} s with 100 and {many} s with 400");
}

/// A member that has left is not a failure, and no member waits for it.
#[test]
fn a_departure_is_no_failure() {
    let mut fleet = Fleet::new(3, Sizes::EAGER_300_BYTES, vec![vec![5, 6, 7]], 0);
    fleet.net.lose(0, Presence::Left);
    fleet.run(&[1, 2], "0 has left");
    assert_eq!(fleet.agreed[1], [(6, None)]);
    assert_eq!(fleet.agreed[2], [(6, None)]);
}

/// Thousands of calls leave only a few agreements behind, also after a death.
#[test]
fn agreements_that_are_over_are_forgotten() {
    let mut fleet = Fleet::new(4, Sizes::EAGER_300_BYTES, flags(300, 4, 3), 0);
    fleet.net.die_after(2, 400);
    fleet.run(&[0, 1, 2, 3], "many calls");
    fleet.check("many calls");
    assert!(!fleet.net.is_here(2) && fleet.agreed[0][299].1.is_some());
    for peer in fleet.net.living() {
        let kept = fleet.engines[peer as usize].agreements();
        assert!(kept < 20, "{peer} has {kept}");
    }
}

/// When a group is freed, none of its agreements is kept, whichever members die meanwhile.
#[test]
fn agreements_of_groups_that_are_freed_are_forgotten() {
    for tasks in [1, 2, 5, 20] {
        let mut fleet = Fleet::new(tasks, Sizes::EAGER_300_BYTES, flags(5, tasks, 3), 0);
        let order: Vec<Peer> = (0..tasks).collect();
        fleet.make_group();
        fleet.run(&order, "nobody dies");
        assert!(fleet.engines[0].agreements() > 0);
        fleet.free_group(&order, &format!("{tasks} tasks"));
    }
    let mut seen = [false; 2];
    for sizes in [Sizes::EAGER_16_BYTES, Sizes::EAGER_300_BYTES] {
        for first in 0..100 {
            for (fuses, order) in [
                ([first, 1000], [2, 0, 3, 1]),
                ([first, first + 2], [0, 1, 2, 3]),
            ] {
                let mut fleet = Fleet::new(4, sizes, flags(2, 4, 5), 0);
                fleet.make_group();
                fleet.net.die_after(0, fuses[0]);
                fleet.net.die_after(1, fuses[1]);
                let story = format!("{fuses:?}");
                fleet.run(&[0, 1, 2, 3], &story);
                seen[0] |= !fleet.net.is_here(0);
                let before = fleet.net.living();
                fleet.free_group(&order, &story);
                seen[1] |= fleet.net.living() != before;
            }
        }
    }
    assert_eq!(
        seen, [true; 2],
        "somebody dies before and while it is freed"
    );
}

/// The other members keep agreements of a group that one has not freed: it may have to be notified.
#[test]
fn agreements_are_kept_until_the_last_one_frees_the_group() {
    let mut fleet = Fleet::new(3, Sizes::EAGER_300_BYTES, flags(2, 3, 1), 0);
    fleet.make_group();
    fleet.run(&[0, 1, 2], "nobody dies");
    let group = fleet.group;
    let free = |fleet: &mut Fleet, peer: usize| {
        fleet.engines[peer].free_group(group).expect("a group");
        for _ in 0..20 {
            fleet.engines.iter_mut().for_each(|engine| {
                engine.progress();
            });
        }
        fleet
            .engines
            .iter()
            .filter(|it| it.agreements() > 0)
            .count()
    };
    assert_eq!(free(&mut fleet, 2), 3);
    assert_eq!(free(&mut fleet, 0), 3);
    assert_eq!(free(&mut fleet, 1), 0);
}

/// A group is freed, and its end processed, while an agreement of another group is in progress.
#[test]
fn agreements_of_a_freed_group_are_forgotten_though_another_group_agrees() {
    let mut fleet = Fleet::new(2, Sizes::EAGER_300_BYTES, flags(1, 2, 1), 0);
    fleet.make_group();
    fleet.run(&[0, 1], "nobody dies");
    let [first, second] = &mut fleet.engines[..] else {
        panic!("two tasks");
    };
    second.free_group(fleet.group).expect("a group");
    second.progress();
    // Without space, the first member receives what has arrived, including that message, while it asks the second one.
    while first.send_eagerly(1, 0, 7, &room(4)).expect("it is there") {}
    first.free_group(fleet.group).expect("a group");
    for engine in [&mut *first, &mut *second] {
        let started = engine.start_agree(GroupId::WORLD, 5, room(4));
        engine.forget(started.expect("a group"));
    }
    for _ in 0..100 {
        first.progress();
        second.progress();
    }
    let kept = [first.agreements(), second.agreements()];
    assert_eq!(kept, [1; 2], "that of the world alone");
}

/// Members do not wait for the call of a member that has given it up, but for its engine.
#[test]
fn one_that_gives_up_does_not_hold_up_the_others() {
    let mut fleet = Fleet::new(3, Sizes::EAGER_300_BYTES, vec![vec![5, 6, 7]], 0);
    fleet.turn(1);
    let (handle, into) = fleet.under_way[1].take().expect("it has called");
    fleet.engines[1].forget(handle);
    for _ in 0..50 {
        fleet.turn(0);
        fleet.turn(2);
        fleet.engines[1].progress();
    }
    assert_eq!(fleet.agreed[0], [(4, None)]);
    assert_eq!(fleet.agreed[2], [(4, None)]);
    assert_eq!(into.to_vec(), [0; 4], "its memory is its own again");
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn anybody_dies_at_any_moment(
        tasks in 2u32..6,
        fuses in prop::collection::vec(prop::option::of(0usize..80), 6),
        turns in prop::collection::vec(0u32..6, 0..300),
        calls in 1usize..6,
        seed in any::<u64>(),
        acknowledges in 0usize..4,
        tiny in any::<bool>(),
    ) {
        let sizes = if tiny { Sizes::EAGER_16_BYTES } else { Sizes::EAGER_300_BYTES };
        let mut fleet = Fleet::new(tasks, sizes, flags(calls, tasks, seed), acknowledges);
        for (peer, fuse) in (0..tasks).zip(&fuses) {
            if let Some(things) = fuse {
                fleet.net.die_after(peer, *things);
            }
        }
        turns.iter().filter(|&&peer| peer < tasks).for_each(|&peer| fleet.turn(peer));
        let order: Vec<Peer> = (0..tasks).collect();
        let story = format!("{fuses:?}");
        fleet.run(&order, &story);
        fleet.check(&story);
    }

    /// Two members give each other up: one of them has the result of the others, or both do, and no member waits forever.
    #[test]
    fn pairs_that_give_each_other_up_end(
        tasks in 2u32..6,
        pair in (0u32..6, 0u32..6),
        when in 0usize..100,
        turns in prop::collection::vec(0u32..6, 0..100),
        calls in 1usize..4,
        seed in any::<u64>(),
        tiny in any::<bool>(),
    ) {
        let sizes = if tiny { Sizes::EAGER_16_BYTES } else { Sizes::EAGER_300_BYTES };
        let one = pair.0 % tasks;
        let other = (one + 1 + pair.1 % (tasks - 1)) % tasks;
        let mut fleet = Fleet::new(tasks, sizes, flags(calls, tasks, seed), 0);
        for (at, peer) in turns.iter().enumerate() {
            if at == when {
                fleet.net.part(one, other);
            }
            fleet.turn(peer % tasks);
        }
        if when >= turns.len() {
            fleet.net.part(one, other);
        }
        let order: Vec<Peer> = (0..tasks).collect();
        let story = format!("{one} and {other} are apart after {when}");
        fleet.run(&order, &story);
        for call in 0..calls {
            let has_it = |peer: &&Peer| {
                let (_, error) = &fleet.agreed[**peer as usize][call];
                !matches!(error, Some(Error::State(_)))
            };
            let others = order.iter().filter(|&&peer| peer != one && peer != other);
            let results: Vec<&Agreed> = others.map(|&peer| &fleet.agreed[peer as usize][call]).collect();
            prop_assert!(results.windows(2).all(|two| two[0] == two[1]), "{story}: {results:?}");
            prop_assert!(order.iter().filter(has_it).count() as u32 >= tasks - 1, "{story}");
        }
    }
}
