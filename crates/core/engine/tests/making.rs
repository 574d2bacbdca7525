//! Groups that are made at the same time, started by each member in an order of its own: each has one context at all its members,
//! no two have the same at one task, and nobody waits for ever, whoever dies.

mod support;

use std::collections::HashMap;

use proptest::prelude::*;
use regatta_engine::{Call, Engine, Error, GroupId, Handle, Peer, Presence, Settings};
use support::cases;
use support::net::{End, Net, Sizes};
use support::world::names;

/// Rounds after which a test says that nothing will ever move.
const PATIENCE: usize = 3000;
/// A second group of all tasks.
const OTHER: u32 = 2;

/// A group that is to be made: from which, of whom.
#[derive(Clone, Debug)]
struct Plan {
    from: GroupId,
    members: Vec<Peer>,
}

struct Fleet {
    net: Net,
    engines: Vec<Engine<End>>,
    plans: Vec<Plan>,
    /// By plan and task.
    started: HashMap<(usize, Peer), (GroupId, Handle)>,
    ended: HashMap<(usize, Peer), Result<u32, Error>>,
}

impl Fleet {
    fn new(tasks: u32, plans: Vec<Plan>) -> Fleet {
        // Room for one word of a member.
        let sizes = Sizes {
            eager: 48,
            ..Sizes::EAGER_16_BYTES
        };
        let net = Net::new(tasks, sizes);
        let engine = |me| {
            // Nothing but these messages is taken in.
            let mut engine = Engine::new(net.end(me), Settings { buffer: 1 });
            let all = (0..tasks).collect();
            engine.add_group(all, OTHER, 0).expect("a second group");
            engine
        };
        Fleet {
            engines: (0..tasks).map(engine).collect(),
            net,
            plans,
            started: HashMap::new(),
            ended: HashMap::new(),
        }
    }

    /// A task starts to make a group, if it is a member and has not.
    fn start(&mut self, plan: usize, peer: Peer) {
        let Plan { from, members } = self.plans[plan].clone();
        let member = members.contains(&peer) && self.net.is_here(peer);
        if member && !self.started.contains_key(&(plan, peer)) {
            let call = Call::Tagged(plan as i32);
            let started = self.engines[peer as usize].start_group(from, members, call);
            self.started
                .insert((plan, peer), started.expect("it makes sense"));
            self.note(peer);
        }
    }

    fn turn(&mut self, peer: Peer) -> bool {
        let moved = self.net.is_here(peer) && self.engines[peer as usize].progress();
        self.note(peer);
        moved
    }

    fn note(&mut self, peer: Peer) {
        let engine = &mut self.engines[peer as usize];
        for (&(plan, by), &(group, handle)) in &self.started {
            if by != peer || self.ended.contains_key(&(plan, by)) {
                continue;
            }
            if let Some((_, error)) = engine.finish(handle).expect("a live handle") {
                let context = match error {
                    None => Ok(engine.group(group).expect("it is made").context),
                    Some(error) => Err(error),
                };
                assert_eq!(context.is_err(), engine.group(group).is_err());
                self.ended.insert((plan, by), context);
            }
        }
    }

    /// All start what they have not, and go on until nobody can.
    fn finish(&mut self) {
        let tasks = self.engines.len() as Peer;
        for plan in 0..self.plans.len() {
            (0..tasks).for_each(|peer| self.start(plan, peer));
        }
        for _ in 0..PATIENCE {
            let moved: Vec<bool> = (0..tasks).map(|peer| self.turn(peer)).collect();
            if !moved.contains(&true) {
                return;
            }
        }
        panic!("progress without end");
    }

    /// The contexts of a plan's group at its living members, or what became of it there.
    fn outcomes(&self, plan: usize) -> Vec<&Result<u32, Error>> {
        let members = self.plans[plan].members.iter();
        let living = members.filter(|&&peer| self.net.is_here(peer));
        living
            .map(|&peer| {
                let ended = self.ended.get(&(plan, peer));
                ended.unwrap_or_else(|| panic!("{plan} does not end at {peer}"))
            })
            .collect()
    }

    fn check_contexts(&self) {
        for peer in 0..self.engines.len() as Peer {
            let mine = self.ended.iter().filter(|((_, by), _)| *by == peer);
            let mut contexts: Vec<u32> = mine.filter_map(|(_, ended)| ended.clone().ok()).collect();
            contexts.extend([0, OTHER]);
            let count = contexts.len();
            contexts.sort_unstable();
            contexts.dedup();
            assert_eq!(contexts.len(), count, "one context for two groups");
        }
        for plan in 0..self.plans.len() {
            let mut made = self
                .outcomes(plan)
                .into_iter()
                .filter_map(|one| one.as_ref().ok());
            if let Some(first) = made.next() {
                assert!(made.all(|context| context == first), "two for one group");
            }
        }
    }
}

