//! Single cases that once failed, or that would fail silently.

mod support;

use regatta_engine::{
    Engine, Error, GroupId, Handle, Kind, Loans, Mode, Operation, Peer, Presence, Select, Settings,
    TagSelect,
};
use regatta_memory::views::Views;
use support::net::{End, Net, Sizes};
use support::world::{BARRIER, World, memory, names, room};

fn from(source: Peer, tag: i32) -> Select {
    Select {
        context: 0,
        source: Some(source),
        tag: TagSelect::Exactly(tag),
    }
}

fn pair(sizes: Sizes) -> (Net, Engine<End>, Engine<End>) {
    let net = Net::new(2, sizes);
    let engine = |me| Engine::new(net.end(me), Settings::default());
    (net.clone(), engine(0), engine(1))
}

/// A large message is offered, then a small one is sent: the receive must take the large one.
#[test]
fn a_small_message_does_not_overtake_an_offer() {
    let mut world = World::new(2, Sizes::EAGER_16_BYTES, 1 << 20);
    world.send(1, 0, 0, 5, 17, Mode::Standard);
    world.send(1, 0, 0, 5, 3, Mode::Standard);
    world.receive(0, from(1, 5), 40);
    world.receive(0, from(1, 5), 40);
    world.finish();
}

/// A loan is sent, then a small message: the receive must take the loan.
#[test]
fn a_small_message_does_not_overtake_a_loan() {
    let mut world = World::new(2, Sizes::EAGER_16_BYTES, 1 << 20);
    world.send_loan(1, 0, 0, 5, 30);
    world.send(1, 0, 0, 5, 3, Mode::Standard);
    world.receive(0, from(1, 5), 40);
    world.receive(0, from(1, 5), 40);
    world.finish();
}

/// The sender died before the receive was posted, and its loss was processed.
#[test]
fn a_receive_of_a_dead_tasks_unfinished_offer_fails() {
    for streams in [0, 1] {
        let (net, mut receiver, mut sender) = pair(Sizes {
            streams,
            ..Sizes::EAGER_16_BYTES
        });
        let message = memory(&[7; 100]);
        sender
            .start_send(0, 0, 1, message, Mode::Standard)
            .expect("started");
        while receiver.progress() {}
        net.lose(1, Presence::Dead);
        while receiver.progress() {}
        let error = match receiver.start_receive(from(1, 1), room(100)) {
            Err(error) => error,
            Ok(handle) => {
                while receiver.progress() {}
                let outcome = receiver.finish(handle).expect("a live handle");
                outcome
                    .expect("nobody will ever send the rest")
                    .1
                    .expect("an error")
            }
        };
        assert!(names(&error, 1), "{error:?}");
        assert!(receiver.is_idle());
    }
}

/// A standard send to a task known to be dead must fail.
#[test]
fn a_small_send_to_a_dead_task_fails_at_once() {
    let (net, mut engine, _other) = pair(Sizes::EAGER_16_BYTES);
    net.lose(1, Presence::Dead);
    while engine.progress() {}
    let sent = engine.start_send(1, 0, 0, memory(&[1, 2]), Mode::Standard);
    assert!(matches!(sent, Err(Error::Dead(1))), "{sent:?}");
}

/// A peer that writes corrupt data is condemned once. After that nothing is left to do, so that the task can sleep.
#[test]
fn a_damaged_ring_does_not_keep_the_engine_busy() {
    let (net, mut engine, _other) = pair(Sizes::EAGER_16_BYTES);
    let waiting = engine.start_receive(from(1, 0), room(4)).expect("posted");
    net.damage(1, 0);
    while !engine.is_done(waiting).expect("a live handle") {
        assert!(engine.progress(), "the damage is noticed");
    }
    let outcome = engine.finish(waiting).expect("a live handle");
    let (_, error) = outcome.expect("it is done");
    assert!(
        matches!(error, Some(Error::Corrupt { peer: 1, .. })),
        "{error:?}"
    );
    assert!((0..10).any(|_| !engine.progress()), "busy for ever");
}

