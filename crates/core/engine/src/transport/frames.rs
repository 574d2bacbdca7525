//! Frames: small messages, and words about large ones.
//!
//! *Order.* Frames from one task to another arrive in the order they were sent, each whole, once. Frames of different senders
//! come in any order.
//! *Blocking.* No call waits. `send` may find no room; the engine then tries again later.
//! *Faults.* A frame that no correct peer sends is a [`Fault`] of the call that meets it; what came before it is delivered.
//! *Ownership.* The payload of a `send` is the caller's again when the call returns. A frame at the front stays there until it is
//! accepted; then its memory is the sender's to use again.

use regatta_memory::held::Held;
#[cfg(doc)]
use regatta_memory::ring::INLINE;
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};

use super::{Fault, Peer};

/// The head of a frame that has arrived, and how long its payload is.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The head.
    pub frame: Frame,
    /// Bytes of payload.
    pub length: usize,
}

/// Outcome of [`Frames::send_line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentLine {
    /// Nothing has happened.
    No,
    /// It has been sent.
    Yes,
    /// It has been sent, and the receiver sleeps: [`Frames::wake`] is due. Waking is a call, so the fast path, which saves no registers, leaves it to
    /// its caller.
    ToSleeper,
}

/// Outcome of [`Frames::poll_matching`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// A message of this length, in bytes, which has been received.
    Received(usize),
    /// Nothing is there.
    Nothing,
    /// Something else is there, perhaps a fault. Nothing has happened.
    Other,
}

/// Frames to and from other tasks.
pub trait Frames {
    /// Returns the longest payload of a frame to most peers, in bytes; a longer one finds no room. The fast path of a send compares with this for every
    /// peer, so of a transport of several ways it is the limit in shared memory; [`Frames::eager_limit_to`] may be larger.
    fn eager_limit(&self) -> usize;
    /// Returns the longest payload of a frame to this peer, in bytes, as far as is known: a path that is not there yet takes at least this.
    fn eager_limit_to(&self, _peer: Peer) -> usize {
        self.eager_limit()
    }
    /// Sends a frame whole. Returns false if there is no room now.
    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault>;
    /// As `send`, of an eager frame whose payload fits into a line of a ring ([`INLINE`] bytes), if that can be done at once. [`SentLine::No`]: `send` does it or says why not.
    /// The fast path of every small send.
    #[inline(always)]
    fn send_line(&mut self, _to: Peer, _context: u32, _tag: i32, _payload: &Views) -> SentLine {
        SentLine::No
    }
    /// Sends a frame to several peers (at most 64) at the cost of about one [`Frames::send`]. Returns a bit for each peer that it has gone to, by its
    /// place in `to`. For the others nothing has happened, and the caller sends to each.
    fn send_to_all(&mut self, _to: &[Peer], _frame: Frame, _payload: &Views) -> u64 {
        0
    }
    /// Wakes a peer to which a line went [`ToSleeper`](SentLine::ToSleeper).
    fn wake(&mut self, _to: Peer) {}
    /// As `send`, with a payload of at most [`regatta_wire::BODY`] bytes of the engine's own. Nobody sends it again: what this host lacks for a
    /// connection, such as a descriptor, is no error of this call ([`Fault::System`]), which then keeps the frame.
    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault>;
    /// Returns the oldest frame from a peer that has not been accepted.
    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault>;
    /// Copies the front frame's payload, as far as `into` goes, and is done with the frame.
    fn accept(&mut self, from: Peer, into: &Views);
    /// Notes that this task waits for a message of `peer` and may answer: its next frame to that task is the faster for it.
    #[inline(always)]
    fn prepare(&mut self, _peer: Peer) {}

    /// Looks at the front frame once, and receives it if it is an eager message with this context and tag that fits into `into`. The fast path of
    /// every small receive.
    #[inline(always)]
    fn poll_matching(&mut self, from: Peer, context: u32, tag: i32, into: &Views) -> Polled {
        let front = match self.front(from) {
            Ok(Some(front)) => front,
            Ok(None) => return Polled::Nothing,
            Err(_) => return Polled::Other,
        };
        let frame = front.frame;
        let fits = frame.kind == Kind::Eager
            && (frame.context, frame.tag) == (context, tag)
            && front.length <= into.len();
        if !fits {
            return Polled::Other;
        }
        self.accept(from, into);
        Polled::Received(front.length)
    }
    /// Returns the front frame's payload as bytes, and is done with the frame.
    fn accept_bytes(&mut self, from: Peer) -> Held;
    /// Returns the peers that may have sent something, one a call, each time from the first: `cursor` starts at 0
    /// and is advanced past the peer returned.
    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer>;
}
