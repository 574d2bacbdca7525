//! The tasks of a job, as a transport knows them.
//!
//! *Order.* The count of losses changes after the presence of the peer that it counts. A peer that is not `Here` any more does not
//! come back.
//! *Blocking.* No call waits. [`Peers::losses`] is one load: it is looked at before every send.
//! *Faults.* None. The engine answers a fault of a peer, whichever trait found it, with [`Peers::close`].
//! *Ownership.* The way to a peer (a ring, a connection) is the transport's. The engine says when it needs that no more: by
//! `close`, and by [`Peers::forget`] once a peer is gone.

use super::Peer;

/// The state of a peer, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Running, or about to.
    Here,
    /// Left in good order; what it sent can still be received.
    Left,
    /// Died; what it sent before can still be received.
    Dead,
}

/// The tasks of the job: who they are, where they are, and whether they are still there.
pub trait Peers {
    /// This task.
    fn me(&self) -> Peer;
    /// How many tasks there have been so far. Grows while tasks are added to a job.
    fn peers(&self) -> u32;
    /// The tasks this one was started together with: the first of them, and how many. Their numbers are consecutive.
    fn world(&self) -> (Peer, u32) {
        (0, self.peers())
    }
    /// Is that peer still there?
    fn presence(&self, peer: Peer) -> Presence;
    /// Changes whenever the presence of any peer does. Read it before `presence`: that then knows every loss counted here.
    fn losses(&self) -> u32;

    /// The number of a peer's host. Peers of one host share memory.
    fn host(&self, _peer: Peer) -> u32 {
        0
    }
    /// Is there memory that both this task and that peer can see? Only then can there be loans between them, and
    /// collective buffers for both.
    fn shares_memory(&self, peer: Peer) -> bool;

    /// That peer broke the protocol: from now on [`Frames::front`](super::Frames::front) and
    /// [`Frames::next_ready`](super::Frames::next_ready) know nothing of it, and it is told that this task neither sends nor
    /// receives any more.
    fn close(&mut self, peer: Peer);
    /// That peer is gone, and all that it sent has been taken in: nothing of what leads to it is needed any more.
    fn forget(&mut self, _peer: Peer) {}
}
