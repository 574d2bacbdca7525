//! Contexts are reused: many more groups are made than there are contexts, while messages of freed groups are in flight, groups are kept, revoked
//! and shrunk, and tasks die. No message of one group is received in another one.

mod support;

use proptest::prelude::*;
use regatta_engine::{
    Call, Engine, Error, GroupId, Handle, Mode, Peer, ReceiptCredit, Select, Settings, Spaces,
    TagSelect,
};
use support::cases;
use support::net::{End, Net, Sizes};
use support::world::{memory, room};

/// Number of rounds after which a test fails because nothing will ever change.
const MAX_ROUNDS: usize = 3000;
/// Number of groups that can be made in an epoch.
const SPACES: Spaces = Spaces {
    made: 6,
    survivors: 4,
};

/// The number of the parts into which the contexts are divided.
const PARTS: u64 = 16;
/// The tag of epoch messages, in the collective context of the world; and the number that stands for a context: the sender has entered.
const WORD_TAG: i32 = 0x5000_0000 - 4;
const ENTERED: u64 = u64::MAX;

struct Fleet {
    net: Net,
    engines: Vec<Engine<End>>,
    /// Numbers of groups, which their messages contain.
    groups: u32,
    /// A task that computes and makes no calls.
    away: Option<Peer>,
}

impl Fleet {
    fn new(tasks: u32) -> Fleet {
        Fleet::with_sizes(tasks, Sizes::EAGER_300_BYTES)
    }

    fn with_sizes(tasks: u32, sizes: Sizes) -> Fleet {
        let net = Net::new(tasks, sizes);
        let engine = |me| Engine::with_spaces(net.end(me), Settings { buffer: 100_000 }, SPACES);
        Fleet {
            engines: (0..tasks).map(engine).collect(),
            groups: 0,
            away: None,
            net,
        }
    }

    fn engine(&mut self, peer: Peer) -> &mut Engine<End> {
        &mut self.engines[peer as usize]
    }

