//! A group is revoked while its members do all kinds of operations in it: all living members end them and know the reason, whichever members die
//! meanwhile.

mod support;

use proptest::prelude::*;
use regatta_engine::{
    Call, Engine, Error, GroupId, Handle, Mode, Peer, Presence, Select, Settings, TagSelect,
};
use support::cases;
use support::net::{End, Net, Sizes};
use support::world::{BARRIER, memory, room};

/// Number of rounds after which a test fails because nothing will ever change.
const MAX_ROUNDS: usize = 150;
/// The context of a second group of all tasks.
const OTHER: u32 = 2;

/// The smallest sizes that hold a message of a member about a new group.
const EAGER_48_BYTES: Sizes = Sizes {
    eager: 48,
    ..Sizes::EAGER_16_BYTES
};

/// The operations of a member in the group.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Receive(Peer),
    ReceiveFromAny,
    Send(Peer, usize),
    SendAndWait(Peer, usize),
    Barrier,
    Duplicate,
    TakeIn,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (0u32..6).prop_map(Deed::Receive),
        Just(Deed::ReceiveFromAny),
        (0u32..6, 0usize..900).prop_map(|(to, len)| Deed::Send(to, len)),
        (0u32..6, 0usize..900).prop_map(|(to, len)| Deed::SendAndWait(to, len)),
        Just(Deed::Barrier),
        Just(Deed::Duplicate),
        Just(Deed::TakeIn),
    ]
}

struct Fleet {
    net: Net,
    engines: Vec<Engine<End>>,
    group: GroupId,
    /// A group made from the old one while that was possible.
    made: Vec<Vec<(GroupId, Handle)>>,
    under_way: Vec<Vec<Handle>>,
}

impl Fleet {
    fn new(tasks: u32, sizes: Sizes) -> Fleet {
        let net = Net::new(tasks, sizes);
        let mut group = GroupId::WORLD;
        let engine = |me| {
            let mut engine = Engine::new(net.end(me), Settings { buffer: 4000 });
            let all = (0..tasks).collect();
            group = engine.add_group(all, OTHER).expect("a second group");
            engine
        };
        let engines = (0..tasks).map(engine).collect();
        Fleet {
            engines,
            net,
            group,
            made: (0..tasks).map(|_| Vec::new()).collect(),
            under_way: (0..tasks).map(|_| Vec::new()).collect(),
        }
    }

    fn tasks(&self) -> u32 {
        self.engines.len() as u32
    }

    fn engine(&mut self, peer: Peer) -> &mut Engine<End> {
        &mut self.engines[peer as usize]
    }

    fn is_revoked(&self, peer: Peer) -> bool {
        let engine = &self.engines[peer as usize];
        engine.is_revoked(self.group).expect("a group")
    }

    fn start(&mut self, peer: Peer, deed: Deed) -> Result<Option<Handle>, Error> {
        let (group, tasks) = (self.group, self.tasks());
        let engine = &mut self.engines[peer as usize];
        let receive = |source: Option<Peer>| Select {
            context: OTHER,
            source,
            tag: TagSelect::Any,
        };
        match deed {
            Deed::Receive(from) => {
                let select = receive(Some(from % tasks));
                engine.start_receive(select, room(400)).map(Some)
            }
            Deed::ReceiveFromAny => engine.start_receive(receive(None), room(400)).map(Some),
            Deed::Send(to, len) => {
                let message = memory(&vec![7; len]);
                let sent = engine.start_send(to % tasks, OTHER, 1, message, Mode::Standard);
                sent.map(Some)
            }
            Deed::SendAndWait(to, len) => {
                let message = memory(&vec![7; len]);
                let sent = engine.start_send(to % tasks, OTHER, 1, message, Mode::Synchronous);
                sent.map(Some)
            }
            Deed::Barrier => engine.start(group, &BARRIER).map(Some),
            Deed::Duplicate => {
                let call = engine.next_call(group)?;
                let made = engine.start_group(group, (0..tasks).collect(), call)?;
                self.made[peer as usize].push(made);
                Ok(None)
            }
            Deed::TakeIn => {
                engine.take_in_offers();
                Ok(None)
            }
        }
    }

