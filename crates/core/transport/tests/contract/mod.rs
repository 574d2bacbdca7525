//! The contract as tests, with a file for each of its traits. Each test is a function that takes a maker of pairs.

pub mod collective_buffers;
pub mod frames;
pub mod loans;
pub mod peers;
pub mod streams;
pub mod upkeep;

use std::time::{Duration, Instant};

use regatta_engine::{Arrival, Frames, Peer, Presence};
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};

/// Two tasks that can communicate; task `n` is peer `n`.
pub struct World<T> {
    pub tasks: [T; 2],
    /// Makes a task leave or die.
    pub lose: Box<dyn Fn(Peer, Presence)>,
}

/// Returns an eager frame.
fn eager(context: u32, tag: i32) -> Frame {
    Frame {
        kind: Kind::Eager,
        context,
        tag,
    }
}

/// Returns the memory of `bytes`, which must outlive the message and not move.
fn block(bytes: &mut [u8]) -> Views {
    // SAFETY: the tests keep `bytes` alive and do not access it during a transfer.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

/// Returns bytes that differ between messages.
fn pattern(len: usize, n: u32) -> Vec<u8> {
    let byte = |i: usize| (i as u32).wrapping_mul(31).wrapping_add(n.wrapping_mul(97)) >> 3;
    (0..len).map(|i| byte(i) as u8).collect()
}

fn send<T: Frames>(task: &mut T, to: Peer, n: u32, len: usize) -> bool {
    let mut bytes = pattern(len, n);
    task.send(to, eager(n, n as i32), &block(&mut bytes))
        .unwrap()
}

/// Time for which a transport is polled before what it should deliver counts as lost.
const AWAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Polls both tasks until `found` returns something: a transport may need both sides for what one of them sends.
/// Returns `None` after [`AWAIT_TIMEOUT`].
fn soon<T: Frames, R>(
    tasks: &mut [T; 2],
    mut found: impl FnMut(&mut [T; 2]) -> Option<R>,
) -> Option<R> {
    let start = Instant::now();
    loop {
        if let Some(found) = found(tasks) {
            return Some(found);
        }
        for task in tasks.iter_mut() {
            let mut cursor = 0;
            while task.next_ready(&mut cursor).is_some() {}
        }
        if start.elapsed() > AWAIT_TIMEOUT {
            return None;
        }
    }
}

/// Sends a message on an empty path, which must have room at the latest when both sides have polled.
fn send_soon<T: Frames>(tasks: &mut [T; 2], from: usize, n: u32, len: usize) {
    let to = 1 - from as Peer;
    let sent = soon(tasks, |tasks| {
        send(&mut tasks[from], to, n, len).then_some(())
    });
    assert_eq!(sent, Some(()), "an empty path has room");
}

/// Returns the front frame at task `to` from the other task.
fn front<T: Frames>(tasks: &mut [T; 2], to: usize) -> Arrival {
    let from = 1 - to as Peer;
    soon(tasks, |tasks| tasks[to].front(from).unwrap()).expect("a frame has arrived")
}

/// Checks that the next message at task `to` is number `n` and has this many bytes, and takes it.
fn expect<T: Frames>(tasks: &mut [T; 2], to: usize, n: u32, len: usize) {
    let first = front(tasks, to);
    let (task, from) = (&mut tasks[to], 1 - to as Peer);
    assert_eq!((first.frame, first.length), (eager(n, n as i32), len));
    let again = task.front(from).unwrap().expect("looking takes nothing");
    assert_eq!((again.frame, again.length), (first.frame, first.length));
    let mut bytes = vec![0; len];
    task.accept(from, &block(&mut bytes));
    assert_eq!(bytes, pattern(len, n));
}

fn expect_none<T: Frames>(tasks: &mut [T; 2], to: usize) {
    for _ in 0..2 {
        assert!(tasks[to].front(1 - to as Peer).unwrap().is_none());
    }
}