    fn progress(&mut self) {
        let living = self.net.living().into_iter();
        for peer in living.filter(|&peer| self.away != Some(peer)) {
            self.engines[peer as usize].progress();
        }
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Fleet) -> bool) {
        for _ in 0..MAX_ROUNDS {
            if is_so(self) {
                return;
            }
            self.progress();
        }
        panic!("{what}: it is waited for ever");
    }

    /// Makes a group of these members, and checks that it has the same context at all of them.
    fn make(&mut self, members: &[Peer]) -> Vec<(Peer, GroupId)> {
        let begun: Vec<(Peer, GroupId, Handle)> = members
            .iter()
            .map(|&peer| {
                let call = Call::Tagged(7);
                let engine = self.engine(peer);
                let made = engine.start_group(GroupId::WORLD, members.to_vec(), call);
                let (group, handle) = made.expect("it makes sense");
                (peer, group, handle)
            })
            .collect();
        self.until("a new group", |fleet| {
            let mut all = begun.iter();
            all.all(|&(peer, _, handle)| fleet.engine(peer).is_done(handle) == Ok(true))
        });
        self.groups += 1;
        let ended = begun.into_iter().map(|(peer, group, handle)| {
            let outcome = self.engines[peer as usize].finish(handle);
            let (_, error) = outcome.expect("a handle").expect("it is done");
            assert_eq!(error, None);
            (peer, group)
        });
        let made: Vec<(Peer, GroupId)> = ended.collect();
        let context = |&(peer, group): &(Peer, GroupId)| {
            let engine = &self.engines[peer as usize];
            engine.group(group).expect("a live group").context
        };
        assert!(made.iter().all(|one| context(one) == context(&made[0])));
        made
    }

    fn context(&self, (peer, group): (Peer, GroupId)) -> u32 {
        let group = self.engines[peer as usize].group(group);
        group.expect("a live group").context
    }

    /// Sends each member's group number to the next member, which does not receive it.
    fn leave_messages(&mut self, made: &[(Peer, GroupId)]) {
        let number = self.groups.to_le_bytes();
        for (at, &(peer, _)) in made.iter().enumerate() {
            let to = made[(at + 1) % made.len()].0;
            let context = self.context(made[0]);
            let sent =
                self.engine(peer)
                    .start_send(to, context, 3, memory(&number), Mode::Standard);
            if let Ok(handle) = sent {
                self.engine(peer).forget(handle);
            }
        }
    }

    /// Sends each member's group number to the next member. Each receives one number from any source, which must be that of this group.
    fn exchange(&mut self, made: &[(Peer, GroupId)]) {
        let number = self.groups;
        let context = self.context(made[0]);
        let select = Select {
            context,
            source: None,
            tag: TagSelect::Any,
        };
        let mut open = Vec::new();
        for (at, &(peer, _)) in made.iter().enumerate() {
            let into = room(4);
            let received = self.engine(peer).start_receive(select, into.clone());
            open.push((peer, received.expect("it can wait"), Some(into)));
            let to = made[(at + 1) % made.len()].0;
            let message = memory(&number.to_le_bytes());
            let sent = self
                .engine(peer)
                .start_send(to, context, 3, message, Mode::Standard);
            open.push((peer, sent.expect("it can be sent"), None));
        }
        self.until("an exchange", |fleet| {
            let mut all = open.iter();
            all.all(|&(peer, handle, _)| fleet.engine(peer).is_done(handle) == Ok(true))
        });
        for (peer, handle, into) in open {
            let outcome = self.engine(peer).finish(handle).expect("a handle");
            assert_eq!(outcome.expect("it is done").1, None);
            if let Some(into) = into {
                let got = u32::from_le_bytes(into.to_vec().try_into().expect("four bytes"));
                assert_eq!(got, number, "a message of another group");
            }
        }
    }

    fn free(&mut self, made: &[(Peer, GroupId)]) {
        for &(peer, group) in made {
            if self.net.is_here(peer) {
                self.engine(peer).free_group(group).expect("a live group");
            }
        }
    }

    /// Makes groups of all tasks until each part was reused.
    fn use_all_parts(&mut self) {
        let all: Vec<Peer> = (0..self.engines.len() as Peer).collect();
        let is_behind = |engine: &Engine<End>| engine.context_epoch() <= PARTS;
        while self.engines.iter().any(is_behind) {
            let made = self.make(&all);
            self.free(&made);
        }
    }

    /// Sends an epoch message from task 0 to task 1.
    fn say_of_epoch(&mut self, epoch: u64, context: u64) {
        let word = [epoch.to_le_bytes(), context.to_le_bytes()].concat();
        let engine = self.engine(0);
        let sent = engine.start_send(1, 1, WORD_TAG, memory(&word), Mode::Standard);
        assert_eq!(sent, Ok(Handle::COMPLETE));
    }

    fn shrink(&mut self) -> Vec<(Peer, GroupId)> {
        let living = self.net.living();
        let begun: Vec<_> = living
            .iter()
            .map(|&peer| {
                let called = self.engine(peer).start_shrink(GroupId::WORLD);
                (peer, called.expect("the world is a group"))
            })
            .collect();
        let mut made: Vec<Option<GroupId>> = vec![None; begun.len()];
        self.until("a group of survivors", |fleet| {
            for (at, (peer, called)) in begun.iter().enumerate() {
                if made[at].is_none()
                    && let Some(group) = fleet.engine(*peer).shrunk(called)
                {
                    made[at] = Some(group.expect("a group of survivors"));
                }
            }
            made.iter().all(Option::is_some)
        });
        self.groups += 1;
        living.into_iter().zip(made.into_iter().flatten()).collect()
    }
}

#[test]
fn more_groups_are_made_than_there_are_contexts() {
    let mut fleet = Fleet::new(3);
    let kept = fleet.make(&[0, 1, 2]);
    for round in 0..400 {
        let made = fleet.make(&[0, 1, 2]);
        assert_ne!(fleet.context(made[0]), fleet.context(kept[0]));
        fleet.exchange(&made);
        if round % 3 == 0 {
            fleet.leave_messages(&made);
        }
        fleet.free(&made);
    }
    assert!(
        fleet.engines[0].context_epoch() > 40,
        "all parts were used again"
    );
    fleet.exchange(&kept);
    for peer in 0..3 {
        let waiting = fleet.engines[peer].waiting();
        assert!(
            waiting < 3 * 100,
            "{waiting} messages of groups that are no more"
        );
    }
}

