//! Streams: the bytes of large messages, each in a stream of its own.
//!
//! *Order.* A stream is opened by either side and named to the other by a [`Route`], in a frame. Its bytes arrive in the order
//! they were put in. Streams of different messages do not hold each other up, nor do they hold up frames.
//! *Blocking.* No call waits. `fill` and `drain` move a bounded number of bytes, or say that nothing can move now.
//! *Faults.* A route that leads nowhere, and bytes that no correct peer writes, are a [`Fault`] of the call that meets them.
//! *Ownership.* Each side of a stream has it in hand until `fill` or `drain` says [`Flow::Finished`]; otherwise it is given up, by one
//! of `abandon` and `reclaim`. Until then the sender's message stays where it is and as it is: its receiver may read it there.

use regatta_memory::views::Views;
use regatta_wire::Route;

use super::{Fault, Peer};

/// How far a bulk stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Nothing moved.
    Still,
    /// Some bytes moved.
    Moved,
    /// This side has nothing more to do, and the stream must not be used again.
    Finished,
}

/// Progress of a stream's message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes given to the connection or the pipe.
    pub bytes: u64,
    /// Bytes that will not be read from the message again. Those beyond may be, after a connection that broke.
    pub for_good: u64,
}

impl Sent {
    /// Progress of a path that never reads a byte twice.
    pub fn for_good(bytes: u64) -> Sent {
        Sent {
            bytes,
            for_good: bytes,
        }
    }
}

/// Streams to and from other tasks.
pub trait Streams {
    /// One side of a bulk stream.
    type Bulk;

    /// Sender: open a stream of one's own for a message; `None` when too many are open.
    fn open(&mut self, to: Peer, message: &Views) -> Result<Option<(Self::Bulk, Route)>, Fault>;
    /// Receiver: open a stream for a message the sender has opened none for.
    fn open_for(&mut self, from: Peer) -> Result<(Self::Bulk, Route), Fault>;
    /// Receiver: use the stream the sender opened.
    fn attach(&mut self, peer: Peer, route: &Route) -> Result<Self::Bulk, Fault>;
    /// Sender: use the stream the receiver opened.
    fn attach_to_fill(&mut self, peer: Peer, route: &Route) -> Result<Self::Bulk, Fault> {
        self.attach(peer, route)
    }
    /// Receiver: the message is not received, and its sender, which has asked for that, hears so: the stream it opened is its
    /// own again, to be reclaimed.
    fn decline(&mut self, _peer: Peer, _route: &Route) -> Result<(), Fault> {
        Ok(())
    }
    /// Sender: move some of the message.
    fn fill(&mut self, to: Peer, bulk: &mut Self::Bulk, message: &Views) -> Result<Flow, Fault>;
    /// Sender: how much of the message has gone; `None`: its receiver is just reading it where it lies.
    fn sent(&self, bulk: &Self::Bulk) -> Option<Sent>;
    /// Sender: the message has been copied to `message`, from where it is sent from now on; bytes that have gone for good ([`Sent`]) may be
    /// missing there. False: not now, its receiver is just reading it where it was.
    fn move_to(&mut self, to: Peer, bulk: &mut Self::Bulk, message: &Views) -> Result<bool, Fault>;
    /// Receiver: move some of the message of `total` bytes; bytes beyond `into` are dropped.
    fn drain(
        &mut self,
        from: Peer,
        bulk: &mut Self::Bulk,
        into: &Views,
        total: u64,
    ) -> Result<Flow, Fault>;
    /// Give up a stream that the other side may still hold. The memory of the message is its
    /// owner's again: what the other side reads there after this is not delivered.
    fn abandon(&mut self, bulk: Self::Bulk);
    /// Give up a stream that the other side does not hold, or has abandoned or declined: it is used again.
    fn reclaim(&mut self, bulk: Self::Bulk);
    /// Sender: as `reclaim`, for a stream of its own that it has filled.
    fn retract(&mut self, to: Peer, route: &Route) {
        if let Ok(bulk) = self.attach(to, route) {
            self.reclaim(bulk);
        }
    }
}
