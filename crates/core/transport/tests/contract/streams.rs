//! Bulk streams.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use regatta_engine::{Fault, Flow, Frames, Streams};
use regatta_memory::views::{View, Views};
use regatta_wire::Route;

use super::{World, block, pattern, soon};

/// Size of a message longer than any transport's buffer between the two, in bytes.
const LONG_BYTES: usize = (1 << 20) + 13;

/// Takes turns on both sides until both have finished. Stops when nothing moves for long.
fn flow<T: Streams + Frames>(
    tasks: &mut [T; 2],
    streams: &mut [T::Bulk; 2],
    message: &Views,
    into: &Views,
) {
    let [out, inn] = streams;
    let total = message.len() as u64;
    let (mut sent, mut got) = (Flow::Still, Flow::Still);
    while (sent, got) != (Flow::Finished, Flow::Finished) {
        let moved = soon(tasks, |[a, b]| {
            if sent != Flow::Finished {
                sent = a.fill(1, out, message).unwrap();
            }
            if got != Flow::Finished {
                got = b.drain(0, inn, into, total).unwrap();
            }
            ((sent, got) != (Flow::Still, Flow::Still)).then_some(())
        });
        assert_eq!(moved, Some(()), "one side can always move");
    }
}

pub fn either_side_opens_a_stream<T: Streams + Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    for (n, len) in [1, 8193, 262_143, 262_144, 262_145, LONG_BYTES]
        .into_iter()
        .enumerate()
    {
        for by_sender in [true, false] {
            let (mut from, mut to) = (pattern(len, n as u32), vec![0; len]);
            let (message, into) = (block(&mut from), block(&mut to));
            let [a, b] = &mut tasks;
            let mut streams = if by_sender {
                let (stream, route) = a.open(1, &message).unwrap().expect("none is open");
                [stream, b.attach(0, &route).unwrap()]
            } else {
                let (stream, route) = b.open_for(0).unwrap();
                [a.attach_to_fill(1, &route).unwrap(), stream]
            };
            flow(&mut tasks, &mut streams, &message, &into);
            assert_eq!(to, from);
        }
    }
}

/// The engine may take the frame that names a stream late: what the receiver sends meanwhile must not be lost.
pub fn a_sender_may_attach_late<T: Streams + Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    for n in 0..2 {
        let (mut from, mut to) = (pattern(LONG_BYTES, n), vec![0; LONG_BYTES]);
        let (message, into) = (block(&mut from), block(&mut to));
        let (mut stream, route) = tasks[1].open_for(0).unwrap();
        for _ in 0..2000 {
            tasks[1]
                .drain(0, &mut stream, &into, LONG_BYTES as u64)
                .unwrap();
            for task in &mut tasks {
                let mut cursor = 0;
                while task.next_ready(&mut cursor).is_some() {}
            }
        }
        let mut streams = [tasks[0].attach_to_fill(1, &route).unwrap(), stream];
        flow(&mut tasks, &mut streams, &message, &into);
        assert_eq!(to, from);
    }
}