#[test]
fn more_groups_of_survivors_are_made_than_there_are_contexts() {
    let mut fleet = Fleet::new(4);
    for round in 0..300 {
        let made = fleet.shrink();
        fleet.exchange(&made);
        if round % 3 == 0 {
            fleet.leave_messages(&made);
        }
        if round % 7 == 0 {
            let (peer, group) = made[round % made.len()];
            fleet.engine(peer).revoke(group).expect("a group");
        }
        if round == 100 {
            fleet.net.lose(1, regatta_engine::Presence::Dead);
        }
        fleet.free(&made);
    }
    assert!(fleet.engines[0].context_epoch() > 40);
}

/// A task that has made no groups makes one with a task that has used many epochs, whichever of them proposes.
#[test]
fn a_task_that_was_not_there_goes_on_to_the_epoch_of_the_others() {
    for members in [[0, 2], [2, 0]] {
        let mut fleet = Fleet::new(3);
        for _ in 0..60 {
            let made = fleet.make(&[0, 1]);
            fleet.free(&made);
        }
        assert!(fleet.engines[0].context_epoch() > 5 && fleet.engines[2].context_epoch() == 0);
        let made = fleet.make(&members);
        fleet.exchange(&made);
    }
}

/// While a known task computes, the others wait for its epoch message, and send no further requests.
#[test]
fn a_pending_epoch_costs_no_look_at_those_that_were_met() {
    const TASKS: u32 = 20;
    const PROGRESS_CALLS: usize = 100;
    let mut fleet = Fleet::new(TASKS);
    let all: Vec<Peer> = (0..TASKS).collect();
    let (away, others) = (TASKS - 1, &all[..all.len() - 1]);
    let made = fleet.make(&all);
    fleet.free(&made);
    fleet.away = Some(away);
    for _ in 0..SPACES.made - 2 {
        let made = fleet.make(others);
        fleet.free(&made);
    }
    (0..PROGRESS_CALLS).for_each(|_| fleet.progress());
    let before = fleet.net.presence_questions();
    (0..PROGRESS_CALLS).for_each(|_| _ = fleet.engine(0).progress());
    let asked = fleet.net.presence_questions() - before;
    assert!(
        asked < PROGRESS_CALLS,
        "{asked} questions in {PROGRESS_CALLS} looks"
    );
    assert_eq!(fleet.engine(0).context_epoch(), 0);
    fleet.away = None;
    fleet.until("the next epoch", |fleet| {
        fleet.engine(0).context_epoch() == 1
    });
}

/// A member continues to send in a group that the other one has freed long ago: its context is not used for other groups.
#[test]
fn a_context_that_one_member_still_uses_is_barred() {
    let mut fleet = Fleet::new(3);
    let kept = fleet.make(&[0, 1]);
    let context = fleet.context(kept[0]);
    let (peer, group) = kept[0];
    fleet.engine(peer).free_group(group).expect("a live group");
    for _ in 0..300 {
        let made = fleet.make(&[0, 2]);
        assert_ne!(fleet.context(made[0]), context);
        fleet.free(&made);
        let sent = fleet
            .engine(1)
            .start_send(0, context, 3, memory(&[9; 4]), Mode::Standard);
        if let Ok(handle) = sent {
            fleet.engine(1).forget(handle);
        }
        fleet.progress();
    }
    assert!(fleet.engines[0].context_epoch() > 32);
}

/// The sender has a group with that context, and the receiver may not have it yet.
#[test]
fn messages_in_a_barred_context_stay_whenever_the_words_of_their_sender_come() {
    const EPOCH: u64 = 1;
    for is_looked_at_between in [false, true] {
        let mut fleet = Fleet::new(2);
        let context = 2 * SPACES.made;
        for context in [context, context + 2] {
            let message = memory(&[9; 4]);
            let sent = fleet
                .engine(0)
                .start_send(1, context, 3, message, Mode::Standard);
            assert_eq!(sent, Ok(Handle::COMPLETE));
        }
        fleet.say_of_epoch(EPOCH, u64::from(context));
        if is_looked_at_between {
            fleet.engine(1).progress();
        }
        fleet.say_of_epoch(EPOCH, ENTERED);
        fleet.engine(1).progress();
        assert_eq!(fleet.engine(1).context_epoch(), EPOCH);
        assert_eq!(fleet.engine(1).waiting(), 1, "the other one is old");
    }
}

