//! The transport's contract as tests, each a function of a maker of pairs.

pub mod frames;
pub mod memory;
pub mod streams;

use regatta_engine::{Peer, Presence, Transport};
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};

/// Two tasks that can talk to each other; task `n` is peer `n`.
pub struct World<T> {
    pub tasks: [T; 2],
    /// Let a task leave or die.
    pub lose: Box<dyn Fn(Peer, Presence)>,
}

/// An eager frame.
fn eager(context: u32, tag: i32) -> Frame {
    Frame {
        kind: Kind::Eager,
        context,
        tag,
    }
}

/// The memory of `bytes`, which must outlive the message and not move.
fn block(bytes: &mut [u8]) -> Views {
    // SAFETY: the tests keep `bytes` alive and untouched while they are moved.
    unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
}

/// Bytes that tell one message from another.
fn pattern(len: usize, n: u32) -> Vec<u8> {
    let byte = |i: usize| (i as u32).wrapping_mul(31).wrapping_add(n.wrapping_mul(97)) >> 3;
    (0..len).map(|i| byte(i) as u8).collect()
}

fn send<T: Transport>(task: &mut T, to: Peer, n: u32, len: usize) -> bool {
    let mut bytes = pattern(len, n);
    task.send(to, eager(n, n as i32), &block(&mut bytes))
        .unwrap()
}

/// The next message from a peer is number `n` with so many bytes.
fn expect<T: Transport>(task: &mut T, from: Peer, n: u32, len: usize) {
    // The first look may only notice that there is a path.
    let front = (0..2).find_map(|_| task.front(from).unwrap());
    let front = front.expect("a frame has arrived");
    assert_eq!((front.frame, front.length), (eager(n, n as i32), len));
    let again = task.front(from).unwrap().expect("looking takes nothing");
    assert_eq!((again.frame, again.length), (front.frame, front.length));
    let mut bytes = vec![0; len];
    task.accept(from, &block(&mut bytes));
    assert_eq!(bytes, pattern(len, n));
}

fn expect_none<T: Transport>(task: &mut T, from: Peer) {
    for _ in 0..2 {
        assert!(task.front(from).unwrap().is_none());
    }
}