    /// Lets a member start an operation. Once it knows of the revocation, no operation that waits can be started.
    fn act(&mut self, peer: Peer, deed: Deed) {
        if !self.net.is_here(peer) {
            return;
        }
        match self.start(peer, deed) {
            Ok(handle) => self.under_way[peer as usize].extend(handle),
            Err(error) => self.judge(peer, &error),
        }
    }

    fn judge(&self, peer: Peer, error: &Error) {
        let is_here = |peer: Peer| self.net.is_here(peer);
        match error {
            Error::Revoked => assert!(self.is_revoked(peer)),
            Error::Dead(dead) => assert!(!is_here(*dead), "{dead} lives"),
            Error::Truncated { .. } => {}
            // A task sends to itself.
            Error::Cycle(_) => {}
            error => panic!("{error:?}"),
        }
    }

    fn progress(&mut self) {
        for peer in 0..self.tasks() {
            if self.net.is_here(peer) {
                self.engine(peer).progress();
            }
        }
    }

    /// Runs all tasks. If a living task knows of the revocation, all learn of it, and no operation remains in progress.
    fn end(&mut self, story: &str) {
        for _ in 0..MAX_ROUNDS {
            self.progress();
        }
        let living = self.net.living();
        if !living.iter().any(|&peer| self.is_revoked(peer)) {
            return;
        }
        let mut made = Vec::new();
        for peer in living {
            assert!(self.is_revoked(peer), "{story}: {peer} does not know");
            for handle in std::mem::take(&mut self.under_way[peer as usize]) {
                let outcome = self.engine(peer).finish(handle).expect("a live handle");
                let (_, error) = outcome.unwrap_or_else(|| panic!("{story}: {peer} waits"));
                if let Some(error) = error {
                    self.judge(peer, &error);
                }
            }
            for (call, (group, handle)) in std::mem::take(&mut self.made[peer as usize])
                .into_iter()
                .enumerate()
            {
                let outcome = self.engine(peer).finish(handle).expect("a live handle");
                let (_, error) =
                    outcome.unwrap_or_else(|| panic!("{story}: {peer} waits for a new group"));
                made.push((call, peer, group, error));
            }
            let barrier = self.start(peer, Deed::Barrier);
            assert_eq!(barrier.expect_err("revoked"), Error::Revoked, "{story}");
            let refused = self.start(peer, Deed::Duplicate);
            assert!(refused.is_err(), "{story}");
        }
        self.check_made(&made, story);
        self.go_on(story);
    }

    /// A group that some members have and others do not, because the old one was revoked, is revoked for those that have it.
    fn check_made(&self, made: &[(usize, Peer, GroupId, Option<Error>)], story: &str) {
        for (call, peer, group, _) in made.iter().filter(|it| it.3.is_none()) {
            let lacks = |it: &&(usize, Peer, GroupId, Option<Error>)| {
                it.0 == *call && it.3 == Some(Error::Revoked)
            };
            if let Some((_, other, ..)) = made.iter().find(lacks) {
                let engine = &self.engines[*peer as usize];
                assert_eq!(
                    engine.is_revoked(*group),
                    Ok(true),
                    "{story}: {peer} waits for {other}"
                );
            }
        }
    }

    /// Checks that the living members can agree in the revoked group, and that the other group still works.
    fn go_on(&mut self, story: &str) {
        let living = self.net.living();
        let group = self.group;
        let mut handles = Vec::new();
        for &peer in &living {
            let into = room(4);
            let agreed = self
                .engine(peer)
                .start_agree(group, !(1 << peer), into.clone());
            handles.push((peer, agreed.expect("it can be begun"), into));
        }
        let (first, last) = (living[0], living[living.len() - 1]);
        let select = Select {
            context: 0,
            source: Some(last),
            tag: TagSelect::Exactly(5),
        };
        let received = self.engine(first).start_receive(select, room(4));
        let sent = self
            .engine(last)
            .start_send(first, 0, 5, memory(&[1; 4]), Mode::Synchronous);
        for _ in 0..MAX_ROUNDS {
            self.progress();
        }
        if self.net.living() != living {
            return;
        }
        for (peer, handle) in [(first, received), (last, sent)] {
            let outcome = self.engine(peer).finish(handle.expect("it has begun"));
            let (_, error) = outcome.expect("a handle").expect("the other group works");
            assert_eq!(error, None, "{story}");
        }
        let expected = living.iter().fold(!0, |all, peer| all & !(1i32 << peer));
        for (peer, handle, into) in handles {
            let outcome = self.engine(peer).finish(handle).expect("a live handle");
            assert!(outcome.is_some(), "{story}: {peer} waits for the flag");
            let bytes = into.to_vec().try_into().expect("four bytes");
            assert_eq!(i32::from_ne_bytes(bytes), expected, "{story}");
        }
    }
}

