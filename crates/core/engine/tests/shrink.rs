//! The survivors of a group agree on the set of survivors, whenever other members die.

mod support;

use proptest::prelude::*;
use regatta_engine::{Engine, Error, GroupId, Handle, Mode, Peer, Presence, Settings, Shrinking};
use support::cases;
use support::net::{End, Net, Sizes};
use support::world::{BARRIER, memory};

/// Number of rounds after which a test fails because nothing will ever change.
const MAX_ROUNDS: usize = 3000;

struct Fleet {
    net: Net,
    engines: Vec<Engine<End>>,
    called: Vec<Option<Shrinking>>,
    made: Vec<Option<GroupId>>,
    /// The other members considered this task dead.
    left_out: Vec<bool>,
}

impl Fleet {
    fn new(tasks: u32, sizes: Sizes) -> Fleet {
        let net = Net::new(tasks, sizes);
        let engine = |me| Engine::new(net.end(me), Settings { buffer: 1000 });
        Fleet {
            engines: (0..tasks).map(engine).collect(),
            called: (0..tasks).map(|_| None).collect(),
            made: vec![None; tasks as usize],
            left_out: vec![false; tasks as usize],
            net,
        }
    }

    /// Lets a task call, if it has not yet, and make progress.
    fn turn(&mut self, peer: Peer) {
        let at = peer as usize;
        if !self.net.is_here(peer) {
            return;
        }
        let engine = &mut self.engines[at];
        match &self.called[at] {
            Some(_) => {
                engine.progress();
            }
            None => {
                let called = engine.start_shrink(GroupId::WORLD);
                self.called[at] = Some(called.expect("the world is a group"));
            }
        }
        if self.net.is_here(peer)
            && self.made[at].is_none()
            && let Some(called) = &self.called[at]
            && !self.left_out[at]
            && let Some(made) = engine.shrunk(called)
        {
            match made {
                Ok(group) => self.made[at] = Some(group),
                Err(error) => {
                    assert!(matches!(error, Error::State(_)), "{error:?}");
                    self.left_out[at] = true;
                }
            }
        }
    }

    /// Runs all tasks until all living ones have the group, and checks the groups.
    fn agree(&mut self, order: &[Peer], story: &str) {
        for _ in 0..MAX_ROUNDS {
            for &peer in order {
                self.turn(peer);
            }
            let made = |&peer: &Peer| self.made[peer as usize].is_some();
            if self.net.living().iter().all(made) {
                return self.check(story);
            }
        }
        let (living, made) = (self.net.living(), &self.made);
        panic!("{story}: one waits for ever: {made:?}, and {living:?} live");
    }

    /// Runs all tasks until all living ones know the outcome, even though some have given each other up.
    fn end(&mut self, order: &[Peer], story: &str) {
        for _ in 0..MAX_ROUNDS {
            order.iter().for_each(|&peer| self.turn(peer));
            let knows = |&peer: &Peer| {
                let at = peer as usize;
                self.made[at].is_some() || self.left_out[at]
            };
            if self.net.living().iter().all(knows) {
                return;
            }
        }
        let (made, left_out) = (&self.made, &self.left_out);
        panic!("{story}: one waits for ever: {made:?}, left out {left_out:?}");
    }

    /// Checks that a task which has a group shares it with all of the group's living members that it reaches, and that a task without a group is in
    /// none.
    fn check_apart(&self, story: &str) {
        let living = self.net.living();
        for &peer in &living {
            let Some(group) = self.group(peer) else {
                continue;
            };
            let reached =
                |&&member: &&Peer| living.contains(&member) && !self.net.are_apart(peer, member);
            for &member in group.0.iter().filter(reached) {
                let theirs = self.group(member);
                let same = theirs.as_ref() == Some(&group);
                assert!(
                    same,
                    "{story}: {peer} has {group:?}, {member} has {theirs:?}"
                );
            }
        }
    }

    fn group(&self, peer: Peer) -> Option<(Vec<Peer>, u32)> {
        let id = self.made[peer as usize]?;
        let group = self.engines[peer as usize].group(id).expect("a live group");
        Some((group.peers(), group.context))
    }

    fn check(&mut self, story: &str) {
        let living = self.net.living();
        let group = |peer: Peer| self.group(peer).expect("made");
        let Some(&first) = living.first() else {
            return;
        };
        let (members, _) = group(first);
        for &peer in &living {
            assert_eq!(group(peer), group(first), "{story}: {peer} and {first}");
            assert!(
                members.contains(&peer),
                "{story}: {peer} lives and is not in"
            );
        }
        if members == living {
            self.meet(story);
        }
    }

    /// Checks that the new group works, if no member dies meanwhile.
    fn meet(&mut self, story: &str) {
        self.meet_of(&self.net.living(), story);
    }

