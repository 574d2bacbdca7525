//! A large message on its way out: the sender's side of its stream.

use regatta_memory::views::Views;
use regatta_wire::{Frame, Offer};

use super::{Going, TURN};
use crate::transport::{Fault, Flow, Peer, Sent, Streams};

/// A message being sent.
pub(crate) struct Outgoing<S: Streams> {
    pub(crate) to: Peer,
    /// The head of its offer.
    pub(super) frame: Frame,
    pub(super) token: u64,
    pub(crate) request: u32,
    pub(super) message: Views,
    /// The stream, while there is something left to put in.
    pub(super) bulk: Option<S::Bulk>,
    pub(super) filled: bool,
    /// The offer has left the queue: its receiver will find it even if this task leaves.
    pub(super) offered: bool,
    /// The receiver has begun (or need not say so).
    pub(super) begun: bool,
    /// The receiver has been asked to give the offer back; nothing flows until it has answered.
    pub(super) asked: bool,
}

impl<S: Streams> Outgoing<S> {
    /// Moves some of the message. True: some bytes moved.
    pub(super) fn fill(&mut self, streams: &mut S) -> Result<bool, Fault> {
        let Some(bulk) = self.bulk.as_mut().filter(|_| !self.asked) else {
            return Ok(false);
        };
        let mut moved = false;
        for _ in 0..TURN {
            match streams.fill(self.to, bulk, &self.message)? {
                Flow::Still => break,
                Flow::Moved => moved = true,
                Flow::Finished => {
                    self.bulk = None;
                    self.filled = true;
                    return Ok(true);
                }
            }
        }
        Ok(moved)
    }

    /// That of the message.
    pub(crate) fn context(&self) -> u32 {
        self.frame.context
    }

    /// All of its message is in the stream.
    pub(crate) fn is_filled(&self) -> bool {
        self.filled
    }

    /// Would its message arrive without this task?
    pub(super) fn is_sent(&self) -> bool {
        self.filled && self.offered && self.begun
    }

    /// How it is getting on.
    pub(super) fn going(&self, streams: &S) -> Going {
        if self.filled && !self.offered && self.begun {
            return Going::Filled;
        }
        match &self.bulk {
            None => Going::Sent(Sent::default()),
            Some(bulk) => streams.sent(bulk).map_or(Going::Read, Going::Sent),
        }
    }

    /// The rest of the message is sent from `copy`. False: not now, for the receiver is just reading it where it was.
    pub(super) fn move_to(&mut self, streams: &mut S, copy: Views) -> Result<bool, Fault> {
        if let Some(bulk) = &mut self.bulk
            && !streams.move_to(self.to, bulk, &copy)?
        {
            return Ok(false);
        }
        self.message = copy;
        Ok(true)
    }

    /// Disposes of the stream of an offer that nobody will hear of. One that has been filled was as good as the receiver's.
    pub(super) fn reclaim(self, streams: &mut S, offer: &Offer) {
        match self.bulk {
            Some(bulk) => streams.reclaim(bulk),
            None if offer.streaming => streams.retract(self.to, &offer.route),
            None => {}
        }
    }
}