#[test]
fn whatever_waits_ends() {
    for sizes in [EAGER_48_BYTES, Sizes::EAGER_300_BYTES] {
        for revoker in 0..3 {
            let mut fleet = Fleet::new(3, sizes);
            fleet.act(0, Deed::Receive(1));
            fleet.act(1, Deed::ReceiveFromAny);
            fleet.act(1, Deed::SendAndWait(2, 0));
            fleet.act(1, Deed::SendAndWait(2, 700));
            fleet.act(2, Deed::SendAndWait(2, 30));
            fleet.act(2, Deed::Duplicate);
            fleet.act(0, Deed::Barrier);
            for _ in 0..20 {
                fleet.progress();
            }
            let group = fleet.group;
            fleet.engine(revoker).revoke(group).expect("a group");
            assert!(fleet.is_revoked(revoker));
            fleet.end(&format!("{revoker} revokes"));
        }
    }
}

/// A long message is being received, in any stage, when the sender's group is revoked: the receive ends with the group's error.
#[test]
fn a_long_message_under_way_ends_as_its_group_does() {
    let mut under_way = 0;
    for sizes in [EAGER_48_BYTES, Sizes::EAGER_300_BYTES] {
        for turns in 0..12 {
            for revoker in 0..3 {
                for taken_by_a_probe in [false, true] {
                    let mut fleet = Fleet::new(3, sizes);
                    fleet.act(0, Deed::SendAndWait(1, 800));
                    fleet.act(2, Deed::Send(1, 800));
                    for _ in 0..2 {
                        fleet.engine(1).progress();
                    }
                    for from in [0, 2] {
                        let select = Select {
                            context: OTHER,
                            source: Some(from),
                            tag: TagSelect::Any,
                        };
                        match taken_by_a_probe {
                            true => {
                                let engine = fleet.engine(1);
                                let found = engine.match_probe(&select).expect("open");
                                let (_, message) = found.expect("it has come");
                                let received = engine.start_matched_receive(message, room(900));
                                fleet.under_way[1].push(received.expect("open"));
                            }
                            false => fleet.act(1, Deed::Receive(from)),
                        }
                    }
                    for _ in 0..turns {
                        fleet.progress();
                    }
                    let waits = fleet.under_way[1].clone();
                    let mut is_open = waits
                        .iter()
                        .map(|&one| !fleet.engines[1].is_done(one).expect("a handle"));
                    under_way += u32::from(is_open.any(|open| open));
                    drop(is_open);
                    let group = fleet.group;
                    fleet.engine(revoker).revoke(group).expect("a group");
                    // The message to the receiver and everything after it are received by one poll.
                    for sender in [0, 2] {
                        fleet.engine(sender).progress();
                    }
                    fleet.end(&format!("{revoker} revokes after {turns} turns"));
                }
            }
        }
    }
    assert!(under_way > 10, "{under_way}");
}

/// The receiver has received a part of a long message and has revoked the group: the send ends with the group's error, although there is space for
/// the rest.
#[test]
fn a_send_ends_by_a_revocation_that_has_come_before_its_last_bytes_find_room() {
    let mut fleet = Fleet::new(2, Sizes::EAGER_16_BYTES);
    fleet.act(0, Deed::Send(1, 20));
    fleet.engine(1).progress();
    assert!(fleet.engine(1).take_in_offers(), "it is taken in");
    let group = fleet.group;
    fleet.engine(1).revoke(group).expect("a group");
    fleet.engine(0).progress();
    let handle = fleet.under_way[0].remove(0);
    let outcome = fleet.engine(0).finish(handle).expect("a live handle");
    assert_eq!(outcome.expect("it has ended").1, Some(Error::Revoked));
    fleet.end("taken in");
}

/// Its sender withdraws it.
#[test]
fn a_long_message_is_not_taken_in_when_its_group_is_revoked() {
    let mut fleet = Fleet::new(2, Sizes::EAGER_16_BYTES);
    fleet.act(0, Deed::Send(1, 20));
    fleet.engine(1).progress();
    let group = fleet.group;
    fleet.engine(1).revoke(group).expect("a group");
    assert!(!fleet.engine(1).take_in_offers());
    fleet.end("offered");
}