    fn meet_of(&mut self, members: &[Peer], story: &str) {
        let living = self.net.living();
        let mut handles: Vec<Handle> = vec![];
        for &peer in members {
            let id = self.made[peer as usize].expect("made");
            match self.engines[peer as usize].start(id, &BARRIER) {
                Ok(handle) => handles.push(handle),
                Err(error) => assert!(self.net.living() != living, "{story}: {error:?}"),
            }
        }
        for _ in 0..50 {
            for &peer in &living {
                self.turn(peer);
            }
        }
        if self.net.living() != living {
            return;
        }
        for (&peer, handle) in members.iter().zip(handles) {
            let outcome = self.engines[peer as usize]
                .finish(handle)
                .expect("a handle");
            let (_, error) = outcome.unwrap_or_else(|| panic!("{story}: {peer} waits in it"));
            assert_eq!(error, None, "{story}");
        }
    }
}

#[test]
fn without_a_death_the_group_is_the_same() {
    for sizes in [Sizes::EAGER_16_BYTES, Sizes::EAGER_300_BYTES] {
        for tasks in [1, 2, 3, 5, 70] {
            let mut fleet = Fleet::new(tasks, sizes);
            let order: Vec<Peer> = (0..tasks).collect();
            fleet.agree(&order, "nobody dies");
            let id = fleet.made[0].expect("made");
            assert_eq!(fleet.engines[0].group(id).expect("a group").size(), tasks);
        }
    }
}

/// The leader dies after each message that it sends, and so does the next leader.
#[test]
fn leaders_that_die_at_any_step() {
    for sizes in [Sizes::EAGER_16_BYTES, Sizes::EAGER_300_BYTES] {
        let most = if sizes.eager < 100 { 100 } else { 14 };
        for first in 0..most {
            for second in (0..most).step_by(1 + most / 20).chain([usize::MAX]) {
                let mut fleet = Fleet::new(4, sizes);
                fleet.net.die_after(0, first);
                fleet.net.die_after(1, second);
                let forward = first % 2 == 0;
                let order = if forward { [0, 1, 2, 3] } else { [3, 2, 1, 0] };
                fleet.agree(&order, &format!("0 dies after {first}, 1 after {second}"));
            }
        }
    }
}

/// Members that still wait for a dead leader learn of the group from a member that has it, whose engine only runs inside other calls.
#[test]
fn one_that_has_gone_on_still_tells_the_others() {
    let mut seen = 0;
    for first in 0..14 {
        for head_start in 0..10 {
            let mut fleet = Fleet::new(3, Sizes::EAGER_300_BYTES);
            fleet.net.die_after(0, first);
            for peer in [2, 2]
                .into_iter()
                .chain([0, 1].into_iter().cycle().take(head_start))
            {
                fleet.turn(peer);
            }
            for peer in [0, 1, 2].into_iter().cycle().take(12) {
                fleet.turn(peer);
                let gone_on = fleet.made[1].is_some() && fleet.made[2].is_none();
                seen += (gone_on && !fleet.net.is_here(0)) as u32;
            }
            fleet.agree(
                &[1, 2],
                &format!("0 dies after {first}, {head_start} ahead"),
            );
        }
    }
    assert!(seen > 0, "it never came to that");
}

/// A member is stopped after this many turns, and killed when nothing changes any more. Until then no member considers it dead: members that need a
/// message from it wait, and members that have a group have one that includes it. Afterwards all others continue.
#[test]
fn one_that_is_stopped_holds_the_others_up_until_it_is_killed() {
    let (mut waited, mut told_some) = (0, 0);
    for sizes in [Sizes::EAGER_16_BYTES, Sizes::EAGER_300_BYTES] {
        for stopped in 0..4 {
            for turns in 0..40 {
                let story = format!("{stopped} is stopped after {turns} turns");
                let mut fleet = Fleet::new(4, sizes);
                let others: Vec<Peer> = (0..4).filter(|&peer| peer != stopped).collect();
                for round in 0..turns + 200 {
                    others.iter().for_each(|&peer| fleet.turn(peer));
                    if round < turns {
                        fleet.turn(stopped);
                    }
                }
                let groups: Vec<_> = others.iter().filter_map(|&one| fleet.group(one)).collect();
                for (members, _) in &groups {
                    assert_eq!(*members, [0, 1, 2, 3], "{story}");
                }
                assert!(groups.windows(2).all(|two| two[0] == two[1]), "{story}");
                waited += u32::from(groups.is_empty());
                told_some += u32::from((1..3).contains(&groups.len()));
                fleet.net.lose(stopped, Presence::Dead);
                fleet.agree(&others, &story);
            }
        }
    }
    assert!(waited > 0 && told_some > 0, "{waited} {told_some}");
}

/// One of the two is in the new group with all others, and the group works.
#[test]
fn of_two_that_have_given_each_other_up_one_is_left_out() {
    for sizes in [Sizes::EAGER_16_BYTES, Sizes::EAGER_300_BYTES] {
        for tasks in 2..6 {
            for (one, other) in pairs(tasks) {
                for backward in [false, true] {
                    let mut fleet = Fleet::new(tasks, sizes);
                    fleet.net.part(one, other);
                    let mut order: Vec<Peer> = (0..tasks).collect();
                    if backward {
                        order.reverse();
                    }
                    let story = format!("{one} and {other} of {tasks}, {order:?}");
                    fleet.end(&order, &story);
                    fleet.check_apart(&story);
                    let groups = (0..tasks).filter_map(|peer| fleet.group(peer));
                    let largest = groups.max_by_key(|(members, _)| members.len());
                    let (members, _) = largest.expect("a group");
                    assert_eq!(members.len() as u32, tasks - 1, "{story}: {members:?}");
                    let both = [one, other].iter().all(|peer| members.contains(peer));
                    assert!(!both, "{story}: {members:?}");
                    fleet.meet_of(&members, &story);
                }
            }
        }
    }
}

