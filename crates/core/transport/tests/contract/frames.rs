//! Frames: order, blocking, and the front.

use std::collections::VecDeque;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use regatta_engine::{Frames, Polled};
use regatta_memory::views::Views;
use regatta_wire::{BODY, Frame, Kind};

use super::{World, block, eager, expect, expect_none, front, pattern, send, send_soon, soon};

pub fn frames_arrive_whole_once_and_in_order<T: Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    expect_none(&mut tasks, 1);
    let limit = tasks[0].eager_limit();
    let lengths = [
        0,
        1,
        31,
        32,
        33,
        47,
        48,
        49,
        64,
        65,
        1023,
        1024,
        1025,
        limit - 1,
        limit,
    ];
    for round in 0..40 {
        for (n, len) in (round * 100..).zip(lengths) {
            assert!(send(&mut tasks[0], 1, n, len), "an empty path has room");
            assert!(send(&mut tasks[1], 0, n, len));
            expect(&mut tasks, 1, n, len);
            expect(&mut tasks, 0, n, len);
        }
    }
    expect_none(&mut tasks, 0);
    expect_none(&mut tasks, 1);
}

pub fn any_interleaving_is_a_queue_each_way<T: Frames>(make: impl Fn() -> World<T>) {
    let step = (any::<bool>(), any::<bool>(), 0..6usize, 1..40u32);
    let steps = prop::collection::vec(step, 0..60);
    let run = |steps: Vec<(bool, bool, usize, u32)>| {
        let mut tasks = make().tasks;
        let mut queues = [VecDeque::new(), VecDeque::new()];
        let mut next = 0;
        let limit = tasks[0].eager_limit();
        for (from_b, sends, size, times) in steps {
            let from = from_b as usize;
            for _ in 0..times {
                let queue = &mut queues[from];
                if sends {
                    let len = [0, 8, 48, 49, 1000, limit][size];
                    if !send(&mut tasks[from], 1 - from as u32, next, len) {
                        if !queue.is_empty() {
                            break;
                        }
                        send_soon(&mut tasks, from, next, len);
                    }
                    queue.push_back((next, len));
                    next += 1;
                } else if let Some((n, len)) = queue.pop_front() {
                    expect(&mut tasks, 1 - from, n, len);
                } else {
                    expect_none(&mut tasks, 1 - from);
                }
            }
        }
        Ok(())
    };
    // A failing case takes as long as `AWAIT_TIMEOUT`: a thousand attempts to shrink it would take hours.
    let config = Config {
        max_shrink_iters: 4,
        ..Config::default()
    };
    TestRunner::new(config).run(&steps, run).unwrap();
}

pub fn without_room_nothing_is_sent<T: Frames>(make: impl Fn() -> World<T>) {
    for len in [0, 48, 49, make().tasks[0].eager_limit()] {
        let mut tasks = make().tasks;
        let (mut sent, mut got) = (0, 0);
        // Fills and empties the path several times: what was refused must leave no trace.
        for _ in 0..5 {
            send_soon(&mut tasks, 0, sent, len);
            sent += 1;
            while send(&mut tasks[0], 1, sent, len) {
                sent += 1;
                assert!(sent - got < 1 << 20, "room has an end");
            }
            while got < sent {
                expect(&mut tasks, 1, got, len);
                got += 1;
            }
            expect_none(&mut tasks, 1);
        }
    }
}

pub fn a_short_buffer_keeps_the_front<T: Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    for len in [40, 48, 200, tasks[0].eager_limit()] {
        assert!(send(&mut tasks[0], 1, 1, len) && send(&mut tasks[0], 1, 2, len));
        front(&mut tasks, 1);
        let mut bytes = [0; 20];
        tasks[1].accept(0, &block(&mut bytes[..10]));
        assert_eq!(bytes[..10], pattern(len, 1)[..10]);
        assert_eq!(bytes[10..], [0; 10]);
        expect(&mut tasks, 1, 2, len);
        assert!(send(&mut tasks[0], 1, 3, len));
        front(&mut tasks, 1);
        tasks[1].accept(0, &Views::none());
        expect_none(&mut tasks, 1);
    }
}

pub fn matching_takes_only_what_matches<T: Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    let mut bytes = [0; 300];
    let into = block(&mut bytes);
    let mut small = [0; 99];
    assert_eq!(
        tasks[1].poll_matching(0, 7, 7, &into),
        Polled::Nothing,
        "nothing is there"
    );
    for len in [0, 8, 100, 300] {
        assert!(send(&mut tasks[0], 1, 7, len));
        front(&mut tasks, 1);
        assert_eq!(
            tasks[1].poll_matching(0, 6, 7, &into),
            Polled::Other,
            "another context"
        );
        assert_eq!(
            tasks[1].poll_matching(0, 7, 6, &into),
            Polled::Other,
            "another tag"
        );
        if len > small.len() {
            let fits = tasks[1].poll_matching(0, 7, 7, &block(&mut small));
            assert_eq!(fits, Polled::Other, "too long");
        }
        assert_eq!(
            tasks[1].poll_matching(0, 7, 7, &into),
            Polled::Received(len)
        );
        assert_eq!(into.to_vec()[..len], pattern(len, 7));
        expect_none(&mut tasks, 1);
    }
    let offer = Frame {
        kind: Kind::Offer,
        ..eager(7, 7)
    };
    assert!(tasks[0].send_body(1, offer, &[1; BODY]).unwrap());
    front(&mut tasks, 1);
    assert_eq!(
        tasks[1].poll_matching(0, 7, 7, &into),
        Polled::Other,
        "no eager message"
    );
    assert_eq!(tasks[1].accept_bytes(0), [1; BODY]);
}

pub fn bodies_and_bytes_are_payloads<T: Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    assert_eq!(tasks[1].accept_bytes(0), [0; 0]);
    for kind in [Kind::Offer, Kind::Clear, Kind::Begun, Kind::Loan] {
        for (len, tag) in [(0, 0), (8, i32::MAX), (BODY, -1)] {
            let frame = Frame {
                kind,
                context: u32::MAX,
                tag,
            };
            assert!(tasks[0].send_body(1, frame, &pattern(len, 5)).unwrap());
            let front = front(&mut tasks, 1);
            assert_eq!((front.frame, front.length), (frame, len));
            assert_eq!(tasks[1].accept_bytes(0), pattern(len, 5));
        }
    }
    let limit = tasks[0].eager_limit();
    assert!(send(&mut tasks[0], 1, 9, limit));
    front(&mut tasks, 1);
    assert_eq!(tasks[1].accept_bytes(0), pattern(limit, 9));
}

pub fn ready_peers_are_those_with_frames<T: Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    let ready = |task: &mut T| {
        let mut cursor = 0;
        let peers: Vec<_> = std::iter::from_fn(|| task.next_ready(&mut cursor)).collect();
        peers
    };
    assert_eq!(ready(&mut tasks[1]), []);
    assert!(send(&mut tasks[0], 1, 1, 8) && send(&mut tasks[0], 1, 2, 8));
    for n in [1, 2] {
        // The peer is found by polling for any peer, not for this one.
        let found = soon(&mut tasks, |tasks| {
            Some(ready(&mut tasks[1])).filter(|peers| !peers.is_empty())
        });
        assert_eq!(found, Some(vec![0]));
        assert_eq!(ready(&mut tasks[1]), [0], "looking takes nothing");
        expect(&mut tasks, 1, n, 8);
    }
    assert_eq!(ready(&mut tasks[1]), []);
    assert_eq!(ready(&mut tasks[0]), []);
}