/// In a large group the receiver is not a neighbour of the sender. It learns of the revocation from other members, later than of the withdrawal of
/// the message: the withdrawal itself contains the reason.
#[test]
fn a_message_that_is_taken_back_says_why() {
    for taken_by_a_probe in [false, true] {
        let mut fleet = Fleet::new(24, Sizes::EAGER_300_BYTES);
        // The member that revokes notifies only the sender.
        fleet.net.die_after(12, 1);
        let select = Select {
            context: OTHER,
            source: Some(0),
            tag: TagSelect::Any,
        };
        fleet.act(0, Deed::SendAndWait(3, 800));
        let engine = fleet.engine(3);
        let message = taken_by_a_probe.then(|| {
            let found = engine.match_probe(&select).expect("open");
            found.expect("it has come").1
        });
        if !taken_by_a_probe {
            fleet.act(3, Deed::Receive(0));
        }
        let group = fleet.group;
        fleet.engine(12).revoke(group).expect("a group");
        fleet.engine(0).progress();
        fleet.engine(3).progress();
        assert!(fleet.is_revoked(3));
        let error = match message {
            Some(message) => {
                let received = fleet.engine(3).start_matched_receive(message, room(900));
                received.err()
            }
            None => {
                let handle = fleet.under_way[3].remove(0);
                let outcome = fleet.engine(3).finish(handle).expect("a live handle");
                outcome.expect("it has ended").1
            }
        };
        assert_eq!(error, Some(Error::Revoked));
        fleet.end("24 tasks");
    }
}

/// A revocation that a task has sent before it left in good order takes precedence over its departure.
#[test]
fn the_word_of_one_that_has_left_is_heard_first() {
    for how in [Presence::Left, Presence::Dead] {
        let mut fleet = Fleet::new(3, Sizes::EAGER_300_BYTES);
        fleet.act(1, Deed::Receive(0));
        let group = fleet.group;
        fleet.engine(0).revoke(group).expect("a group");
        fleet.net.lose(0, how);
        fleet.engine(1).progress();
        let handle = fleet.under_way[1][0];
        let outcome = fleet.engine(1).finish(handle).expect("a live handle");
        let (_, error) = outcome.expect("it has ended");
        assert_eq!(error, Some(Error::Revoked));
        assert!(fleet.is_revoked(1));
    }
}

/// Creates a fleet of three tasks in which task 1 tolerates departures in the group, and task 2 has left.
fn after_a_tolerated_departure() -> Fleet {
    let mut fleet = Fleet::new(3, Sizes::EAGER_300_BYTES);
    let group = fleet.group;
    let tolerated = fleet.engine(1).tolerate_departures(group, false);
    tolerated.expect("a group");
    fleet.net.lose(2, Presence::Left);
    fleet.engine(1).progress();
    fleet
}

/// Where departures are tolerated, a call that waits for a task which has revoked the group and then left fails with the group's error.
#[test]
fn a_wait_ends_by_the_revocation_and_not_by_the_departure_after_it() {
    let mut fleet = after_a_tolerated_departure();
    let group = fleet.group;
    fleet.engine(0).revoke(group).expect("a group");
    fleet.net.lose(0, Presence::Left);
    let select = Select {
        context: OTHER,
        source: Some(0),
        tag: TagSelect::Any,
    };
    let hope = fleet.engine(1).check_hope(&select, |_| true);
    assert_eq!(hope, Err(Error::Revoked));
}

/// Where departures are tolerated, a send to a task that has left stays pending until the group is revoked, here or elsewhere.
#[test]
fn a_send_that_nobody_will_take_ends_when_its_group_is_revoked() {
    for revoker in [0, 1] {
        let mut fleet = after_a_tolerated_departure();
        let group = fleet.group;
        let engine = fleet.engine(1);
        let sent = engine.start_send(2, OTHER, 1, memory(&[7]), Mode::Standard);
        assert_eq!(sent.err(), Some(Error::Left(2)));
        let stranded = engine.start_stranded(OTHER, Error::Left(2));
        let stranded = stranded.expect("departures are tolerated");
        engine.progress();
        assert_eq!(engine.is_done(stranded), Ok(false));
        fleet.engine(revoker).revoke(group).expect("a group");
        fleet.engine(1).progress();
        let outcome = fleet.engine(1).finish(stranded).expect("a live handle");
        assert_eq!(outcome.expect("it has ended").1, Some(Error::Revoked));
    }
}