fn pairs(tasks: u32) -> impl Iterator<Item = (Peer, Peer)> {
    (0..tasks).flat_map(move |one| (one + 1..tasks).map(move |other| (one, other)))
}

/// A corrupt member reports an epoch that no member accepts: the others do not follow it there.
#[test]
fn an_epoch_that_cannot_be_is_not_agreed_on() {
    /// In the collective context of the world, with the tag of its first agreement.
    const CONTEXT: u32 = 1;
    const TAG: i32 = 0x5000_0001;
    const STATE: u64 = 2;
    const ADOPTED: u64 = 4;
    let mut fleet = Fleet::new(2, Sizes::EAGER_300_BYTES);
    fleet.turn(0);
    let epoch = u64::from(u32::MAX);
    // Its contribution, nothing adopted, the floor, the members that it reaches, and those that it has acknowledged.
    let state = [STATE, epoch << 32, 0, 1, 0b11, 0];
    for words in [&state[..], &[ADOPTED]] {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let sent = fleet.engines[1].start_send(0, CONTEXT, TAG, memory(&bytes), Mode::Standard);
        fleet.engines[1].forget(sent.expect("it is there"));
        for _ in 0..20 {
            fleet.turn(0);
        }
    }
    let (_, context) = fleet.group(0).expect("a group");
    assert!(context > 0);
    assert_eq!(fleet.engines[0].context_epoch(), 0);
}

proptest! {
    #![proptest_config(cases(300))]

    /// If one pair gives each other up, or all pairs do before the call, the groups agree. Otherwise the agreement at least ends: a member that
    /// gives another one up during it decides without that member.
    #[test]
    fn pairs_give_each_other_up_at_any_moment(
        tasks in 2u32..6,
        apart in prop::collection::vec((0u32..6, 0u32..6), 1..4),
        when in 0usize..200,
        fuses in prop::collection::vec((0u32..6, 0usize..40), 0..2),
        turns in prop::collection::vec(0u32..6, 0..200),
        tiny in any::<bool>(),
    ) {
        let mut fleet = Fleet::new(tasks, if tiny { Sizes::EAGER_16_BYTES } else { Sizes::EAGER_300_BYTES });
        for (peer, things) in fuses {
            fleet.net.die_after(peer % tasks, things);
        }
        let part = |fleet: &Fleet| {
            for &(one, other) in &apart {
                if one % tasks != other % tasks {
                    fleet.net.part(one % tasks, other % tasks);
                }
            }
        };
        for (at, peer) in turns.iter().enumerate() {
            if at == when {
                part(&fleet);
            }
            fleet.turn(peer % tasks);
        }
        if when >= turns.len() {
            part(&fleet);
        }
        let order: Vec<Peer> = (0..tasks).collect();
        let story = format!("{apart:?} after {when} turns");
        fleet.end(&order, &story);
        if apart.len() == 1 || when == 0 {
            fleet.check_apart(&story);
        }
    }

    #[test]
    fn pairs_that_have_given_each_other_up_agree(
        tasks in 2u32..6,
        apart in prop::collection::vec((0u32..6, 0u32..6), 1..5),
        turns in prop::collection::vec(0u32..6, 0..100),
        tiny in any::<bool>(),
    ) {
        let mut fleet = Fleet::new(tasks, if tiny { Sizes::EAGER_16_BYTES } else { Sizes::EAGER_300_BYTES });
        for (one, other) in apart.iter().map(|(one, other)| (one % tasks, other % tasks)) {
            if one != other {
                fleet.net.part(one, other);
            }
        }
        turns.iter().for_each(|peer| fleet.turn(peer % tasks));
        let (order, story): (Vec<Peer>, _) = ((0..tasks).collect(), format!("{apart:?}"));
        fleet.end(&order, &story);
        fleet.check_apart(&story);
    }

    #[test]
    fn anybody_dies_at_any_moment(
        tasks in 2u32..6,
        fuses in prop::collection::vec(prop::option::of(0usize..40), 6),
        turns in prop::collection::vec(0u32..6, 0..200),
        tiny in any::<bool>(),
    ) {
        let mut fleet = Fleet::new(tasks, if tiny { Sizes::EAGER_16_BYTES } else { Sizes::EAGER_300_BYTES });
        for (peer, fuse) in (0..tasks).zip(&fuses) {
            if let Some(things) = fuse {
                fleet.net.die_after(peer, *things);
            }
        }
        for peer in turns {
            if peer < tasks {
                fleet.turn(peer);
            }
        }
        let order: Vec<Peer> = (0..tasks).collect();
        fleet.agree(&order, &format!("{fuses:?}"));
    }
}
