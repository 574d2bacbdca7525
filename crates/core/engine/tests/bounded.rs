//! A task needs bounded memory for the messages of other tasks, whatever they send and whatever they do not read.

mod support;

use regatta_engine::{
    Engine, Error, Frames, GroupId, Handle, Kind as Collective, Loans, Mode, Operation, Peer,
    Presence, Select, Settings, Status, TagSelect,
};
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind, Withdrawn};
use support::net::{End, Net, Sizes};
use support::world::{memory, room};

/// Number of messages that may wait for receives, however small the buffer is.
const ALWAYS: usize = 1 << 12;

fn from(source: Peer, tag: i32) -> Select {
    Select {
        context: 0,
        source: Some(source),
        tag: TagSelect::Exactly(tag),
    }
}

fn pair() -> (Net, Engine<End>, Engine<End>) {
    pair_with(Sizes::EAGER_16_BYTES)
}

fn pair_with(sizes: Sizes) -> (Net, Engine<End>, Engine<End>) {
    let net = Net::new(2, sizes);
    let receiver = Engine::new(net.end(0), Settings { buffer: 1000 });
    let sender = Engine::new(net.end(1), Settings::default());
    (net, receiver, sender)
}

/// Receives a message, driving both sides as needed.
fn receive(receiver: &mut Engine<End>, sender: &mut Engine<End>, tag: i32) -> Status {
    let handle = receiver
        .start_receive(from(1, tag), room(1))
        .expect("posted");
    while !receiver.is_done(handle).expect("a live handle") {
        assert!(receiver.progress() | sender.progress(), "tag {tag}: stuck");
    }
    let outcome = receiver.finish(handle).expect("a live handle");
    let (status, error) = outcome.expect("it is done");
    assert!(error.is_none(), "{error:?}");
    status
}

#[test]
fn so_many_offers_wait_and_the_others_stay_with_their_sender() {
    let (net, mut receiver, mut sender) = pair();
    let mut send = |tag| {
        let sent = sender.start_send(0, 0, tag, memory(&[1]), Mode::Synchronous);
        sent.expect("started")
    };
    let mut sends: Vec<_> = (0..ALWAYS).map(|_| send(1)).collect();
    sends.extend([2, 2, 3].map(&mut send));
    while receiver.progress() | sender.progress() {}
    assert_eq!(net.taken(0).len(), ALWAYS);
    assert!(receiver.buffer_is_full());
    // Offers for which a receive is posted are accepted, however many others wait.
    for tag in [2, 2, 3] {
        receive(&mut receiver, &mut sender, tag);
    }
    for _ in 0..ALWAYS {
        receive(&mut receiver, &mut sender, 1);
    }
    while receiver.progress() | sender.progress() {}
    for sent in sends {
        assert!(sender.is_done(sent).expect("a live handle"));
    }
    assert!(!receiver.buffer_is_full());
}

#[test]
fn so_many_loans_wait_and_the_others_stay_in_front() {
    let (net, mut receiver, mut sender) = pair();
    let total = ALWAYS + 10;
    for _ in 0..total {
        let (place, views) = sender.transport_mut().lend(1).expect("a loan");
        views.fill(&[1]);
        sender.send_loan(0, 0, 1, place, 1).expect("sent");
    }
    while receiver.progress() | sender.progress() {}
    assert_eq!(net.taken(0).len(), ALWAYS);
    for _ in 0..total {
        receive(&mut receiver, &mut sender, 1);
    }
    assert_eq!(net.lent(), 0);
}

/// Sends messages with tag 1 until the buffer is full, then one more and two with these tags, which stay in the transport. Returns the number of
/// messages with tag 1.
fn crowd_out(receiver: &mut Engine<End>, sender: &mut Engine<End>, tags: [i32; 2]) -> usize {
    let mut send = |tag| {
        let sent = sender.start_send(0, 0, tag, memory(&[1]), Mode::Standard);
        sent.expect("started");
        assert!(sender.is_idle(), "it is in the ring");
    };
    let mut under_one = 1;
    while !receiver.buffer_is_full() {
        send(1);
        under_one += 1;
        receiver.progress();
    }
    [1, tags[0], tags[1]].into_iter().for_each(&mut send);
    under_one
}

