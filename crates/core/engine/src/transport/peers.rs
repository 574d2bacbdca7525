//! The tasks of a job, as a transport knows them.
//!
//! *Order.* The counter of losses changes after the presence of the peer that it counts. A peer that is not `Here` any more does not come back.
//! *Blocking.* No call blocks. [`Peers::losses`] is a single load: it is called before every send.
//! *Faults.* None. When any trait has found a fault of a peer, the engine calls [`Peers::close`].
//! *Ownership.* The path to a peer (a ring, a connection) belongs to the transport. The engine releases it by `close`, and by [`Peers::forget`] once
//! a peer is gone.

use super::Peer;

/// The state of a peer, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Running, or about to run.
    Here,
    /// Has left in good order. What it has sent can still be received.
    Left,
    /// Has died. What it has sent before can still be received.
    Dead,
}

/// The tasks of the job: their numbers, their hosts, and whether they are alive.
pub trait Peers {
    /// Returns the number of this task.
    fn me(&self) -> Peer;
    /// Returns the number of tasks so far. Increases when tasks are added to the job.
    fn peers(&self) -> u32;
    /// Returns the first task and the number of the tasks that were started together with this one. Their numbers are consecutive.
    fn world(&self) -> (Peer, u32) {
        (0, self.peers())
    }
    /// Returns whether a peer is alive.
    fn presence(&self, peer: Peer) -> Presence;
    /// Returns a counter that changes whenever the presence of any peer does. Read it before `presence`, which then takes into account every loss
    /// counted here.
    fn losses(&self) -> u32;

    /// Returns the number of a peer's host. Peers on one host share memory.
    fn host(&self, _peer: Peer) -> u32 {
        0
    }
    /// Returns whether there is memory that both this task and the peer can access. Loans between them, and collective buffers for both, require
    /// that.
    fn shares_memory(&self, peer: Peer) -> bool;

    /// Closes the path to a peer that broke the protocol: from now on [`Frames::front`](super::Frames::front) and
    /// [`Frames::next_ready`](super::Frames::next_ready) ignore it, and it is notified that this task neither sends to it nor receives from it any
    /// more.
    fn close(&mut self, peer: Peer);
    /// Releases the path to a peer that is gone and of which everything was received.
    fn forget(&mut self, _peer: Peer) {}
}