/// A task that this one has condemned would otherwise wait for it forever, as would third tasks in a collective of all. All of them are notified,
/// and nothing of the condemned task is read any more.
#[test]
fn who_is_condemned_hears_of_it_and_so_do_the_members_of_its_groups() {
    let net = Net::new(3, Sizes::EAGER_16_BYTES);
    let mut engines: Vec<_> = (0..3)
        .map(|n| Engine::new(net.end(n), Settings::default()))
        .collect();
    let accused = engines[1]
        .start_receive(from(0, 0), room(4))
        .expect("posted");
    let barrier = engines[2].start(GroupId::WORLD, &BARRIER).expect("started");
    assert!(engines[1].try_send(0, 0, 7, &memory(&[1])));
    net.damage(1, 0);
    for _ in 0..20 {
        for engine in &mut engines {
            engine.progress();
        }
    }
    let outcome = |engine: &mut Engine<_>, handle| {
        let done = engine.finish(handle).expect("a live handle");
        done.expect("nobody waits for ever").1
    };
    let told = outcome(&mut engines[1], accused);
    assert!(
        matches!(told, Some(Error::Corrupt { peer: 0, .. })),
        "{told:?}"
    );
    let third = outcome(&mut engines[2], barrier);
    assert!(matches!(third, Some(Error::Corrupt { .. })), "{third:?}");
    let refused = engines[0].start_receive(from(1, 7), room(4));
    assert!(
        matches!(refused, Err(Error::Corrupt { peer: 1, .. })),
        "{refused:?}"
    );
}

/// Messages of no bytes take memory, too.
#[test]
fn empty_messages_are_bounded_as_well() {
    let net = Net::new(2, Sizes::EAGER_16_BYTES);
    let mut receiver = Engine::new(net.end(0), Settings { buffer: 4096 });
    let mut sender = Engine::new(net.end(1), Settings::default());
    let mut taken = 0;
    for _ in 0..100_000 {
        sender.try_send(0, 0, 0, &room(0));
        receiver.progress();
        taken += net.taken(0).len();
    }
    assert!(taken < 50_000, "{taken} messages held for 4 KiB of buffer");
}

/// An answer to the last request of a lost task would open a ring that is never closed.
#[test]
fn nothing_is_said_to_a_task_that_is_gone() {
    let (net, mut receiver, mut sender) = pair(Sizes {
        ring: 64,
        ..Sizes::EAGER_16_BYTES
    });
    let sent = sender.start_send(0, 0, 1, memory(&[1; 100]), Mode::Synchronous);
    // More than a receiver handles before it checks for losses.
    for _ in 0..40 {
        assert!(sender.try_send(0, 0, 2, &room(0)));
    }
    sender.recall(sent.expect("started")).expect("asked");
    net.lose(1, Presence::Dead);
    while receiver.progress() {}
    assert_eq!(net.taken(0).len(), 41);
    assert!(!net.front_of(0, 1) && receiver.is_idle());
}

/// A send that waits for space is withdrawn: its memory must not be read afterwards, and the message is not sent.
#[test]
fn a_forgotten_send_is_not_sent() {
    let (_net, mut receiver, mut sender) = pair(Sizes::EAGER_16_BYTES);
    let mut handles = vec![];
    while handles
        .last()
        .is_none_or(|&handle| handle == Handle::COMPLETE)
    {
        let sent = sender.start_send(0, 0, 0, memory(&[1]), Mode::Standard);
        handles.push(sent.expect("started"));
    }
    let waiting = handles.pop().expect("one waits for room");
    sender.forget(waiting);
    let mut got = 0;
    for _ in 0..20 {
        sender.progress();
        let now = receiver.start_receive(from(1, 0), room(1)).expect("posted");
        got += receiver.finish(now).expect("a live handle").is_some() as usize;
    }
    assert_eq!(got, handles.len());
}

