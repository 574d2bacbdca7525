//! A large message on its way out: the sender's side of its stream.

use regatta_memory::views::Views;
use regatta_wire::{Frame, Offer};

use super::{CHUNKS_PER_TURN, Going};
use crate::transport::{Fault, Flow, Peer, Sent, Streams};

/// The stream of a message being sent.
pub(in crate::point_to_point) enum OutStream<B> {
    /// The receiver is to open it.
    Awaited,
    /// There is something left to put in.
    Open(B),
    /// All of the message is in it.
    Filled,
}

impl<B> OutStream<B> {
    /// Returns whether all of the message is in it.
    pub(super) fn is_filled(&self) -> bool {
        matches!(self, OutStream::Filled)
    }

    /// Returns the stream, while there is something left to put in.
    pub(super) fn open(self) -> Option<B> {
        match self {
            OutStream::Open(bulk) => Some(bulk),
            OutStream::Awaited | OutStream::Filled => None,
        }
    }
}

/// A message being sent.
pub(in crate::point_to_point) struct Outgoing<S: Streams> {
    pub(in crate::point_to_point) to: Peer,
    /// The head of its offer.
    pub(super) frame: Frame,
    pub(super) token: u64,
    pub(in crate::point_to_point) request: u32,
    pub(super) message: Views,
    pub(super) stream: OutStream<S::Bulk>,
    /// The offer has left the outbox: its receiver will find it even if this task leaves.
    pub(super) offered: bool,
    /// The receiver has begun (or need not say so).
    pub(super) begun: bool,
    /// The receiver has been asked to give the offer back; nothing flows until it has answered.
    pub(super) asked: bool,
}

impl<S: Streams> Outgoing<S> {
    /// Moves some of the message. Returns whether some bytes moved.
    pub(super) fn fill(&mut self, streams: &mut S) -> Result<bool, Fault> {
        let OutStream::Open(bulk) = &mut self.stream else {
            return Ok(false);
        };
        if self.asked {
            return Ok(false);
        }
        let mut moved = false;
        for _ in 0..CHUNKS_PER_TURN {
            match streams.fill(self.to, bulk, &self.message)? {
                Flow::Still => break,
                Flow::Moved => moved = true,
                Flow::Finished => {
                    self.stream = OutStream::Filled;
                    return Ok(true);
                }
            }
        }
        Ok(moved)
    }

    /// Returns the context of the message.
    pub(in crate::point_to_point) fn context(&self) -> u32 {
        self.frame.context
    }

    /// Returns whether all of its message is in the stream.
    pub(in crate::point_to_point) fn is_filled(&self) -> bool {
        self.stream.is_filled()
    }

    /// Returns whether its message would arrive without this task.
    pub(super) fn is_sent(&self) -> bool {
        self.is_filled() && self.offered && self.begun
    }

    /// Returns how it is getting on.
    pub(super) fn going(&self, streams: &S) -> Going {
        if self.is_filled() && !self.offered && self.begun {
            return Going::Filled;
        }
        match &self.stream {
            OutStream::Open(bulk) => streams.sent(bulk).map_or(Going::Read, Going::Sent),
            _ => Going::Sent(Sent::default()),
        }
    }

    /// Sends the rest of the message from `copy`. Returns false if that cannot be now: the receiver is just reading it where it was.
    pub(super) fn move_to(&mut self, streams: &mut S, copy: Views) -> Result<bool, Fault> {
        if let OutStream::Open(bulk) = &mut self.stream
            && !streams.move_to(self.to, bulk, &copy)?
        {
            return Ok(false);
        }
        self.message = copy;
        Ok(true)
    }

    /// Disposes of the stream of an offer that nobody will hear of. One that has been filled was as good as the receiver's.
    pub(super) fn reclaim(self, streams: &mut S, offer: &Offer) {
        match self.stream.open() {
            Some(bulk) => streams.reclaim(bulk),
            None if offer.streaming => streams.retract(self.to, &offer.route),
            None => {}
        }
    }
}
