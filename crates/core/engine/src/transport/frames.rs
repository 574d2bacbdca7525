//! Frames: small messages, and control frames of large ones.
//!
//! *Order.* Frames from one task to another arrive in the order in which they were sent, whole and once. Frames of different senders arrive in any
//! order.
//! *Blocking.* No call blocks. If `send` finds no space, the engine tries again later.
//! *Faults.* A frame that no correct peer sends is a [`Fault`] of the call that detects it; earlier frames are delivered.
//! *Ownership.* The payload of a `send` belongs to the caller again when the call returns. A frame at the front stays there until it is accepted;
//! then the sender may reuse its memory.

use regatta_memory::held::Held;
#[cfg(doc)]
use regatta_memory::ring::INLINE;
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};

use super::{Fault, Peer};

/// The header of a frame that has arrived, and the length of its payload.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The header.
    pub frame: Frame,
    /// Length of the payload in bytes.
    pub length: usize,
}

/// Outcome of [`Frames::send_line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentLine {
    /// Nothing was sent.
    No,
    /// The message was sent.
    Yes,
    /// The message was sent, and the receiver sleeps: the caller must call [`Frames::wake`]. The fast path does not call it itself because it saves
    /// no registers.
    ToSleeper,
}

/// Outcome of [`Frames::poll_matching`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// A message of this length in bytes was received.
    Received(usize),
    /// No frame has arrived.
    Nothing,
    /// Another frame is at the front, or a fault was detected. Nothing was received.
    Other,
}

/// Frames to and from other tasks.
pub trait Frames {
    /// Returns the maximum length of a frame's payload to any peer, in bytes; longer ones are never sent. The fast path of a send compares every
    /// message with this, so for a transport with several paths it is the limit in shared memory. [`Frames::eager_limit_to`] may be larger.
    fn eager_limit(&self) -> usize;
    /// Returns the maximum length of a frame's payload to this peer, in bytes, as far as it is known. A path that does not exist yet accepts at
    /// least this length.
    fn eager_limit_to(&self, _peer: Peer) -> usize {
        self.eager_limit()
    }
    /// Sends a whole frame. Returns false if there is no space now.
    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault>;
    /// Does the same as `send`, for an eager frame whose payload fits into a line of a ring ([`INLINE`] bytes), if that is possible at once. After
    /// [`SentLine::No`], the caller must use `send`, which also returns the error, if any. The fast path of every small send.
    #[inline(always)]
    fn send_line(&mut self, _to: Peer, _context: u32, _tag: i32, _payload: &Views) -> SentLine {
        SentLine::No
    }
    /// Sends a frame to several peers (at most 64) at the cost of about one [`Frames::send`]. Returns a bit mask of the peers, by index in `to`, to
    /// which it was sent. Nothing was sent to the others; the caller sends to each of them.
    fn send_to_all(&mut self, _to: &[Peer], _frame: Frame, _payload: &Views) -> u64 {
        0
    }
    /// Wakes a peer to which a line was sent with the result [`ToSleeper`](SentLine::ToSleeper).
    fn wake(&mut self, _to: Peer) {}
    /// Does the same as `send`, for a payload of the engine's own of at most [`regatta_wire::BODY`] bytes. The engine does not send it again. So a
    /// lack of resources for a connection, such as a descriptor, is not an error ([`Fault::System`]) of this call; the transport keeps the frame.
    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault>;
    /// Returns the oldest frame of a peer that was not accepted, if there is one.
    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault>;
    /// Copies the payload of the front frame into `into`, as far as it fits, and removes the frame.
    fn accept(&mut self, from: Peer, into: &Views);
    /// Announces that this task waits for a message of `peer` and may answer it. Makes its next frame to that task faster.
    #[inline(always)]
    fn prepare(&mut self, _peer: Peer) {}

    /// Checks the front frame once, and receives it if it is an eager message with this context and tag that fits into `into`. The fast path of
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
    /// Returns the payload of the front frame and removes the frame.
    fn accept_bytes(&mut self, from: Peer) -> Held;
    /// Returns the next peer that may have sent a frame, or `None` if there is no further one. `cursor` starts at 0 and is advanced past the
    /// returned peer.
    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer>;
}
