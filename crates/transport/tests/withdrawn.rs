//! Large sends that are taken back again and again use up no memory.

use std::sync::Arc;

use regatta_engine::{Engine, Handle, Mode, Select, Settings, TagSelect};
use regatta_memory::views::Views;
use regatta_transport::job::{Invitation, Job, VERSION};
use regatta_transport::shm::Shm;

const LENGTH: usize = 3 << 20;

fn two() -> [Engine<Shm>; 2] {
    let job = Job::create(2).unwrap();
    [0, 1].map(|rank| {
        let invitation = Invitation {
            version: VERSION,
            fd: 0,
            rank,
            size: 2,
            control: None,
            listener: None,
        };
        let fd = job.fd().try_clone_to_owned().unwrap();
        let task = Arc::new(Job::join(fd, invitation).unwrap());
        Engine::new(Shm::new(task, rank), Settings::default())
    })
}

fn block(bytes: &mut [u8]) -> Views {
    // SAFETY: the test keeps `bytes` alive and untouched while the engines run.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

fn started(result: regatta_engine::Result<Handle>) -> Handle {
    result.expect("started")
}

/// One send taken back after `turns` turns, with a receive that has begun or without.
fn round([sender, receiver]: &mut [Engine<Shm>; 2], bytes: &mut [Vec<u8>; 2], turns: usize) {
    let mode = [Mode::Standard, Mode::Synchronous][turns / 2 % 2];
    let [from, into] = bytes;
    let early = turns.is_multiple_of(2);
    let select = Select {
        context: 0,
        source: Some(0),
        tag: TagSelect::Exactly(1),
    };
    let receive = early.then(|| started(receiver.start_receive(select, block(into))));
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
    let nothing = receiver.probe(&select).expect("both are here");
    assert_eq!(nothing, None, "{turns} turns: an offer that is none");
}

#[test]
fn ten_thousand_sends_taken_back_use_up_no_memory() {
    let mut engines = two();
    let mut bytes = [vec![1; LENGTH], vec![0; LENGTH]];
    let mut used = 0;
    for n in 0..10_000 {
        round(&mut engines, &mut bytes, n % 16);
        let now = engines[0].transport.job().segment().used();
        assert!(
            n < 16 || now == used,
            "round {n}: {} bytes more",
            now - used
        );
        used = now;
    }
}
