//! Groups that are made at the same time, in a different order at each member. Each group has the same context at all its members, no two groups of
//! a task have the same context, and no member waits forever, whichever tasks die.

mod support;

use std::collections::HashMap;

use proptest::prelude::*;
use regatta_engine::{Call, Engine, Error, GroupId, Handle, Peer, Presence, Settings, Spaces};
use support::cases;
use support::net::{End, Net, Sizes};
use support::world::names;

/// Number of rounds after which a test fails because nothing will ever change.
const MAX_ROUNDS: usize = 3000;
/// A second group of all tasks.
const OTHER: u32 = 2;

/// A group to be made: the old group and the members.
#[derive(Clone, Debug)]
struct Plan {
    from: GroupId,
    members: Vec<Peer>,
}

/// The call by which a group is made.
#[derive(Clone, Copy, Debug)]
enum Calling {
    Tagged(i32),
    Selecting,
    Numbered,
}

impl Calling {
    /// Returns the calls that are possible for a group.
    fn all_of(group: GroupId) -> &'static [Calling] {
        match group == GroupId::ALL {
            true => &[Calling::Tagged(5), Calling::Selecting],
            false => &[Calling::Tagged(5), Calling::Selecting, Calling::Numbered],
        }
    }
}

struct Fleet {
    net: Net,
    engines: Vec<Engine<End>>,
    plans: Vec<Plan>,
    /// By plan and task.
    started: HashMap<(usize, Peer), (Vec<GroupId>, Handle)>,
    ended: HashMap<(usize, Peer), Result<u32, Error>>,
}

