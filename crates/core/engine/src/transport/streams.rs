//! Streams: the data of large messages, each in its own stream.
//!
//! *Order.* Either side opens a stream and sends the other a [`Route`] to it in a frame. Its bytes arrive in the order in which they were put in.
//! Streams of different messages do not delay each other, nor do they delay frames.
//! *Blocking.* No call blocks. `fill` and `drain` move a bounded number of bytes, or report that no bytes can be moved now.
//! *Faults.* An invalid route, and bytes that no correct peer writes, are a [`Fault`] of the call that detects them.
//! *Ownership.* Each side owns its end of a stream until `fill` or `drain` returns [`Flow::Finished`], or until it gives the stream up with
//! `abandon` or `reclaim`. Until then the sender's message must not be moved or changed: its receiver may read it in place.

use regatta_memory::views::Views;
use regatta_wire::Route;

use super::{Fault, Peer};

/// The progress of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// No bytes were moved.
    Still,
    /// Some bytes were moved.
    Moved,
    /// This side is done, and must not use the stream again.
    Finished,
}

/// How much of a stream's message was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Number of bytes passed to the connection or the pipe.
    pub bytes: u64,
    /// Number of bytes that will not be read from the message again. Later bytes may be, after a broken connection.
    pub for_good: u64,
}

impl Sent {
    /// Returns the progress on a path that never reads a byte twice.
    pub fn for_good(bytes: u64) -> Sent {
        Sent {
            bytes,
            for_good: bytes,
        }
    }
}

/// Streams to and from other tasks.
pub trait Streams {
    /// One end of a stream.
    type Bulk;

    /// Sender: opens its own stream for a message. Returns `None` if too many are open.
    fn open(&mut self, to: Peer, message: &Views) -> Result<Option<(Self::Bulk, Route)>, Fault>;
    /// Receiver: opens a stream for a message for which the sender has opened none.
    fn open_for(&mut self, from: Peer) -> Result<(Self::Bulk, Route), Fault>;
    /// Receiver: attaches to the stream that the sender has opened.
    fn attach(&mut self, peer: Peer, route: &Route) -> Result<Self::Bulk, Fault>;
    /// Sender: attaches to the stream that the receiver has opened.
    fn attach_to_fill(&mut self, peer: Peer, route: &Route) -> Result<Self::Bulk, Fault> {
        self.attach(peer, route)
    }
    /// Receiver: declines a message because its sender wants to withdraw it. The stream that the sender has opened belongs to the sender again,
    /// which reclaims it.
    fn decline(&mut self, _peer: Peer, _route: &Route) -> Result<(), Fault> {
        Ok(())
    }
    /// Sender: moves some of the message into the stream.
    fn fill(&mut self, to: Peer, bulk: &mut Self::Bulk, message: &Views) -> Result<Flow, Fault>;
    /// Sender: returns how much of the message was sent, or `None` if its receiver is reading it in place now.
    fn sent(&self, bulk: &Self::Bulk) -> Option<Sent>;
    /// Sender: continues the message from the copy `message`. Bytes that are sent for good ([`Sent`]) may be missing in the copy. Returns false if
    /// that is not possible now because the receiver is reading the original.
    fn move_to(&mut self, to: Peer, bulk: &mut Self::Bulk, message: &Views) -> Result<bool, Fault>;
    /// Receiver: moves some of the message of `total` bytes into `into`. Bytes that do not fit are dropped.
    fn drain(
        &mut self,
        from: Peer,
        bulk: &mut Self::Bulk,
        into: &Views,
        total: u64,
    ) -> Result<Flow, Fault>;
    /// Gives up a stream that the other side may still use. The memory of the message belongs to its owner again: what the other side reads there
    /// after this is not delivered.
    fn abandon(&mut self, bulk: Self::Bulk);
    /// Gives up a stream that the other side does not use, or has abandoned or declined. The stream can be reused.
    fn reclaim(&mut self, bulk: Self::Bulk);
    /// Sender: does the same as `reclaim`, for its own stream that it has filled.
    fn retract(&mut self, to: Peer, route: &Route) {
        if let Ok(bulk) = self.attach(to, route) {
            self.reclaim(bulk);
        }
    }
}
