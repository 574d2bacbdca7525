//! What a task that leaves still has to send: its counters, however the messages end.

mod support;

use regatta_engine::{Engine, Error, Handle, Mode, Peer, Presence, Select, Settings, TagSelect};
use support::net::{End, Net, Sizes};
use support::world::{memory, room};

const SIZES: Sizes = Sizes::EAGER_300_BYTES;
/// Length of a message of which a stream holds a tenth: the rest stays with its sender.
const BEYOND_STREAM_BYTES: usize = 10 * SIZES.stream;

/// Tasks over one net, of which the first sends.
fn tasks<const N: usize>() -> (Net, [Engine<End>; N]) {
    let net = Net::new(N as u32, SIZES);
    let engine = |me: usize| Engine::new(net.end(me as Peer), Settings::default());
    let engines = std::array::from_fn(engine);
    (net, engines)
}

/// Starts to send a message whose completion calls back.
fn give(sender: &mut Engine<End>, to: Peer, bytes: usize, mode: Mode) {
    let sent = sender.start_send(to, 0, 1, memory(&vec![7; bytes]), mode);
    let handle = sent.expect("it can be sent");
    sender.on_complete(handle, 1).expect("a request");
}

/// Fills the ring to a task, and sends as many messages again.
fn give_more_than_fits(sender: &mut Engine<End>, to: Peer) {
    for _ in 0..2 * SIZES.ring {
        give(sender, to, 8, Mode::Standard);
    }
}

fn owes(engine: &Engine<End>) -> (bool, bool) {
    (engine.owes_messages(), engine.owes_synchronous_messages())
}

fn start_receive(receiver: &mut Engine<End>, bytes: usize) -> Handle {
    let select = Select {
        context: 0,
        source: Some(0),
        tag: TagSelect::Exactly(1),
    };
    let started = receiver.start_receive(select, room(bytes));
    started.expect("it can wait")
}

#[test]
fn a_synchronous_message_is_owed_as_long_as_bytes_of_it_are_here_or_its_receiver_has_begun() {
    let (_, [mut sender, mut receiver]) = tasks();
    give(&mut sender, 1, SIZES.stream / 2, Mode::Synchronous);
    for _ in 0..100 {
        sender.progress();
        receiver.progress();
    }
    assert_eq!(owes(&sender), (false, true), "it arrives by itself");
    assert_eq!(sender.creditor(None), None);
    let received = start_receive(&mut receiver, SIZES.stream / 2);
    while receiver.is_done(received) != Ok(true) {
        receiver.progress();
        sender.progress();
    }
    sender.progress();
    sender.take_due_callbacks();
    give(&mut sender, 1, BEYOND_STREAM_BYTES, Mode::Synchronous);
    for _ in 0..100 {
        sender.progress();
        receiver.progress();
    }
    assert_eq!(owes(&sender), (true, true), "the rest would be lost");
    assert_eq!(sender.creditor(None), Some(1));
    let received = start_receive(&mut receiver, BEYOND_STREAM_BYTES);
    sender.progress();
    assert_eq!(owes(&sender), (true, false));
    assert_eq!(sender.creditor(None), Some(1));
    while receiver.is_done(received) != Ok(true) {
        receiver.progress();
        sender.progress();
    }
    assert_eq!(owes(&sender), (false, false));
    assert_eq!(sender.take_due_callbacks().len(), 1);
}

#[test]
fn only_messages_whose_completion_calls_back_are_owed() {
    let (_, [mut sender, mut receiver]) = tasks();
    for _ in 0..2 * SIZES.ring {
        let sent = sender.start_send(1, 0, 1, memory(&[7; 8]), Mode::Standard);
        sent.expect("it can be sent");
    }
    assert_eq!(owes(&sender), (false, false));
    give(&mut sender, 1, 8, Mode::Standard);
    give(&mut sender, 0, 8, Mode::Synchronous);
    assert_eq!(owes(&sender), (true, false), "nothing to itself is owed");
    for _ in 0..100 {
        receiver.progress();
        sender.progress();
    }
    assert_eq!(owes(&sender), (false, false));
}

#[test]
fn messages_to_a_task_that_is_gone_are_not_owed() {
    let (net, [mut sender, _, _]) = tasks();
    give_more_than_fits(&mut sender, 1);
    give_more_than_fits(&mut sender, 2);
    give(&mut sender, 1, BEYOND_STREAM_BYTES, Mode::Synchronous);
    assert_eq!(owes(&sender), (true, true));
    assert_eq!(sender.creditor(Some(1)), Some(1));
    assert_eq!(sender.creditor(Some(2)), Some(2));
    sender.take_due_callbacks();
    net.lose(1, Presence::Dead);
    sender.progress();
    assert_eq!(owes(&sender), (true, false));
    assert_eq!(sender.creditor(Some(1)), Some(2));
    let ended = sender.take_due_callbacks().into_iter();
    let errors: Vec<_> = ended.filter_map(|(_, _, error)| error).collect();
    assert_eq!(errors, vec![Error::Dead(1); SIZES.ring + 1]);
}
