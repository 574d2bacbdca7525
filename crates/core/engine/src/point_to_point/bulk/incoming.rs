//! A large message being received: the receiver's side of its stream.

use regatta_memory::views::Views;

use super::CHUNKS_PER_TURN;
use crate::transport::{Fault, Flow, Peer, Streams};

/// A message being received.
pub(in crate::point_to_point) struct Incoming<S: Streams> {
    pub(in crate::point_to_point) from: Peer,
    /// `None` if the receive was withdrawn. The data is still drained, so that the sender's request completes.
    pub(super) request: Option<u32>,
    /// The stream. `None` once all data was received.
    pub(super) bulk: Option<S::Bulk>,
    /// The sender's token for the message.
    pub(super) token: u64,
    pub(super) total: u64,
    pub(super) tag: i32,
}

impl<S: Streams> Incoming<S> {
    /// Receives some of the message. Bytes beyond `into` are dropped. Returns whether some bytes were received or the message is complete.
    pub(super) fn drain(&mut self, streams: &mut S, into: &Views) -> Result<bool, Fault> {
        let Some(bulk) = self.bulk.as_mut() else {
            return Ok(false);
        };
        let mut moved = false;
        for _ in 0..CHUNKS_PER_TURN {
            match streams.drain(self.from, bulk, into, self.total)? {
                Flow::Still => break,
                Flow::Moved => moved = true,
                Flow::Finished => {
                    self.bulk = None;
                    return Ok(true);
                }
            }
        }
        Ok(moved)
    }
}
