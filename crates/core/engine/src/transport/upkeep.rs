//! Upkeep: calls of the process that holds a transport, besides messages. The engine uses none of them.
//!
//! A transport whose peers are always reachable and wake each other can keep the defaults.
//!
//! *Callers.* All are in `crates/core/process`: `wait.rs`, `notice.rs` and `timed_receive.rs` (sleeping), `state.rs` (unfinished work between
//! calls), `leave.rs` (leaving), `launcher.rs` (unreachable peers), `deadlock_detector.rs` (cycles of blocked tasks), `explain.rs` (texts for the
//! user). They hold the task's lock, as for every other trait.
//! *Order.* Before a sleep, after the task has announced on its bell that it is about to sleep: [`Upkeep::look_everywhere`], a poll for messages
//! that finds none, and [`Upkeep::arm`]. Whatever arrives after that rings the bell.
//! *Blocking.* No call blocks. [`Upkeep::deliver`] returns `false` while there is something to wait for, and is called again.
//! *Hot.* [`Upkeep::has_reaches`] and [`Upkeep::has_shortages`] are called after each poll of a blocking call, and [`Upkeep::look_everywhere`]
//! before each sleep: loads and stores only. `arm` may make a system call. All other calls are rare.
//! *Faults.* None. A peer that is unreachable is reported here; one that broke the protocol is detected by the next call of another trait.
//! *Ownership.* Reports belong to the caller once taken. Threads of the transport enter the task by the function that it was created with, so it
//! must not be dropped under the task's lock.

use std::time::Duration;

use super::Peer;

/// A report that a peer has become unreachable, or reachable again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The peer's number.
    pub peer: Peer,
    /// Time since its last answer. `None` if it is reachable again.
    pub silent: Option<Duration>,
}

/// A peer that must be given up because a host lacks a resource that the path to it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The peer's number.
    pub peer: Peer,
    /// A sentence: the missing resource, its host, and the remedy.
    pub sentence: String,
}

/// A task's answer to the question whether it is blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitState {
    /// The task that it waits for, encoded as in its host's table.
    pub word: u64,
    /// Number of its unsuccessful polls.
    pub looks: u32,
    /// Number of questions that it has answered.
    pub answers: u32,
}

/// The calls by which the process that holds a transport keeps it running.
pub trait Upkeep {
    /// Returns the path of messages to a peer and the reason for it, for the user.
    fn path(&mut self, peer: Peer) -> String;

    // Progress and sleep.

    /// Continues unfinished sends and receives what has arrived, but passes no message to the engine. Called by the thread that acts for a task
    /// while the task makes no calls.
    fn go_on(&mut self) {}
    /// Makes the next poll for messages ([`Frames::next_ready`](super::Frames::next_ready)) check all paths, including those that cost a system
    /// call.
    fn look_everywhere(&mut self) {}
    /// Makes anything that has arrived but was not received, and anything that arrives from now on, ring the task's bell.
    fn arm(&mut self) {}
    /// Notifies the transport that the number of tasks or cores may have changed: the job may be oversubscribed now, or not any more.
    fn look_around(&mut self) {}
    /// Notifies the transport that large messages cross: one from this peer waits here for a receive, while one from this task waits there. The next
    /// large messages to the peer use the maximum buffer space.
    fn note_crossing(&mut self, _to: Peer) {}
    /// Makes progress in delivering what this task has sent. `leaves` says that it sends nothing more. Returns whether everything has arrived or
    /// never will.
    fn deliver(&mut self, _leaves: bool) -> bool {
        true
    }
    /// Returns the number of threads that the transport has in this process.
    fn threads(&self) -> usize {
        0
    }

    // Unreachable peers.

    /// Returns whether [`Upkeep::take_reaches`] would return a report.
    #[inline]
    fn has_reaches(&self) -> bool {
        false
    }
    /// Returns the peers that have become unreachable, or reachable again, since the last call.
    fn take_reaches(&mut self) -> Vec<Reach> {
        Vec::new()
    }
    /// Returns whether [`Upkeep::take_shortages`] would return a peer.
    #[inline]
    fn has_shortages(&self) -> bool {
        false
    }
    /// Returns the peers that the caller must give up, since the last call.
    fn take_shortages(&mut self) -> Vec<Shortage> {
        Vec::new()
    }
    /// Gives up an unreachable peer, which this task considers dead from now on. Does nothing if all peers are always reachable.
    fn give_up(&mut self, _peer: Peer) {}
    /// Returns whether a peer lives and its host considers this task dead.
    fn is_disowned_by(&self, _peer: Peer) -> bool {
        false
    }

    // Cycles of blocked tasks, some of which cannot see each other's entries in the job's table.

    /// Returns the last answer of a peer on another host to the question whether it is blocked, and asks again.
    fn inquire(&mut self, _peer: Peer) -> Option<WaitState> {
        None
    }
    /// Sends this task's state to a peer on another host.
    fn send_state(&mut self, _peer: Peer) {}
    /// Notifies a peer on another host that its wait shown by `word` is part of a cycle. Returns false if that is not possible now.
    fn send_circle(&mut self, _peer: Peer, _word: u64, _members: &[Peer]) -> bool {
        false
    }
}