/// A large send is withdrawn after its offer was sent: a receive must not wait for it forever.
#[test]
fn a_receive_does_not_wait_for_an_offer_that_was_taken_back() {
    for (streams, begun) in [(0, false), (1, false), (0, true), (1, true)] {
        let (_net, mut receiver, mut sender) = pair(Sizes {
            streams,
            ..Sizes::EAGER_16_BYTES
        });
        let large = sender.start_send(0, 0, 0, memory(&[1; 100]), Mode::Standard);
        let receive = |engine: &mut Engine<End>| {
            let handle = engine.start_receive(from(1, 0), room(100));
            handle.expect("posted")
        };
        let early = begun.then(|| receive(&mut receiver));
        sender.forget(large.expect("started"));
        let second = memory(&[2; 3]);
        sender
            .start_send(0, 0, 0, second, Mode::Standard)
            .expect("started");
        let first = early.unwrap_or_else(|| receive(&mut receiver));
        for _ in 0..50 {
            sender.progress();
            receiver.progress();
        }
        let done = receiver.is_done(first).expect("a live handle");
        assert!(done, "streams {streams}, begun {begun}: it waits for ever");
    }
}

/// A receive in progress is withdrawn: its sender must not wait forever.
#[test]
fn a_send_does_not_wait_for_a_receive_that_was_taken_back() {
    for streams in [0, 1] {
        let (net, mut receiver, mut sender) = pair(Sizes {
            streams,
            ..Sizes::EAGER_16_BYTES
        });
        let sent = sender.start_send(0, 0, 0, memory(&[1; 100]), Mode::Standard);
        let sent = sent.expect("started");
        let into = room(100);
        let handle = receiver
            .start_receive(from(1, 0), into.clone())
            .expect("started");
        receiver.forget(handle);
        into.fill(&[0; 100]);
        for _ in 0..200 {
            sender.progress();
            receiver.progress();
        }
        assert!(
            sender.is_done(sent).expect("a live handle"),
            "streams {streams}"
        );
        assert!(
            into.to_vec().iter().all(|&byte| byte == 0),
            "the memory is the caller's again"
        );
        assert!(receiver.is_idle() && sender.is_idle());
        assert_eq!(net.open_streams(), 0);
    }
}

/// A message that does not fit fails the collective of one member, not of all.
#[test]
fn a_truncation_in_a_collective_is_an_error_for_its_member_alone() {
    use regatta_engine::{GroupId, Parts};
    let net = Net::new(3, Sizes::EAGER_16_BYTES);
    let mut engines: Vec<_> = (0..3)
        .map(|me| Engine::new(net.end(me), Settings::default()))
        .collect();
    let handles: Vec<Handle> = (0..3)
        .map(|me| {
            // Rank 2 expects rank 0 to give less than it does.
            let first = if me == 2 { 2 } else { 4 };
            let parts = Parts::Listed(vec![(first, 0), (4, 4), (4, 8)]);
            let input = Some(memory(&[me as u8; 4]));
            let gathering = Operation {
                input,
                output: Some(room(12)),
                gets: parts,
                ..Operation::of(Kind::Allgather)
            };
            let started = engines[me].start(GroupId::WORLD, &gathering);
            started.expect("started")
        })
        .collect();
    for _ in 0..50 {
        for engine in &mut engines {
            engine.progress();
        }
    }
    let outcome = |me: usize, engines: &mut Vec<Engine<End>>| {
        let outcome = engines[me].finish(handles[me]).expect("a live handle");
        outcome
            .unwrap_or_else(|| panic!("rank {me} waits for ever"))
            .1
    };
    assert_eq!(outcome(0, &mut engines), None);
    assert!(matches!(
        outcome(2, &mut engines),
        Some(Error::Truncated { .. })
    ));
    outcome(1, &mut engines);
}

/// Across hosts, leaders send the parts of other members after their own.
#[test]
fn a_leader_that_gives_more_than_its_part_spoils_no_other_part() {
    use regatta_engine::{GroupId, Parts};
    let net = Net::new(4, Sizes::EAGER_16_BYTES);
    net.spread(2);
    let mut engines: Vec<_> = (0..4)
        .map(|me| Engine::new(net.end(me), Settings::default()))
        .collect();
    let outputs: Vec<_> = (0..4).map(|_| room(16)).collect();
    let mut handles: Vec<Handle> = Vec::new();
    for (me, engine) in engines.iter_mut().enumerate() {
        let given = if me == 0 { 8 } else { 4 };
        let gathering = Operation {
            input: Some(memory(&vec![me as u8 + 1; given])),
            output: Some(outputs[me].clone()),
            gets: Parts::Listed((0..4).map(|rank| (4, 4 * rank)).collect()),
            ..Operation::of(Kind::Allgather)
        };
        handles.push(engine.start(GroupId::WORLD, &gathering).expect("started"));
    }
    for _ in 0..100 {
        engines.iter_mut().for_each(|engine| {
            engine.progress();
        });
    }
    for (me, engine) in engines.iter_mut().enumerate() {
        let outcome = engine.finish(handles[me]).expect("a live handle");
        assert_eq!(outcome.expect("it ends").1, None);
        let wanted: Vec<u8> = (1..=4).flat_map(|rank| [rank; 4]).collect();
        assert_eq!(outputs[me].to_vec(), wanted, "rank {me}");
    }
}