/// One receive was posted before the sender's end, the others after it.
#[test]
fn what_a_full_buffer_keeps_outside_is_received_though_its_sender_is_gone() {
    for presence in [Presence::Left, Presence::Dead] {
        let (net, mut receiver, mut sender) = pair_with(Sizes {
            ring: 8,
            ..Sizes::EAGER_16_BYTES
        });
        let early = [2, 3].map(|tag| receiver.start_receive(from(1, tag), room(1)));
        let early = early.map(|handle| handle.expect("posted"));
        let others = crowd_out(&mut receiver, &mut sender, [2, 4]);
        net.lose(1, presence);
        while receiver.progress() {}
        let late = [4, 5].map(|tag| receiver.start_receive(from(1, tag), room(1)));
        let late = late.map(|handle| handle.expect("it may still come"));
        for handle in early.iter().chain(&late) {
            assert!(!receiver.is_done(*handle).expect("a live handle"));
        }
        for _ in 0..others {
            receive(&mut receiver, &mut sender, 1);
        }
        while receiver.progress() {}
        for (handle, came) in [
            (early[0], true),
            (early[1], false),
            (late[0], true),
            (late[1], false),
        ] {
            let outcome = receiver.finish(handle).expect("a live handle");
            let (_, error) = outcome.expect("it is over");
            assert_eq!(error.is_none(), came, "{error:?}");
        }
        let refused = receiver.start_receive(from(1, 6), room(1));
        assert!(refused.is_err());
    }
}

/// Two tasks whose buffers are full have sent each other messages for which there is no space, and a large one behind these.
#[test]
fn sends_behind_what_a_full_buffer_keeps_outside_can_be_taken_back() {
    let sizes = Sizes {
        ring: 8,
        ..Sizes::EAGER_16_BYTES
    };
    let net = Net::new(2, sizes);
    let mut engines = [0, 1].map(|me| Engine::new(net.end(me), Settings { buffer: 1000 }));
    let larges = send_behind_small(&mut engines);
    for (me, large) in (0..).zip(&larges) {
        let engine = &mut engines[me as usize];
        engine.recall(*large).expect("a live handle");
        engine.let_in(&[1 - me]);
    }
    while progress(&mut engines) {}
    for (engine, large) in engines.iter_mut().zip(larges) {
        let (_, error) = engine.finish(large).expect("live").expect("it is over");
        assert_eq!(error, Some(Error::Cancelled));
    }
    assert_eq!(net.open_streams(), 0);
}

/// The same with three tasks, none of which sends to the one that asks it.
#[test]
fn a_peer_that_is_let_in_can_ask_past_a_full_buffer() {
    let sizes = Sizes {
        ring: 8,
        ..Sizes::EAGER_16_BYTES
    };
    let net = Net::new(3, sizes);
    let mut engines = [0, 1, 2].map(|me| Engine::new(net.end(me), Settings { buffer: 1000 }));
    let larges = send_behind_small(&mut engines);
    for (me, large) in (0..).zip(&larges) {
        let engine = &mut engines[me as usize];
        engine.recall(*large).expect("a live handle");
        engine.let_in(&[(me + 1) % 3, (me + 2) % 3]);
    }
    while progress(&mut engines) {}
    for (engine, large) in engines.iter_mut().zip(larges) {
        let (_, error) = engine.finish(large).expect("live").expect("it is over");
        assert_eq!(error, Some(Error::Cancelled));
        assert!(engine.buffer_is_full());
    }
    // The peer's request has arrived, so the buffer limit applies to the peer again.
    let before = engines[0].buffered();
    for _ in 0..4 {
        let sent = engines[2].start_send(0, 0, 1, memory(&[1; 16]), Mode::Standard);
        sent.expect("started");
    }
    while progress(&mut engines) {}
    assert_eq!(engines[0].buffered(), before);
}

/// Sends from each engine to the next one as many small messages as it accepts and a few more, and then a large one. Returns the sends of the large
/// messages.
/// messages.
fn send_behind_small<const N: usize>(engines: &mut [Engine<End>; N]) -> [Handle; N] {
    while engines.iter().any(|engine| !engine.buffer_is_full()) {
        each_sends(engines, &[1]);
        while progress(engines) {}
    }
    for _ in 0..3 {
        each_sends(engines, &[1]);
    }
    let larges = each_sends(engines, &[1; 100]);
    while progress(engines) {}
    larges
}

fn each_sends<const N: usize>(engines: &mut [Engine<End>; N], bytes: &[u8]) -> [Handle; N] {
    let mut me = 0;
    engines.each_mut().map(|engine| {
        me += 1;
        let sent = engine.start_send(me % N as u32, 0, 1, memory(bytes), Mode::Standard);
        sent.expect("started")
    })
}

fn progress<const N: usize>(engines: &mut [Engine<End>; N]) -> bool {
    let moved = engines.each_mut().map(|engine| engine.progress());
    moved.contains(&true)
}