impl Fleet {
    fn new(tasks: u32, plans: Vec<Plan>) -> Fleet {
        // Space for one message of a member.
        let sizes = Sizes {
            eager: 48,
            ..Sizes::EAGER_16_BYTES
        };
        let net = Net::new(tasks, sizes);
        let engine = |me| {
            // Only messages of makings are received.
            let mut engine = Engine::new(net.end(me), Settings { buffer: 1 });
            let all = (0..tasks).collect();
            engine.add_group(all, OTHER).expect("a second group");
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

    /// Starts to make a group at a task, if the task is a member and has not started yet.
    fn start(&mut self, plan: usize, peer: Peer) {
        self.start_by(plan, peer, Calling::Tagged(plan as i32));
    }

    fn start_by(&mut self, plan: usize, peer: Peer, calling: Calling) {
        let Plan { from, members } = self.plans[plan].clone();
        let member = members.contains(&peer) && self.net.is_here(peer);
        if member && !self.started.contains_key(&(plan, peer)) {
            let call = match calling {
                Calling::Tagged(tag) => Call::Tagged(tag),
                Calling::Selecting => Call::Selecting,
                Calling::Numbered => {
                    let call = self.engines[peer as usize].next_call(from);
                    call.expect("a group whose members are known")
                }
            };
            // Some calls make two groups at once.
            let count = 1 + plan % 2;
            let started = self.engines[peer as usize].start_groups(from, members, call, count);
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
        for (&(plan, by), (groups, handle)) in &self.started {
            if by != peer || self.ended.contains_key(&(plan, by)) {
                continue;
            }
            if let Some((_, error)) = engine.finish(*handle).expect("a live handle") {
                let contexts = groups.iter().map(|&group| engine.group(group));
                let contexts: Vec<u32> = contexts.flatten().map(|group| group.context).collect();
                let context = match error {
                    None => Ok(contexts[0]),
                    Some(error) => Err(error),
                };
                let there = if context.is_ok() { groups.len() } else { 0 };
                assert_eq!(contexts.len(), there);
                assert!(contexts.is_sorted_by(|one, next| one + 2 == *next));
                self.ended.insert((plan, by), context);
            }
        }
    }

    /// Starts everything that is not started yet, at all tasks, and runs until nothing changes any more.
    fn finish(&mut self) {
        let tasks = self.engines.len() as Peer;
        for plan in 0..self.plans.len() {
            (0..tasks).for_each(|peer| self.start(plan, peer));
        }
        self.settle();
    }

    /// Runs all tasks until nothing changes any more.
    fn settle(&mut self) {
        let tasks = self.engines.len() as Peer;
        for _ in 0..MAX_ROUNDS {
            let moved: Vec<bool> = (0..tasks).map(|peer| self.turn(peer)).collect();
            if !moved.contains(&true) {
                return;
            }
        }
        panic!("progress without end");
    }

    /// Returns the contexts of a plan's group at its living members, or the errors there.
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

    /// Lets the same members try once more to make the same group. Each calls and proceeds as far as possible before the next one calls.
    fn try_again(&mut self, of: &Plan, calling: Calling, order: &[Peer]) -> usize {
        let plan = self.plans.len();
        self.plans.push(of.clone());
        for &peer in order {
            self.start_by(plan, peer, calling);
            while self.turn(peer) {}
        }
        plan
    }

    /// Checks that no living member holds a message that it will not receive.
    fn check_nothing_waits(&self, story: &str) {
        for peer in self.net.living() {
            let engine = &self.engines[peer as usize];
            let held = (engine.waiting(), engine.buffered());
            assert_eq!(held, (0, 0), "{story}: left at {peer}");
            assert!(engine.is_idle(), "{story}: {peer} is not through");
        }
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

/// Generates a fleet's plans and its course: which task starts which plan or makes progress.
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

/// Each of two members starts with a different one of two groups: they do not wait for each other.
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

/// The first member knows why another one is gone, and notifies the others, which do not know.
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

/// A member that is notified of a death gives up and leaves, and another one may see that departure first: it must still report the death.
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

/// The third member reaches both, whichever members they are and however far the making has progressed.
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

/// Lets task 0, which knows that task 2 is dead, notify task 1 while they make a group. `before` is called before they start.
fn told_of_a_death(before: impl FnOnce(&mut Fleet)) -> Fleet {
    let plan = Plan {
        from: GroupId::WORLD,
        members: vec![0, 1, 2],
    };
    let mut fleet = Fleet::new(3, vec![plan]);
    fleet.net.lose_for(0, 2, Presence::Dead);
    before(&mut fleet);
    fleet.start(0, 1);
    fleet.start(0, 0);
    for _ in 0..4 {
        fleet.turn(0);
        fleet.turn(1);
    }
    assert_eq!(fleet.ended[&(0, 1)], Err(Error::Dead(2)));
    fleet
}

/// A report of another member is enough to record a death, and to send nothing to the dead member in the group any more.
#[test]
fn a_member_that_is_reported_dead_is_dead_in_the_group() {
    let mut fleet = told_of_a_death(|_| ());
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
    // This remains so when the group is revoked.
    engine.revoke(GroupId::WORLD).expect("the world");
    assert_eq!(engine.dead_members(GroupId::WORLD), Ok(vec![2]));
}

/// The table of tasks shows a death before the loss is counted, by which sends notice it.
#[test]
fn a_member_that_is_reported_dead_at_the_moment_of_its_death_is_dead_in_the_group() {
    let mut fleet = told_of_a_death(|fleet| {
        while fleet.engines[1].progress() {}
        fleet.net.lose_uncounted(1, 2, Presence::Dead);
    });
    let engine = &mut fleet.engines[1];
    let world = engine.group(GroupId::WORLD).expect("the world");
    assert!(world.is_reported_dead(2) && !engine.is_open_rank(2));
}

/// One member does not wait for a group any more that the others still make.
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
    let (groups, handle) = fleet.started.remove(&(0, 1)).expect("started");
    fleet.engines[1].forget(handle);
    fleet.start(0, 0);
    for _ in 0..MAX_ROUNDS {
        fleet.turn(0);
        fleet.engines[1].progress();
    }
    assert!(matches!(fleet.ended.get(&(0, 0)), Some(Ok(_))));
    assert!(fleet.engines[1].is_idle());
    assert!(
        fleet.engines[1].group(groups[0]).is_err(),
        "nobody knows it"
    );
}

/// Returns all permutations of these.
fn orders(of: &[Peer]) -> Vec<Vec<Peer>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let first = |at: usize| {
        let mut rest = of.to_vec();
        let first = rest.remove(at);
        let orders = orders(&rest).into_iter();
        orders.map(move |order| [vec![first], order].concat())
    };
    (0..of.len()).flat_map(first).collect()
}

#[test]
fn makings_that_fail_leave_nothing_behind_in_whichever_order_the_members_call() {
    for from in [GroupId::WORLD, GroupId(1), GroupId::ALL] {
        for &calling in Calling::all_of(from) {
            for dead in 0..5 {
                let plan = Plan {
                    from,
                    members: (0..5).collect(),
                };
                let mut fleet = Fleet::new(5, Vec::new());
                fleet.net.lose(dead, Presence::Dead);
                for order in orders(&fleet.net.living()) {
                    let story = format!("{from:?} {calling:?}, {dead} is dead, {order:?} call");
                    let round = fleet.try_again(&plan, calling, &order);
                    fleet.settle();
                    for outcome in fleet.outcomes(round) {
                        assert_eq!(outcome, &Err(Error::Dead(dead)), "{story}");
                    }
                    fleet.check_nothing_waits(&story);
                }
            }
        }
    }
}

/// A member whose attempt has ended tries again before others have called for the first time.
#[test]
fn words_to_a_member_that_is_ahead_are_of_the_attempt_that_they_name() {
    for calling in [Calling::Tagged(5), Calling::Selecting, Calling::Numbered] {
        for dead in 0..5 {
            let members: Vec<Peer> = (0..5).collect();
            let plan = Plan {
                from: GroupId::WORLD,
                members: members.clone(),
            };
            let mut fleet = Fleet::new(5, vec![plan; 10]);
            fleet.net.lose(dead, Presence::Dead);
            for peer in members.into_iter().rev() {
                for round in 0..10 {
                    fleet.start_by(round, peer, calling);
                    while fleet.net.is_here(peer) && fleet.turn(peer) {}
                }
            }
            fleet.settle();
            for round in 0..10 {
                let outcomes = fleet.outcomes(round).into_iter();
                outcomes.for_each(|outcome| assert_eq!(outcome, &Err(Error::Dead(dead))));
            }
            fleet.check_nothing_waits(&format!("{calling:?}, {dead} is dead"));
        }
    }
}

/// Two members consider each other gone, and all others reach both.
#[test]
fn a_group_is_made_for_all_or_for_none_though_two_members_cannot_reach_each_other() {
    let members: Vec<Peer> = (0..4).collect();
    let pairs = members.iter().flat_map(|&one| {
        let later = members.iter().filter(move |&&other| one < other);
        later.map(move |&other| (one, other))
    });
    for (one, other) in pairs {
        for calling in [Calling::Tagged(5), Calling::Selecting, Calling::Numbered] {
            for first in orders(&members) {
                let plan = Plan {
                    from: GroupId::WORLD,
                    members: members.clone(),
                };
                let mut fleet = Fleet::new(4, Vec::new());
                fleet.net.part(one, other);
                for order in [&first, &members, &first] {
                    let story = format!("{one} and {other}, {calling:?}, {order:?} call");
                    let round = fleet.try_again(&plan, calling, order);
                    fleet.settle();
                    let outcomes = fleet.outcomes(round);
                    let made = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
                    assert!([0, 4].contains(&made), "{story}: {made} have it");
                    for error in outcomes.iter().filter_map(|one| one.as_ref().err()) {
                        let is_named = names(error, one) || names(error, other);
                        assert!(is_named, "{story}: {error:?}");
                    }
                    fleet.check_nothing_waits(&story);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(500))]

    /// Members call again and again, each as soon as its previous call has ended, while one of them dies or two lose each other.
    #[test]
    fn whatever_is_lost_meanwhile_nothing_is_left_behind(
        tasks in 2u32..6,
        calling in prop::sample::select(vec![Calling::Tagged(5), Calling::Selecting, Calling::Numbered]),
        course in prop::collection::vec(0u32..6, 0..150),
        when in 0usize..150,
        (victim, other) in (0u32..6, 0u32..6),
        how in prop::sample::select(vec![None, Some(Presence::Dead), Some(Presence::Left)]),
    ) {
        const ROUNDS: usize = 5;
        let (victim, other) = (victim % tasks, other % tasks);
        let plan = Plan {
            from: GroupId::WORLD,
            members: (0..tasks).collect(),
        };
        let mut fleet = Fleet::new(tasks, vec![plan; ROUNDS]);
        let go_on = |fleet: &mut Fleet, peer: Peer| {
            let before = fleet.started.len();
            let next = (0..ROUNDS).find(|&round| !fleet.ended.contains_key(&(round, peer)));
            if let Some(round) = next {
                fleet.start_by(round, peer, calling);
            }
            fleet.turn(peer) || fleet.started.len() > before
        };
        let lose = |fleet: &Fleet| match how {
            Some(how) => fleet.net.lose(victim, how),
            None if victim != other => fleet.net.part(victim, other),
            None => {}
        };
        for (at, peer) in course.iter().enumerate() {
            if at == when {
                lose(&fleet);
            }
            go_on(&mut fleet, peer % tasks);
        }
        if when >= course.len() {
            lose(&fleet);
        }
        for _ in 0..MAX_ROUNDS {
            let moved: Vec<bool> = (0..tasks).map(|peer| go_on(&mut fleet, peer)).collect();
            if !moved.contains(&true) {
                break;
            }
        }
        fleet.settle();
        for round in 0..ROUNDS {
            for error in fleet.outcomes(round).into_iter().filter_map(|one| one.as_ref().err()) {
                let is_named = names(error, victim) || (how.is_none() && names(error, other));
                prop_assert!(is_named, "{error:?}");
            }
        }
        fleet.check_contexts();
        fleet.check_nothing_waits("in the end");
    }
}

/// One member ends early and frees the old group. Messages that it gets later, or has got before, are dropped.
#[test]
fn words_in_a_group_that_is_freed_are_dropped() {
    for calling in [Calling::Tagged(5), Calling::Selecting, Calling::Numbered] {
        for calls_itself in [true, false] {
            let plan = Plan {
                from: GroupId(1),
                members: vec![0, 1, 2],
            };
            let mut fleet = Fleet::new(3, vec![plan]);
            fleet.net.lose(2, Presence::Dead);
            if calls_itself {
                fleet.start_by(0, 1, calling);
                while fleet.turn(1) {}
                fleet.engines[1].free_group(GroupId(1)).expect("a group");
            }
            fleet.start_by(0, 0, calling);
            fleet.settle();
            if !calls_itself {
                assert_ne!(fleet.engines[1].waiting(), 0, "its call may come");
                fleet.engines[1].free_group(GroupId(1)).expect("a group");
            }
            assert_eq!(fleet.ended[&(0, 0)], Err(Error::Dead(2)));
            fleet.check_nothing_waits(&format!("{calling:?} {calls_itself}"));
        }
    }
}

/// A group may be freed while another one is being made from it.
#[test]
fn words_in_a_group_that_is_freed_meanwhile_are_heard() {
    for calling in [Calling::Tagged(5), Calling::Selecting, Calling::Numbered] {
        for dies in [false, true] {
            let plan = Plan {
                from: GroupId(1),
                members: vec![0, 1, 2],
            };
            let mut fleet = Fleet::new(3, vec![plan; 2]);
            for peer in [2, 1, 0] {
                // The number of the second call is different.
                fleet.start_by(0, peer, calling);
                if let Calling::Numbered = calling {
                    fleet.start_by(1, peer, calling);
                }
                fleet.engines[peer as usize]
                    .free_group(GroupId(1))
                    .expect("a group");
                fleet.turn(peer);
            }
            if dies {
                fleet.net.lose(2, Presence::Dead);
            }
            fleet.settle();
            for outcome in fleet.outcomes(0) {
                assert_eq!(outcome.is_err(), dies, "{calling:?}: {outcome:?}");
            }
            fleet.check_nothing_waits(&format!("{calling:?} {dies}"));
        }
    }
}

#[test]
fn words_in_a_group_that_is_revoked_are_dropped() {
    let plan = Plan {
        from: GroupId(1),
        members: vec![0, 1, 2],
    };
    let mut fleet = Fleet::new(3, vec![plan]);
    fleet.engines[1].revoke(GroupId(1)).expect("a group");
    // This task does not know of that.
    fleet.start(0, 0);
    fleet.settle();
    assert_eq!(fleet.ended[&(0, 0)], Err(Error::Revoked));
    fleet.check_nothing_waits("revoked");
}

/// A numbered call can fail at one member alone before it starts to make a group.
#[test]
fn words_about_a_call_that_was_given_up_are_dropped() {
    let plan = Plan {
        from: GroupId::WORLD,
        members: vec![0, 1, 2],
    };
    let mut fleet = Fleet::new(3, vec![plan; 2]);
    fleet.engines[1]
        .next_call(GroupId::WORLD)
        .expect("a number");
    fleet.net.lose(2, Presence::Dead);
    fleet.start_by(0, 0, Calling::Numbered);
    fleet.settle();
    assert_ne!(fleet.engines[1].waiting(), 0, "it may still start");
    fleet.start_by(1, 1, Calling::Numbered);
    fleet.start_by(1, 0, Calling::Numbered);
    fleet.settle();
    fleet.check_nothing_waits("given up");
}

/// Starts to make a group at an engine. Returns the group and its request.
fn begin(engine: &mut Engine<End>, old: GroupId, members: &[Peer]) -> (GroupId, Handle) {
    let made = engine.start_group(old, members.to_vec(), Call::Selecting);
    made.expect("it makes sense")
}

/// Runs these engines in this order until `is_so` returns true.
fn until(engines: &mut [Engine<End>], order: [usize; 4], is_so: impl Fn(&[Engine<End>]) -> bool) {
    for _ in 0..MAX_ROUNDS {
        for peer in order {
            engines[peer].progress();
        }
        if is_so(engines) {
            return;
        }
    }
    panic!("it is waited for ever");
}

fn free(engine: &mut Engine<End>, (group, handle): (GroupId, Handle)) {
    let ended = engine.finish(handle).expect("a live handle");
    assert!(matches!(ended, Some((_, None))), "{ended:?}");
    engine.free_group(group).expect("it is made");
}

/// A context is reused, and a member receives messages from members of the new group before it has the group itself.
#[test]
fn early_words_in_a_group_whose_context_was_another_ones_are_heard() {
    const SPACES: Spaces = Spaces {
        made: 4,
        survivors: 4,
    };
    let net = Net::new(4, Sizes::EAGER_300_BYTES);
    let engine = |me| Engine::with_spaces(net.end(me), Settings { buffer: 100_000 }, SPACES);
    let mut engines: Vec<Engine<End>> = (0..4).map(engine).collect();
    let is_done =
        |engine: &Engine<End>, made: (GroupId, Handle)| engine.is_done(made.1) == Ok(true);
    for _ in 0..200 {
        let all = [0, 1, 2, 3];
        let start = |engine: &mut Engine<End>| begin(engine, GroupId::WORLD, &all);
        let made: Vec<(GroupId, Handle)> = engines.iter_mut().map(start).collect();
        // The third member, which notifies the fourth, is slow to learn that the group is made.
        until(&mut engines, [2, 3, 0, 1], |engines| {
            is_done(&engines[1], made[1])
        });
        let first = begin(&mut engines[1], made[1].0, &[1, 3]);
        engines[3].progress();
        assert!(!is_done(&engines[3], made[3]), "the word is early");
        until(&mut engines, [0, 1, 2, 3], |engines| {
            is_done(&engines[3], made[3])
        });
        let second = begin(&mut engines[3], made[3].0, &[1, 3]);
        until(&mut engines, [0, 1, 2, 3], |engines| {
            is_done(&engines[1], first) && is_done(&engines[3], second)
        });
        free(&mut engines[1], first);
        free(&mut engines[3], second);
        for (engine, made) in engines.iter_mut().zip(made) {
            free(engine, made);
        }
    }
    assert!(
        engines[3].context_epoch() > 16,
        "all contexts are used again"
    );
}