/// The awaited message is queued behind others that fill the buffer: a blocked receive must detect that.
#[test]
fn a_full_buffer_in_front_of_a_receive_shows() {
    let net = Net::new(2, Sizes::EAGER_16_BYTES);
    let mut receiver = Engine::new(net.end(0), Settings { buffer: 400 });
    let mut sender = Engine::new(net.end(1), Settings::default());
    let wanted = receiver.start_receive(from(1, 9), room(1)).expect("posted");
    for tag in [1, 1, 1, 9] {
        assert!(sender.try_send(0, 0, tag, &memory(&[1; 8])));
        receiver.progress();
    }
    assert!(receiver.buffer_is_full() && !receiver.is_done(wanted).expect("a live handle"));
    receiver.start_receive(from(1, 1), room(8)).expect("taken");
    receiver.progress();
    receiver.start_receive(from(1, 1), room(8)).expect("taken");
    receiver.progress();
    assert!(receiver.is_done(wanted).expect("a live handle"));
}

/// A synchronous message of no bytes needs no stream, but still waits for its receive.
#[test]
fn an_empty_synchronous_message_opens_no_stream() {
    let (net, mut receiver, mut sender) = pair(Sizes::EAGER_16_BYTES);
    let sent = sender.start_send(0, 0, 0, room(0), Mode::Synchronous);
    let sent = sent.expect("started");
    receiver.progress();
    assert_eq!(net.open_streams(), 0);
    sender.progress();
    assert!(!sender.is_done(sent).expect("a live handle"));
    let received = receiver.start_receive(from(1, 0), room(0)).expect("begun");
    assert!(receiver.is_done(received).expect("a live handle"));
    sender.progress();
    assert!(sender.is_done(sent).expect("a live handle"));
}

/// A send is withdrawn at any moment of its life: its stream is reused by the side that owned it last.
#[test]
fn no_stream_is_lost_by_taking_a_send_back() {
    let sizes = [0, 1].map(|streams| Sizes {
        streams,
        ..Sizes::EAGER_16_BYTES
    });
    for sizes in sizes {
        for mode in [Mode::Standard, Mode::Synchronous] {
            for (length, crowd, receives) in [(100, 0, false), (100, 0, true), (7, 0, false)]
                .into_iter()
                .chain([(100, 4, false), (7, 4, true), (7, 0, true)])
            {
                for turns in 0..40 {
                    take_back_after(sizes, mode, length, crowd, receives, turns);
                }
            }
        }
    }
}

fn take_back_after(
    sizes: Sizes,
    mode: Mode,
    length: usize,
    crowd: usize,
    receives: bool,
    turns: usize,
) {
    let (net, mut receiver, mut sender) = pair(sizes);
    // Messages before it, so that the offer itself may not have been sent yet.
    for _ in 0..crowd {
        let small = sender.start_send(0, 0, 1, memory(&[1]), Mode::Standard);
        small.expect("started");
    }
    let large = sender.start_send(0, 0, 0, memory(&vec![1; length]), mode);
    let large = large.expect("started");
    let receive = receives.then(|| receiver.start_receive(from(1, 0), room(length)));
    for turn in 0..turns {
        match turn % 2 {
            0 => sender.progress(),
            _ => receiver.progress(),
        };
    }
    sender.forget(large);
    for _ in 0..100 {
        sender.progress();
        receiver.progress();
    }
    let story = format!("{mode:?}, {length} bytes, {crowd} before, {receives}, {turns} turns");
    let unreceived = !receives && !sender.is_idle();
    assert!(!unreceived, "{story}: still under way");
    assert_eq!(net.open_streams(), 0, "{story}");
    // A message that was sent by then waits for its receive, in its stream.
    let waits = net.lost_streams() > 0 && !receives;
    if waits {
        let late = receiver.start_receive(from(1, 0), room(length));
        let late = late.expect("posted");
        assert!(receiver.is_done(late).expect("a live handle"), "{story}");
    }
    assert_eq!(net.lost_streams(), 0, "{story}");
    if let Some(Ok(handle)) = receive {
        let done = receiver.is_done(handle).expect("a live handle");
        // If the message was never sent, its receive takes the next one.
        assert!(
            done || net.taken(0).iter().all(|taken| taken.tag != 0),
            "{story}"
        );
    }
}