fn plans(tasks: u32) -> impl Strategy<Value = Vec<Plan>> {
    let all: Vec<Peer> = (0..tasks).collect();
    let members = prop::sample::subsequence(all, 1..=tasks as usize).prop_shuffle();
    let from = prop::sample::select(vec![GroupId::WORLD, GroupId(1), GroupId::ALL]);
    let plan = (from, members).prop_map(|(from, members)| Plan { from, members });
    prop::collection::vec(plan, 1..6)
}

/// A fleet's plans, and its course: who starts what, or goes on.
fn case() -> impl Strategy<Value = (u32, Vec<Plan>, Vec<(usize, Peer, bool)>)> {
    (2u32..6).prop_flat_map(|tasks| {
        let course = prop::collection::vec((0usize..6, 0..tasks, any::<bool>()), 0..120);
        (Just(tasks), plans(tasks), course)
    })
}

fn take(fleet: &mut Fleet, (plan, peer, starts): (usize, Peer, bool)) {
    match starts && plan < fleet.plans.len() {
        true => fleet.start(plan, peer),
        false => drop(fleet.turn(peer)),
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn groups_made_at_the_same_time_have_contexts_of_their_own((tasks, plans, course) in case()) {
        let mut fleet = Fleet::new(tasks, plans);
        course.into_iter().for_each(|step| take(&mut fleet, step));
        fleet.finish();
        for plan in 0..fleet.plans.len() {
            assert!(fleet.outcomes(plan).iter().all(|outcome| outcome.is_ok()));
        }
        fleet.check_contexts();
        for engine in &fleet.engines {
            assert!(engine.is_idle() && engine.buffered() == 0, "something is left");
        }
    }

    #[test]
    fn a_loss_ends_the_making_of_its_groups_and_no_other(
        (tasks, plans, course) in case(),
        when in 0usize..120,
        victim in 0u32..5,
        how in prop::sample::select(vec![Presence::Dead, Presence::Left]),
    ) {
        let mut fleet = Fleet::new(tasks, plans);
        let victim = victim % tasks;
        for (at, step) in course.into_iter().enumerate() {
            if at == when {
                fleet.net.lose(victim, how);
            }
            take(&mut fleet, step);
        }
        if fleet.net.is_here(victim) {
            fleet.net.lose(victim, how);
        }
        fleet.finish();
        for plan in 0..fleet.plans.len() {
            let concerned = fleet.plans[plan].members.contains(&victim);
            for outcome in fleet.outcomes(plan) {
                match outcome {
                    Ok(_) => {}
                    Err(error) => assert!(concerned && names(error, victim), "{error:?}"),
                }
            }
        }
        fleet.check_contexts();
    }
}

/// Each of two starts with another one of two groups: neither waits for the other.
#[test]
fn opposite_orders_do_not_wait_for_each_other() {
    for from in [GroupId::WORLD, GroupId(1)] {
        let plan = |members: [Peer; 2]| Plan {
            from,
            members: members.to_vec(),
        };
        let mut fleet = Fleet::new(2, vec![plan([0, 1]), plan([1, 0])]);
        fleet.start(0, 0);
        fleet.start(1, 1);
        fleet.finish();
        fleet.check_contexts();
        assert!(fleet.ended.values().all(|ended| ended.is_ok()));
    }
}

/// The first member knows why another one is gone, and tells the others, which have not heard of it.
#[test]
fn a_member_that_hears_of_a_loss_from_another_one_hears_its_kind() {
    for how in [Presence::Left, Presence::Dead] {
        let plan = Plan {
            from: GroupId::WORLD,
            members: vec![0, 1, 2],
        };
        let mut fleet = Fleet::new(3, vec![plan]);
        fleet.start(0, 0);
        fleet.start(0, 1);
        for _ in 0..4 {
            fleet.turn(0);
            fleet.turn(1);
        }
        fleet.net.lose_for(0, 2, how);
        for _ in 0..4 {
            fleet.turn(0);
            fleet.turn(1);
        }
        let expected = match how {
            Presence::Left => Error::Left(2),
            _ => Error::Dead(2),
        };
        for member in [0, 1] {
            assert_eq!(fleet.ended[&(0, member)], Err(expected.clone()), "{member}");
        }
    }
}

/// A member that is told of a death gives up and leaves, and another one may see that first: the death is still what it is told.
#[test]
fn a_death_is_named_before_a_member_that_has_left() {
    for (dead, left) in [(1, 0), (2, 0), (0, 1), (1, 2)] {
        let plan = Plan {
            from: GroupId::WORLD,
            members: vec![0, 1, 2],
        };
        let mut fleet = Fleet::new(3, vec![plan]);
        let last = 3 - dead - left;
        fleet.net.lose_for(last, left, Presence::Left);
        fleet.net.lose_for(last, dead, Presence::Dead);
        fleet.start(0, last);
        for _ in 0..4 {
            fleet.turn(last);
        }
        assert_eq!(fleet.ended[&(0, last)], Err(Error::Dead(dead)));
    }
}

/// The third one reaches both, whoever of the members they are, and however far the making is.
#[test]
fn two_members_that_have_given_each_other_up_keep_nobody_waiting() {
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        for turns in 0..8 {
            let plan = Plan {
                from: GroupId::WORLD,
                members: vec![0, 1, 2],
            };
            let mut fleet = Fleet::new(3, vec![plan]);
            for turn in 0..turns {
                fleet.start(0, turn % 3);
                fleet.turn(turn % 3);
            }
            fleet.net.part(one, other);
            fleet.finish();
            for outcome in fleet.outcomes(0) {
                if let Err(error) = outcome {
                    let is_named = names(error, one) || names(error, other);
                    assert!(is_named, "{one} {other} {turns}: {error:?}");
                }
            }
        }
    }
}