#[test]
fn the_stream_of_a_message_that_nobody_received_is_emptied() {
    // Too long for a ring, and short enough to fit into a stream completely.
    const MESSAGE_BYTES: usize = 220;
    let mut fleet = Fleet::with_sizes(
        2,
        Sizes {
            eager: 200,
            ..Sizes::EAGER_300_BYTES
        },
    );
    let made = fleet.make(&[0, 1]);
    let context = fleet.context(made[0]);
    let message = memory(&[9; MESSAGE_BYTES]);
    let sent = fleet
        .engine(0)
        .start_send(1, context, 3, message, Mode::Standard);
    let sent = sent.expect("it can be sent");
    fleet.until("a full stream", |fleet| {
        fleet.engine(0).is_done(sent) == Ok(true)
    });
    fleet.engine(0).forget(sent);
    assert_eq!(fleet.net.lost_streams(), 1);
    fleet.free(&made);
    fleet.use_all_parts();
    assert_eq!(fleet.engine(1).waiting(), 0);
    assert_eq!((fleet.net.open_streams(), fleet.net.lost_streams()), (0, 0));
}

#[test]
fn what_a_task_is_told_in_a_group_that_is_freed_gives_its_room_and_its_credit_back() {
    let credit = ReceiptCredit { of: 7, amount: 100 };
    let mut fleet = Fleet::new(1);
    let made = fleet.make(&[0]);
    let context = fleet.context(made[0]);
    fleet.free(&made);
    fleet.engine(0).notify_self(context, 3, &[9; 4], credit);
    assert!(fleet.engine(0).buffered() > 0);
    fleet.use_all_parts();
    assert_eq!(fleet.engine(0).waiting(), 0);
    assert_eq!(fleet.engine(0).buffered(), 0);
    assert_eq!(fleet.engine(0).receipt_credits().take(), [credit]);
}

#[test]
fn a_synchronous_send_to_itself_in_a_group_that_is_freed_is_cancelled() {
    let mut fleet = Fleet::new(1);
    let made = fleet.make(&[0]);
    let context = fleet.context(made[0]);
    let message = memory(&[9; 4]);
    let sent = fleet
        .engine(0)
        .start_send(0, context, 3, message, Mode::Synchronous);
    let sent = sent.expect("it can wait");
    fleet.free(&made);
    fleet.use_all_parts();
    let outcome = fleet.engine(0).finish(sent).expect("a handle");
    assert_eq!(outcome.expect("it is over").1, Some(Error::Cancelled));
}

/// The id of a freed group is not reused soon.
#[test]
fn a_stale_id_stays_stale() {
    let mut fleet = Fleet::new(1);
    let stale = fleet.make(&[0])[0].1;
    fleet.engine(0).free_group(stale).expect("a live group");
    for _ in 0..40_000 {
        let made = fleet.make(&[0]);
        assert_ne!(made[0].1, stale);
        fleet.free(&made);
    }
    let refused = fleet.engine(0).free_group(stale);
    assert_eq!(refused, Err(Error::Handle("group")));
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn no_message_is_received_in_another_group(
        course in prop::collection::vec((0u32..8, 0u32..16, any::<bool>()), 40..160),
    ) {
        let mut fleet = Fleet::new(4);
        let mut kept: Vec<Vec<(Peer, GroupId)>> = Vec::new();
        for (what, whom, leaves) in course {
            let members: Vec<Peer> = fleet.net.living().into_iter().filter(|peer| whom >> peer & 1 == 1).collect();
            if members.is_empty() {
                continue;
            }
            let made = match what {
                0 => fleet.shrink(),
                _ => fleet.make(&members),
            };
            if what != 2 {
                fleet.exchange(&made);
            }
            if leaves {
                fleet.leave_messages(&made);
            }
            match what {
                3 => {
                    let (peer, group) = made[0];
                    fleet.engine(peer).revoke(group).expect("a group");
                    fleet.free(&made);
                }
                4 if kept.len() < 3 => kept.push(made),
                5 if !kept.is_empty() => {
                    let old = kept.remove(0);
                    fleet.leave_messages(&old);
                    fleet.free(&old);
                    fleet.free(&made);
                }
                _ => fleet.free(&made),
            }
        }
    }
}