/// A send is withdrawn after a probe has taken its message out of matching: the message's receive reports that.
#[test]
fn a_matched_message_that_is_taken_back_ends_its_receive() {
    for streams in [0, 1] {
        let (_net, mut receiver, mut sender) = pair(Sizes {
            streams,
            ..Sizes::EAGER_16_BYTES
        });
        let sent = sender.start_send(0, 0, 1, memory(&[7; 100]), Mode::Synchronous);
        let sent = sent.expect("started");
        let (_, message) = receiver
            .match_probe(&from(1, 1))
            .expect("nobody is gone")
            .expect("it has come");
        assert_eq!(receiver.probe(&from(1, 1)), Ok(None));
        sender.forget(sent);
        while receiver.progress() | sender.progress() {}
        let handle = receiver.start_matched_receive(message, room(100));
        let outcome = receiver.finish(handle.expect("started"));
        let (status, error) = outcome.expect("live").expect("it is over");
        assert_eq!((status.source, status.tag), (1, 1));
        assert_eq!(error, Some(Error::Cancelled));
        assert!(receiver.is_idle() && receiver.buffered() == 0);
    }
}

/// A sender asks for a message back that a probe has taken out of matching: it gets the answer that a receive has taken it.
#[test]
fn a_matched_message_is_not_given_back() {
    let (_net, mut receiver, mut sender) = pair(Sizes::EAGER_16_BYTES);
    let sent = sender.start_send(0, 0, 1, memory(&[7; 100]), Mode::Synchronous);
    let sent = sent.expect("started");
    let matched = receiver.match_probe(&from(1, 1)).expect("nobody is gone");
    let (_, message) = matched.expect("it has come");
    sender.recall(sent).expect("a live request");
    while receiver.progress() | sender.progress() {}
    let into = room(100);
    let handle = receiver
        .start_matched_receive(message, into.clone())
        .expect("started");
    while receiver.progress() | sender.progress() {}
    assert_eq!(receiver.look_at_request(handle), receiver.finish(handle));
    assert_eq!(into.to_vec(), [7; 100]);
    assert_eq!(sender.finish(sent).expect("live").expect("over").1, None);
}

/// `look_at_request` does not change a request.
#[test]
fn a_request_can_be_looked_at_again_and_again() {
    let (_net, mut receiver, mut sender) = pair(Sizes::EAGER_16_BYTES);
    let handle = receiver
        .start_receive(from(1, 1), room(2))
        .expect("started");
    assert_eq!(receiver.look_at_request(handle), Ok(None));
    let message = memory(&[7; 3]);
    sender
        .start_send(0, 0, 1, message, Mode::Standard)
        .expect("sent");
    while receiver.progress() | sender.progress() {}
    let seen = receiver.look_at_request(handle);
    assert_eq!(seen, receiver.look_at_request(handle));
    let (status, error) = seen.clone().expect("live").expect("over");
    assert_eq!((status.source, status.length), (1, 3));
    assert!(matches!(error, Some(Error::Truncated { .. })));
    assert_eq!(seen, receiver.finish(handle));
    assert!(receiver.look_at_request(handle).is_err(), "it is used up");
}