pub fn a_stream_ends_however_the_turns_fall<T: Streams + Frames>(make: impl Fn() -> World<T>) {
    // Runs of turns of one side, some long enough for a receiver to take over from its sender.
    let runs = prop::collection::vec((any::<bool>(), prop_oneof![1..9usize, Just(5000)]), 1..8);
    // After `moves` runs the message is copied, and its original memory is overwritten.
    let run = |(runs, len, strided, moves): (Vec<(bool, usize)>, usize, bool, usize)| {
        let mut tasks = make().tasks;
        let (mut from, mut to) = (pattern(2 * len, 3), vec![0; 2 * len]);
        let layout = |bytes: &mut Vec<u8>| match strided {
            // SAFETY: `len` blocks of one byte each, all inside `bytes`, which is alive until it is compared below.
            true => {
                // SAFETY: the view covers every second byte of `bytes`, which outlives it.
                Views::strided(vec![unsafe { View::new(bytes.as_mut_ptr(), 1, len, 2) }]).unwrap()
            }
            false => block(&mut bytes[..len]),
        };
        let (mut message, into) = (layout(&mut from), layout(&mut to));
        let mut copy = message.to_vec();
        let expected = copy.clone();
        let [a, b] = &mut tasks;
        let (mut out, route) = a.open(1, &message).unwrap().unwrap();
        let mut inn = b.attach(0, &route).unwrap();
        let (mut sent, mut got) = (Flow::Still, Flow::Still);
        for (turn, (sends, times)) in runs.into_iter().cycle().enumerate() {
            if turn == moves && sent != Flow::Finished {
                // The copy lacks the bytes that need not be sent again.
                if let Some(sent) = a.sent(&out) {
                    copy[..sent.for_good as usize].fill(0xee);
                }
                let there = block(&mut copy);
                if a.move_to(1, &mut out, &there).unwrap() {
                    message.fill(&vec![0; len]);
                    message = there;
                }
            }
            for _ in 0..times {
                if sends && sent != Flow::Finished {
                    sent = a.fill(1, &mut out, &message).unwrap();
                } else if !sends && got != Flow::Finished {
                    got = b.drain(0, &mut inn, &into, len as u64).unwrap();
                }
            }
            if (sent, got) == (Flow::Finished, Flow::Finished) {
                break;
            }
            // A side that had no turn gets one now.
            if sends && got != Flow::Finished {
                got = b.drain(0, &mut inn, &into, len as u64).unwrap();
            } else if !sends && sent != Flow::Finished {
                sent = a.fill(1, &mut out, &message).unwrap();
            }
        }
        assert!(into.to_vec() == expected);
        Ok(())
    };
    let config = Config::with_cases(40);
    let strategy = (runs, 1..400_000usize, any::<bool>(), 0..12usize);
    TestRunner::new(config).run(&strategy, run).unwrap();
}

pub fn streams_do_not_hold_each_other_up<T: Streams + Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    let mut froms = [pattern(LONG_BYTES, 1), pattern(LONG_BYTES, 2)];
    let mut tos = [vec![0; LONG_BYTES], vec![0; LONG_BYTES]];
    let messages = froms.each_mut().map(|bytes| block(bytes));
    let intos = tos.each_mut().map(|bytes| block(bytes));
    let [a, b] = &mut tasks;
    let mut streams = messages.each_ref().map(|message| {
        let (out, route) = a.open(1, message).unwrap().unwrap();
        [out, b.attach(0, &route).unwrap()]
    });
    // The first stream is begun, and waits until the second has finished.
    a.fill(1, &mut streams[0][0], &messages[0]).unwrap();
    for n in [1, 0] {
        flow(&mut tasks, &mut streams[n], &messages[n], &intos[n]);
    }
    assert_eq!(tos, froms);
}

pub fn bytes_beyond_the_buffer_are_dropped<T: Streams + Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    for keep in [0, 1, 100_000, LONG_BYTES - 1] {
        let (mut from, mut to) = (pattern(LONG_BYTES, 4), vec![0; LONG_BYTES]);
        let (message, into) = (block(&mut from), block(&mut to[..keep]));
        let [a, b] = &mut tasks;
        let (out, route) = a.open(1, &message).unwrap().unwrap();
        let inn = b.attach(0, &route).unwrap();
        flow(&mut tasks, &mut [out, inn], &message, &into);
        assert_eq!(to[..keep], from[..keep]);
        assert!(to[keep..].iter().all(|byte| *byte == 0));
    }
}

/// The engine reports when a message was withdrawn: until then its receiver has it neither whole nor damaged.
pub fn what_its_sender_gives_up_is_waited_for<T: Streams + Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    let (mut from, mut to) = (pattern(LONG_BYTES, 6), vec![0; LONG_BYTES]);
    let (message, into) = (block(&mut from), block(&mut to));
    for turns in [0, 1, 3] {
        let [a, b] = &mut tasks;
        let (mut out, route) = a.open(1, &message).unwrap().unwrap();
        let mut inn = b.attach(0, &route).unwrap();
        for _ in 0..turns {
            assert_ne!(a.fill(1, &mut out, &message).unwrap(), Flow::Finished);
            assert_ne!(
                b.drain(0, &mut inn, &into, LONG_BYTES as u64).unwrap(),
                Flow::Finished
            );
        }
        a.abandon(out);
        for _ in 0..2000 {
            let flow = b.drain(0, &mut inn, &into, LONG_BYTES as u64).unwrap();
            assert_ne!(flow, Flow::Finished, "given up after {turns} turns");
            for task in [&mut *a, &mut *b] {
                let mut cursor = 0;
                while task.next_ready(&mut cursor).is_some() {}
            }
        }
        b.reclaim(inn);
        // The next stream is not affected.
        let (out, route) = a.open(1, &message).unwrap().unwrap();
        let inn = b.attach(0, &route).unwrap();
        flow(&mut tasks, &mut [out, inn], &message, &into);
        assert_eq!(to, from);
        to.fill(0);
    }
}

