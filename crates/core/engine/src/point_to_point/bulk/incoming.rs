//! A large message on its way in: the receiver's side of its stream.

use regatta_memory::views::Views;

use super::CHUNKS_PER_TURN;
use crate::transport::{Fault, Flow, Peer, Streams};

/// A message being received.
pub(in crate::point_to_point) struct Incoming<S: Streams> {
    pub(in crate::point_to_point) from: Peer,
    /// `None`: the receive was taken back; its bytes are drained, so that the sender's request completes.
    pub(super) request: Option<u32>,
    /// `None`: all of it has come.
    pub(super) bulk: Option<S::Bulk>,
    /// The sender's token for it.
    pub(super) token: u64,
    pub(super) total: u64,
    pub(super) tag: i32,
}

impl<S: Streams> Incoming<S> {
    /// Moves some of the message; bytes beyond `into` are dropped. Returns whether some bytes moved or the last one has come.
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
