//! A large message being sent: the sender's side of its stream.

use regatta_memory::views::Views;
use regatta_wire::{Frame, Offer};

use super::{CHUNKS_PER_TURN, Going};
use crate::transport::{Fault, Flow, Peer, Sent, Streams};

/// The stream of a message being sent.
pub(in crate::point_to_point) enum OutStream<B> {
    /// The receiver has to open it.
    Awaited,
    /// Some data is not in the stream yet.
    Open(B),
    /// All data of the message is in the stream.
    Filled,
}

impl<B> OutStream<B> {
    /// Returns whether all data of the message is in the stream.
    pub(super) fn is_filled(&self) -> bool {
        matches!(self, OutStream::Filled)
    }

    /// Returns the stream if some data is not in it yet.
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
    /// The header of its offer.
    pub(super) frame: Frame,
    pub(super) token: u64,
    pub(in crate::point_to_point) request: u32,
    pub(super) message: Views,
    pub(super) stream: OutStream<S::Bulk>,
    /// The offer has left the outbox: its receiver will find it even if this task leaves.
    pub(super) offered: bool,
    /// The receiver has begun to receive, or the sender need not know.
    pub(super) begun: bool,
    /// The receiver was asked to give the offer back. No data is sent until it has answered.
    pub(super) asked: bool,
}

impl<S: Streams> Outgoing<S> {
    /// Puts some of the message into the stream. Returns whether some bytes were added.
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

    /// Returns whether all data of the message is in the stream.
    pub(in crate::point_to_point) fn is_filled(&self) -> bool {
        self.stream.is_filled()
    }

    /// Returns whether the message would arrive even without this task.
    pub(super) fn is_sent(&self) -> bool {
        self.is_filled() && self.offered && self.begun
    }

    /// Returns the progress of the message.
    pub(super) fn going(&self, streams: &S) -> Going {
        if self.is_filled() && !self.offered && self.begun {
            return Going::Filled;
        }
        match &self.stream {
            OutStream::Open(bulk) => streams.sent(bulk).map_or(Going::Read, Going::Sent),
            _ => Going::Sent(Sent::default()),
        }
    }

    /// Sends the rest of the message from `copy`. Returns false if that is not possible now because the receiver is reading the original.
    pub(super) fn move_to(&mut self, streams: &mut S, copy: Views) -> Result<bool, Fault> {
        if let OutStream::Open(bulk) = &mut self.stream
            && !streams.move_to(self.to, bulk, &copy)?
        {
            return Ok(false);
        }
        self.message = copy;
        Ok(true)
    }

    /// Disposes of the stream of an offer that the receiver will not get. A filled stream belongs to the receiver and is retracted.
    pub(super) fn reclaim(self, streams: &mut S, offer: &Offer) {
        match self.stream.open() {
            Some(bulk) => streams.reclaim(bulk),
            None if offer.streaming => streams.retract(self.to, &offer.route),
            None => {}
        }
    }
}