pub fn streams_are_limited_and_come_back<T: Streams + Frames>(make: impl Fn() -> World<T>) {
    let mut tasks = make().tasks;
    let (mut from, mut to) = (pattern(100, 5), vec![0; 100]);
    let (message, into) = (block(&mut from), block(&mut to));
    let mut open = Vec::new();
    while let Some((out, route)) = tasks[0].open(1, &message).unwrap() {
        open.push([out, tasks[1].attach(0, &route).unwrap()]);
        assert!(open.len() < 1 << 16, "streams have an end");
    }
    assert!(!open.is_empty());
    let [abandoned, _] = open.pop().unwrap();
    tasks[0].abandon(abandoned);
    assert!(
        tasks[0].open(1, &message).unwrap().is_some(),
        "one was given up"
    );
    assert!(tasks[0].open(1, &message).unwrap().is_none());
    for mut streams in open.drain(..) {
        flow(&mut tasks, &mut streams, &message, &into);
        let again = tasks[0].open(1, &message).unwrap();
        assert!(again.is_some(), "one has ended");
    }
    assert_eq!(to, from);
}

/// A short stream may have arrived before its receive is made; its sender continues with the next.
pub fn short_streams_wait_for_their_receives<T: Streams + Frames>(make: impl Fn() -> World<T>) {
    const LEN: usize = 20_000;
    let mut tasks = make().tasks;
    let (mut from, mut to) = (pattern(LEN, 8), vec![0; LEN]);
    let (message, into) = (block(&mut from), block(&mut to));
    for _ in 0..3 {
        let mut waiting = Vec::new();
        // The sender may first have to learn that the earlier streams have been received.
        let mut opened = soon(&mut tasks, |[a, _]| a.open(1, &message).unwrap());
        assert!(opened.is_some(), "none is open");
        while waiting.len() < 300
            && let Some((mut out, route)) = opened
        {
            let mut sent = Flow::Still;
            for _ in 0..2000 {
                sent = tasks[0].fill(1, &mut out, &message).unwrap();
                if sent == Flow::Finished {
                    break;
                }
                for task in &mut tasks {
                    let mut cursor = 0;
                    while task.next_ready(&mut cursor).is_some() {}
                }
            }
            waiting.push((out, sent, route));
            opened = tasks[0].open(1, &message).unwrap();
        }
        if let Some((out, _)) = opened {
            tasks[0].reclaim(out);
        }
        for (mut out, mut sent, route) in waiting {
            let mut inn = tasks[1].attach(0, &route).unwrap();
            let received = soon(&mut tasks, |[a, b]| {
                if sent != Flow::Finished {
                    sent = a.fill(1, &mut out, &message).unwrap();
                }
                let got = b.drain(0, &mut inn, &into, LEN as u64).unwrap();
                (got == Flow::Finished).then_some(())
            });
            assert_eq!(received, Some(()), "what waits can be received");
            let ended = soon(&mut tasks, |[a, _]| {
                if sent != Flow::Finished {
                    sent = a.fill(1, &mut out, &message).unwrap();
                }
                (sent == Flow::Finished).then_some(())
            });
            assert_eq!(ended, Some(()), "what is received has been sent");
            assert_eq!(to, from);
            to.fill(0);
        }
    }
}

pub fn a_route_that_makes_no_sense_is_the_peers_fault<T: Streams>(make: impl Fn() -> World<T>) {
    let mut task = make().tasks.into_iter().next().unwrap();
    for byte in [0x7f, 0x80, 0x81, 0xff] {
        let route: Route = [byte; 24];
        for attached in [task.attach(1, &route), task.attach_to_fill(1, &route)] {
            match attached {
                Err(Fault::Corrupt { peer: 1, .. }) => {}
                Err(other) => panic!("{other:?}"),
                Ok(_) => panic!("a route of bytes {byte:#x} leads somewhere"),
            }
        }
    }
}
