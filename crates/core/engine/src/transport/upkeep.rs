//! Upkeep: what the process that holds a transport asks of it, beside messages. The engine uses none of it.
//!
//! A transport that needs nothing of the kind, such as one whose peers are always reached and ring each other, keeps the defaults.
//!
//! *Callers.* All are in `crates/core/process`: `wait.rs`, `notice.rs` and `timed_receive.rs` (sleeping), `state.rs` (words left behind),
//! `leave.rs` (leaving), `launcher.rs` (peers out of reach), `deadlock_detector.rs` (circles of blocked tasks), `explain.rs` (words for people).
//! They hold the task's lock, as for every other trait.
//! *Order.* Before a sleep, and after the task has said on its bell that it is about to sleep: [`Upkeep::look_everywhere`], a look for
//! messages that finds none, and [`Upkeep::arm`]. What comes from then on rings the bell.
//! *Blocking.* No call waits. [`Upkeep::deliver`] says `false` as long as there is something to wait for, and is called again.
//! *Hot.* [`Upkeep::has_reaches`] and [`Upkeep::has_shortages`] are asked after each look for messages of a call that waits, and
//! [`Upkeep::look_everywhere`] before each sleep: loads and stores only. `arm` may call the system. All others are rare.
//! *Faults.* None. A peer that cannot be reached is reported here; one that broke the protocol is met by the next call of another trait.
//! *Ownership.* Reports are the caller's once taken. Threads of the transport enter the task by the function that it was made with, so
//! it must not be dropped under the task's lock.

use std::time::Duration;

use super::Peer;

/// A peer has come out of reach, or is reached again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The peer's number.
    pub peer: Peer,
    /// So long it has not answered; `None`: it is reached again.
    pub silent: Option<Duration>,
}

/// A peer that is to be given up, because a host lacks something that the path to it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The peer's number.
    pub peer: Peer,
    /// A sentence: the thing that is missing, where, and the remedy.
    pub sentence: String,
}

/// A task's answer about being blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitState {
    /// The task it waits for, as in its host's table.
    pub word: u64,
    /// How often it has looked around in vain.
    pub looks: u32,
    /// How many questions it has answered.
    pub answers: u32,
}

/// A transport, as the process that holds it keeps it going.
pub trait Upkeep {
    /// Returns the path that messages to a peer take, and why; for people.
    fn path(&mut self, peer: Peer) -> String;

    // Progress and sleep.

    /// Continues unfinished sends and takes in what has come, but hands no message to the engine. Called by the thread that acts for a task
    /// while it makes no calls.
    fn go_on(&mut self) {}
    /// Has the next look for messages ([`Frames::next_ready`](super::Frames::next_ready)) look at all paths, also those that cost a system call.
    fn look_everywhere(&mut self) {}
    /// Makes anything that has come but is not taken in, and anything that comes from now on, ring the task's bell.
    fn arm(&mut self) {}
    /// Notes that tasks or cores may have come or gone: the job may be crowded now, or not any more.
    fn look_around(&mut self) {}
    /// Notes that large messages cross: one from this peer waits here for a receive, while one from this task waits there. The next large
    /// messages to the peer take as much buffer space as is allowed.
    fn note_crossing(&mut self, _to: Peer) {}
    /// Sees to it that what this task has sent arrives; `leaves`: it sends nothing more. Returns whether all has arrived, or cannot.
    fn deliver(&mut self, _leaves: bool) -> bool {
        true
    }
    /// Returns how many threads of its own it has in this process.
    fn threads(&self) -> usize {
        0
    }

    // Peers that are not reached.

    /// Whether there is something for [`Upkeep::take_reaches`].
    #[inline]
    fn has_reaches(&self) -> bool {
        false
    }
    /// Returns the peers that have come out of reach, or back, since the last call.
    fn take_reaches(&mut self) -> Vec<Reach> {
        Vec::new()
    }
    /// Whether there is something for [`Upkeep::take_shortages`].
    #[inline]
    fn has_shortages(&self) -> bool {
        false
    }
    /// Returns the peers that the caller is to give up, since the last call.
    fn take_shortages(&mut self) -> Vec<Shortage> {
        Vec::new()
    }
    /// Gives up a peer that is not reached, which is dead for this task from now on. Where every peer is always reached, nothing happens.
    fn give_up(&mut self, _peer: Peer) {}
    /// Whether that peer lives, and its host holds this task for dead.
    fn is_disowned_by(&self, _peer: Peer) -> bool {
        false
    }

    // Circles of blocked tasks, of whom some cannot see each other's entries in the job's table.

    /// Returns the last answer of a peer on another host about being blocked, and asks it for the next one.
    fn inquire(&mut self, _peer: Peer) -> Option<WaitState> {
        None
    }
    /// Tells a peer on another host how it is with this task.
    fn send_state(&mut self, _peer: Peer) {}
    /// Tells a peer on another host that the wait it has shown with `word` is part of a circle. False: not now.
    fn send_circle(&mut self, _peer: Peer, _word: u64, _members: &[Peer]) -> bool {
        false
    }
}