/// The same as for a receive that names its source, for a receive from any source.
#[test]
fn what_a_full_buffer_keeps_outside_is_awaited_from_any_source() {
    for presence in [Presence::Left, Presence::Dead] {
        let (net, mut receiver, mut sender) = pair_with(Sizes {
            ring: 8,
            ..Sizes::EAGER_16_BYTES
        });
        let any = |tag| Select {
            source: None,
            ..from(1, tag)
        };
        let posted = receiver.start_receive(any(2), room(1)).expect("posted");
        let others = crowd_out(&mut receiver, &mut sender, [2, 3]);
        net.lose(1, presence);
        while receiver.progress() {}
        assert!(!receiver.is_done(posted).expect("a live handle"));
        assert_eq!(receiver.probe(&any(3)).expect("it may still come"), None);
        let late = [3, 4].map(|tag| receiver.start_receive(any(tag), room(1)));
        let late = late.map(|handle| handle.expect("it may still come"));
        for _ in 0..others {
            receive(&mut receiver, &mut sender, 1);
        }
        while receiver.progress() {}
        for (handle, came) in [(posted, true), (late[0], true), (late[1], false)] {
            let outcome = receiver.finish(handle).expect("a live handle");
            let (_, error) = outcome.expect("it is over");
            assert_eq!(error.is_none(), came, "{error:?}");
        }
        let refused = receiver.start_receive(any(5), room(1));
        assert!(refused.is_err());
    }
}

/// Starts a broadcast of task 1.
fn broadcast(buffer: Views) -> Operation {
    Operation {
        root: 1,
        output: Some(buffer),
        ..Operation::of(Collective::Broadcast)
    }
}

/// A root that has done its part may leave before a member with a full buffer has received its message.
#[test]
fn a_broadcast_outside_a_full_buffer_is_received_though_its_root_has_left() {
    let (net, mut receiver, mut root) = pair_with(Sizes {
        ring: 8,
        ..Sizes::EAGER_16_BYTES
    });
    let (mut others, mut full) = (0, false);
    // The last one stays in the transport.
    while !full {
        full = receiver.buffer_is_full();
        let sent = root.start_send(0, 0, 1, memory(&[1]), Mode::Standard);
        sent.expect("started");
        others += 1;
        receiver.progress();
    }
    let sent = root.start(GroupId::WORLD, &broadcast(memory(&[7])));
    assert!(root.is_done(sent.expect("started")).expect("a live handle"));
    net.lose(1, Presence::Left);
    while receiver.progress() {}
    let into = room(1);
    let part = receiver
        .start(GroupId::WORLD, &broadcast(into.clone()))
        .expect("it may still come");
    while receiver.progress() {}
    assert!(!receiver.is_done(part).expect("a live handle"));
    for _ in 0..others {
        receive(&mut receiver, &mut root, 1);
    }
    while receiver.progress() {}
    let (_, error) = receiver.finish(part).expect("live").expect("it is over");
    assert!(error.is_none(), "{error:?}");
    let next = receiver.start(GroupId::WORLD, &broadcast(room(1)));
    let ended = next.and_then(|next| receiver.finish(next));
    assert!(!matches!(ended, Ok(None | Some((_, None)))), "{ended:?}");
}

/// Sends frames like a peer that keeps to no protocol, until the receiver accepts no more.
fn flood(net: &Net, receiver: &mut Engine<End>, most: usize, frame: Frame, body: &[u8]) -> bool {
    let mut peer = net.end(1);
    for _ in 0..most {
        let sent = peer.send_body(0, frame, body);
        if !receiver.progress() && !sent.expect("a ring") {
            return true;
        }
        if receiver.presence(1) == Presence::Dead {
            return true;
        }
    }
    false
}

#[test]
fn a_peer_that_asks_for_ever_and_reads_no_answer_is_condemned() {
    let (net, mut receiver, _) = pair();
    let frame = Frame {
        kind: Kind::Withdrawn,
        context: 0,
        tag: 0,
    };
    let question = Withdrawn {
        token: 1,
        whole: false,
        asks: true,
    };
    assert!(flood(
        &net,
        &mut receiver,
        1 << 20,
        frame,
        &question.encode()
    ));
    assert_eq!(receiver.presence(1), Presence::Dead);
    let refused = receiver.start_receive(from(1, 1), room(1));
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn what_is_taken_in_beyond_a_full_buffer_has_an_end() {
    let (net, mut receiver, _) = pair();
    let frame = Frame {
        kind: Kind::Eager,
        context: 1,
        tag: 0x5000_0001,
    };
    assert!(flood(&net, &mut receiver, 1 << 20, frame, &[7; 16]));
    assert_eq!(receiver.presence(1), Presence::Here, "it is held back");
    let most = 1000 + (16 << 20);
    assert!(receiver.buffered() <= most + 200, "{}", receiver.buffered());
}