/// A task that has ended must not make receives from other tasks use the slow path.
#[test]
fn receives_from_those_that_are_left_are_posted_at_once() {
    let net = Net::new(3, Sizes::EAGER_16_BYTES);
    let [mut receiver, mut sender] = [0, 2].map(|me| Engine::new(net.end(me), Settings::default()));
    // A first request allocates its slot.
    let handle = receiver
        .start_receive(from(2, 1), room(4))
        .expect("started");
    assert!(sender.try_send(0, 0, 1, &memory(&[1, 2, 3, 4])));
    while receiver.progress() {}
    assert!(receiver.finish(handle).expect("a handle").is_some());
    net.lose(1, Presence::Left);
    while receiver.progress() {}
    assert!(!receiver.is_nobody_gone());
    let mut place = [0; 4];
    let into = Views::Block(place.as_mut_ptr(), place.len());
    assert!(receiver.try_post(2, 0, 1, &into).is_some());
}

/// Two members that have given each other up take no part in a collective: the third, which reaches both, does not wait for them.
#[test]
fn a_collective_that_two_members_cannot_begin_ends_for_the_third() {
    let net = Net::new(3, Sizes::EAGER_300_BYTES);
    let mut engines = [0, 1, 2].map(|me| Engine::new(net.end(me), Settings::default()));
    let barrier = engines[0].start(GroupId::WORLD, &BARRIER);
    let barrier = barrier.expect("nobody is gone for this one");
    net.part(1, 2);
    for (me, other) in [(1, 2), (2, 1)] {
        engines[me].progress();
        let begun = engines[me].start(GroupId::WORLD, &BARRIER);
        assert_eq!(begun.err(), Some(Error::Dead(other)));
    }
    for _ in 0..10 {
        for engine in &mut engines {
            engine.progress();
        }
    }
    let (_, error) = engines[0]
        .finish(barrier)
        .expect("a live handle")
        .expect("it has ended");
    assert!(matches!(error, Some(Error::Dead(1 | 2))), "{error:?}");
}

/// Sleeping threads, and the descriptor, check whether this counter has changed: no bell rings for a message of a task to itself.
#[test]
fn a_message_to_oneself_is_counted() {
    let net = Net::new(1, Sizes::EAGER_16_BYTES);
    let mut alone = Engine::new(net.end(0), Settings::default());
    let mut seen = alone.moves();
    let mut is_counted =
        |engine: &Engine<End>| std::mem::replace(&mut seen, engine.moves()) != engine.moves();
    for mode in [Mode::Standard, Mode::Synchronous] {
        let message = memory(&[7; 8]);
        let sent = alone.start_send(0, 0, 1, message, mode).expect("sent");
        assert!(is_counted(&alone), "{mode:?}");
        let received = alone.start_receive(from(0, 1), room(8)).expect("received");
        if mode == Mode::Synchronous {
            assert_eq!(alone.is_done(sent), Ok(true));
            assert!(is_counted(&alone), "the send is complete");
        }
        assert_eq!(alone.is_done(received), Ok(true));
    }
    let (place, _) = alone.transport_mut().lend(8).expect("a loan");
    alone.send_loan(0, 0, 2, place, 8).expect("sent");
    assert!(is_counted(&alone), "a loan");
}

/// An invalid loan ends its receive, and nothing of it is left.
#[test]
fn a_receive_of_a_false_loan_fails_and_leaves_nothing() {
    let (_net, mut receiver, mut sender) = pair(Sizes::EAGER_16_BYTES);
    let kept = receiver.start_receive(from(0, 9), room(8)).expect("posted");
    receiver.forget(kept);
    sender.send_loan(0, 0, 1, 77, 8).expect("sent");
    receiver.progress();
    let failed = receiver.start_receive(from(1, 1), room(8));
    assert!(
        matches!(failed, Err(Error::Corrupt { peer: 1, .. })),
        "{failed:?}"
    );
    let again = receiver.start_receive(from(0, 9), room(8)).expect("posted");
    assert_eq!(again.0 as u32, kept.0 as u32, "its place is free again");

    // For a task's own invalid loan, both the send and the waiting receive fail.
    let sent = receiver.send_loan(0, 0, 9, 78, 8);
    assert!(sent.is_err(), "{sent:?}");
    assert_eq!(receiver.is_done(again), Ok(true));
}