/// The member that revokes dies after each message that it sends, and the members that it has notified die after each of their messages.
#[test]
fn the_word_gets_round_whoever_dies() {
    let mut all_know = 0;
    for tasks in [4, 24] {
        for sizes in [EAGER_48_BYTES, Sizes::EAGER_300_BYTES] {
            for first in 0..tasks as usize {
                for second in (0..tasks as usize).step_by(1 + tasks as usize / 8) {
                    let mut fleet = Fleet::new(tasks, sizes);
                    fleet.net.die_after(0, first);
                    fleet.net.die_after(1, second);
                    (2..tasks).for_each(|peer| fleet.act(peer, Deed::Receive(peer - 1)));
                    let group = fleet.group;
                    fleet.engine(0).revoke(group).expect("a group");
                    fleet.end(&format!(
                        "0 of {tasks} dies after {first}, 1 after {second}"
                    ));
                    all_know += u32::from(fleet.is_revoked(2));
                }
            }
        }
    }
    assert!(all_know > 50, "{all_know}");
}

#[test]
fn groups_that_are_tied_are_revoked_together() {
    for early in [false, true] {
        let mut fleet = Fleet::new(3, Sizes::EAGER_300_BYTES);
        let group = fleet.group;
        for peer in 0..3 {
            if early && peer == 0 {
                fleet.engine(0).revoke(group).expect("a group");
            }
            if !early || peer != 2 {
                let tied = fleet.engine(peer).tie(group, GroupId::WORLD);
                tied.expect("both are groups");
            }
        }
        if !early {
            fleet.engine(1).revoke(GroupId::WORLD).expect("a group");
        }
        (0..20).for_each(|_| fleet.progress());
        for peer in 0..3 {
            assert!(fleet.is_revoked(peer));
            let world = fleet.engines[peer as usize].is_revoked(GroupId::WORLD);
            assert_eq!(world, Ok(true), "{peer} hears of each from those that know");
            assert!(!fleet.engines[peer as usize].is_open_rank(0));
        }
    }
}

/// A member has a new group and revokes it, and another one learns of that before it has the group.
#[test]
fn word_may_come_before_the_group_is_there() {
    let mut fleet = Fleet::new(4, Sizes::EAGER_300_BYTES);
    for peer in 0..4 {
        fleet.act(peer, Deed::Duplicate);
    }
    let made = |fleet: &mut Fleet, peer: Peer| {
        let (group, handle) = fleet.made[peer as usize][0];
        let done = fleet.engine(peer).is_done(handle).expect("a live handle");
        done.then_some(group)
    };
    let mut seen = false;
    for _ in 0..50 {
        for peer in [0, 1, 2] {
            fleet.engine(peer).progress();
        }
        if made(&mut fleet, 0).is_some() {
            break;
        }
        fleet.engine(3).progress();
    }
    let group = made(&mut fleet, 0).expect("0 is the first to have it");
    seen |= made(&mut fleet, 3).is_none();
    fleet.engine(0).revoke(group).expect("a group");
    (0..20).for_each(|_| fleet.progress());
    for peer in 0..4 {
        let group = made(&mut fleet, peer).expect("made");
        let revoked = fleet.engines[peer as usize].is_revoked(group);
        assert_eq!(revoked, Ok(true), "{peer} has not heard");
    }
    assert!(seen, "it never came to that");
}

/// The old group is revoked when some members have the new one and others do not: the new group is revoked at those that have it.
#[test]
fn a_group_that_not_all_get_is_revoked() {
    let mut seen = 0;
    for tasks in [2, 3, 4, 20] {
        for turns in 0..12 {
            let mut fleet = Fleet::new(tasks, Sizes::EAGER_300_BYTES);
            for peer in 0..tasks {
                fleet.act(peer, Deed::Duplicate);
            }
            (0..turns).for_each(|_| fleet.progress());
            fleet.engine(0).progress();
            let has_it = |fleet: &mut Fleet, peer: Peer| {
                let (_, handle) = fleet.made[peer as usize][0];
                fleet.engine(peer).is_done(handle).expect("a live handle")
            };
            let have: Vec<bool> = (0..tasks).map(|peer| has_it(&mut fleet, peer)).collect();
            seen += u32::from(have.contains(&true) && have.contains(&false));
            let group = fleet.group;
            // A member that has no group yet learns of it before the final message about the new group.
            fleet.engine(tasks - 1).revoke(group).expect("a group");
            fleet.end(&format!("{tasks} tasks, after {turns} turns"));
        }
    }
    assert!(seen >= 4, "it came to that {seen} times");
}