/// The word of another member is enough to take note of a death, and to send nothing to that member in the group any more.
#[test]
fn a_member_that_is_reported_dead_is_dead_in_the_group() {
    let plan = Plan {
        from: GroupId::WORLD,
        members: vec![0, 1, 2],
    };
    let mut fleet = Fleet::new(3, vec![plan]);
    fleet.net.lose_for(0, 2, Presence::Dead);
    fleet.start(0, 1);
    fleet.start(0, 0);
    for _ in 0..4 {
        fleet.turn(0);
        fleet.turn(1);
    }
    assert_eq!(fleet.ended[&(0, 1)], Err(Error::Dead(2)));
    let engine = &mut fleet.engines[1];
    assert_eq!(
        engine.presence(2),
        Presence::Here,
        "it has not heard itself"
    );
    let world = engine.group(GroupId::WORLD).expect("the world");
    assert!(world.is_reported_dead(2) && !world.is_reported_dead(0));
    assert!(world.open_peer(2).is_none() && !engine.is_open_rank(2));
    assert_eq!(engine.dead_members(GroupId::WORLD), Ok(vec![2]));
    assert_eq!(engine.acknowledge(GroupId::WORLD), Ok(1));
    let other = engine.group(GroupId(1)).expect("another group");
    assert!(!other.is_reported_dead(2) && other.open_peer(2).is_some());
    // It stays so when the group is revoked.
    engine.revoke(GroupId::WORLD).expect("the world");
    assert_eq!(engine.dead_members(GroupId::WORLD), Ok(vec![2]));
}

/// The table of tasks says that a task is dead before it counts the loss, by which sends notice it.
#[test]
fn a_member_that_is_reported_dead_at_the_moment_of_its_death_is_dead_in_the_group() {
    let plan = Plan {
        from: GroupId::WORLD,
        members: vec![0, 1, 2],
    };
    let mut fleet = Fleet::new(3, vec![plan]);
    fleet.net.lose_for(0, 2, Presence::Dead);
    while fleet.engines[1].progress() {}
    fleet.net.lose_uncounted(1, 2, Presence::Dead);
    fleet.start(0, 1);
    fleet.start(0, 0);
    for _ in 0..4 {
        fleet.turn(0);
        fleet.turn(1);
    }
    assert_eq!(fleet.ended[&(0, 1)], Err(Error::Dead(2)));
    let engine = &mut fleet.engines[1];
    let world = engine.group(GroupId::WORLD).expect("the world");
    assert!(world.is_reported_dead(2) && !engine.is_open_rank(2));
}

/// Nobody waits for a group any more that the others still make.
#[test]
fn a_forgotten_group_is_made_for_the_others() {
    let members = vec![0, 1];
    let mut fleet = Fleet::new(
        2,
        vec![Plan {
            from: GroupId::WORLD,
            members,
        }],
    );
    fleet.start(0, 1);
    let (group, handle) = fleet.started.remove(&(0, 1)).expect("started");
    fleet.engines[1].forget(handle);
    fleet.start(0, 0);
    for _ in 0..PATIENCE {
        fleet.turn(0);
        fleet.engines[1].progress();
    }
    assert!(matches!(fleet.ended.get(&(0, 0)), Some(Ok(_))));
    assert!(fleet.engines[1].is_idle());
    assert!(fleet.engines[1].group(group).is_err(), "nobody knows it");
}
