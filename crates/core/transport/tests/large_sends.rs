//! The ends of large sends: withdrawn repeatedly, or received whole by a task that then leaves.

use std::sync::Arc;

use regatta_engine::{Engine, Error, GroupId, Handle, Mode, Need, Select, Settings, TagSelect};
use regatta_memory::views::Views;
use regatta_segment::job::{Job, JoinToken};
use regatta_transport::footprint::Policy;
use regatta_transport::shm::Shm;

const LENGTH: usize = 3 << 20;

fn two(policy: Policy) -> [Engine<Shm>; 2] {
    let job = Job::create(2).unwrap();
    [0, 1].map(|rank| {
        let token = JoinToken::handed(rank, 2);
        let fd = job.fd().try_clone_to_owned().unwrap();
        let task = Arc::new(Job::join(fd, token).unwrap());
        let mut shm = Shm::new(task, rank);
        shm.choose_footprints(policy);
        Engine::new(shm, Settings::default())
    })
}

fn block(bytes: &mut [u8]) -> Views {
    // SAFETY: the test keeps `bytes` alive and does not access it while the engines run.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

fn started(result: regatta_engine::Result<Handle>) -> Handle {
    result.expect("started")
}

const SELECT: Select = Select {
    context: 0,
    source: Some(0),
    tag: TagSelect::Exactly(1),
};

/// Withdraws a send after `turns` turns, with or without a receive that has begun.
fn round([sender, receiver]: &mut [Engine<Shm>; 2], bytes: &mut [Vec<u8>; 2], turns: usize) {
    let mode = [Mode::Standard, Mode::Synchronous][turns / 2 % 2];
    let [from, into] = bytes;
    let early = turns.is_multiple_of(2);
    let receive = early.then(|| started(receiver.start_receive(SELECT, block(into))));
    let send = started(sender.start_send(1, 0, 1, block(from), mode));
    for _ in 0..turns {
        receiver.progress();
        sender.progress();
    }
    sender.forget(send);
    while sender.progress() | receiver.progress() {}
    if let Some(receive) = receive {
        let over = receiver.finish(receive).expect("a live handle");
        assert!(over.is_some(), "{turns} turns: it waits for ever");
    }
    let nothing = receiver.probe(&SELECT).expect("both are here");
    assert_eq!(nothing, None, "{turns} turns: an offer that is none");
}

#[test]
fn ten_thousand_sends_taken_back_use_up_no_memory() {
    // `Policy::Learn` is left out, because a wide footprint takes memory once it is found to be better.
    for policy in [Policy::Narrow, Policy::Wide, Policy::NonTemporal] {
        let mut engines = two(policy);
        let mut bytes = [vec![1; LENGTH], vec![0; LENGTH]];
        let mut used = 0;
        for n in 0..5_000 {
            round(&mut engines, &mut bytes, n % 16);
            let now = engines[0].transport().job().segment().used();
            assert!(
                n < 16 || now == used,
                "{policy:?}, round {n}: {} bytes more",
                now - used
            );
            used = now;
        }
    }
}

/// The sender makes no progress after its first turn; the receiver reads the rest from the sender's memory.
#[test]
fn what_was_taken_before_the_receiver_left_was_sent() {
    let [mut sender, mut receiver] = two(Policy::Narrow);
    let [mut from, mut into] = [vec![7; LENGTH], vec![0; LENGTH]];
    let send = started(sender.start_send(1, 0, 1, block(&mut from), Mode::Standard));
    let receive = started(receiver.start_receive(SELECT, block(&mut into)));
    while receiver.finish(receive).expect("a live handle").is_none() {
        receiver.progress();
    }
    assert_eq!(from, into);
    receiver.leave();
    receiver.transport().job().leave(1);
    let mut round = sender
        .begin_round(GroupId::WORLD, Need::All, Some(Views::none()))
        .expect("usable");
    // Notices the departure without polling streams.
    let missed = sender.check_round(&mut round);
    assert_eq!(missed, Err(Error::Left(1)));
    let (_, error) = sender.finish(send).expect("a live handle").expect("over");
    assert_eq!(error, None);
}