/// A revocation of a context arrives from a task that was to be in a different group with that context: nothing happens.
#[test]
fn word_counts_only_if_it_comes_from_a_member() {
    let mut fleet = Fleet::new(3, Sizes::EAGER_300_BYTES);
    let own = |fleet: &mut Fleet, peer: Peer, members: Vec<Peer>| {
        let made = fleet.engine(peer).add_group(members, 8);
        made.expect("a group")
    };
    let pair = own(&mut fleet, 0, vec![0, 1]);
    own(&mut fleet, 1, vec![0, 1]);
    let other = own(&mut fleet, 2, vec![2, 0]);
    fleet.engine(2).revoke(other).expect("a group");
    (0..20).for_each(|_| fleet.progress());
    assert_eq!(fleet.engines[0].is_revoked(pair), Ok(false));
    fleet.engine(1).revoke(pair).expect("a group");
    (0..20).for_each(|_| fleet.progress());
    assert_eq!(fleet.engines[0].is_revoked(pair), Ok(true));
}

#[test]
fn a_channel_cannot_be_revoked() {
    let mut fleet = Fleet::new(2, Sizes::EAGER_300_BYTES);
    let refused = fleet.engine(0).revoke(GroupId::ALL);
    assert!(matches!(refused, Err(Error::Argument(_))), "{refused:?}");
    let call = Call::Selecting;
    let group = fleet.group;
    fleet.engine(0).revoke(group).expect("a group");
    let made = fleet.engine(0).start_group(group, vec![0], call);
    assert_eq!(made.expect_err("revoked"), Error::Revoked);
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn it_is_revoked_at_any_moment_and_anybody_dies(
        tasks in 1u32..6,
        deeds in prop::collection::vec((0u32..6, prop::option::weighted(0.6, deed())), 0..60),
        when in prop::collection::vec((0usize..60, 0u32..6), 1..3),
        fuses in prop::collection::vec(prop::option::weighted(0.3, 0usize..60), 6),
        tiny in any::<bool>(),
    ) {
        let mut fleet = Fleet::new(tasks, if tiny { EAGER_48_BYTES } else { Sizes::EAGER_300_BYTES });
        for (peer, fuse) in (0..tasks).zip(&fuses) {
            if let Some(things) = fuse {
                fleet.net.die_after(peer, *things);
            }
        }
        let group = fleet.group;
        for at in 0..60 {
            for &(_, peer) in when.iter().filter(|(moment, _)| *moment == at) {
                if fleet.net.is_here(peer % tasks) {
                    fleet.engine(peer % tasks).revoke(group).expect("a group");
                }
            }
            let Some(&(peer, deed)) = deeds.get(at) else { continue };
            match deed {
                Some(deed) => fleet.act(peer % tasks, deed),
                None if fleet.net.is_here(peer % tasks) => {
                    fleet.engine(peer % tasks).progress();
                }
                None => {}
            }
        }
        fleet.end(&format!("{when:?} {fuses:?}"));
    }
}

/// The revocation is among the last messages of the member.
#[test]
fn a_receive_from_a_member_that_has_revoked_and_left_says_revoked() {
    for how in [Presence::Left, Presence::Dead] {
        for probes in [false, true] {
            let mut fleet = Fleet::new(3, EAGER_48_BYTES);
            let group = fleet.group;
            fleet.engines[1].revoke(group).expect("revoked");
            fleet.net.lose(1, how);
            let select = Select {
                context: OTHER,
                source: Some(1),
                tag: TagSelect::Exactly(5),
            };
            let engine = &mut fleet.engines[0];
            let error = match probes {
                true => engine.probe(&select).err(),
                false => engine.start_receive(select, room(8)).err(),
            };
            assert_eq!(error, Some(Error::Revoked), "{how:?}, {probes}");
        }
    }
}
